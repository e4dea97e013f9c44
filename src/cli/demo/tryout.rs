//! After the show: how to try it by hand, and what becomes of the turns of those who do.

use super::stage::{FAULTS, Stage};
use crate::cli::paint::{Ink, Paint};
use crate::cli::serve::curl;
use crate::failure::Kind;
use crate::record::TurnRecord;
use std::convert::Infallible;
use std::io::{self, Write};
use std::time::Duration;

/// Says how.
pub(super) fn invite(out: &mut dyn Write, paint: Paint, stage: &Stage) -> io::Result<()> {
    let base_url = stage.base_url();
    writeln!(out, "\n{}\n", paint.ink(Ink::Bold, "It stays up. Try it from another terminal:"))?;
    writeln!(out, "  {}\n", curl(&base_url, "fault-reset@20", None))?;
    writeln!(out, "{}\n", python(&base_url))?;
    let width = FAULTS.iter().map(|fault| fault.level.len()).max().unwrap_or_default();
    let head = format!("  {:width$}  what befalls the primary", "model");
    writeln!(out, "{}", paint.ink(Ink::Bold, &head))?;
    for fault in &FAULTS {
        let lead = format!("  {:width$}  ", fault.level);
        writeln!(out, "{lead}{}", paint.wrapped(fault.what, lead.len(), lead.len()))?;
    }
    writeln!(out, "\n  What the gateway saw: http://{}/api/turns, /api/circuits", stage.operators)?;
    writeln!(out, "{}\n", paint.ink(Ink::Dim, "  Ctrl-C stops it"))
}

/// Tells of every turn that ends from here on.
///
/// # Errors
/// Where it cannot be written.
pub(super) async fn watch(out: &mut dyn Write, stage: &Stage) -> io::Result<()> {
    match watch_on(out, stage).await {
        Ok(never) => match never {},
        Err(error) => Err(error),
    }
}

async fn watch_on(out: &mut dyn Write, stage: &Stage) -> io::Result<Infallible> {
    let mut last = stage.gateway.recent(1).pop().map(|record| record.turn);
    loop {
        tokio::time::sleep(LOOK).await;
        let recent = stage.gateway.recent(MOST);
        let fresh = recent.iter().take_while(|record| Some(&record.turn) != last.as_ref()).count();
        for record in recent.iter().take(fresh).rev() {
            writeln!(out, "  {}", line(record))?;
        }
        if let Some(newest) = recent.first() {
            last = Some(newest.turn.clone());
        }
        out.flush()?;
    }
}

// === helpers ===

fn line(record: &TurnRecord) -> String {
    let attempts: Vec<String> = record
        .attempts
        .iter()
        .map(|attempt| {
            format!("{} {}", attempt.connection, attempt.failure.map_or_else(|| attempt.outcome.name(), Kind::name))
        })
        .collect();
    format!(
        "{}: {}, {} characters, longest silence {:.0} ms ({})",
        record.level,
        record.outcome,
        record.delivered_chars,
        record.longest_silence_ms,
        attempts.join(", ")
    )
}

fn python(base_url: &str) -> String {
    format!(
        "  from openai import OpenAI\n  \
         client = OpenAI(base_url=\"{base_url}\", api_key=\"none\")\n  \
         for chunk in client.chat.completions.create(\n      \
         model=\"fault-stall@20\", stream=True, messages=[{{\"role\": \"user\", \"content\": \"Hello!\"}}]\n  \
         ):\n      \
         if chunk.choices:\n          \
         print(chunk.choices[0].delta.content or \"\", end=\"\", flush=True)"
    )
}

/// What to do after the show.
pub(super) const NEXT: &str = "\
Next, break it yourself:    segue demo --serve
Then, on your own keys:     OPENAI_API_KEY=… ANTHROPIC_API_KEY=… segue serve";

/// How often ended turns are looked for.
const LOOK: Duration = Duration::from_millis(200);

/// The most turns that are told of at a time.
const MOST: usize = 50;
