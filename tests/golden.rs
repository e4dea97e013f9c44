//! Transcripts of each kind of provider, and what a decoder makes of them.
//!
//! `tests/golden/<dialect>/<name>.sse` holds the bytes of a response, written after the providers' documentation and
//! reports of what they send; `<name>.events` holds what is read of it. A transcript is read whole, byte by byte, and
//! cut in two at every byte; the events must be the same each time. `SEGUE_BLESS=1` writes the expectations anew: read
//! the difference before you commit it.

#![expect(clippy::expect_used, reason = "a test's panic is its report")]

use bytes::Bytes;
use segue::chat::DialectId;
use segue::dialect::{self, Expect, Flow, Provider};
use segue::event::{Event, Step};
use segue::failure::Failure;
use segue::sse::{Decoder, Item};
use serde_json::Value;
use std::fmt::Write;
use std::path::{Path, PathBuf};

#[test]
fn chat() {
    run("chat", DialectId::Chat);
}

/// Reads all transcripts of a dialect.
fn run(folder: &str, id: DialectId) {
    let dialect = dialect::provider(id).expect("the dialect exists");
    let files = transcripts(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(folder));
    assert!(!files.is_empty());
    let bless = std::env::var_os("SEGUE_BLESS").is_some();
    for file in files {
        let name = file.display();
        let body = Bytes::from(std::fs::read(&file).expect("a transcript"));
        // A transcript of several choices says so in its name.
        let choices = if file.to_string_lossy().contains("_n2") { 2 } else { 1 };
        let told = read(dialect, choices, std::iter::once(body.clone()));
        let beside = file.with_extension("events");
        if bless {
            std::fs::write(&beside, &told).expect("an expectation");
        }
        let expected = std::fs::read_to_string(&beside).unwrap_or_default();
        assert_eq!(told, expected, "{name}");
        let bytes = (0..body.len()).map(|at| body.slice(at..=at));
        assert_eq!(read(dialect, choices, bytes), told, "{name}, byte by byte");
        for at in 1..body.len() {
            let halves = [body.slice(..at), body.slice(at..)];
            assert_eq!(read(dialect, choices, halves.into_iter()), told, "{name}, cut at {at}");
        }
    }
}

fn transcripts(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder of transcripts");
    let files = entries.map(|entry| entry.expect("an entry").path());
    let mut files: Vec<_> = files.filter(|path| path.extension().is_some_and(|e| e == "sse")).collect();
    files.sort();
    files
}

/// What is read of a body that comes in these pieces, a line an event. A `=` marks what could go on as it came.
fn read(dialect: &dyn Provider, choices: u32, pieces: impl Iterator<Item = Bytes>) -> String {
    let mut told = String::new();
    let mut events = Decoder::new(1 << 20);
    let mut decoder = dialect.decoder(Expect::of(choices));
    for piece in pieces {
        events.push(piece);
        while let Some(item) = events.next().expect("an event within the limit") {
            let Item::Event(event) = item else { continue };
            let mut step = Step::default();
            let flow = decoder.event(&event, &mut step);
            match flow {
                Ok(Flow::More) => tell(&step, &mut told),
                Ok(Flow::Done) => {
                    tell(&step, &mut told);
                    told.push_str("done\n");
                    return told;
                }
                Err(failure) => {
                    tell_failure(&failure, &mut told);
                    return told;
                }
            }
        }
    }
    let mut step = Step::default();
    let end = decoder.end(events.finish().as_ref(), &mut step);
    tell(&step, &mut told);
    match end {
        Ok(()) => told.push_str("ended\n"),
        Err(failure) => tell_failure(&failure, &mut told),
    }
    told
}

fn tell(step: &Step, told: &mut String) {
    for event in &step.events {
        told.push_str(if step.raw.is_some() { "= " } else { "  " });
        told.push_str(&line(event));
        told.push('\n');
    }
}

fn tell_failure(failure: &Failure, told: &mut String) {
    let said = &failure.said;
    let _ = write!(
        told,
        "failed {} status={:?} type={:?} code={:?}",
        failure.kind.name(),
        failure.status,
        said.r#type,
        said.code
    );
    let _ = writeln!(told, " retry_at={:?} message={:?}", failure.retry_at, said.message);
}

fn line(event: &Event) -> String {
    match event {
        Event::Alive => "alive".to_owned(),
        Event::Identity(who) => format!("identity id={:?} model={:?} created={}", who.id, who.model, who.created),
        Event::Thinking(open) => format!("thinking {open}"),
        Event::ServerTool(open) => format!("server tool {open}"),
        Event::Text { choice, text } => format!("text {choice} {text:?}"),
        Event::Reasoning { choice, text } => format!("reasoning {choice} {text:?}"),
        Event::Signature { choice, data, redacted } => format!("signature {choice} {data:?} redacted={redacted}"),
        Event::Refusal { choice, text } => format!("refusal {choice} {text:?}"),
        Event::ToolOpen { choice, call, id, name } => format!("open {choice}.{call} {id:?} {name:?}"),
        Event::ToolArgs { choice, call, args } => format!("args {choice}.{call} {args:?}"),
        Event::ToolClose { choice, call } => format!("close {choice}.{call}"),
        Event::Usage(usage) => format!(
            "usage prompt={:?} completion={:?} reasoning={:?} cache_read={:?} cache_write={:?}",
            usage.prompt, usage.completion, usage.reasoning, usage.cache_read, usage.cache_write
        ),
        Event::Finish { choice, reason, stop_sequence } => format!("finish {choice} {reason:?} {stop_sequence:?}"),
        Event::Extra(extra) => {
            let bound = if extra.bound { " bound" } else { "" };
            format!("extra {:?}{bound} {}", extra.place, Value::Object(extra.fields.clone()))
        }
    }
}
