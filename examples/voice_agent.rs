//! A voice agent's loop, measured by its listener: when the first audio comes, how long the voice is silent, and whether
//! it repeats itself. Providers stall, reset and dribble in the middle of a sentence; and once the user interrupts.
//!
//! `cargo run --release --example voice_agent`, or against a gateway: `… -- --url http://127.0.0.1:8080 --model voice`.
#![expect(clippy::print_stdout, reason = "this is what an example is for")]

mod stage;

use clap::Parser;
use segue::bench::listener::{Place, doubled_words};
use segue::bench::table::{NONE, Table};
use segue::rig::origin::Scripts;
use segue::rig::script::{Break, Script};
use serde_json::json;
use stage::{Options, Stage};
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// What the user says, what happens to the first choice in the meantime, and when the user interrupts.
const TURNS: [(&str, &str, Option<Duration>); 6] = [
    ("Tell me about the sea.", "nothing", None),
    ("And the tide?", "stalls in mid-sentence", None),
    ("What makes waves?", "its connection is reset", None),
    ("How deep is it?", "dribbles, a word a second", None),
    ("Tell me a long story.", "nothing, but the user interrupts", Some(Duration::from_millis(1500))),
    ("No, a short one.", "stalls before its first word", None),
];

/// What is answered to them.
const ANSWERS: [&str; 6] = [
    "The sea is never still. The wind leans on it and leaves waves; the moon pulls at it and leaves the tide. Those who \
     live by it learn to read it like a face.",
    "It comes twice a day, and a little later each time, because the moon has moved on while the earth turned. In some \
     bays it rises by the height of a house.",
    "Wind does. It pushes at the water, the water gives way and swings back, and the swing travels. Far from the storm \
     it arrives as a long, slow swell, days afterwards.",
    "Most of it is deeper than the highest hills of most countries, about four kilometres. In the deepest trench a \
     mountain could stand, and its top would not be seen.",
    "Once there was a keeper who had lit the same lamp for forty years, and who had never seen the ships that it saved. \
     One night, in a fog, he rowed out to meet one.",
    "A gull stole a chip. Everyone saw it. Nobody was surprised, least of all the gull, which has a long memory and no \
     shame at all.",
];

/// A voice speaks about so many characters a second.
const VOICE: f64 = 15.0;

/// The listener's clock: text becomes speech at the pace of a voice, and what was not there in time is silence.
struct Ear {
    asked: Instant,
    first: Option<Duration>,
    /// Until when there is something to be heard.
    until: Instant,
    silence: Duration,
    text: String,
}

impl Ear {
    fn new() -> Self {
        let asked = Instant::now();
        Self { asked, first: None, until: asked, silence: Duration::ZERO, text: String::new() }
    }

    fn hear(&mut self, text: &str) {
        let now = Instant::now();
        if self.first.is_none() {
            self.first = Some(now - self.asked);
        } else {
            self.silence = self.silence.max(now.saturating_duration_since(self.until));
        }
        self.until = self.until.max(now) + Duration::from_secs_f64(text.chars().count() as f64 / VOICE);
        self.text.push_str(text);
    }
}

pub(crate) const ABOUT: &str =
    "A voice agent's loop, and what its listener hears while providers stall, reset and dribble.";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    let stage = match options.url {
        Some(_) => None,
        None => Some(set().await?),
    };
    let place = match &stage {
        Some(stage) => stage.place()?,
        None => options.place()?.ok_or("--url")?,
    };
    let mut messages = vec![json!({"role": "system", "content": "You are a voice. Be brief."})];
    let mut table = Table::new(["the first choice", "first audio ms", "longest silence ms", "repeated words", "end"]);
    for (question, happens, interrupts) in TURNS {
        println!("\n> {question}");
        messages.push(json!({"role": "user", "content": question}));
        let (ear, end) = turn(&place, &messages, interrupts).await;
        println!("{}{}", ear.text, if end == "whole" { "" } else { " –" });
        messages.push(json!({"role": "assistant", "content": ear.text.clone()}));
        let happens = if stage.is_some() { happens } else { "is the gateway's own affair" };
        let ms = |time: Duration| time.as_millis().to_string();
        table.row([
            happens.to_owned(),
            ear.first.map_or_else(|| NONE.to_owned(), ms),
            ms(ear.silence),
            doubled_words(&ear.text).to_string(),
            end,
        ]);
    }
    println!("\n{table}");
    if let Some(stage) = &stage {
        // A moment, for what was hung up to be written down.
        tokio::time::sleep(Duration::from_millis(100)).await;
        println!(
            "still open at the providers: {}",
            stage.primary.records().open_now() + stage.fallback.records().open_now()
        );
    }
    Ok(())
}

/// One turn; the future of the answer is dropped when the user interrupts, and that is all there is to barge-in.
async fn turn(place: &Place, messages: &[serde_json::Value], interrupts: Option<Duration>) -> (Ear, String) {
    let mut ear = Ear::new();
    let answer = place.hear(json!(messages), |text| ear.hear(text));
    let end = match interrupts {
        None => Some(answer.await),
        Some(after) => tokio::time::timeout(after, answer).await.ok(),
    };
    let end = match end {
        None => "interrupted".to_owned(),
        Some(heard) if heard.is_whole() => "whole".to_owned(),
        Some(heard) => heard.error.unwrap_or_default(),
    };
    (ear, end)
}

async fn set() -> Result<Stage, Box<dyn Error>> {
    // A provider knows the question by its words; the first choice breaks as the table above says.
    let tells = |seat: usize| {
        Scripts::with(move |inquiry| {
            let asked = inquiry.body["messages"].to_string();
            let turn = TURNS.iter().rposition(|(question, ..)| asked.contains(question)).unwrap_or_default();
            let script = Script::telling(ANSWERS[turn]).paced(Duration::from_millis(200), Duration::from_millis(50));
            Ok(Arc::new(match (seat, turn) {
                (0, 1) => script.breaking(20, Break::Silence),
                (0, 2) => script.breaking(25, Break::Reset),
                (0, 3) => script.breaking(8, Break::Dribble { gap: Duration::from_secs(1) }),
                (0, 5) => script.breaking(0, Break::Silence),
                _ => script,
            }))
        })
    };
    let level = "retries = 0\nbudget = 1.0\nhedge = { after = \"400ms\", budget = 1.0 }\n\
                 timeouts = { first_token = \"1500ms\", suspect = \"400ms\", pace = \"15 chars/s over 3s\", stall = \"1200ms\" }";
    Stage::set(tells(0), tells(1), level).await
}
