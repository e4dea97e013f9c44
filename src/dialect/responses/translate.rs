//! Writes a request of another dialect in this one, from the common form, and names what has no place here.

use super::{items, past};
use crate::chat::{DialectId, Effort, Format, Message, Part, Request, Role, Tool, ToolChoice};
use crate::dialect::field::{uncommon, word};
use crate::dialect::{Field, note};
use serde_json::{Map, Value, json};

/// The body, without what belongs to the attempt.
pub(super) fn body(request: &Request, dropped: &mut Vec<String>) -> Map<String, Value> {
    let mut body = Map::new();
    let mut put = |name: &str, value: Value| {
        body.insert(name.to_owned(), value);
    };
    put("model", Value::Null);
    let system: Vec<&str> = request.system.iter().filter_map(text).collect();
    if !system.is_empty() {
        put("instructions", system.join("\n\n").into());
    }
    put("input", Value::Array(request.messages.iter().flat_map(|message| input(message, dropped)).collect()));
    if !request.tools.is_empty() {
        put("tools", request.tools.iter().map(tool).collect());
        if let Some(choice) = &request.tool_choice {
            put("tool_choice", tool_choice(choice));
        }
        if let Some(parallel) = request.parallel_tool_calls {
            put("parallel_tool_calls", parallel.into());
        }
    }
    for tool in &request.server_tools {
        let name = ["name", "type"].iter().find_map(|key| tool.get(*key)?.as_str()).unwrap_or("server");
        note(dropped, &format!("tools.{name}"));
    }
    match &request.format {
        Format::Text => {}
        Format::Json => put("text", json!({"format": {"type": "json_object"}})),
        Format::Schema { name, schema, strict } => {
            let name = if name.is_empty() { "answer" } else { name };
            let mut format = json!({"type": "json_schema", "name": name, "schema": schema});
            if let Some(strict) = strict {
                format["strict"] = (*strict).into();
            }
            put("text", json!({"format": format}));
        }
    }
    if !request.stop.is_empty() {
        note(dropped, word(request.origin, Field::Stop));
    }
    if let Some(limit) = request.max_tokens {
        put("max_output_tokens", limit.into());
    }
    if let Some(temperature) = request.temperature {
        put("temperature", json!(temperature));
    }
    if let Some(top_p) = request.top_p {
        put("top_p", json!(top_p));
    }
    if let Some(effort) = request.effort {
        put("reasoning", json!({"effort": effort_word(effort)}));
    }
    if let Some(user) = &request.user {
        put("user", user.as_str().into());
    }
    for name in uncommon(request) {
        note(dropped, name);
    }
    body
}

// === helpers ===

fn text(part: &Part) -> Option<&str> {
    match part {
        Part::Text { text, .. } if !text.is_empty() => Some(text),
        _ => None,
    }
}

/// A message as items.
fn input(message: &Message, dropped: &mut Vec<String>) -> Vec<Value> {
    for part in &message.parts {
        if let Part::Other(issuer, value) = part
            && *issuer != DialectId::Responses
        {
            let kind = value.get("type").and_then(Value::as_str).unwrap_or("content");
            note(dropped, &format!("messages.{kind}"));
        }
    }
    if message.role == Role::Assistant {
        // Only its issuer can read what is signed, and what nobody signed is no input here.
        let theirs = |part: &&Part| match part {
            Part::Reasoning { issuer, signature, .. } => *issuer == DialectId::Responses && signature.is_some(),
            _ => true,
        };
        let parts: Vec<Part> = message.parts.iter().filter(theirs).cloned().collect();
        return past::outputs(&parts);
    }
    let mut items = past::message(message);
    items.iter_mut().for_each(collapse);
    items
}

/// A content of nothing but one text as that text, which every server takes.
fn collapse(item: &mut Value) {
    if items::kind(item) == "message"
        && let Some([only]) = item["content"].as_array().map(Vec::as_slice)
        && only.get("type").is_some_and(|kind| kind == "input_text")
        && let Some(text) = only.get("text").cloned()
    {
        item["content"] = text;
    }
}

fn tool(tool: &Tool) -> Value {
    let parameters = tool.parameters.clone().unwrap_or_else(|| json!({"type": "object", "properties": {}}));
    // Unless told otherwise this API takes a schema for a strict one, which few are.
    let strict = tool.strict.unwrap_or(false);
    let mut out = json!({"type": "function", "name": tool.name, "parameters": parameters, "strict": strict});
    if let Some(description) = &tool.description {
        out["description"] = description.as_str().into();
    }
    out
}

fn tool_choice(choice: &ToolChoice) -> Value {
    match choice {
        ToolChoice::Auto => json!("auto"),
        ToolChoice::None => json!("none"),
        ToolChoice::Required => json!("required"),
        ToolChoice::Function(name) => json!({"type": "function", "name": name}),
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
