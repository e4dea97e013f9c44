//! Writes a request of another dialect in this one, from the common form, and names what has no place here.

use super::quirks;
use crate::chat::{DialectId, Effort, Format, Media, Message, Part, Request, Role, Tool, ToolChoice};
use crate::dialect::field::{uncommon, word};
use crate::dialect::{Field, note};
use crate::routing::Target;
use serde_json::{Map, Value, json};

/// The body, without what belongs to the attempt.
pub(super) fn write(request: &Request, target: &Target, dropped: &mut Vec<String>) -> Map<String, Value> {
    let mut body = Map::new();
    let mut put = |name: &str, value: Value| {
        body.insert(name.to_owned(), value);
    };
    put("model", json!(&*target.model));
    put("messages", Value::Array(conversation(&request.system, &request.messages, dropped)));
    if !request.tools.is_empty() {
        put("tools", request.tools.iter().map(tool).collect());
        if let Some(choice) = &request.tool_choice {
            put("tool_choice", tool_choice(choice));
        }
        if let Some(parallel) = request.parallel_tool_calls {
            put("parallel_tool_calls", json!(parallel));
        }
    }
    for tool in &request.server_tools {
        let name = ["name", "type"].iter().find_map(|key| tool.get(*key)?.as_str()).unwrap_or("server");
        note(dropped, &format!("tools.{name}"));
    }
    match &request.format {
        Format::Text => {}
        Format::Json => put("response_format", json!({ "type": "json_object" })),
        Format::Schema { name, schema, strict } => {
            let mut inner = json!({ "name": if name.is_empty() { "answer" } else { name }, "schema": schema });
            if let Some(strict) = strict {
                inner["strict"] = json!(strict);
            }
            put("response_format", json!({ "type": "json_schema", "json_schema": inner }));
        }
    }
    if !request.stop.is_empty() {
        put("stop", request.stop.iter().take(MAX_STOPS).map(String::as_str).collect());
        let name = client_name(request.origin, "stop");
        (MAX_STOPS..request.stop.len()).for_each(|at| note(dropped, &format!("{name}[{at}]")));
    }
    if let Some(limit) = request.max_tokens {
        let new = target.reasons || quirks::wants_completion_tokens(&target.model);
        put(if new { "max_completion_tokens" } else { "max_tokens" }, json!(limit));
    }
    if let Some(temperature) = request.temperature {
        put("temperature", json!(temperature));
    }
    if let Some(top_p) = request.top_p {
        put("top_p", json!(top_p));
    }
    match request.effort {
        // A target that does not reason refuses the field.
        Some(effort) if target.reasons => put("reasoning_effort", json!(effort_word(effort))),
        Some(Effort::None) | None => {}
        Some(_) => note(dropped, client_name(request.origin, "reasoning_effort")),
    }
    if request.choices > 1 {
        put("n", json!(request.choices));
    }
    if let Some(user) = &request.user {
        put("user", json!(user));
    }
    for name in uncommon(request) {
        note(dropped, name);
    }
    body
}

/// A field of this dialect under the name that clients of `origin` know it by.
pub(super) fn client_name(origin: DialectId, name: &str) -> &str {
    let field = match name {
        _ if origin == DialectId::Chat => return name,
        "stop" => Field::Stop,
        "reasoning_effort" => Field::Effort,
        "response_format" => Field::Format,
        "max_tokens" | "max_completion_tokens" => Field::Limit,
        "user" => Field::User,
        _ => return name,
    };
    word(origin, field)
}

/// The messages of a conversation, instructions first.
pub(super) fn conversation(system: &[Part], messages: &[Message], dropped: &mut Vec<String>) -> Vec<Value> {
    let mut out = Vec::with_capacity(messages.len() + 1);
    let system = texts(system, dropped);
    if !system.is_empty() {
        out.push(json!({ "role": "system", "content": system.join("\n\n") }));
    }
    // What is no text in the results of tools, until the last of a run was told.
    let mut owed: Vec<Value> = Vec::new();
    for message in messages {
        if message.role == Role::Assistant || message.role == Role::System {
            settle(&mut owed, &mut out);
        }
        match message.role {
            Role::System => {
                let text = texts(&message.parts, dropped).join("\n\n");
                if !text.is_empty() {
                    out.push(json!({ "role": "system", "content": text }));
                }
            }
            Role::User | Role::Tool => user(message, &mut owed, &mut out, dropped),
            Role::Assistant => assistant(message, &mut out, dropped),
        }
    }
    settle(&mut owed, &mut out);
    out
}

// === helpers ===

/// Results of tools, one message each, as they must follow the calls, then the rest.
fn user(message: &Message, owed: &mut Vec<Value>, out: &mut Vec<Value>, dropped: &mut Vec<String>) {
    for part in &message.parts {
        let Part::ToolResult { id, parts, .. } = part else { continue };
        // The message of a tool holds text only: images follow in the user's.
        let (images, words): (Vec<&Part>, Vec<&Part>) =
            parts.iter().partition(|part| matches!(part, Part::Image(_) | Part::Document(_)));
        let words: Vec<Part> = words.into_iter().cloned().collect();
        let text = texts(&words, dropped).join("\n");
        out.push(json!({ "role": "tool", "tool_call_id": id, "content": text }));
        owed.extend(images.into_iter().filter_map(|part| media(part, dropped)));
    }
    if message.parts.iter().all(|part| matches!(part, Part::ToolResult { .. })) {
        return;
    }
    let mut content = std::mem::take(owed);
    for part in &message.parts {
        match part {
            Part::ToolResult { .. } => {}
            Part::Text { text, cache } => {
                if cache.is_some() {
                    note(dropped, "cache_control");
                }
                content.push(json!({ "type": "text", "text": text }));
            }
            Part::Image(_) | Part::Document(_) => content.extend(media(part, dropped)),
            Part::ToolCall { .. } | Part::Reasoning { .. } | Part::Refusal(_) => {}
            Part::Other(_, value) => note_other(value, dropped),
        }
    }
    say(content, out);
}

/// Tells what is owed of the results of tools, in one message of the user's.
fn settle(owed: &mut Vec<Value>, out: &mut Vec<Value>) {
    say(std::mem::take(owed), out);
}

fn say(content: Vec<Value>, out: &mut Vec<Value>) {
    let text_only = match &content[..] {
        [] => return,
        [only] => only.get("text").cloned(),
        _ => None,
    };
    out.push(json!({ "role": "user", "content": text_only.unwrap_or(Value::Array(content)) }));
}

fn assistant(message: &Message, out: &mut Vec<Value>, dropped: &mut Vec<String>) {
    let mut calls = Vec::new();
    let mut text = String::new();
    for part in &message.parts {
        match part {
            Part::Text { text: piece, .. } | Part::Refusal(piece) => text.push_str(piece),
            Part::ToolCall { id, name, args } => {
                let args = if args.trim().is_empty() { "{}" } else { args };
                calls.push(json!({ "id": id, "type": "function", "function": { "name": name, "arguments": args } }));
            }
            Part::Reasoning { .. } => note(dropped, "thinking"),
            Part::Other(_, value) => note_other(value, dropped),
            Part::Image(_) | Part::Document(_) | Part::ToolResult { .. } => note(dropped, "messages.assistant.media"),
        }
    }
    if text.is_empty() && calls.is_empty() {
        return;
    }
    let content = if text.is_empty() { Value::Null } else { Value::String(text) };
    let mut message = json!({ "role": "assistant", "content": content });
    if !calls.is_empty() {
        message["tool_calls"] = Value::Array(calls);
    }
    out.push(message);
}

/// The texts of parts; what is none is named.
fn texts(parts: &[Part], dropped: &mut Vec<String>) -> Vec<String> {
    let mut out = Vec::with_capacity(parts.len());
    for part in parts {
        match part {
            Part::Text { text, cache } => {
                if cache.is_some() {
                    note(dropped, "cache_control");
                }
                if !text.is_empty() {
                    out.push(text.clone());
                }
            }
            Part::Other(_, value) => note_other(value, dropped),
            Part::Image(_)
            | Part::Document(_)
            | Part::ToolCall { .. }
            | Part::ToolResult { .. }
            | Part::Reasoning { .. }
            | Part::Refusal(_) => {}
        }
    }
    out
}

fn media(part: &Part, dropped: &mut Vec<String>) -> Option<Value> {
    match part {
        Part::Image(Media::Url(url)) => Some(json!({ "type": "image_url", "image_url": { "url": url } })),
        Part::Image(Media::Data { kind, data }) => {
            Some(json!({ "type": "image_url", "image_url": { "url": format!("data:{kind};base64,{data}") } }))
        }
        Part::Document(Media::Data { kind, data }) => {
            let name = if kind == "application/pdf" { "document.pdf" } else { "document" };
            let file = json!({ "filename": name, "file_data": format!("data:{kind};base64,{data}") });
            Some(json!({ "type": "file", "file": file }))
        }
        _ => {
            note(dropped, "document");
            None
        }
    }
}

fn tool(tool: &Tool) -> Value {
    let parameters = tool.parameters.clone().unwrap_or_else(|| json!({ "type": "object", "properties": {} }));
    let mut function = json!({ "name": tool.name, "parameters": parameters });
    if let Some(description) = &tool.description {
        function["description"] = json!(description);
    }
    if let Some(strict) = tool.strict {
        function["strict"] = json!(strict);
    }
    json!({ "type": "function", "function": function })
}

fn tool_choice(choice: &ToolChoice) -> Value {
    match choice {
        ToolChoice::Auto => json!("auto"),
        ToolChoice::None => json!("none"),
        ToolChoice::Required => json!("required"),
        ToolChoice::Function(name) => json!({ "type": "function", "function": { "name": name } }),
    }
}

fn effort_word(effort: Effort) -> &'static str {
    match effort {
        Effort::None => "none",
        Effort::Minimal => "minimal",
        Effort::Low => "low",
        Effort::Medium => "medium",
        Effort::High => "high",
        Effort::XHigh | Effort::Max => "xhigh",
    }
}

fn note_other(value: &Value, dropped: &mut Vec<String>) {
    let name = value.get("type").and_then(Value::as_str).unwrap_or("content");
    note(dropped, &format!("messages.{name}"));
}

/// The most stop sequences that this API takes.
const MAX_STOPS: usize = 4;
