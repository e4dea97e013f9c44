//! What waits to be written.

use crate::config::prices::Prices;
use crate::record::{AttemptRecord, Ended, Entry, TurnRecord};
use crate::routing::Level;
use std::sync::Arc;

/// One thing to write.
#[derive(Debug)]
pub(super) enum Row {
    Turn(Box<Turn>),
    Circuit(Box<Entry>),
}

/// A turn that ended.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) record: Arc<TurnRecord>,
    /// The best quality of its level.
    pub(super) best: u32,
    /// The client heard another than the first target of the chain.
    pub(super) secondary: bool,
    /// What each attempt cost in dollars, where that is known.
    pub(super) costs: Vec<Option<f64>>,
    /// Request and answer.
    pub(super) bodies: Option<(String, String)>,
}

// === impl Row ===

impl Row {
    /// Bytes of bodies that it holds.
    pub(super) fn weight(&self) -> usize {
        match self {
            Self::Turn(turn) => turn.bodies.as_ref().map_or(0, |(asked, told)| asked.len() + told.len()),
            Self::Circuit(_) => 0,
        }
    }
}

// === helpers ===

pub(super) fn turn(record: Arc<TurnRecord>, level: &Level, prices: &Prices) -> Turn {
    let cost = |a: &AttemptRecord| prices.cost(&a.connection, &a.model, a.prompt_tokens, a.completion_tokens);
    Turn {
        best: level.chain.iter().map(|entry| entry.target.quality).min().unwrap_or(1),
        secondary: level.chain.first().is_some_and(|first| {
            let other = |a: &AttemptRecord| {
                a.has_told() && (a.connection != first.target.connection || a.model != first.target.model)
            };
            record.attempts.iter().any(other)
        }),
        costs: record.attempts.iter().map(cost).collect(),
        bodies: None,
        record,
    }
}

/// The request and the answer of a turn, each cut where it is long.
pub(super) fn bodies(ended: &Ended<'_>) -> (String, String) {
    let asked = ended.request.and_then(|request| serde_json::to_string(&request.raw).ok()).unwrap_or_default();
    (cut(asked), cut(ended.turn.choices()[0].text.clone()))
}

fn cut(mut text: String) -> String {
    if text.len() > LONGEST_BODY {
        let end = (0..=LONGEST_BODY).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
        text.truncate(end);
    }
    text
}

/// So many bytes of a request and of an answer are kept.
const LONGEST_BODY: usize = 1 << 20;
