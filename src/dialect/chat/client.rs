//! Reads a client's request.
//!
//! What decides the turn must be right, and what is wrong is told with its place; parts and fields that nobody here
//! knows go on to targets of the same dialect as they are.

use super::refuse::field as wrong;
use crate::chat::{DialectId, Effort, Format, Media, Message, Minted, Part, Request, Role, Tool, ToolChoice};
use crate::dialect::extensions::{conversation, extensions};
use crate::dialect::{NOTED, Reason, Refusal};
use http::HeaderMap;
use serde_json::{Map, Value};

/// Reads a request.
pub(super) fn parse(headers: &HeaderMap, body: &[u8]) -> Result<Request, Refusal> {
    let mut extensions = extensions(headers)?;
    let value: Value = serde_json::from_slice(body).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        Refusal::new(
            Reason::Request,
            "invalid_json",
            format!("The body is no valid JSON: {error} (line {line}, column {column}). Send one JSON object."),
        )
    })?;
    let Value::Object(mut raw) = value else {
        return Err(Refusal::new(Reason::Request, "invalid_json", "The body must be a JSON object."));
    };
    match raw.shift_remove("conversation_id") {
        None | Some(Value::Null) => {}
        Some(Value::String(name)) => {
            extensions.conversation = Some(conversation(&name).map_err(|why| wrong("conversation_id", why))?);
        }
        Some(_) => return Err(wrong("conversation_id", "must be a string")),
    }
    match raw.shift_remove("turn_index") {
        None | Some(Value::Null) => {}
        Some(index) => {
            extensions.turn_index =
                Some(index.as_u64().ok_or_else(|| wrong("turn_index", "must be a whole number, 0 or more"))?);
        }
    }
    let model = match raw.get("model") {
        Some(Value::String(model)) => model.trim().to_owned(),
        // The gateway may have a default.
        None | Some(Value::Null) => String::new(),
        _ => return Err(wrong("model", "must name a level, an alias or `connection/model`")),
    };
    let (system, messages) = conversation_of(&raw)?;
    let (mut tools, server_tools) = tools(&raw)?;
    if let Some(allowed) = allowed(&raw) {
        tools.retain(|tool| allowed.contains(&tool.name.as_str()));
    }
    let flag = |name: &str| match raw.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Bool(flag)) => Ok(Some(*flag)),
        Some(_) => Err(wrong(name, "must be true or false")),
    };
    let number = |name: &str| match raw.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => value.as_f64().map(Some).ok_or_else(|| wrong(name, "must be a number")),
    };
    let limit = |name: &str| match raw.get(name) {
        None | Some(Value::Null) => Ok(None),
        // Some servers take a negative number for none.
        Some(value) if value.as_f64().is_some_and(|limit| limit < 0.0) => Ok(None),
        Some(value) => whole(value).map(Some).ok_or_else(|| wrong(name, "must be a whole number, 0 or more")),
    };
    let text = |name: &str| raw.get(name).and_then(Value::as_str).map(str::to_owned);
    let options = raw.get("stream_options").filter(|o| !o.is_null());
    if options.is_some_and(|o| !o.is_object()) {
        return Err(wrong("stream_options", "must be an object, such as {\"include_usage\": true}"));
    }
    let asks = |holder: Option<&Value>, field| holder.and_then(|h| h.get(field)).and_then(Value::as_bool) == Some(true);
    // The second is OpenRouter's way to ask.
    let include_usage = asks(options, "include_usage") || asks(raw.get("usage"), "include");
    let choices = match raw.get("n") {
        None | Some(Value::Null) => 1,
        Some(n) => match n.as_u64().and_then(|n| u32::try_from(n).ok()) {
            Some(n) if (1..=MAX_CHOICES).contains(&n) => n,
            _ => return Err(wrong("n", "must be a whole number from 1 to 128")),
        },
    };
    let modalities = raw.get("modalities").and_then(Value::as_array);
    let effort = text("reasoning_effort").or_else(|| Some(raw.get("reasoning")?.get("effort")?.as_str()?.to_owned()));
    Ok(Request {
        origin: DialectId::Chat,
        passed: Vec::new(),
        model,
        system,
        messages,
        tools,
        server_tools,
        tool_choice: tool_choice(&raw),
        parallel_tool_calls: flag("parallel_tool_calls")?,
        format: format(&raw)?,
        stop: stop(&raw)?,
        max_tokens: limit("max_completion_tokens")?.or(limit("max_tokens")?),
        temperature: number("temperature")?,
        top_p: number("top_p")?,
        effort: effort.as_deref().and_then(effort_of),
        choices,
        user: text("user").or_else(|| text("safety_identifier")),
        stream: flag("stream")?.unwrap_or(false),
        include_usage,
        audio: modalities.is_some_and(|m| m.iter().any(|mode| mode == "audio")),
        stored: flag("store")?.unwrap_or(false),
        extensions,
        minted: Minted::default(),
        raw,
    })
}

/// The fields that the common form does not hold, but for those that say what is so anyway.
pub(super) fn uncommon(request: &Request) -> Vec<&str> {
    let asks = |(field, value): &(&String, &Value)| {
        let idle = match (field.as_str(), *value) {
            (_, Value::Null | Value::Bool(false)) => true,
            ("n", n) => n.as_u64() == Some(1),
            ("frequency_penalty" | "presence_penalty" | "top_logprobs", n) => n.as_f64() == Some(0.0),
            ("service_tier", Value::String(tier)) => tier == "auto" || tier == "default",
            ("modalities", Value::Array(kinds)) => kinds.iter().all(|k| k.as_str() == Some("text")),
            (_, Value::Object(object)) => object.is_empty(),
            (_, Value::Array(array)) => array.is_empty(),
            _ => false,
        };
        !idle && !COMMON.contains(&field.as_str())
    };
    request.raw.iter().filter(asks).take(NOTED).map(|(field, _)| field.as_str()).collect()
}

// === helpers ===

/// The instructions before the conversation, and the conversation.
pub(super) fn conversation_of(raw: &Map<String, Value>) -> Result<(Vec<Part>, Vec<Message>), Refusal> {
    let list = match raw.get("messages") {
        Some(Value::Array(list)) if !list.is_empty() => list,
        Some(Value::Array(_)) => return Err(wrong("messages", "must hold at least one message")),
        Some(_) => return Err(wrong("messages", "must be an array of messages")),
        None => return Err(wrong("messages", "is missing; send the conversation as an array of messages")),
    };
    let (mut system, mut messages) = (Vec::new(), Vec::with_capacity(list.len()));
    for (at, value) in list.iter().enumerate() {
        let message = message(value, &format!("messages[{at}]"))?;
        if message.role == Role::System && messages.is_empty() {
            system.extend(message.parts);
        } else {
            messages.push(message);
        }
    }
    Ok((system, messages))
}

fn message(value: &Value, place: &str) -> Result<Message, Refusal> {
    let Some(fields) = value.as_object() else { return Err(wrong(place, "must be an object")) };
    let role = match fields.get("role").and_then(Value::as_str) {
        Some("system" | "developer") => Role::System,
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some("tool" | "function") => Role::Tool,
        _ => {
            return Err(wrong(
                &format!("{place}.role"),
                "must be `system`, `developer`, `user`, `assistant` or `tool`",
            ));
        }
    };
    let mut parts = Vec::new();
    if role == Role::Assistant {
        let reasoning = ["reasoning_content", "reasoning"].iter().find_map(|name| fields.get(*name)?.as_str());
        if let Some(text) = reasoning.filter(|text| !text.is_empty()) {
            parts.push(thought(text));
        }
        if let Some(details) = fields.get("reasoning_details").filter(|d| !d.is_null()) {
            let other = serde_json::json!({ "type": "reasoning_details", "reasoning_details": details });
            parts.push(Part::Other(DialectId::Chat, other));
        }
    }
    match fields.get("content") {
        None | Some(Value::Null) if role == Role::Assistant || role == Role::Tool => {}
        Some(Value::String(text)) => {
            if !text.is_empty() {
                parts.push(Part::text(text.as_str()));
            }
        }
        Some(Value::Array(list)) => {
            for (at, part) in list.iter().enumerate() {
                parts.extend(self::part(part, &format!("{place}.content[{at}]"))?);
            }
        }
        _ => return Err(wrong(&format!("{place}.content"), "must be a string or an array of content parts")),
    }
    // A mark on the whole message is one on its last text.
    if let Some(mark) = fields.get("cache_control").filter(|mark| !mark.is_null())
        && let Some(Part::Text { cache, .. }) = parts.iter_mut().rfind(|part| matches!(part, Part::Text { .. }))
    {
        cache.get_or_insert_with(|| mark.clone());
    }
    match role {
        Role::Assistant => {
            if let Some(text) = fields.get("refusal").and_then(Value::as_str).filter(|text| !text.is_empty()) {
                parts.push(Part::Refusal(text.to_owned()));
            }
            calls(fields, place, &mut parts)?;
        }
        Role::Tool => {
            let id = ["tool_call_id", "name"].iter().find_map(|name| fields.get(*name)?.as_str()).unwrap_or_default();
            parts = vec![Part::ToolResult { id: id.to_owned(), parts, failed: false }];
        }
        Role::System | Role::User => {}
    }
    Ok(Message { role, parts })
}

/// The calls of an assistant's message, and the one call of the old form, whose name serves as its id.
fn calls(fields: &Map<String, Value>, place: &str, parts: &mut Vec<Part>) -> Result<(), Refusal> {
    let call = |id: &str, function: &Value| {
        let text = |key: &str| match function.get(key) {
            Some(Value::String(text)) => text.clone(),
            Some(value @ Value::Object(_)) => value.to_string(),
            _ => String::new(),
        };
        Part::ToolCall { id: id.to_owned(), name: text("name"), args: text("arguments") }
    };
    match fields.get("tool_calls") {
        None | Some(Value::Null) => {}
        Some(Value::Array(list)) => {
            for value in list {
                let id = value.get("id").and_then(Value::as_str).unwrap_or_default();
                parts.push(match value.get("function") {
                    Some(function) => call(id, function),
                    None => Part::Other(DialectId::Chat, value.clone()),
                });
            }
        }
        Some(_) => return Err(wrong(&format!("{place}.tool_calls"), "must be an array")),
    }
    if let Some(function) = fields.get("function_call").filter(|f| f.is_object()) {
        let name = function.get("name").and_then(Value::as_str).unwrap_or_default();
        parts.push(call(name, function));
    }
    Ok(())
}

fn part(value: &Value, place: &str) -> Result<Option<Part>, Refusal> {
    let text = |key: &str| value.get(key).and_then(Value::as_str);
    let other = || Part::Other(DialectId::Chat, value.clone());
    let part = match value {
        Value::String(text) => Part::text(text.as_str()),
        Value::Object(_) => match text("type").unwrap_or_default() {
            "text" | "input_text" | "output_text" => {
                let Some(text) = text("text") else { return Err(wrong(&format!("{place}.text"), "must be a string")) };
                if text.is_empty() {
                    return Ok(None);
                }
                let cache = value.get("cache_control").filter(|c| !c.is_null()).cloned();
                Part::Text { text: text.to_owned(), cache }
            }
            "image_url" => {
                let image = value.get("image_url");
                let url = image.and_then(|i| i.as_str().or_else(|| i.get("url")?.as_str()));
                let Some(url) = url else {
                    return Err(wrong(&format!("{place}.image_url.url"), "must be an http(s) or data: URL"));
                };
                Part::Image(Media::of_url(url))
            }
            "file" => {
                match value.get("file").and_then(|f| f.get("file_data")).and_then(Value::as_str).map(Media::of_url) {
                    Some(file @ Media::Data { .. }) => Part::Document(file),
                    _ => other(),
                }
            }
            "refusal" => Part::Refusal(text("refusal").unwrap_or_default().to_owned()),
            "thinking" => match value.get("thinking") {
                Some(Value::String(text)) => thought(text),
                Some(Value::Array(pieces)) => {
                    thought(&pieces.iter().filter_map(|p| p.get("text")?.as_str()).collect::<String>())
                }
                _ => other(),
            },
            _ => other(),
        },
        _ => return Err(wrong(place, "must be a content part, such as {\"type\": \"text\", \"text\": \"…\"}")),
    };
    Ok(Some(part))
}

fn thought(text: &str) -> Part {
    Part::Reasoning { text: text.to_owned(), signature: None, issuer: DialectId::Chat, redacted: false }
}

/// Functions, in the new and the old form, and the tools that a provider runs itself.
fn tools(raw: &Map<String, Value>) -> Result<(Vec<Tool>, Vec<Value>), Refusal> {
    let (mut tools, mut others) = (Vec::new(), Vec::new());
    for name in ["tools", "functions"] {
        let list = match raw.get(name) {
            None | Some(Value::Null) => continue,
            Some(Value::Array(list)) => list,
            Some(_) => return Err(wrong(name, "must be an array")),
        };
        for (at, value) in list.iter().enumerate() {
            let function = if name == "functions" { Some(value) } else { value.get("function") };
            let Some(function) = function else {
                others.push(value.clone());
                continue;
            };
            let Some(called) = function.get("name").and_then(Value::as_str).filter(|n| !n.is_empty()) else {
                let place = if name == "functions" {
                    format!("functions[{at}].name")
                } else {
                    format!("tools[{at}].function.name")
                };
                return Err(wrong(&place, "must be a string that is not empty"));
            };
            tools.push(Tool {
                name: called.to_owned(),
                description: function.get("description").and_then(Value::as_str).map(str::to_owned),
                parameters: function.get("parameters").filter(|p| !p.is_null()).cloned(),
                strict: function.get("strict").and_then(Value::as_bool),
                cache: value.get("cache_control").filter(|c| !c.is_null()).cloned(),
            });
        }
    }
    Ok((tools, others))
}

fn tool_choice(raw: &Map<String, Value>) -> Option<ToolChoice> {
    let choice = raw.get("tool_choice").or_else(|| raw.get("function_call"))?;
    let word = |word: &str| match word {
        "none" => ToolChoice::None,
        "required" | "any" => ToolChoice::Required,
        _ => ToolChoice::Auto,
    };
    if let Some(text) = choice.as_str() {
        return Some(word(text));
    }
    match choice.get("type").and_then(Value::as_str) {
        Some(kind @ ("none" | "auto" | "required" | "any")) => return Some(word(kind)),
        Some("allowed_tools") => {
            let inner = choice.get("allowed_tools").unwrap_or(choice);
            return Some(word(inner.get("mode").and_then(Value::as_str).unwrap_or_default()));
        }
        _ => {}
    }
    let named = choice.get("function").unwrap_or(choice).get("name").and_then(Value::as_str);
    named.map(|name| ToolChoice::Function(name.to_owned()))
}

/// The names of the functions that may be called, where the choice names some of them.
fn allowed(raw: &Map<String, Value>) -> Option<Vec<&str>> {
    let choice = raw.get("tool_choice").filter(|c| c.get("type").is_some_and(|kind| kind == "allowed_tools"))?;
    let list = choice.get("allowed_tools").unwrap_or(choice).get("tools")?.as_array()?;
    Some(list.iter().filter_map(|tool| tool.get("function").unwrap_or(tool).get("name")?.as_str()).collect())
}

fn format(raw: &Map<String, Value>) -> Result<Format, Refusal> {
    let Some(format) = raw.get("response_format").filter(|f| !f.is_null()) else { return Ok(Format::Text) };
    // llama.cpp has the schema beside the type, with either type.
    let beside = || format.get("schema").filter(|s| s.is_object());
    match format.get("type").and_then(Value::as_str) {
        Some("json_object") => Ok(match beside() {
            Some(schema) => Format::Schema { name: String::new(), schema: schema.clone(), strict: None },
            None => Format::Json,
        }),
        Some("json_schema") => {
            let inner = format.get("json_schema").unwrap_or(&Value::Null);
            let Some(schema) = inner.get("schema").filter(|s| s.is_object()).or_else(beside) else {
                return Err(wrong("response_format.json_schema.schema", "must be a JSON schema"));
            };
            Ok(Format::Schema {
                name: inner.get("name").and_then(Value::as_str).unwrap_or_default().to_owned(),
                schema: schema.clone(),
                strict: inner.get("strict").and_then(Value::as_bool),
            })
        }
        Some(_) => Ok(Format::Text),
        None => Err(wrong("response_format.type", "must be `text`, `json_object` or `json_schema`")),
    }
}

/// A whole number, in whatever form JSON has it.
fn whole(value: &Value) -> Option<u64> {
    // Saturating, and only numbers that are whole.
    value.as_u64().or_else(|| value.as_f64().filter(|n| n.fract() == 0.0 && *n >= 0.0).map(|n| n as u64))
}

fn stop(raw: &Map<String, Value>) -> Result<Vec<String>, Refusal> {
    match raw.get("stop") {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::String(text)) => Ok(vec![text.clone()]),
        Some(Value::Array(list)) => list
            .iter()
            .map(|item| item.as_str().map(str::to_owned))
            .collect::<Option<_>>()
            .ok_or_else(|| wrong("stop", "must hold strings only")),
        Some(_) => Err(wrong("stop", "must be a string or an array of strings")),
    }
}

fn effort_of(word: &str) -> Option<Effort> {
    Some(match word {
        "none" => Effort::None,
        "minimal" => Effort::Minimal,
        "low" => Effort::Low,
        "medium" => Effort::Medium,
        "high" => Effort::High,
        "xhigh" => Effort::XHigh,
        "max" => Effort::Max,
        _ => return None,
    })
}

/// The most answers to one request.
const MAX_CHOICES: u32 = 128;

/// Fields that the common form holds, or that ask nothing of a provider of another dialect.
const COMMON: [&str; 22] = [
    "model",
    "messages",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "functions",
    "function_call",
    "response_format",
    "stop",
    "max_tokens",
    "max_completion_tokens",
    "temperature",
    "top_p",
    "reasoning_effort",
    "reasoning",
    "user",
    "safety_identifier",
    "stream",
    "stream_options",
    "prompt_cache_key",
    "prompt_cache_retention",
    "store",
];
