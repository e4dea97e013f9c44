//! Custom tools, which take a text where functions take JSON.
//!
//! To every other dialect such a tool is a function of one argument, and its text is taken out of that again for the
//! client.

use crate::chat::{Request, Tool};
use serde_json::{Value, json};
use std::collections::HashSet;

/// The one argument.
pub(super) const INPUT: &str = "input";

/// The function that stands for a custom tool.
pub(super) fn function(name: &str, tool: &Value) -> Tool {
    let mut description = tool.get("description").and_then(Value::as_str).unwrap_or_default().to_owned();
    if let Some(format) = tool.get("format").filter(|format| format.get("type").is_some_and(|kind| kind == "grammar")) {
        let text = |field: &str| format.get(field).and_then(Value::as_str).unwrap_or_default();
        let (syntax, definition) = (text("syntax"), text("definition"));
        description.push_str(&format!("\n\nThe input must follow this {syntax} grammar:\n{definition}"));
    }
    let description = description.trim().to_owned();
    Tool {
        name: name.to_owned(),
        description: (!description.is_empty()).then_some(description),
        parameters: Some(json!({
            "type": "object",
            "properties": {INPUT: {"type": "string"}},
            "required": [INPUT],
            "additionalProperties": false,
        })),
        strict: None,
        cache: None,
    }
}

/// The arguments of that function for an input.
pub(super) fn args(input: &str) -> String {
    json!({INPUT: input}).to_string()
}

/// The input in that function's arguments; the arguments themselves where a model did not keep to the form.
pub(super) fn input(args: &str) -> String {
    match serde_json::from_str::<Value>(args) {
        Ok(Value::Object(mut fields)) => match fields.shift_remove(INPUT) {
            Some(Value::String(input)) => input,
            _ => args.to_owned(),
        },
        Ok(Value::String(input)) => input,
        _ => args.to_owned(),
    }
}

/// The names of a request's custom tools.
pub(super) fn names(request: &Request) -> HashSet<String> {
    let tools = request.raw.get("tools").and_then(Value::as_array).into_iter().flatten();
    let custom = tools.filter(|tool| tool.get("type").is_some_and(|kind| kind == "custom"));
    custom.filter_map(|tool| tool.get("name")?.as_str()).map(str::to_owned).collect()
}
