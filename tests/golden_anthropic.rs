//! Transcripts of Messages and Responses streams, cut at every byte, must give the same events each time.
//!
//! `BLESS=1` writes what the decoder gives into the `.events` files; read the difference before it is kept.
#![expect(clippy::expect_used, clippy::panic, reason = "a test's panic is its report")]

use bytes::Bytes;
use segue::dialect::anthropic::Anthropic;
use segue::dialect::responses::Responses;
use segue::dialect::{Expect, Flow, Provider};
use segue::event::{Event, Step};
use segue::sse::{Decoder, Item};
use std::fmt::Write;
use std::path::PathBuf;

const LIMIT: usize = 1 << 20;

#[test]
fn every_cut_of_a_messages_stream_gives_the_same_events() {
    try_each("anthropic", &Anthropic);
}

#[test]
fn every_cut_of_a_responses_stream_gives_the_same_events() {
    try_each("responses", &Responses);
}

fn try_each(folder: &str, provider: &dyn Provider) {
    let read = |pieces: &mut dyn Iterator<Item = Bytes>| read(provider, pieces);
    let mut count = 0;
    for path in transcripts(folder) {
        let body = Bytes::from(std::fs::read(&path).expect("a transcript"));
        let whole = read(&mut [body.clone()].into_iter());
        let expected = path.with_extension("events");
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(&expected, &whole).expect("a place for the events");
        }
        let told = std::fs::read_to_string(&expected).expect("events beside the transcript");
        assert_eq!(whole, told, "{}", path.display());
        for cut in 1..body.len() {
            let halves = read(&mut [body.slice(..cut), body.slice(cut..)].into_iter());
            assert_eq!(halves, told, "{} cut at {cut}", path.display());
        }
        let bytes = read(&mut (0..body.len()).map(|at| body.slice(at..=at)));
        assert_eq!(bytes, told, "{} byte by byte", path.display());
        count += 1;
    }
    assert!(count >= 25, "only {count} transcripts were found");
}

fn transcripts(folder: &str) -> Vec<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(folder);
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder).expect("the transcripts").map(|e| e.expect("an entry").path()).collect();
    paths.retain(|p| p.extension().is_some_and(|e| e == "sse"));
    paths.sort();
    paths
}

/// What the pieces of a body come to, a line an event.
fn read(provider: &dyn Provider, pieces: &mut dyn Iterator<Item = Bytes>) -> String {
    let mut sse = Decoder::new(LIMIT);
    let mut dialect = provider.decoder(Expect::of(1));
    let mut out = String::new();
    for piece in pieces {
        sse.push(piece);
        while let Some(item) = sse.next().expect("a small event") {
            let Item::Event(event) = item else { continue };
            let mut step = Step::default();
            let flow = dialect.event(&event, &mut step);
            write_step(&step, &mut out);
            match flow {
                Ok(Flow::More) => {}
                Ok(Flow::Done) => return out + "done\n",
                Err(failure) => return out + &format!("failed {:?}: {}\n", failure.kind, failure.said.message),
            }
        }
    }
    let mut step = Step::default();
    let end = dialect.end(sse.finish().as_ref(), &mut step);
    write_step(&step, &mut out);
    match end {
        Ok(()) => out + "ended\n",
        Err(failure) => out + &format!("failed {:?}: {}\n", failure.kind, failure.said.message),
    }
}

fn write_step(step: &Step, out: &mut String) {
    for event in &step.events {
        let raw = if step.raw.is_some() { " (raw)" } else { "" };
        let line = match event {
            Event::Alive => continue,
            Event::Identity(who) => format!("identity {} {}", who.id, who.model),
            Event::Thinking(open) => format!("thinking {open}"),
            Event::ServerTool(open) => format!("server tool {open}"),
            Event::Text { text, .. } => format!("text {text:?}{raw}"),
            Event::Reasoning { text, .. } => format!("reasoning {text:?}{raw}"),
            Event::Signature { data, redacted, .. } => format!("signature {data} redacted={redacted}"),
            Event::Refusal { text, .. } => format!("refusal {text:?}"),
            Event::ToolOpen { call, id, name, .. } => format!("call {call} {name} {id}"),
            Event::ToolArgs { call, args, .. } => format!("call {call} args {args:?}"),
            Event::ToolClose { call, .. } => format!("call {call} closed"),
            Event::Usage(usage) => format!(
                "usage prompt={:?} completion={:?} reasoning={:?} read={:?} write={:?}",
                usage.prompt, usage.completion, usage.reasoning, usage.cache_read, usage.cache_write
            ),
            Event::Finish { reason, stop_sequence, .. } => format!("finish {reason:?} {stop_sequence:?}"),
            Event::Extra(extra) => format!(
                "extra {:?} bound={} {}",
                extra.place,
                extra.bound,
                serde_json::to_string(&extra.fields).unwrap_or_else(|e| panic!("{e}"))
            ),
        };
        writeln!(out, "{line}").expect("memory");
    }
}
