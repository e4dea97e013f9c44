//! Thinking and effort: three generations of one wish.
//!
//! Models up to 4.5 take a budget of tokens, 4.6 takes both, later ones think adaptively and take an effort; some think
//! unless told not to, some cannot be told. A request written for one generation is refused by the next, so what is
//! asked is always recast for the model at hand. Budgets of efforts are LiteLLM's, which clients are used to.

use super::dropped::Dropped;
use super::quirks::{Least, Model, Thinking};
use crate::chat::Effort;
use serde_json::{Map, Value, json};

/// The smallest budget that the API takes.
const BUDGET_MIN: u64 = 1024;

/// Asks for an effort that another dialect named.
pub(super) fn ask(body: &mut Map<String, Value>, effort: Effort, model: Model, dropped: &mut Dropped) {
    match model.thinking {
        _ if effort == Effort::None => least(body, model),
        Thinking::None => dropped.field("thinking"),
        Thinking::Budget => {
            body.insert("thinking".to_owned(), json!({"type": "enabled", "budget_tokens": budget(effort)}));
        }
        Thinking::Either => {
            body.insert("thinking".to_owned(), json!({"type": "adaptive"}));
            set_effort(body, effort, model);
        }
        Thinking::Adaptive => {
            // Without `display` these models think in silence, and a client that asked for reasoning sees none.
            body.insert("thinking".to_owned(), json!({"type": "adaptive", "display": "summarized"}));
            set_effort(body, effort, model);
        }
    }
}

/// Asks for as little thinking as the model allows.
pub(super) fn least(body: &mut Map<String, Value>, model: Model) {
    body.shift_remove("thinking");
    match model.least {
        Least::Omit => {}
        Least::Disable => {
            body.insert("thinking".to_owned(), json!({"type": "disabled"}));
            // It cannot be turned off at more than `high`.
            if matches!(effort_of(body), Some(Effort::XHigh | Effort::Max)) {
                set_effort(body, Effort::High, model);
            }
        }
        Least::BetweenTools => {
            body.insert("thinking".to_owned(), json!({"type": "between_tools"}));
        }
        Least::Low => set_effort(body, Effort::Low, model),
    }
}

/// Recasts what the body asks for into what the model takes. `strict`: the body was translated, so that combinations
/// which the API refuses are this gateway's to avoid and not the client's mistake.
pub(super) fn settle(body: &mut Map<String, Value>, model: Model, shrunk: bool, strict: bool, dropped: &mut Dropped) {
    let kind = body.get("thinking").and_then(|t| t.get("type")).and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut budgeted = false;
    match (kind.as_str(), model.thinking) {
        ("enabled" | "adaptive", Thinking::None) => {
            body.shift_remove("thinking");
            dropped.field("thinking");
        }
        ("disabled", Thinking::None) => {
            body.shift_remove("thinking");
        }
        ("enabled", Thinking::Adaptive) => {
            let tokens = body.get("thinking").and_then(|t| t.get("budget_tokens")).and_then(Value::as_u64);
            recast(body, "adaptive");
            if effort_of(body).is_none() {
                set_effort(body, effort_of_budget(tokens.unwrap_or(BUDGET_MIN)), model);
            }
        }
        ("adaptive", Thinking::Budget) => {
            let tokens = budget(effort_of(body).unwrap_or(Effort::Medium));
            body.insert("thinking".to_owned(), json!({"type": "enabled", "budget_tokens": tokens}));
            budgeted = true;
        }
        ("disabled", Thinking::Adaptive) if matches!(model.least, Least::Low | Least::BetweenTools) => {
            least(body, model);
            if model.least == Least::Low {
                dropped.field("thinking");
            }
        }
        ("between_tools", _) if model.least != Least::BetweenTools => least(body, model),
        _ => {}
    }
    if let Some(effort) = effort_of(body) {
        if !model.effort {
            clear_effort(body);
            if kind != "adaptive" {
                dropped.field("output_config.effort");
            }
        } else if effort == Effort::XHigh && !model.xhigh {
            set_effort(body, Effort::High, model);
        }
    }
    if strict && (forced(body) || open_tool_turn(body)) && is_enabled(body) {
        // Thinking neither goes with a forced call, nor with calls whose own thinking is not in the history.
        least(body, model);
        dropped.field("thinking");
    }
    // A budget that this gateway chose must fit the client's limit; its own is its own affair.
    fit(body, shrunk || strict || budgeted, dropped);
}

/// Whether a thinking budget is asked for, or adaptive thinking together with a forced call.
fn is_enabled(body: &Map<String, Value>) -> bool {
    match body.get("thinking").and_then(|t| t.get("type")).and_then(Value::as_str) {
        Some("enabled") => true,
        Some("adaptive") => forced(body),
        _ => false,
    }
}

/// Keeps a budget below `max_tokens`: half of it, if that is a budget at all.
fn fit(body: &mut Map<String, Value>, may: bool, dropped: &mut Dropped) {
    let Some(max) = body.get("max_tokens").and_then(Value::as_u64) else { return };
    let Some(budget) = body.get_mut("thinking").and_then(|t| t.get_mut("budget_tokens")) else { return };
    let tokens = budget.as_u64().unwrap_or(0);
    if !may || tokens < max {
        return;
    }
    if max / 2 >= BUDGET_MIN {
        *budget = (max / 2).into();
    } else {
        body.shift_remove("thinking");
        dropped.field("thinking");
    }
}

/// Whether the last assistant message called tools without a thinking block before the calls.
fn open_tool_turn(body: &Map<String, Value>) -> bool {
    let Some(messages) = body.get("messages").and_then(Value::as_array) else { return false };
    let has = |message: &Value, kinds: &[&str]| {
        message.get("content").and_then(Value::as_array).is_some_and(|blocks| {
            blocks.iter().any(|b| b.get("type").and_then(Value::as_str).is_some_and(|t| kinds.contains(&t)))
        })
    };
    match messages.as_slice() {
        [.., assistant, results] if has(results, &["tool_result"]) => {
            has(assistant, &["tool_use"]) && !has(assistant, &["thinking", "redacted_thinking"])
        }
        _ => false,
    }
}

/// Whether a call is forced.
fn forced(body: &Map<String, Value>) -> bool {
    let kind = body.get("tool_choice").and_then(|c| c.get("type")).and_then(Value::as_str);
    matches!(kind, Some("any" | "tool"))
}

/// Makes `thinking` of another type, keeping what all types have.
fn recast(body: &mut Map<String, Value>, kind: &str) {
    if let Some(Value::Object(thinking)) = body.get_mut("thinking") {
        thinking.insert("type".to_owned(), kind.into());
        thinking.shift_remove("budget_tokens");
    }
}

fn budget(effort: Effort) -> u64 {
    match effort {
        Effort::None | Effort::Minimal | Effort::Low => BUDGET_MIN,
        Effort::Medium => 2048,
        Effort::High => 4096,
        Effort::XHigh => 8192,
        Effort::Max => 16_384,
    }
}

/// The effort that a budget stands for.
pub(super) fn effort_of_budget(tokens: u64) -> Effort {
    match tokens {
        0..=1024 => Effort::Low,
        1025..=2048 => Effort::Medium,
        2049..=4096 => Effort::High,
        4097..=8192 => Effort::XHigh,
        8193.. => Effort::Max,
    }
}

/// The effort of a word; `None` for an unknown one.
pub(super) fn effort(word: &str) -> Option<Effort> {
    Some(match word {
        "low" => Effort::Low,
        "medium" => Effort::Medium,
        "high" => Effort::High,
        "xhigh" => Effort::XHigh,
        "max" => Effort::Max,
        _ => return None,
    })
}

fn effort_of(body: &Map<String, Value>) -> Option<Effort> {
    body.get("output_config")?.get("effort")?.as_str().and_then(effort)
}

fn set_effort(body: &mut Map<String, Value>, effort: Effort, model: Model) {
    let word = match effort {
        Effort::None | Effort::Minimal | Effort::Low => "low",
        Effort::Medium => "medium",
        Effort::XHigh if model.xhigh => "xhigh",
        Effort::High | Effort::XHigh => "high",
        Effort::Max => "max",
    };
    let config = body.entry("output_config").or_insert_with(|| json!({}));
    if let Value::Object(config) = config {
        config.insert("effort".to_owned(), word.into());
    }
}

fn clear_effort(body: &mut Map<String, Value>) {
    super::dropped::remove(body, "output_config.effort");
}
