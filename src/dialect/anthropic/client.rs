//! Reads a client's request.
//!
//! It is checked as far as the common form needs it; what only the API itself can judge goes there as it is. Blocks
//! that have no common form are kept whole, for targets of this dialect.

use super::thinking;
use crate::chat::{DialectId, Effort, Format, Media, Message, Minted, Part, Request, Role, Tool, ToolChoice};
use crate::dialect::{NOTED, Reason, Refusal, extensions};
use http::HeaderMap;
use serde_json::{Map, Value};

type Object = Map<String, Value>;

/// Request headers that change what the body means.
const PASSED: [&str; 1] = ["anthropic-beta"];

/// The request of a body.
pub(super) fn parse(headers: &HeaderMap, body: &[u8]) -> Result<Request, Refusal> {
    let mut raw: Object = serde_json::from_slice(body).map_err(|error| {
        Refusal::new(Reason::Request, "invalid_json", format!("the body must be a JSON object: {error}"))
    })?;
    let mut own = extensions::extensions(headers)?;
    match raw.shift_remove("conversation_id") {
        None | Some(Value::Null) => {}
        Some(Value::String(name)) => {
            let checked = extensions::conversation(&name).map_err(|what| wrong("conversation_id", what))?;
            own.conversation.get_or_insert(checked);
        }
        Some(_) => return Err(wrong("conversation_id", "must be a string")),
    }
    match raw.shift_remove("turn_index") {
        None | Some(Value::Null) => {}
        Some(index) => {
            own.turn_index = Some(index.as_u64().ok_or_else(|| wrong("turn_index", "must be a whole number from 0"))?);
        }
    }
    let model = match raw.get("model") {
        Some(Value::String(model)) => model.trim().to_owned(),
        // The gateway may have a default.
        None | Some(Value::Null) => String::new(),
        _ => return Err(wrong("model", "must be the name of a level, an alias or `connection/model`")),
    };
    let max_tokens = match raw.get("max_tokens") {
        Some(limit) => limit.as_u64().ok_or_else(|| wrong("max_tokens", "must be a whole number from 0"))?,
        None => return Err(wrong("max_tokens", "is required: the most tokens to generate, such as 1024")),
    };
    let system = match raw.get("system") {
        None | Some(Value::Null) => Vec::new(),
        Some(content) => parts(content, "system")?,
    };
    let messages = messages(&raw)?;
    let (tools, server_tools) = tools(&raw)?;
    let (tool_choice, parallel_tool_calls) = tool_choice(&raw)?;
    let stream = flag(&raw, "stream")?.unwrap_or(false);
    Ok(Request {
        origin: DialectId::Anthropic,
        passed: passed(headers),
        model,
        system,
        messages,
        tools,
        server_tools,
        tool_choice,
        parallel_tool_calls,
        format: format(&raw),
        stop: strings(&raw, "stop_sequences")?,
        max_tokens: Some(max_tokens),
        temperature: number(&raw, "temperature")?,
        top_p: number(&raw, "top_p")?,
        effort: effort(&raw),
        choices: 1,
        user: text_at(&raw, "/metadata/user_id"),
        stream,
        include_usage: true,
        audio: false,
        stored: false,
        extensions: own,
        minted: Minted::default(),
        raw,
    })
}

/// The fields that the common form does not hold.
pub(super) fn uncommon(request: &Request) -> Vec<&str> {
    let asks = |(field, value): &(&String, &Value)| {
        let common = COMMON.contains(&field.as_str()) || (*field == "metadata" && request.user.is_some());
        !common && !value.is_null()
    };
    request.raw.iter().filter(asks).take(NOTED).map(|(field, _)| field.as_str()).collect()
}

fn passed(headers: &HeaderMap) -> Vec<(String, String)> {
    let all = |name: &str| {
        let values: Vec<&str> = headers.get_all(name).iter().filter_map(|v| v.to_str().ok()).collect();
        (!values.is_empty()).then(|| (name.to_owned(), values.join(",")))
    };
    PASSED.into_iter().filter_map(all).collect()
}

fn messages(raw: &Object) -> Result<Vec<Message>, Refusal> {
    let Some(Value::Array(messages)) = raw.get("messages") else {
        return Err(wrong("messages", "is required: an array of messages"));
    };
    if messages.is_empty() {
        return Err(wrong("messages", "must hold at least one message"));
    }
    messages_of(messages)
}

/// The common form of a list of messages.
pub(super) fn messages_of(messages: &[Value]) -> Result<Vec<Message>, Refusal> {
    let mut out = Vec::with_capacity(messages.len());
    for (at, message) in messages.iter().enumerate() {
        let place = format!("messages[{at}]");
        let role = match message.get("role").and_then(Value::as_str) {
            Some("user") => Role::User,
            Some("assistant") => Role::Assistant,
            Some("system") => Role::System,
            _ => return Err(wrong(&format!("{place}.role"), "must be `user`, `assistant` or `system`")),
        };
        let place = format!("{place}.content");
        let content = message.get("content").ok_or_else(|| wrong(&place, "is required: a string or blocks"))?;
        split(role, parts(content, &place)?, &mut out);
    }
    Ok(out)
}

/// Puts the results of calls into messages of their own, as every other dialect has them.
fn split(role: Role, parts: Vec<Part>, out: &mut Vec<Message>) {
    if role != Role::User || !parts.iter().any(|p| matches!(p, Part::ToolResult { .. })) {
        out.push(Message { role, parts });
        return;
    }
    for part in parts {
        let role = if matches!(part, Part::ToolResult { .. }) { Role::Tool } else { Role::User };
        match out.last_mut() {
            Some(last) if last.role == role && role == Role::User => last.parts.push(part),
            _ => out.push(Message { role, parts: vec![part] }),
        }
    }
}

/// The common form of content: a string or blocks.
pub(super) fn parts(content: &Value, place: &str) -> Result<Vec<Part>, Refusal> {
    match content {
        Value::String(text) => Ok(vec![Part::text(text.as_str())]),
        Value::Array(blocks) => {
            blocks.iter().enumerate().map(|(at, block)| part(block, &format!("{place}[{at}]"))).collect()
        }
        _ => Err(wrong(place, "must be a string or an array of blocks")),
    }
}

fn part(block: &Value, place: &str) -> Result<Part, Refusal> {
    let Some(kind) = block.get("type").and_then(Value::as_str) else {
        return Err(wrong(place, "must be an object with a `type`"));
    };
    let text = |field: &str| match block.get(field) {
        Some(Value::String(text)) => Ok(text.clone()),
        _ => Err(wrong(&format!("{place}.{field}"), "is required: a string")),
    };
    let other = || Part::Other(DialectId::Anthropic, block.clone());
    Ok(match kind {
        "text" => Part::Text { text: text("text")?, cache: cache(block) },
        "image" => media(block).map_or_else(other, Part::Image),
        "document" => match block.get("source") {
            Some(source) if is(source, "text") => Part::Text { text: titled(block, source), cache: cache(block) },
            _ => media(block).map_or_else(other, Part::Document),
        },
        "tool_use" => {
            let args = match block.get("input") {
                Some(Value::Object(input)) => Value::Object(input.clone()).to_string(),
                _ => return Err(wrong(&format!("{place}.input"), "is required: an object")),
            };
            Part::ToolCall { id: text("id")?, name: text("name")?, args }
        }
        "tool_result" => Part::ToolResult {
            id: text("tool_use_id")?,
            parts: match block.get("content") {
                None | Some(Value::Null) => Vec::new(),
                Some(content) => parts(content, &format!("{place}.content"))?,
            },
            failed: block.get("is_error").and_then(Value::as_bool).unwrap_or(false),
        },
        "thinking" => Part::Reasoning {
            text: text("thinking")?,
            signature: block.get("signature").and_then(Value::as_str).map(str::to_owned),
            issuer: DialectId::Anthropic,
            redacted: false,
        },
        "redacted_thinking" => Part::Reasoning {
            text: String::new(),
            signature: Some(text("data")?),
            issuer: DialectId::Anthropic,
            redacted: true,
        },
        _ => other(),
    })
}

fn is(value: &Value, kind: &str) -> bool {
    value.get("type").and_then(Value::as_str) == Some(kind)
}

fn cache(block: &Value) -> Option<Value> {
    block.get("cache_control").filter(|c| !c.is_null()).cloned()
}

/// An image or a document that other dialects could take; files by id are this API's own.
fn media(block: &Value) -> Option<Media> {
    let source = block.get("source")?;
    let text = |field: &str| source.get(field).and_then(Value::as_str).map(str::to_owned);
    match source.get("type")?.as_str()? {
        "url" => Some(Media::Url(text("url")?)),
        "base64" => Some(Media::Data { kind: text("media_type")?, data: text("data")? }),
        _ => None,
    }
}

/// The text of a plain document, under its title.
fn titled(block: &Value, source: &Value) -> String {
    let text = source.get("data").and_then(Value::as_str).unwrap_or_default();
    match block.get("title").and_then(Value::as_str) {
        Some(title) => format!("{title}\n\n{text}"),
        None => text.to_owned(),
    }
}

fn tools(raw: &Object) -> Result<(Vec<Tool>, Vec<Value>), Refusal> {
    let (mut own, mut server) = (Vec::new(), Vec::new());
    let list = match raw.get("tools") {
        None | Some(Value::Null) => return Ok((own, server)),
        Some(Value::Array(list)) => list,
        Some(_) => return Err(wrong("tools", "must be an array")),
    };
    for (at, tool) in list.iter().enumerate() {
        // The type is optional and `custom` for tools that the client runs.
        if tool.get("type").and_then(Value::as_str).is_some_and(|t| t != "custom") {
            server.push(tool.clone());
            continue;
        }
        let Some(name) = tool.get("name").and_then(Value::as_str) else {
            return Err(wrong(&format!("tools[{at}].name"), "is required: a string"));
        };
        own.push(Tool {
            name: name.to_owned(),
            description: tool.get("description").and_then(Value::as_str).map(str::to_owned),
            parameters: tool.get("input_schema").filter(|s| s.is_object()).cloned(),
            strict: tool.get("strict").and_then(Value::as_bool),
            cache: cache(tool),
        });
    }
    Ok((own, server))
}

fn tool_choice(raw: &Object) -> Result<(Option<ToolChoice>, Option<bool>), Refusal> {
    let choice = match raw.get("tool_choice") {
        None | Some(Value::Null) => return Ok((None, None)),
        Some(choice) => choice,
    };
    let parsed = match choice.get("type").and_then(Value::as_str) {
        Some("auto") => ToolChoice::Auto,
        Some("none") => ToolChoice::None,
        Some("any") => ToolChoice::Required,
        Some("tool") => match choice.get("name").and_then(Value::as_str) {
            Some(name) => ToolChoice::Function(name.to_owned()),
            None => return Err(wrong("tool_choice.name", "is required for the type `tool`")),
        },
        _ => return Err(wrong("tool_choice.type", "must be `auto`, `any`, `tool` or `none`")),
    };
    let single = choice.get("disable_parallel_tool_use").and_then(Value::as_bool);
    Ok((Some(parsed), single.map(|single| !single)))
}

fn format(raw: &Object) -> Format {
    let config = raw.get("output_config").and_then(|c| c.get("format")).or_else(|| raw.get("output_format"));
    match config.and_then(|f| f.get("schema")) {
        Some(schema) => Format::Schema { name: SCHEMA_NAME.to_owned(), schema: schema.clone(), strict: Some(true) },
        None => Format::Text,
    }
}

/// Schemas have no name here; other dialects demand one.
const SCHEMA_NAME: &str = "output";

fn effort(raw: &Object) -> Option<Effort> {
    let asked = text_at(raw, "/output_config/effort").and_then(|word| thinking::effort(&word));
    let config = raw.get("thinking");
    match config.and_then(|t| t.get("type")).and_then(Value::as_str) {
        Some("disabled") => Some(Effort::None),
        Some("enabled") => {
            let budget = config.and_then(|t| t.get("budget_tokens")).and_then(Value::as_u64);
            asked.or_else(|| budget.map(thinking::effort_of_budget))
        }
        _ => asked,
    }
}

fn text_at(raw: &Object, pointer: &str) -> Option<String> {
    let (outer, inner) = pointer.strip_prefix('/')?.split_once('/')?;
    raw.get(outer)?.get(inner)?.as_str().map(str::to_owned)
}

fn flag(raw: &Object, field: &str) -> Result<Option<bool>, Refusal> {
    match raw.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Bool(flag)) => Ok(Some(*flag)),
        Some(_) => Err(wrong(field, "must be `true` or `false`")),
    }
}

fn number(raw: &Object, field: &str) -> Result<Option<f64>, Refusal> {
    match raw.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => value.as_f64().map(Some).ok_or_else(|| wrong(field, "must be a number")),
    }
}

fn strings(raw: &Object, field: &str) -> Result<Vec<String>, Refusal> {
    let list = match raw.get(field) {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(list)) => list,
        Some(_) => return Err(wrong(field, "must be an array of strings")),
    };
    let strings = list.iter().map(|s| s.as_str().map(str::to_owned)).collect::<Option<_>>();
    strings.ok_or_else(|| wrong(field, "must be an array of strings"))
}

pub(super) fn wrong(place: &str, what: &str) -> Refusal {
    Refusal::new(Reason::Request, "invalid_request", format!("{place}: {what}")).about(place)
}

/// Fields that the common form holds.
const COMMON: [&str; 13] = [
    "model",
    "messages",
    "system",
    "tools",
    "tool_choice",
    "max_tokens",
    "stop_sequences",
    "stream",
    "temperature",
    "top_p",
    "thinking",
    "output_config",
    "output_format",
];

#[cfg(test)]
#[path = "tests/client.rs"]
mod tests;
