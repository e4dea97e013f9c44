//! What people and programs read of a run: tables, JSON, Markdown and plots.
//!
//! The JSON has two halves: `deterministic` is the same for the same seed, to the byte, with the built-in providers and
//! no model as judge; `measured` is what clocks and circuits made of it. `docs/continuity.schema.json` describes it.

mod compare;
mod plots;
mod words;

pub use compare::compare;
pub use plots::plots;
pub use words::{markdown, text};

use super::judge::model::Agreement;
use super::manifest::Shape;
use super::score::{Kept, Score, System, Timed};
use crate::bench::machine::Machine;
use serde::de::{self, DeserializeOwned};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

/// A whole run.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// What was run.
    pub setup: Setup,
    /// One for each shape of failure.
    pub trials: Vec<Trial>,
    /// What it ran on.
    pub machine: Machine,
}

/// What was run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setup {
    /// The name of the conversations: `continuity-v1`, `continuity-oblique-v1` or a file's.
    pub suite: String,
    /// How many there were.
    pub conversations: usize,
    /// What the failures were drawn from.
    pub seed: u64,
    /// How often each system was run.
    pub runs: u32,
    /// Conversations at once.
    pub concurrency: usize,
    /// How often a client asked again, at most.
    pub client_retries: u32,
    /// How long a failed provider was left alone, in milliseconds.
    pub cooldown_ms: u64,
    /// The providers in the order in which they were asked.
    pub providers: Vec<String>,
}

/// All systems under one shape of failure.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// How providers failed.
    pub shape: Shape,
    /// What came of it.
    pub score: Score,
    /// How far the model that judged can be believed, if one did.
    pub judged: Option<Agreement>,
    /// What could not be measured, and why.
    pub notes: Vec<String>,
}

/// The JSON report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Data {
    format: String,
    version: u32,
    deterministic: Deterministic,
    measured: Measured,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Deterministic {
    setup: Setup,
    trials: Vec<Half<Kept>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Measured {
    machine: Machine,
    trials: Vec<Half<Timed>>,
}

/// One half of a trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(bound(deserialize = "T: DeserializeOwned"))]
struct Half<T> {
    shape: Shape,
    systems: Vec<Named<T>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    judge: Option<Agreement>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct Named<T> {
    name: String,
    #[serde(flatten)]
    of: T,
}

// By hand: where fields are flattened, numbers come as their digits, which no `f64` reads.
impl<'de, T: DeserializeOwned> Deserialize<'de> for Named<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let mut fields = Map::<String, Value>::deserialize(from)?;
        let name = fields.shift_remove("name").ok_or_else(|| de::Error::missing_field("name"))?;
        let name = serde_json::from_value(name).map_err(de::Error::custom)?;
        let of = serde_json::from_value(Value::Object(fields)).map_err(de::Error::custom)?;
        Ok(Self { name, of })
    }
}

/// The report as JSON.
pub fn json(report: &Report) -> String {
    let half = |trial: &Trial| Half {
        shape: trial.shape,
        systems: named(trial, |system| system.kept.clone()),
        judge: None,
        notes: Vec::new(),
    };
    let other = |trial: &Trial| Half {
        shape: trial.shape,
        systems: named(trial, |system| system.timed.clone()),
        judge: trial.judged.clone(),
        notes: trial.notes.clone(),
    };
    let data = Data {
        format: FORMAT.to_owned(),
        version: VERSION,
        deterministic: Deterministic { setup: report.setup.clone(), trials: report.trials.iter().map(half).collect() },
        measured: Measured { machine: report.machine.clone(), trials: report.trials.iter().map(other).collect() },
    };
    let mut text = serde_json::to_string_pretty(&data).unwrap_or_default();
    text.push('\n');
    text
}

// === helpers ===

fn named<T>(trial: &Trial, half: impl Fn(&System) -> T) -> Vec<Named<T>> {
    trial.score.systems.iter().map(|system| Named { name: system.name.clone(), of: half(system) }).collect()
}

/// Reads what [`json`] wrote.
fn read(text: &str) -> Result<Data, String> {
    let data: Data = serde_json::from_str(text).map_err(|error| format!("no report of this benchmark: {error}"))?;
    if data.format != FORMAT || data.version != VERSION {
        let (format, version) = (data.format, data.version);
        return Err(format!("a report of {format} {version}; this program compares {FORMAT} {VERSION}"));
    }
    Ok(data)
}

// === consts ===

const FORMAT: &str = "segue-continuity";

/// The version of the report's format.
const VERSION: u32 = 1;

#[cfg(test)]
mod tests;
