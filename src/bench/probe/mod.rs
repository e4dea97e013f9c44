//! Baselines: every target of a configuration asked alike and many times, over the path that turns take.
//!
//! Requests of one target follow each other, for this is no load test; several targets are asked at a time. A
//! connection's limits are kept, a rate limit is waited for and counted beside the errors. The first answer of each
//! target warms its connection and does not count. Nothing is cut at the clocks that are to be found out: an answer may
//! be silent for as long as `idle`, so that the numbers say what the target does and not what it was allowed to do.
//!
//! `attempt` is one request, `lane` what a connection allows, `line` when a target is asked again, `proposal` what follows from the numbers.

pub(in crate::bench) mod attempt;
mod lane;
pub(in crate::bench) mod line;
pub mod proposal;
pub(in crate::bench) mod way;

use super::stats::{Sample, Summary};
use crate::chat::{self, DialectId};
use crate::config::Config;
use crate::dialect;
use crate::failure::{Kind, RetryAt};
use crate::routing::{Entry, Target, Timeouts};
use attempt::{Asker, Ended, Times};
use futures::StreamExt;
use http::HeaderMap;
use line::{LEAST_WAIT, Line};
use serde::{Serialize, Serializer};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How a configuration is probed.
#[derive(Clone, Debug)]
pub struct Probe {
    /// Answers of each target that count, failures included.
    pub requests: usize,
    /// Targets that are asked at a time.
    pub concurrency: usize,
    /// The most tokens of an answer. A target that reasons is given [`THINKING`] more.
    pub max_tokens: u64,
}

/// A target, and where it stands.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The target.
    pub target: Arc<Target>,
    /// Its clocks; where it stands in several levels, of each the most patient.
    pub clocks: Timeouts,
    /// The levels in whose chains it stands.
    pub levels: Vec<Arc<str>>,
}

/// What was measured of one target.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Of whom.
    pub subject: Subject,
    /// From the request to the first progress, in milliseconds.
    pub first_token: Sample,
    /// Silences between two pieces of an answer, in milliseconds; pieces that came together have none between them.
    pub gap: Sample,
    /// From the request to the end, in milliseconds.
    pub total: Sample,
    /// Failures by kind.
    pub failures: BTreeMap<Kind, usize>,
    /// Requests that met a rate limit and were made again.
    pub rate_limited: usize,
    /// Whole answers that the present `first_token` or `stall` would have given up.
    pub beyond_limits: usize,
    /// Tokens that were generated, as far as the provider said.
    pub generated: u64,
    /// The provider's words about the last failure, on one line and without the connection's secrets.
    pub said: Option<String>,
    /// Why there are fewer answers than were asked for.
    pub stopped: Option<String>,
}

/// Every target of every chain once, in the order of the file; with `only`, those of these connections.
pub fn subjects(config: &Config, only: &[String]) -> Vec<Subject> {
    let mut subjects: Vec<Subject> = Vec::new();
    for level in &config.levels {
        for Entry { target, timeouts } in &level.chain {
            if !only.is_empty() && !only.iter().any(|name| **name == *target.connection) {
                continue;
            }
            let same = |s: &&mut Subject| s.target.connection == target.connection && s.target.model == target.model;
            match subjects.iter_mut().find(same) {
                Some(known) => {
                    known.clocks = patient(known.clocks, *timeouts);
                    known.levels.push(Arc::clone(&level.name));
                }
                None => subjects.push(Subject {
                    target: Arc::clone(target),
                    clocks: *timeouts,
                    levels: vec![Arc::clone(&level.name)],
                }),
            }
        }
    }
    subjects
}

/// Asks `subjects` and gives what was measured, in their order. `tick` is told how many requests were made, or will not
/// be made, since the last time. When `stop` is cancelled, what there is by then is given.
///
/// # Errors
/// A sentence that names the connection which cannot be set up.
pub async fn run(
    probe: &Probe,
    config: &Config,
    subjects: &[Subject],
    stop: &CancellationToken,
    tick: &(dyn Fn(usize) + Sync),
) -> Result<Vec<Measured>, String> {
    let ways = way::ways(config, subjects, |target| PROMPT_TOKENS + probe.tokens(target))?;
    let mut asked = Vec::new();
    for subject in subjects {
        let Some(way) = ways.get(&*subject.target.connection) else { continue };
        let request = request(probe.tokens(&subject.target))?;
        let asker = Asker::new(subject, way, config.limits.max_event)?;
        let line = Line { way, cap: config.limits.retry_after_cap, stop, tick };
        asked.push(measure(probe.requests, subject, request, asker, line));
    }
    Ok(futures::stream::iter(asked).buffered(probe.concurrency.max(1)).collect().await)
}

// === impl Probe ===

impl Probe {
    /// The most requests that are made of `subjects`, rate limits aside.
    pub fn requests(&self, subjects: usize) -> usize {
        subjects * (self.requests + 1)
    }

    /// The most tokens that these may generate.
    pub fn generated(&self, subjects: &[Subject]) -> u64 {
        subjects.iter().map(|s| self.tokens(&s.target) * (self.requests as u64 + 1)).sum()
    }

    /// The most tokens of one answer of `target`.
    fn tokens(&self, target: &Target) -> u64 {
        if target.reasons { self.max_tokens + THINKING } else { self.max_tokens }
    }
}

// === impl Measured ===

impl Measured {
    fn none(subject: &Subject) -> Self {
        Self {
            subject: subject.clone(),
            first_token: Sample::default(),
            gap: Sample::default(),
            total: Sample::default(),
            failures: BTreeMap::new(),
            rate_limited: 0,
            beyond_limits: 0,
            generated: 0,
            said: None,
            stopped: None,
        }
    }

    /// Takes the whole answers.
    fn take(&mut self, answers: Vec<Times>) {
        let Timeouts { first_token, thinking, stall, .. } = self.subject.clocks;
        let patience = if self.subject.target.reasons { thinking } else { first_token };
        let late = |a: &&Times| a.first > patience || a.gaps.iter().any(|gap| *gap > stall);
        self.beyond_limits = answers.iter().filter(late).count();
        self.generated = answers.iter().map(|a| a.generated).sum();
        self.first_token = Sample::new(answers.iter().map(|a| millis(a.first)));
        self.total = Sample::new(answers.iter().map(|a| millis(a.total)));
        self.gap = Sample::new(answers.into_iter().flat_map(|a| a.gaps).map(millis));
    }

    /// Answers that were whole.
    pub fn succeeded(&self) -> usize {
        self.total.values().len()
    }

    /// Answers that were not.
    pub fn failed(&self) -> usize {
        self.failures.values().sum()
    }

    /// The share of failures; `None` if nothing was asked. Rate limits are none.
    pub fn error_rate(&self) -> Option<f64> {
        let asked = self.succeeded() + self.failed();
        (asked > 0).then(|| self.failed() as f64 / asked as f64)
    }

    /// Whether it cannot be relied on: it was asked and gave no answer, or more than half of them failed.
    pub fn is_unreachable(&self) -> bool {
        match self.error_rate() {
            Some(rate) => rate > 0.5,
            None => self.rate_limited > 0,
        }
    }

    /// `connection/model`.
    pub fn name(&self) -> String {
        format!("{}/{}", self.subject.target.connection, self.subject.target.model)
    }
}

impl Serialize for Measured {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let summary = |sample: &Sample| -> Option<Summary> { sample.summary() };
        let failures: BTreeMap<&str, usize> = self.failures.iter().map(|(kind, count)| (kind.name(), *count)).collect();
        json!({
            "connection": self.subject.target.connection,
            "model": self.subject.target.model,
            "dialect": self.subject.target.dialect.name(),
            "levels": self.subject.levels,
            "succeeded": self.succeeded(),
            "failed": self.failed(),
            "error_rate": self.error_rate(),
            "errors": failures,
            "rate_limited": self.rate_limited,
            "first_token_ms": summary(&self.first_token),
            "gap_ms": summary(&self.gap),
            "total_ms": summary(&self.total),
            "beyond_limits": self.beyond_limits,
            "generated_tokens": self.generated,
            "said": self.said,
            "stopped": self.stopped,
        })
        .serialize(serializer)
    }
}

// === measuring ===

async fn measure(
    requests: usize,
    subject: &Subject,
    request: chat::Request,
    mut asker: Asker,
    line: Line<'_>,
) -> Measured {
    let mut measured = Measured::none(subject);
    let mut answers: Vec<Times> = Vec::new();
    let (mut warm, mut left, mut limited, mut in_a_row) = (false, requests + 1, 0, 0);
    while measured.stopped.is_none() && answers.len() + measured.failed() < requests {
        let Some(ended) = line.ask(&mut asker, &request).await else {
            measured.stopped = Some("interrupted".to_owned());
            break;
        };
        match ended {
            Ended::Again => continue,
            Ended::Whole(times) => {
                (limited, in_a_row) = (0, 0);
                if std::mem::replace(&mut warm, true) {
                    answers.push(times);
                }
            }
            Ended::Failed(failure) => {
                measured.said = Some(line.words(&failure));
                if failure.kind == Kind::RateLimited {
                    measured.rate_limited += 1;
                    limited += 1;
                    measured.stopped = line.rest(failure.retry_at, limited).await;
                    continue;
                }
                // Whoever fails at once has no connection to be warmed.
                warm = true;
                in_a_row += 1;
                *measured.failures.entry(failure.kind).or_default() += 1;
                measured.stopped = line::given_up(in_a_row, failure.kind);
                if measured.stopped.is_none() {
                    measured.stopped = line.rest(failure.retry_at.or(Some(RetryAt::In(LEAST_WAIT))), 1).await;
                }
            }
        }
        left = left.saturating_sub(1);
        (line.tick)(1);
    }
    (line.tick)(left);
    measured.take(answers);
    measured
}

// === helpers ===

fn patient(a: Timeouts, b: Timeouts) -> Timeouts {
    Timeouts {
        connect: a.connect.max(b.connect),
        first_token: a.first_token.max(b.first_token),
        thinking: a.thinking.max(b.thinking),
        stall: a.stall.max(b.stall),
        idle: a.idle.max(b.idle),
        turn: a.turn.max(b.turn),
        error_body: a.error_body.max(b.error_body),
        ..a
    }
}

/// The request that every target gets.
fn request(max_tokens: u64) -> Result<chat::Request, String> {
    let dialect = dialect::client(DialectId::Chat).ok_or("the dialect `chat` is not built in")?;
    let body = json!({
        "model": "probe", "stream": true, "max_tokens": max_tokens,
        "messages": [{"role": "user", "content": PROMPT}],
    });
    dialect.parse(&HeaderMap::new(), body.to_string().as_bytes()).map_err(|refusal| refusal.message)
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// Long enough to fill any small limit of tokens, and the same every time.
const PROMPT: &str =
    "Write the numbers from one to one hundred as English words, separated by spaces, and nothing else.";

/// About what that is, with what APIs add to it.
pub const PROMPT_TOKENS: u64 = 30;

/// Tokens that a target which reasons is given besides, or it would say nothing.
pub const THINKING: u64 = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_request_is_small_and_as_long_as_it_is_said_to_be() {
        let request = request(64);
        let parsed = request.as_ref().map(|r| (r.max_tokens, r.stream, r.estimated_prompt() <= PROMPT_TOKENS));
        assert_eq!(parsed, Ok((Some(64), true, true)));
    }
}
