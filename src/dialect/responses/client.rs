//! Reads a client's request.
//!
//! What decides the turn must be right, and what is wrong is told with its place. What refers to earlier answers
//! (`previous_response_id`, `conversation`, items by id) is noted for whoever keeps them and taken off the body, for no
//! provider knows our ids.

use super::{custom, ids, items};
use crate::chat::{DialectId, Effort, Format, Minted, Request, Tool, ToolChoice};
use crate::dialect::extensions::{conversation, extensions};
use crate::dialect::openai::field as wrong;
use crate::dialect::{NOTED, Reason, Refusal};
use http::HeaderMap;
use serde_json::{Map, Value, json};

type Object = Map<String, Value>;

/// Reads a request.
pub(super) fn parse(headers: &HeaderMap, body: &[u8]) -> Result<Request, Refusal> {
    let mut own = extensions(headers)?;
    let mut raw: Object = serde_json::from_slice(body).map_err(|error| {
        let message = format!("The body must be a JSON object: {error}.");
        Refusal::new(Reason::Request, "invalid_json", message)
    })?;
    if let Some(name) = text_field(&mut raw, "conversation_id")? {
        own.conversation = Some(conversation(&name).map_err(|why| wrong("conversation_id", why))?);
    }
    match raw.shift_remove("turn_index") {
        None | Some(Value::Null) => {}
        Some(index) => {
            let index = index.as_u64().ok_or_else(|| wrong("turn_index", "must be a whole number, 0 or more"))?;
            own.turn_index = Some(index);
        }
    }
    own.previous = text_field(&mut raw, "previous_response_id")?.filter(|id| !id.is_empty());
    if let Some(name) = conversation_of(&mut raw)? {
        if own.previous.is_some() {
            let why = "cannot be given together with `previous_response_id`; send one of them";
            return Err(wrong("conversation", why));
        }
        own.conversation = Some(conversation(&name).map_err(|why| wrong("conversation", why))?);
        own.append_history = true;
    }
    let flag = |name: &str| match raw.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Bool(flag)) => Ok(Some(*flag)),
        Some(_) => Err(wrong(name, "must be true or false")),
    };
    if flag("background")?.unwrap_or(false) {
        let why = "must be false here: answers are made while their client listens; ask without it, as a stream";
        return Err(wrong("background", why));
    }
    own.keep = flag("store")?.unwrap_or(true);
    let model = match raw.get("model") {
        Some(Value::String(model)) => model.trim().to_owned(),
        // The gateway may have a default.
        None | Some(Value::Null) => String::new(),
        _ => return Err(wrong("model", "must name a level, an alias or `connection/model`")),
    };
    let begun = own.previous.is_some() || own.append_history;
    let asked = items::asked(&raw, begun)?;
    own.references = items::references(&asked);
    let (mut system, messages) = items::conversation(&asked)?;
    let instructions = items::instructions(raw.get("instructions"))?;
    system.splice(0..0, instructions);
    let (mut tools, server_tools) = tools(&raw)?;
    if let Some(allowed) = allowed(&raw) {
        tools.retain(|tool| allowed.contains(&tool.name.as_str()));
    }
    let number = |name: &str| match raw.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => value.as_f64().map(Some).ok_or_else(|| wrong(name, "must be a number")),
    };
    let text = |name: &str| raw.get(name).and_then(Value::as_str).map(str::to_owned);
    let max_tokens = match raw.get("max_output_tokens") {
        None | Some(Value::Null) => None,
        Some(limit) => {
            Some(limit.as_u64().ok_or_else(|| wrong("max_output_tokens", "must be a whole number, 0 or more"))?)
        }
    };
    let stream = flag("stream")?.unwrap_or(false);
    Ok(Request {
        origin: DialectId::Responses,
        passed: Vec::new(),
        model,
        system,
        messages,
        tools,
        server_tools,
        tool_choice: tool_choice(&raw),
        parallel_tool_calls: flag("parallel_tool_calls")?,
        format: format(&raw)?,
        stop: Vec::new(),
        max_tokens,
        temperature: number("temperature")?,
        top_p: number("top_p")?,
        effort: raw.get("reasoning").and_then(|r| r.get("effort")?.as_str()).and_then(effort),
        choices: 1,
        user: text("user").or_else(|| text("safety_identifier")),
        stream,
        include_usage: true,
        audio: false,
        // What is kept is kept here: a provider is never asked to.
        stored: false,
        extensions: own,
        minted: Minted::default(),
        raw,
    })
}

/// The fields that the common form does not hold, but for those that say what is so anyway.
pub(super) fn uncommon(request: &Request) -> Vec<&str> {
    let asks = |(field, value): &(&String, &Value)| {
        let idle = match (field.as_str(), *value) {
            (_, Value::Null | Value::Bool(false)) => true,
            ("top_logprobs", n) => n.as_f64() == Some(0.0),
            ("service_tier", Value::String(tier)) => tier == "auto" || tier == "default",
            ("truncation", Value::String(how)) => how == "disabled",
            // It bounds the tools that a provider runs itself.
            ("max_tool_calls", _) => request.server_tools.is_empty(),
            ("include", Value::Array(list)) => list.iter().all(|what| what == "reasoning.encrypted_content"),
            (_, Value::Object(object)) => object.is_empty(),
            (_, Value::Array(array)) => array.is_empty(),
            _ => false,
        };
        !idle && !COMMON.contains(&field.as_str())
    };
    request.raw.iter().filter(asks).take(NOTED).map(|(field, _)| field.as_str()).collect()
}

// === helpers ===

/// Takes a field that holds a text off the body.
fn text_field(raw: &mut Object, name: &str) -> Result<Option<String>, Refusal> {
    match raw.shift_remove(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(wrong(name, "must be a string")),
    }
}

/// The conversation that the turn belongs to: its id, or an object that holds it.
fn conversation_of(raw: &mut Object) -> Result<Option<String>, Refusal> {
    match raw.shift_remove("conversation") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(id)) => Ok(Some(id)),
        Some(Value::Object(mut object)) => match object.shift_remove("id") {
            Some(Value::String(id)) => Ok(Some(id)),
            _ => Err(wrong("conversation.id", "must be a string")),
        },
        Some(_) => Err(wrong("conversation", "must be a conversation's id, or an object with an `id`")),
    }
}

/// What the client runs itself, functions and custom tools, and what a provider runs.
fn tools(raw: &Object) -> Result<(Vec<Tool>, Vec<Value>), Refusal> {
    let (mut tools, mut others) = (Vec::new(), Vec::new());
    let list = match raw.get("tools") {
        None | Some(Value::Null) => return Ok((tools, others)),
        Some(Value::Array(list)) => list,
        Some(_) => return Err(wrong("tools", "must be an array")),
    };
    for (at, tool) in list.iter().enumerate() {
        let kind = tool.get("type").and_then(Value::as_str).unwrap_or_default();
        if kind != "function" && kind != "custom" {
            others.push(tool.clone());
            continue;
        }
        let Some(name) = tool.get("name").and_then(Value::as_str).filter(|name| !name.is_empty()) else {
            return Err(wrong(&format!("tools[{at}].name"), "must be a string that is not empty"));
        };
        tools.push(if kind == "custom" {
            custom::function(name, tool)
        } else {
            Tool {
                name: name.to_owned(),
                description: tool.get("description").and_then(Value::as_str).map(str::to_owned),
                parameters: tool.get("parameters").filter(|p| !p.is_null()).cloned(),
                strict: tool.get("strict").and_then(Value::as_bool),
                cache: None,
            }
        });
    }
    Ok((tools, others))
}

fn tool_choice(raw: &Object) -> Option<ToolChoice> {
    let word = |word: &str| match word {
        "none" => ToolChoice::None,
        "required" => ToolChoice::Required,
        _ => ToolChoice::Auto,
    };
    let choice = raw.get("tool_choice").filter(|choice| !choice.is_null())?;
    if let Some(text) = choice.as_str() {
        return Some(word(text));
    }
    let text = |field: &str| choice.get(field).and_then(Value::as_str);
    match text("type")? {
        "allowed_tools" => Some(word(text("mode").unwrap_or_default())),
        "function" | "custom" => text("name").map(|name| ToolChoice::Function(name.to_owned())),
        _ => None,
    }
}

/// The names of the tools that may be called, where the choice names some of them.
fn allowed(raw: &Object) -> Option<Vec<&str>> {
    let choice = raw.get("tool_choice").filter(|c| c.get("type").is_some_and(|kind| kind == "allowed_tools"))?;
    Some(choice.get("tools")?.as_array()?.iter().filter_map(|tool| tool.get("name")?.as_str()).collect())
}

fn format(raw: &Object) -> Result<Format, Refusal> {
    let Some(format) = raw.get("text").and_then(|text| text.get("format")).filter(|f| !f.is_null()) else {
        return Ok(Format::Text);
    };
    match format.get("type").and_then(Value::as_str) {
        Some("json_object") => Ok(Format::Json),
        Some("json_schema") => {
            let Some(schema) = format.get("schema").filter(|schema| schema.is_object()) else {
                return Err(wrong("text.format.schema", "must be a JSON schema"));
            };
            Ok(Format::Schema {
                name: format.get("name").and_then(Value::as_str).unwrap_or_default().to_owned(),
                schema: schema.clone(),
                strict: format.get("strict").and_then(Value::as_bool),
            })
        }
        Some(_) => Ok(Format::Text),
        None => Err(wrong("text.format.type", "must be `text`, `json_object` or `json_schema`")),
    }
}

fn effort(word: &str) -> Option<Effort> {
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

/// What an answer repeats of its request, with what holds where the request is silent.
pub(super) fn echo(request: &Request) -> Object {
    let mut echo = Object::new();
    let defaults = [
        ("background", json!(false)),
        ("instructions", Value::Null),
        ("max_output_tokens", Value::Null),
        ("max_tool_calls", Value::Null),
        ("metadata", json!({})),
        ("parallel_tool_calls", json!(true)),
        ("prompt_cache_key", Value::Null),
        ("reasoning", json!({"effort": null, "summary": null})),
        ("safety_identifier", Value::Null),
        ("service_tier", json!("default")),
        ("store", json!(request.extensions.keep)),
        ("temperature", json!(1.0)),
        ("text", json!({"format": {"type": "text"}})),
        ("tool_choice", json!("auto")),
        ("tools", json!([])),
        ("top_logprobs", json!(0)),
        ("top_p", json!(1.0)),
        ("truncation", json!("disabled")),
        ("user", Value::Null),
    ];
    for (name, default) in defaults {
        let told = request.raw.get(name).filter(|value| !value.is_null()).cloned();
        echo.insert(name.to_owned(), told.unwrap_or(default));
    }
    echo.insert("previous_response_id".to_owned(), json!(request.extensions.previous));
    if let Some(name) = request.extensions.conversation.as_ref().filter(|_| request.extensions.append_history) {
        echo.insert("conversation".to_owned(), json!({"id": name}));
    }
    echo
}

/// The id of the answer to a request.
pub(super) fn answer_id(request: &Request) -> String {
    ids::answer(request.minted.id)
}

/// Fields that the common form holds, or that ask nothing of a provider of another dialect.
const COMMON: [&str; 18] = [
    "model",
    "input",
    "instructions",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "text",
    "max_output_tokens",
    "temperature",
    "top_p",
    "reasoning",
    "user",
    "safety_identifier",
    "stream",
    "stream_options",
    "prompt_cache_key",
    "prompt_cache_retention",
    "store",
];

#[cfg(test)]
#[path = "tests/client.rs"]
mod tests;
