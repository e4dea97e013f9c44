//! Evaluation: every target of a configuration asked the same questions, whose right answers are known.
//!
//! A fallback stands in for what it replaces, and nobody notices that it does so badly unless somebody asks. So all of
//! them are asked here, with the whole history of a conversation and over the path that turns take: requests of one
//! target follow each other, a connection's limits are kept, rate limits are waited for. Failures say nothing about how
//! good answers are, and are counted apart.
//!
//! [`suite`] is what is asked.

pub mod suite;

use super::continuity::judge;
use super::continuity::judge::model::{Case as Shown, Judge, Ruling};
use super::continuity::record::End;
use super::continuity::suite::Role;
use super::probe::attempt::{Asker, Ended, Times};
use super::probe::line::{self, LEAST_WAIT, Line};
use super::probe::way;
use super::probe::{Subject, THINKING};
use super::stats::Share;
use crate::chat::{self, DialectId};
use crate::config::Config;
use crate::config::scores::Score;
use crate::dialect;
use crate::failure::{Failure, Kind, RetryAt};
use crate::routing::Target;
use futures::StreamExt;
use http::HeaderMap;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use suite::{Case, Suite};
use tokio_util::sync::CancellationToken;

/// How targets are evaluated.
#[derive(Clone, Debug)]
pub struct Eval {
    /// What they are asked.
    pub suite: Suite,
    /// Targets that are asked at a time.
    pub concurrency: usize,
    /// The most tokens of an answer. A target that reasons is given [`THINKING`] more.
    pub max_tokens: u64,
    /// Decides what a search for the expected words leaves open; without one that is wrong.
    pub judge: Option<Judge>,
}

/// How one target did.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Evaluated {
    /// Its connection.
    pub connection: String,
    /// Its model.
    pub model: String,
    /// The levels in whose chains it stands.
    pub levels: Vec<Arc<str>>,
    /// The name that the model gave itself, lastly.
    pub said_model: Option<String>,
    /// Right answers of all that were judged; `None` of none.
    pub score: Option<Share>,
    /// The same for each kind of question.
    pub kinds: BTreeMap<String, Share>,
    /// The names of the questions that were answered wrongly.
    pub missed: Vec<String>,
    /// Answers without a word; they are wrong.
    pub empty: usize,
    /// Requests that failed, by kind.
    pub errors: BTreeMap<&'static str, usize>,
    /// What went wrong lastly, in the provider's or the judge's words.
    pub said: Option<String>,
    /// Answers on which the judge did not rule; they do not count.
    pub unjudged: usize,
    /// Requests that met a rate limit and were made again.
    pub rate_limited: usize,
    /// Tokens that were generated, as far as the provider said.
    pub generated: u64,
    /// Why it was not asked everything.
    pub stopped: Option<String>,
    /// It was not asked everything because somebody interrupted it.
    pub interrupted: bool,
}

/// Asks `subjects` and tells how they did, in their order. `tick` is told how many questions were dealt with since the
/// last time. When `stop` is cancelled, what there is by then is given.
///
/// # Errors
/// A sentence that names the connection which cannot be set up.
pub async fn run(
    eval: &Eval,
    config: &Config,
    subjects: &[Subject],
    stop: &CancellationToken,
    tick: &(dyn Fn(usize) + Sync),
) -> Result<Vec<Evaluated>, String> {
    let prompt = eval.suite.tokens() / eval.suite.cases.len().max(1) as u64;
    let ways = way::ways(config, subjects, |target| prompt + eval.tokens(target))?;
    let mut asked = Vec::new();
    for subject in subjects {
        let Some(way) = ways.get(&*subject.target.connection) else { continue };
        let asker = Asker::new(subject, way, config.limits.max_event)?;
        let line = Line { way, cap: config.limits.retry_after_cap, stop, tick };
        asked.push(evaluate(eval, subject, asker, line));
    }
    futures::stream::iter(asked).buffered(eval.concurrency.max(1)).collect::<Vec<_>>().await.into_iter().collect()
}

// === impl Eval ===

impl Eval {
    /// The requests that are made of `subjects`, rate limits aside.
    pub fn requests(&self, subjects: usize) -> usize {
        subjects * self.suite.cases.len()
    }

    /// The most tokens that these may generate.
    pub fn generated(&self, subjects: &[Subject]) -> u64 {
        let each: u64 = subjects.iter().map(|s| self.tokens(&s.target)).sum();
        each * self.suite.cases.len() as u64
    }

    fn tokens(&self, target: &Target) -> u64 {
        if target.reasons { self.max_tokens + THINKING } else { self.max_tokens }
    }
}

// === impl Evaluated ===

impl Evaluated {
    /// `connection/model`.
    pub fn name(&self) -> String {
        format!("{}/{}", self.connection, self.model)
    }

    /// Requests that failed.
    pub fn failed(&self) -> usize {
        self.errors.values().sum()
    }

    /// Whether it says too little: there were no answers, or more failures than answers.
    pub fn is_void(&self) -> bool {
        self.score.is_none_or(|score| score.of < self.failed())
    }

    fn interrupt(&mut self) {
        self.stopped = Some("interrupted".to_owned());
        self.interrupted = true;
    }

    /// What is kept of it, done `at` this time.
    pub fn kept(&self, suite: &Suite, judge: Option<&str>, at: String) -> Score {
        Score {
            connection: self.connection.clone(),
            model: self.model.clone(),
            said_model: self.said_model.clone(),
            at,
            suite: suite.name.clone(),
            hash: suite.hash(),
            judge: judge.map(str::to_owned),
            answers: self.score.map_or(0, |score| score.of),
            kept: self.score.map_or(0, |score| score.hits),
            score: self.score.map(|score| score.share),
            interval: self.score.map(|score| [score.low, score.high]),
            errors: self.failed(),
            unjudged: self.unjudged,
        }
    }
}

// === asking ===

async fn evaluate(eval: &Eval, subject: &Subject, mut asker: Asker, line: Line<'_>) -> Result<Evaluated, String> {
    let mut done = Evaluated {
        connection: subject.target.connection.to_string(),
        model: subject.target.model.to_string(),
        levels: subject.levels.clone(),
        ..Evaluated::default()
    };
    let mut right: Vec<(&Case, bool)> = Vec::new();
    let (mut left, mut in_a_row) = (eval.suite.cases.len(), 0);
    for case in &eval.suite.cases {
        let request = request(case, eval.tokens(&subject.target), subject.target.reasons)?;
        let Some(answer) = answer(&mut asker, &request, &line, &mut done).await else { break };
        match answer {
            Ok(times) => {
                in_a_row = 0;
                done.generated += times.generated;
                done.empty += usize::from(times.text.trim().is_empty());
                if !times.model.is_empty() {
                    done.said_model = Some(times.model);
                }
                let judged = tokio::select! {
                    biased;
                    () = line.stop.cancelled() => {
                        done.interrupt();
                        break;
                    }
                    judged = judged(eval.judge.as_ref(), case, &times.text) => judged,
                };
                match judged {
                    Ok(is_right) => right.push((case, is_right)),
                    Err(why) => {
                        done.unjudged += 1;
                        done.said = Some(format!("judge: {why}"));
                    }
                }
            }
            Err(failure) => {
                in_a_row += 1;
                *done.errors.entry(failure.kind.name()).or_default() += 1;
                done.stopped = line::given_up(in_a_row, failure.kind);
                if done.stopped.is_none() {
                    done.stopped = line.rest(failure.retry_at.or(Some(RetryAt::In(LEAST_WAIT))), 1).await;
                }
            }
        }
        left -= 1;
        (line.tick)(1);
        if left == 0 {
            done.stopped = None;
        }
        if done.stopped.is_some() {
            break;
        }
    }
    (line.tick)(left);
    done.score = Share::count(right.iter().map(|(_, right)| *right));
    done.missed = right.iter().filter(|(_, right)| !right).map(|(case, _)| case.id.clone()).collect();
    for (case, _) in &right {
        let of_kind = right.iter().filter(|(other, _)| other.kind == case.kind).map(|(_, right)| *right);
        if let Some(share) = Share::count(of_kind).filter(|_| !case.kind.is_empty()) {
            done.kinds.insert(case.kind.clone(), share);
        }
    }
    Ok(done)
}

/// One answer, through rate limits; `None`: the target is not asked any more, and `done` says why.
async fn answer(
    asker: &mut Asker,
    request: &chat::Request,
    line: &Line<'_>,
    done: &mut Evaluated,
) -> Option<Result<Times, Failure>> {
    let mut limited = 0;
    loop {
        let Some(ended) = line.ask(asker, request).await else {
            done.interrupt();
            return None;
        };
        match ended {
            Ended::Again => {}
            Ended::Whole(times) => return Some(Ok(times)),
            Ended::Failed(failure) => {
                done.said = Some(line.words(&failure));
                if failure.kind != Kind::RateLimited {
                    return Some(Err(failure));
                }
                done.rate_limited += 1;
                limited += 1;
                done.stopped = line.rest(failure.retry_at, limited).await;
                if done.stopped.is_some() {
                    return None;
                }
            }
        }
    }
}

/// Whether an answer is right.
async fn judged(judge: Option<&Judge>, case: &Case, text: &str) -> Result<bool, String> {
    let settled: Vec<Option<bool>> =
        case.expect.iter().map(|fact| judge::settled(fact, text, &End::Finished)).collect();
    if settled.contains(&Some(true)) {
        return Ok(true);
    }
    match judge.filter(|_| settled.contains(&None)) {
        Some(judge) => {
            let fact = case.expect.join(" or ");
            let ruling = judge.ask(Shown { fact: &fact, probe: case.probe(), answer: text }).await?;
            let Ruling { preserved, .. } = ruling;
            Ok(preserved)
        }
        None => Ok(false),
    }
}

// === helpers ===

fn request(case: &Case, max_tokens: u64, reasons: bool) -> Result<chat::Request, String> {
    let dialect = dialect::client(DialectId::Chat).ok_or("the dialect `chat` is not built in")?;
    let message = |m: &super::continuity::suite::Message| {
        let role = match m.role {
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::System => "system",
        };
        json!({"role": role, "content": m.content})
    };
    let messages: Vec<Value> = case.messages.iter().map(message).collect();
    let mut body = json!({"model": "eval", "stream": true, "max_tokens": max_tokens, "messages": messages});
    if !reasons {
        // Models that reason refuse it.
        body["temperature"] = 0.into();
    }
    dialect.parse(&HeaderMap::new(), body.to_string().as_bytes()).map_err(|refusal| refusal.message)
}
