//! Conversations that are kept, in the words of this API.

use super::{Chat, client, stream, translate};
use crate::chat::{Message, Part, Request};
use crate::dialect::Refusal;
use crate::dialect::history::{History, Spoken, mend_each, told_late};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashMap, HashSet};

impl History for Chat {
    fn spoken(&self, request: &Request) -> Spoken {
        let Some(Value::Array(all)) = request.raw.get("messages") else { return Spoken::default() };
        let instructions = all.iter().take_while(|m| is(m, &["system", "developer"])).count();
        let (system, messages) = all.split_at(instructions);
        Spoken { system: (!system.is_empty()).then(|| Value::Array(system.to_vec())), messages: messages.to_vec() }
    }

    fn put(&self, request: &mut Request, spoken: Spoken) -> Result<(), Refusal> {
        request.raw.insert("messages".to_owned(), Value::Array(joined(spoken)));
        (request.system, request.messages) = client::conversation_of(&request.raw)?;
        Ok(())
    }

    fn read(&self, spoken: &Spoken) -> Result<(Vec<Part>, Vec<Message>), Refusal> {
        let all = joined(spoken.clone());
        if all.is_empty() {
            return Ok(Default::default());
        }
        client::conversation_of(&Map::from_iter([("messages".to_owned(), Value::Array(all))]))
    }

    fn write(&self, system: &[Part], messages: &[Message]) -> Spoken {
        let mut dropped = Vec::new();
        let system = translate::conversation(system, &[], &mut dropped);
        Spoken {
            system: (!system.is_empty()).then_some(Value::Array(system)),
            messages: translate::conversation(&[], messages, &mut dropped),
        }
    }

    fn is_answer(&self, message: &Value) -> bool {
        is(message, &["assistant"])
    }

    fn mend(&self, messages: &mut Vec<Value>, past: usize) {
        let past = gather_late(messages, past);
        // A result may stand some results behind its call, so the calls that are open are kept from message to message.
        let mut open: HashSet<String> = HashSet::new();
        mend_each(messages, past, |_, message, after| {
            if is(message, &["tool"]) {
                return id(message, "tool_call_id").is_some_and(|id| open.contains(id));
            }
            open.clear();
            if !is(message, &["assistant"]) {
                return true;
            }
            let results: HashSet<&str> =
                after.iter().take_while(|m| is(m, &["tool"])).filter_map(|m| id(m, "tool_call_id")).collect();
            let Some(fields) = message.as_object_mut() else { return true };
            if let Some(Value::Array(calls)) = fields.get_mut("tool_calls") {
                calls.retain(|call| id(call, "id").is_some_and(|id| results.contains(id)));
                open.extend(calls.iter().filter_map(|call| id(call, "id")).map(str::to_owned));
                if calls.is_empty() {
                    fields.shift_remove("tool_calls");
                }
            }
            says(fields)
        });
    }

    fn call_id(&self, request: &Request, call: u32) -> String {
        stream::call_id(request.minted, 0, usize::try_from(call).unwrap_or_default())
    }
}

// === helpers ===

/// Moves results that came late, after others had spoken, behind the calls that they answer, where every provider
/// demands them; of two results of one call the later one holds. Gives how many messages are past now.
fn gather_late(messages: &mut Vec<Value>, past: usize) -> usize {
    let past = past.min(messages.len());
    let mut made: HashMap<String, usize> = HashMap::new();
    let mut late: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    let mut last_caller = None;
    for (at, message) in messages.iter().enumerate() {
        if is(message, &["tool"]) {
            let call = id(message, "tool_call_id").and_then(|id| made.get(id)).copied();
            if let Some(call) = call.filter(|call| *call < past && last_caller != Some(*call)) {
                late.entry(call).or_default().push(at);
            }
            continue;
        }
        last_caller = is(message, &["assistant"]).then_some(at);
        let calls = message.get("tool_calls").and_then(Value::as_array).into_iter().flatten();
        made.extend(calls.filter_map(|call| id(call, "id")).map(|id| (id.to_owned(), at)));
    }
    if late.is_empty() {
        return past;
    }
    let mut taken: Vec<Option<Value>> = std::mem::take(messages).into_iter().map(Some).collect();
    let mut moved: BTreeMap<usize, Vec<Value>> = BTreeMap::new();
    for (call, results) in late {
        moved.insert(call, results.into_iter().filter_map(|at| taken[at].take()).collect());
    }
    ask_anyway(&mut taken, &moved);
    let mut now_past = past;
    let mut at = 0;
    while at < taken.len() {
        let caller = at;
        messages.extend(taken[at].take());
        at += 1;
        if let Some(results) = moved.remove(&caller) {
            let mut answered = HashSet::new();
            let mut newest: Vec<&Value> = results
                .iter()
                .rev()
                .filter(|result| id(result, "tool_call_id").is_some_and(|id| answered.insert(id)))
                .collect();
            newest.reverse();
            while taken.get(at).is_some_and(|next| next.as_ref().is_none_or(|m| is(m, &["tool"]))) {
                let result = taken[at].take();
                at += 1;
                let again = |m: &Value| id(m, "tool_call_id").is_some_and(|id| answered.contains(id));
                messages.extend(result.filter(|result| !again(result)));
            }
            messages.extend(newest.into_iter().cloned());
        }
        if caller < past && past <= at {
            now_past = messages.len();
        }
    }
    now_past
}

/// Where nothing but late results stood between two answers, or at the end, they are still what was asked: a message of
/// the user tells them there.
fn ask_anyway(taken: &mut [Option<Value>], moved: &BTreeMap<usize, Vec<Value>>) {
    let mut told =
        moved.values().flatten().filter_map(|result| result.get("content")).map(told_late).collect::<Vec<_>>();
    let mut at = 0;
    while at < taken.len() {
        let gone = taken[at..].iter().take_while(|message| message.is_none()).count();
        let answer = |message: Option<&Option<Value>>| {
            message.and_then(Option::as_ref).is_none_or(|message| is(message, &["assistant"]))
        };
        if gone > 0 && answer(at.checked_sub(1).and_then(|before| taken.get(before))) && answer(taken.get(at + gone)) {
            let text = told.drain(..gone.min(told.len())).collect::<Vec<_>>().join("\n");
            taken[at] = Some(json!({"role": "user", "content": text}));
        }
        at += gone.max(1);
    }
}

fn joined(spoken: Spoken) -> Vec<Value> {
    let mut all = match spoken.system {
        Some(Value::Array(system)) => system,
        Some(other) => vec![other],
        None => Vec::new(),
    };
    all.extend(spoken.messages);
    all
}

/// Whether an assistant's message says anything.
fn says(fields: &Map<String, Value>) -> bool {
    let content = match fields.get("content") {
        None | Some(Value::Null) => false,
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Array(parts)) => !parts.is_empty(),
        Some(_) => true,
    };
    let other = ["tool_calls", "function_call", "refusal", "audio"];
    content || other.iter().any(|name| fields.get(*name).is_some_and(|value| !value.is_null()))
}

fn is(message: &Value, roles: &[&str]) -> bool {
    id(message, "role").is_some_and(|role| roles.contains(&role))
}

fn id<'a>(value: &'a Value, field: &str) -> Option<&'a str> {
    value.get(field).and_then(Value::as_str)
}

#[cfg(test)]
#[path = "tests/past.rs"]
mod tests;
