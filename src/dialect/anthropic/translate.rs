//! A Messages body from the common form, for clients of other dialects.

use super::dropped::Dropped;
use super::history::{self, Select};
use super::quirks::Model;
use super::thinking;
use crate::chat::{Format, Request, Tool, ToolChoice};
use crate::dialect::field::uncommon;
use crate::turn::resume::Carry;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// The body without model and limit.
pub(super) fn body(request: &Request, model: Model, carry: &Carry, dropped: &mut Dropped) -> Map<String, Value> {
    let mut body = Map::new();
    for field in ["model", "max_tokens", "stream"] {
        body.insert(field.to_owned(), Value::Null);
    }
    let select = Select {
        last_only: carry.last_message_only,
        strip_reasoning: carry.form.strip_reasoning,
        prefill: model.prefill,
    };
    let mut system: Vec<Value> = request.system.iter().filter_map(history::text_block).collect();
    let messages = history::messages(request, select, dropped);
    match system.as_mut_slice() {
        [] => {}
        [only] if only.get("cache_control").is_none() => {
            body.insert("system".to_owned(), only["text"].take());
        }
        _ => {
            body.insert("system".to_owned(), Value::Array(system));
        }
    }
    let names = called(&messages);
    body.insert("messages".to_owned(), Value::Array(messages));
    tools(&mut body, request, names, dropped);
    if let Some(temperature) = request.temperature {
        body.insert("temperature".to_owned(), json!(temperature.clamp(0.0, 1.0)));
    }
    if let Some(top_p) = request.top_p {
        body.insert("top_p".to_owned(), json!(top_p));
    }
    if let Some(top_k) = request.raw.get("top_k").and_then(Value::as_u64) {
        body.insert("top_k".to_owned(), top_k.into());
    }
    stop(&mut body, request, dropped);
    match &request.format {
        Format::Text => {}
        Format::Json => dropped.field("output_config.format"),
        Format::Schema { schema, .. } => {
            let mut schema = schema.clone();
            close(&mut schema);
            body.insert("output_config".to_owned(), json!({"format": {"type": "json_schema", "schema": schema}}));
        }
    }
    if let Some(user) = &request.user {
        body.insert("metadata".to_owned(), json!({"user_id": user}));
    }
    if let Some(effort) = request.effort {
        thinking::ask(&mut body, effort, model, dropped);
    }
    left_out(request, dropped);
    body
}

/// Names what of the client's request has no counterpart here.
fn left_out(request: &Request, dropped: &mut Dropped) {
    // The one field without a common form that is known here.
    for field in uncommon(request).into_iter().filter(|field| *field != "top_k") {
        dropped.name(field);
    }
    if !request.server_tools.is_empty() {
        dropped.name("tools");
    }
    if request.tools.iter().any(|t| t.strict == Some(true)) {
        dropped.name("tools.strict");
    }
}

/// The names of the tools that the history calls.
fn called(messages: &[Value]) -> BTreeSet<String> {
    let blocks = messages.iter().filter_map(|m| m.get("content").and_then(Value::as_array)).flatten();
    let calls = blocks.filter(|b| b.get("type").and_then(Value::as_str) == Some("tool_use"));
    calls.filter_map(|b| b.get("name").and_then(Value::as_str).map(str::to_owned)).collect()
}

fn tools(body: &mut Map<String, Value>, request: &Request, called: BTreeSet<String>, dropped: &mut Dropped) {
    if request.tools.is_empty() {
        // A history with calls is refused unless the tools are defined; none of them is to be called again.
        if !called.is_empty() {
            let tools = called.into_iter().map(|name| json!({"name": name, "input_schema": schema(None)}));
            body.insert("tools".to_owned(), tools.collect());
            body.insert("tool_choice".to_owned(), json!({"type": "none"}));
        }
        return;
    }
    body.insert("tools".to_owned(), request.tools.iter().map(tool).collect());
    let mut choice = match &request.tool_choice {
        None if request.parallel_tool_calls == Some(false) => json!({"type": "auto"}),
        None => return,
        Some(ToolChoice::Auto) => json!({"type": "auto"}),
        Some(ToolChoice::None) => json!({"type": "none"}),
        Some(ToolChoice::Required) => json!({"type": "any"}),
        Some(ToolChoice::Function(name)) => {
            if !request.tools.iter().any(|t| t.name == *name) {
                dropped.field("tool_choice");
                return;
            }
            json!({"type": "tool", "name": name})
        }
    };
    if request.parallel_tool_calls == Some(false) && request.tool_choice != Some(ToolChoice::None) {
        choice["disable_parallel_tool_use"] = true.into();
    }
    body.insert("tool_choice".to_owned(), choice);
}

fn tool(tool: &Tool) -> Value {
    let mut out = Map::new();
    out.insert("name".to_owned(), tool.name.as_str().into());
    if let Some(description) = &tool.description {
        out.insert("description".to_owned(), description.as_str().into());
    }
    out.insert("input_schema".to_owned(), schema(tool.parameters.as_ref()));
    if let Some(cache) = &tool.cache {
        out.insert("cache_control".to_owned(), cache.clone());
    }
    Value::Object(out)
}

/// The schema of a tool's arguments, which must be one of an object.
fn schema(parameters: Option<&Value>) -> Value {
    let Some(Value::Object(parameters)) = parameters else {
        return json!({"type": "object", "properties": {}});
    };
    let mut schema = parameters.clone();
    if schema.get("type").and_then(Value::as_str) != Some("object") {
        schema.insert("type".to_owned(), "object".into());
    }
    if schema.len() == 1 {
        schema.insert("properties".to_owned(), json!({}));
    }
    Value::Object(schema)
}

fn stop(body: &mut Map<String, Value>, request: &Request, dropped: &mut Dropped) {
    let (told, blank): (Vec<_>, Vec<_>) = request.stop.iter().partition(|s| !s.trim().is_empty());
    if !blank.is_empty() {
        dropped.field("stop_sequences");
    }
    if !told.is_empty() {
        body.insert("stop_sequences".to_owned(), json!(told));
    }
}

/// Says of every object in a schema that it has no further properties, where the schema leaves it open: the API
/// refuses open objects.
fn close(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            if object.get("type").and_then(Value::as_str) == Some("object") {
                object.entry("additionalProperties").or_insert(Value::Bool(false));
            }
            object.iter_mut().filter(|(key, _)| *key != "enum" && *key != "const").for_each(|(_, value)| close(value));
        }
        Value::Array(array) => array.iter_mut().for_each(close),
        _ => {}
    }
}

#[cfg(test)]
#[path = "tests/translate.rs"]
mod tests;
