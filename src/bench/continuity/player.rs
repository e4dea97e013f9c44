//! One conversation, played: its user's messages in order, each with all that was heard before it.

use super::account::Witness;
use super::answer::{Answer, PROVIDERS};
use super::integrity;
use super::listener::{Place, Try, now};
use super::manifest::{Failure, Plan};
use super::record::{End, Heard, Record};
use super::suite::{Conversation, Role};
use crate::rig::mark::Mark;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Who plays, with whom, and how.
#[derive(Clone)]
pub struct Player {
    /// The name of the system, for the records.
    pub system: String,
    /// The gateway.
    pub place: Place,
    /// Who sees what reaches the providers.
    pub witness: Arc<dyn Witness>,
    /// The providers' words are known, so the text can be held against them.
    pub scripted: bool,
    /// The connections of the gateway, first choice first; empty for one that cannot be told whom to ask.
    pub order: Vec<String>,
    /// Fallbacks are given the last message only; so is the one that a client is sent to when it asks again.
    pub stateless: bool,
    /// How often a client asks again after an error.
    pub retries: u32,
    /// How long a client avoids a connection that failed it, where it may say whom to ask.
    pub cooldown: Duration,
}

/// The tries of one answer.
#[derive(Debug, Default)]
struct Tries {
    /// What was heard of all of them.
    text: String,
    /// When each piece came, and where it ends in the text.
    pieces: Vec<(Instant, usize)>,
    /// Where the tries but the first begin in the text.
    starts: Vec<usize>,
    end: End,
    /// The text of the last.
    last: String,
    retries: u32,
    served_by: Option<String>,
}

// === impl Player ===

impl Player {
    /// Plays `conversation`; `plan`: what fails in it.
    pub async fn play(&self, conversation: &Conversation, plan: Option<&Plan>, run: u32) -> Record {
        let mut messages: Vec<Value> = Vec::new();
        let mut turns = Vec::new();
        for (turn, message) in conversation.turns.iter().enumerate().take(conversation.probe_turn_index + 1) {
            match message.role {
                Role::System => messages.push(json!({"role": "system", "content": message.content})),
                // What was heard stands there instead.
                Role::Assistant => {}
                Role::User => {
                    let mark = Mark { conversation: conversation.id.clone(), turn, run };
                    messages.push(json!({"role": "user", "content": format!("{} {mark}", message.content)}));
                    let failures = plan.map(|plan| plan.failures.as_slice()).unwrap_or_default();
                    let failure = failures.iter().find(|f| (f.turn..=f.until).contains(&turn));
                    let order = self.order(failure.or_else(|| failures.first()));
                    let start = now();
                    let tries = self.ask(&messages, order).await;
                    let last = tries.last.clone();
                    turns.push(self.heard(conversation, &mark, failure, start, tries));
                    if !last.is_empty() {
                        messages.push(json!({"role": "assistant", "content": last}));
                    }
                }
            }
        }
        Record {
            system: self.system.clone(),
            run,
            conversation: conversation.id.clone(),
            length: conversation.turns.len(),
            fact_type: conversation.fact_type.clone(),
            turns,
        }
    }

    /// Whom to ask, first to last: those that fail, the one that is left, the others.
    fn order(&self, failure: Option<&Failure>) -> Vec<String> {
        let Some(failure) = failure else { return self.order.clone() };
        let named = failure.providers.iter().chain([&failure.fallback]).filter(|name| self.order.contains(name));
        let mut order: Vec<String> = named.cloned().collect();
        order.extend(self.order.iter().filter(|name| !order.contains(name)).cloned().collect::<Vec<_>>());
        order
    }

    async fn ask(&self, messages: &[Value], mut order: Vec<String>) -> Tries {
        let mut tries = Tries::default();
        let mut cooling: HashMap<String, Instant> = HashMap::new();
        let mut wait = FIRST_WAIT;
        let first = order.first().cloned();
        let last: Vec<Value> = match messages {
            [before @ .., last] => before.iter().filter(|m| m["role"] == "system").chain([last]).cloned().collect(),
            [] => Vec::new(),
        };
        loop {
            let at_fallback = self.stateless && order.first() != first.as_ref();
            let heard = self.place.hear(if at_fallback { &last } else { messages }, &order).await;
            let again = !matches!(heard.end, End::Finished) && !heard.finish && tries.retries < self.retries;
            let failed = heard.served_by.clone().or_else(|| order.first().cloned());
            tries.add(heard);
            if !again {
                return tries;
            }
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(LAST_WAIT);
            tries.retries += 1;
            let now = now();
            cooling.extend(failed.map(|failed| (failed, now + self.cooldown)));
            order.sort_by_key(|name| cooling.get(name).is_some_and(|until| now < *until));
        }
    }

    fn heard(
        &self,
        conversation: &Conversation,
        mark: &Mark,
        failure: Option<&Failure>,
        start: Instant,
        tries: Tries,
    ) -> Heard {
        let account = self.witness.account(mark);
        let millis = |from: Instant, to: Instant| to.saturating_duration_since(from).as_secs_f64() * 1e3;
        let silence = tries.pieces.windows(2).map(|pair| millis(pair[0].0, pair[1].0)).fold(0.0, f64::max);
        let struck = !account.struck.is_empty();
        let mut seam = None;
        let mut joints = tries.starts.clone();
        let mut served_by = tries.served_by.clone().or_else(|| account.last.clone());
        if self.scripted {
            let answer = Answer::of(conversation, mark.turn);
            let found = integrity::compare(&answer, &tries.text, tries.end == End::Finished);
            seam = Some(found.seam);
            let turns = found.voices.windows(2).filter(|pair| pair[0].1 != pair[1].1);
            joints.extend(turns.map(|pair| pair[1].0));
            served_by = found.voices.last().map(|(_, voice)| PROVIDERS[*voice].to_owned());
        }
        let mut gap_ms = joints.iter().filter_map(|at| tries.gap(*at)).reduce(f64::max);
        if gap_ms.is_none() && !self.scripted && struck && failure.is_some_and(|f| f.mode.is_mid_turn()) {
            // Whose words they are cannot be told; the seam is where it was silent longest.
            gap_ms = Some(silence);
        }
        Heard {
            turn: mark.turn,
            planned: failure.map(|f| f.mode),
            struck,
            depth: account.struck.len(),
            end: tries.end,
            first_ms: tries.pieces.first().map(|(at, _)| millis(start, *at)),
            total_ms: millis(start, now()),
            silence_ms: silence,
            gap_ms,
            seam,
            client_retries: tries.retries,
            provider_requests: account.requests,
            provider_ms: account.busy_ms(),
            tokens: account.tokens,
            history_arrived: account.history_arrived,
            served_by,
            text: tries.text,
        }
    }
}

// === impl Tries ===

impl Tries {
    fn add(&mut self, heard: Try) {
        if !heard.text.is_empty() && !self.text.is_empty() {
            // A listener hears the answer begin anew after what was told of it before.
            self.text.push('\n');
            self.starts.push(self.text.len());
        }
        let from = self.text.len();
        self.text.push_str(&heard.text);
        self.pieces.extend(heard.pieces.into_iter().map(|(at, end)| (at, from + end)));
        self.end = heard.end;
        self.last = heard.text;
        self.served_by = heard.served_by;
    }

    /// The silence before the piece that holds byte `at`, in milliseconds.
    fn gap(&self, at: usize) -> Option<f64> {
        let index = self.pieces.iter().position(|(_, end)| at < *end)?;
        let before = self.pieces.get(index.checked_sub(1)?)?;
        Some(self.pieces[index].0.saturating_duration_since(before.0).as_secs_f64() * 1e3)
    }
}

// === consts ===

/// How long a client waits before it asks again the first time; each further wait is twice as long.
const FIRST_WAIT: Duration = Duration::from_millis(50);

/// No wait is longer.
const LAST_WAIT: Duration = Duration::from_secs(1);
