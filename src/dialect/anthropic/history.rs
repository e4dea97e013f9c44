//! A conversation in the shape that this API demands.
//!
//! Other dialects let messages come in any order. Here user and assistant take turns and the user begins; the results
//! of a turn's calls stand together at the start of the next user message, one for each call; texts are not blank.
//! So neighbours of one role are joined, results are moved to their calls, a call without a result is given one that
//! says so, and a result without a call becomes plain text.

use super::dropped::Dropped;
use crate::chat::{DialectId, Media, Message, Part, Request, Role, media_type};
use serde_json::{Map, Value, json};
use std::collections::{HashMap, VecDeque};

/// Messages of one side, joined.
struct Run {
    assistant: bool,
    items: Vec<Item>,
}

/// One block of a run.
enum Item {
    Block(Value),
    Call { id: String, name: String, args: String },
    Result { id: String, parts: Vec<Value>, failed: bool },
}

/// Which messages are to be told, and how.
#[derive(Clone, Copy, Debug)]
pub(super) struct Select {
    /// Only the last one of the user.
    pub(super) last_only: bool,
    /// Without reasoning.
    pub(super) strip_reasoning: bool,
    /// The model continues an assistant message at the end.
    pub(super) prefill: bool,
}

/// The conversation of a request of another dialect. Instructions inside it stay where they are, in a message of the
/// user that is marked as such: before the conversation they would hold for what was said before them, and each would
/// change what the provider has cached.
pub(super) fn messages(request: &Request, select: Select, dropped: &mut Dropped) -> Vec<Value> {
    let last = request.messages.iter().rposition(|m| m.role == Role::User);
    let told = request.messages.iter().enumerate();
    let told = told.filter(|(at, m)| !select.last_only || m.role == Role::System || Some(*at) == last);
    let mut out = told_of(told.map(|(_, message)| message), select, dropped);
    edges(&mut out, request, select);
    out
}

/// A conversation that another dialect led, as far as it goes: nothing is added at its ends, save results that are
/// missing.
pub(super) fn conversation(messages: &[Message], dropped: &mut Dropped) -> Vec<Value> {
    told_of(messages.iter(), Select { last_only: false, strip_reasoning: false, prefill: false }, dropped)
}

fn told_of<'a>(told: impl Iterator<Item = &'a Message>, select: Select, dropped: &mut Dropped) -> Vec<Value> {
    let mut runs: Vec<Run> = Vec::new();
    for message in told {
        push(&mut runs, message, select, dropped);
    }
    write(runs)
}

fn push(runs: &mut Vec<Run>, message: &Message, select: Select, dropped: &mut Dropped) {
    let assistant = message.role == Role::Assistant;
    let items: Vec<Item> = if message.role == Role::System {
        message.parts.iter().filter_map(instruction).collect()
    } else {
        message.parts.iter().filter_map(|part| item(part, assistant, select, dropped)).collect()
    };
    if items.is_empty() {
        return;
    }
    match runs.last_mut() {
        Some(run) if run.assistant == assistant => run.items.extend(items),
        _ => runs.push(Run { assistant, items }),
    }
}

fn item(part: &Part, assistant: bool, select: Select, dropped: &mut Dropped) -> Option<Item> {
    match part {
        Part::Text { .. } | Part::Refusal(_) => text_block(part).map(Item::Block),
        Part::Image(_) | Part::Document(_) if assistant => {
            dropped.name("messages.image");
            None
        }
        Part::Image(media) => Some(Item::Block(json!({"type": "image", "source": source(media)}))),
        Part::Document(media) => Some(Item::Block(json!({"type": "document", "source": source(media)}))),
        Part::ToolCall { id, name, args } if assistant => {
            Some(Item::Call { id: id.clone(), name: name.clone(), args: args.clone() })
        }
        Part::ToolCall { .. } => None,
        Part::ToolResult { id, parts, failed } => {
            let parts = parts.iter().filter_map(|part| match item(part, false, select, dropped) {
                Some(Item::Block(block)) => Some(block),
                _ => None,
            });
            Some(Item::Result { id: id.clone(), parts: parts.collect(), failed: *failed })
        }
        Part::Reasoning { text, signature, issuer, redacted } => {
            // Only its issuer can read a signature, and only a signed block may be sent back.
            let signature = signature.as_deref().filter(|s| !s.is_empty())?;
            if !assistant || *issuer != DialectId::Anthropic || select.strip_reasoning {
                return None;
            }
            Some(Item::Block(if *redacted {
                json!({"type": "redacted_thinking", "data": signature})
            } else {
                json!({"type": "thinking", "thinking": text, "signature": signature})
            }))
        }
        Part::Other(DialectId::Anthropic, value) => Some(Item::Block(value.clone())),
        Part::Other(_, value) => {
            let kind = value.get("type").and_then(Value::as_str).unwrap_or("content");
            dropped.name(&format!("messages.{kind}"));
            None
        }
    }
}

/// Instructions in the middle of a conversation, in the marks that models take for instructions.
fn instruction(part: &Part) -> Option<Item> {
    let mut block = text_block(part)?;
    if let Some(Value::String(text)) = block.get_mut("text") {
        *text = format!("<system>\n{text}\n</system>");
    }
    Some(Item::Block(block))
}

/// A text block, unless the text is blank, which the API refuses.
pub(super) fn text_block(part: &Part) -> Option<Value> {
    let (text, cache) = match part {
        Part::Text { text, cache } => (text, cache.as_ref()),
        Part::Refusal(text) => (text, None),
        _ => return None,
    };
    if text.trim().is_empty() {
        return None;
    }
    let mut block = Map::new();
    block.insert("type".to_owned(), "text".into());
    block.insert("text".to_owned(), text.as_str().into());
    if let Some(cache) = cache {
        block.insert("cache_control".to_owned(), cache.clone());
    }
    Some(Value::Object(block))
}

fn source(media: &Media) -> Value {
    let inline = match media {
        Media::Url(url) => Media::of_url(url),
        Media::Data { kind, data } => Media::Data { kind: media_type(kind), data: data.clone() },
    };
    let (kind, data) = match &inline {
        Media::Data { kind, data } => (kind.as_str(), data.as_str()),
        Media::Url(url) => return json!({"type": "url", "url": url}),
    };
    // A document of plain text is not sent as base64 here.
    if kind.starts_with("text/")
        && let Some(text) = base64(data).and_then(|bytes| String::from_utf8(bytes).ok())
    {
        return json!({"type": "text", "media_type": "text/plain", "data": text});
    }
    json!({"type": "base64", "media_type": kind, "data": data})
}

fn base64(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut count) = (0_u32, 0);
    for c in text.bytes().filter(|c| !c.is_ascii_whitespace() && *c != b'=') {
        let six = match c {
            b'A'..=b'Z' => c - b'A',
            b'a'..=b'z' => c - b'a' + 26,
            b'0'..=b'9' => c - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        };
        bits = (bits << 6) | u32::from(six);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from((bits >> count) & 0xFF).ok()?);
        }
    }
    Some(bytes)
}

/// Pairs calls with results and writes the runs out.
fn write(runs: Vec<Run>) -> Vec<Value> {
    let mut out = Vec::new();
    let mut used = HashMap::new();
    let mut owed: Vec<(String, String)> = Vec::new();
    for run in runs {
        if run.assistant {
            if !owed.is_empty() {
                let blocks = answers(std::mem::take(&mut owed), &mut Vec::new());
                out.push(json!({"role": "user", "content": blocks}));
            }
            let (calls, mut blocks): (Vec<_>, Vec<_>) =
                run.items.into_iter().partition(|item| matches!(item, Item::Call { .. }));
            // Calls come last: what follows a call must be its result.
            blocks.extend(calls);
            let mut content = Vec::new();
            for item in blocks {
                match item {
                    Item::Block(block) => content.push(block),
                    Item::Call { id, name, args } => {
                        let sane = sane(&id, &mut used);
                        content.push(json!({"type": "tool_use", "id": sane, "name": name, "input": input(&args)}));
                        owed.push((id, sane));
                    }
                    Item::Result { .. } => {}
                }
            }
            if !content.is_empty() {
                out.push(message("assistant", content));
            }
        } else {
            let (mut results, rest): (Vec<_>, Vec<_>) =
                run.items.into_iter().partition(|item| matches!(item, Item::Result { .. }));
            let mut content = answers(std::mem::take(&mut owed), &mut results);
            for orphan in results {
                if let Item::Result { parts, .. } = orphan {
                    content.extend(parts);
                }
            }
            content.extend(rest.into_iter().filter_map(|item| match item {
                Item::Block(block) => Some(block),
                _ => None,
            }));
            if !content.is_empty() {
                out.push(message("user", content));
            }
        }
    }
    if !owed.is_empty() {
        out.push(json!({"role": "user", "content": answers(owed, &mut Vec::new())}));
    }
    out
}

/// The results of calls, in the calls' order. What is found is taken out of `results`.
fn answers(calls: Vec<(String, String)>, results: &mut Vec<Item>) -> Vec<Value> {
    let mut content = Vec::new();
    // Where each id's results stand: there may be a hundred thousand of them, in any order.
    let mut places: HashMap<String, VecDeque<usize>> = HashMap::new();
    for (at, item) in results.iter().enumerate() {
        if let Item::Result { id, .. } = item {
            places.entry(id.clone()).or_default().push_back(at);
        }
    }
    let mut items: Vec<Option<Item>> = results.drain(..).map(Some).collect();
    for (id, sane) in calls {
        let at = places.get_mut(&id).and_then(VecDeque::pop_front);
        let mut block = json!({"type": "tool_result", "tool_use_id": sane});
        match at.and_then(|at| items[at].take()) {
            Some(Item::Result { parts, failed, .. }) => {
                block["content"] = collapse(parts);
                if failed {
                    block["is_error"] = true.into();
                }
            }
            _ => {
                block["content"] = NO_RESULT.into();
                block["is_error"] = true.into();
            }
        }
        content.push(block);
    }
    results.extend(items.into_iter().flatten());
    content
}

/// What a model is told of a call whose result the client never gave.
const NO_RESULT: &str = "No result of this call is known.";

/// A filler where the API demands a message and the conversation has none.
const FILLER: &str = ".";

fn message(role: &str, content: Vec<Value>) -> Value {
    json!({"role": role, "content": collapse(content)})
}

/// Blocks as a plain string, if they are nothing but one plain text.
fn collapse(mut blocks: Vec<Value>) -> Value {
    let plain = |block: &Value| {
        let object = block.as_object()?;
        let only = object.len() == 2 && object.get("type")?.as_str()? == "text";
        only.then(|| object.get("text").cloned())?
    };
    match blocks.as_mut_slice() {
        [] => "".into(),
        [only] => plain(only).unwrap_or(Value::Array(blocks)),
        _ => Value::Array(blocks),
    }
}

/// Makes the conversation begin with the user, and end so that the model answers.
fn edges(out: &mut Vec<Value>, request: &Request, select: Select) {
    let role = |m: Option<&Value>| m.and_then(|m| m.get("role")).and_then(Value::as_str).unwrap_or_default().to_owned();
    if role(out.first()) != "user" {
        out.insert(0, json!({"role": "user", "content": FILLER}));
    }
    if role(out.last()) != "assistant" {
        return;
    }
    let meant = request.messages.last().is_some_and(|m| m.role == Role::Assistant);
    let text = match out.last_mut().and_then(|m| m.get_mut("content")) {
        Some(Value::Array(blocks)) => blocks.last_mut().and_then(|b| b.get_mut("text")),
        other => other,
    };
    match text {
        // A prefill, which must not end in white space.
        Some(Value::String(text)) if meant && select.prefill => text.truncate(text.trim_end().len()),
        _ => out.push(json!({"role": "user", "content": FILLER})),
    }
}

/// An id in the API's alphabet that no other call has. `used`: those that are taken, each with the number that its next
/// namesake may have.
fn sane(id: &str, used: &mut HashMap<String, u32>) -> String {
    let ok = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let mut sane: String = id.chars().map(|c| if ok(c) { c } else { '_' }).collect();
    if sane.is_empty() {
        sane.push_str("call");
    }
    if let Some(mut count) = used.get(&sane).copied() {
        let base = sane;
        loop {
            sane = format!("{base}_{count}");
            count += 1;
            if !used.contains_key(&sane) {
                break;
            }
        }
        used.insert(base, count);
    }
    used.insert(sane.clone(), 2);
    sane
}

/// A call's arguments as the object that the API demands; what is none is wrapped, so that nothing is lost.
pub(super) fn input(args: &str) -> Value {
    if args.trim().is_empty() {
        return json!({});
    }
    match serde_json::from_str(args) {
        Ok(Value::Object(object)) => Value::Object(object),
        _ => json!({"_raw": args}),
    }
}
