//! How what is kept and what the client sends become one conversation.
//!
//! Pure functions from a stored conversation and a request to the conversation that is to be asked and the question that
//! is to be written.

use super::guess;
use super::{Answer, Conversation, Exchange, Question, State, System};
use crate::chat::{DialectId, Message, Request, Role};
use crate::dialect::history::{History, Spoken};
use crate::dialect::{self, Refusal};
use serde_json::Value;
use std::sync::Arc;

/// The client's turn cannot follow what is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// So many turns are kept.
    pub kept: usize,
}

/// The question of a request that sends the whole conversation. What is kept of it already stays, with what is known of
/// its answers; from where the client tells it otherwise, the client is right.
pub fn full(stored: &Conversation, request: &Request, history: &dyn History, turn: &Arc<str>) -> Question {
    let spoken = history.spoken(request);
    let system = spoken.system.map(|words| system(stored, request.origin, words));
    let mut told = exchanges(request.origin, spoken.messages, history, turn);
    let same = |(kept, told): &(&Arc<Exchange>, &Exchange)| {
        kept.origin == told.origin
            && kept.asked == told.asked
            && message(kept).is_some()
            && message(kept) == message(told)
    };
    let keep = stored.exchanges.iter().zip(&told).take_while(same).count();
    let mut more = told.split_off(keep);
    // A client writes an answer down in its own way; it is still the answer that is known here.
    for (kept, told) in stored.exchanges[keep..].iter().zip(&mut more) {
        let origin = told.origin;
        if let (Some(known), Some(answer)) = (&kept.answer, &mut told.answer)
            && let (Some(before), Some(after)) = (&known.message, &answer.message)
            && kept.common(vec![before.clone()]) == super::common(origin, vec![after.clone()])
        {
            answer.state = known.state;
            answer.served_by.clone_from(&known.served_by);
            told.turn.clone_from(&kept.turn);
        }
    }
    Question { system, keep, more }
}

/// The question of a request that sends only what is new, and the whole conversation for it in the request's dialect.
/// `index`: the client's count of the turn, from 0; turns from there on are forgotten, for it asks again.
///
/// # Errors
/// [`Gap`] if turns before `index` are not kept.
pub fn append(
    stored: &Conversation,
    request: &Request,
    history: &dyn History,
    turn: &Arc<str>,
    index: Option<u64>,
) -> Result<(Question, Spoken), Gap> {
    let new = history.spoken(request);
    let kept = stored.exchanges.len();
    let keep = match index.map(|index| usize::try_from(index).unwrap_or(usize::MAX)) {
        Some(index) if index > kept => return Err(Gap { kept }),
        Some(index) => index,
        None => {
            let again = |last: &Arc<Exchange>| is_asked_again(last, &new.messages) || guess::of(last, &new.messages);
            kept - stored.exchanges.iter().rev().take_while(|last| again(last)).count()
        }
    };
    let system = match new.system {
        Some(words) => Some(system(stored, request.origin, words)),
        None => stored.system.clone(),
    };
    let mut messages = past(&stored.exchanges[..keep], request.origin, history);
    let before = messages.len();
    messages.extend(new.messages.iter().cloned());
    history.mend(&mut messages, before);
    let spoken = Spoken { system: system.as_ref().and_then(|s| instructions(s, request.origin, history)), messages };
    let exchange = Exchange { origin: request.origin, asked: new.messages, turn: Some(Arc::clone(turn)), answer: None };
    Ok((Question { system, keep, more: vec![exchange] }, spoken))
}

/// The answer that was told, in the words of the client's dialect; `None` if nothing was.
pub fn answer(told: super::told::Told, history: &dyn History) -> Option<Value> {
    let parts = told.into_parts();
    if parts.is_empty() {
        return None;
    }
    history.write(&[], &[Message { role: Role::Assistant, parts }]).messages.into_iter().next()
}

// === helpers ===

/// The words of instructions, shared with those that are kept where they are the same.
fn system(stored: &Conversation, origin: DialectId, words: Value) -> System {
    match &stored.system {
        Some(kept) if kept.origin == origin && *kept.words == words => kept.clone(),
        _ => System { origin, words: Arc::new(words) },
    }
}

/// Cuts a conversation into exchanges: each ends with a message of the model, save the last, which `turn` is to answer.
fn exchanges(origin: DialectId, messages: Vec<Value>, history: &dyn History, turn: &Arc<str>) -> Vec<Exchange> {
    let mut exchanges = Vec::new();
    let mut asked = Vec::new();
    // The start of an answer at the end is part of the question.
    let open = messages.iter().rposition(|m| !history.is_answer(m)).map_or(0, |last| last + 1);
    for (at, message) in messages.into_iter().enumerate() {
        if at < open && history.is_answer(&message) {
            let answer = Answer { state: State::Complete, message: Some(message), served_by: None };
            exchanges.push(Exchange { origin, asked: std::mem::take(&mut asked), turn: None, answer: Some(answer) });
        } else {
            asked.push(message);
        }
    }
    exchanges.push(Exchange { origin, asked, turn: Some(Arc::clone(turn)), answer: None });
    exchanges
}

fn message(exchange: &Exchange) -> Option<&Value> {
    exchange.answer.as_ref()?.message.as_ref()
}

/// Whether `new` asks what `last` asked and nobody answered: a client that tries again.
fn is_asked_again(last: &Exchange, new: &[Value]) -> bool {
    message(last).is_none() && last.asked == new
}

/// Kept exchanges as messages of one dialect. One that failed never happened as far as its client knows.
fn past(exchanges: &[Arc<Exchange>], into: DialectId, history: &dyn History) -> Vec<Value> {
    let mut messages = Vec::new();
    let happened =
        |e: &&Arc<Exchange>| e.answer.as_ref().is_none_or(|a| a.state != State::Failed || a.message.is_some());
    let happened: Vec<&Arc<Exchange>> = exchanges.iter().filter(happened).collect();
    for run in happened.chunk_by(|a, b| a.origin == b.origin) {
        let words = run.iter().flat_map(|e| e.asked.iter().chain(message(e))).cloned();
        if run[0].origin == into {
            messages.extend(words);
            continue;
        }
        let mut common = super::common(run[0].origin, words.collect());
        // Not every dialect has instructions in the middle; their place matters more than their rank.
        common.iter_mut().filter(|m| m.role == Role::System).for_each(|m| m.role = Role::User);
        messages.extend(history.write(&[], &common).messages);
    }
    messages
}

fn instructions(system: &System, into: DialectId, history: &dyn History) -> Option<Value> {
    if system.origin == into {
        return Some((*system.words).clone());
    }
    let other = dialect::client(system.origin)?.history();
    let read: Result<_, Refusal> = other.read(&Spoken { system: Some((*system.words).clone()), messages: Vec::new() });
    history.write(&read.ok()?.0, &[]).system
}

#[cfg(test)]
#[path = "tests/replay.rs"]
mod tests;
