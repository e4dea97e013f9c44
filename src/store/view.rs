//! A conversation as operators see it.

use super::{Conversation, Exchange, Key, State};
use crate::chat::{Message, Part, Role};
use crate::dialect;
use crate::dialect::history::Spoken;
use serde::Serialize;
use std::sync::Arc;

/// What is kept of a conversation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ConversationView {
    /// Its name.
    pub conversation: Arc<str>,
    /// Whose; `None` without tenants.
    pub tenant: Option<Arc<str>>,
    /// The instructions that stand before it.
    pub system: Option<String>,
    /// What was said, in order. An answer that is under way is not there yet.
    pub turns: Vec<TurnView>,
}

/// One message of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TurnView {
    /// `user`, `assistant`, `tool` or `system`.
    pub role: &'static str,
    /// Its text.
    pub text: String,
    /// How the answer ended; not for other messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<&'static str>,
    /// The calls of the answer; not for other messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<Vec<CallView>>,
    /// The turn that gave it, if one did here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<Arc<str>>,
    /// `connection/model` of who gave it last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub served_by: Option<String>,
}

/// A tool call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CallView {
    /// Its id.
    pub id: String,
    /// The function.
    pub name: String,
    /// JSON text.
    pub arguments: String,
}

// === impl ConversationView ===

impl ConversationView {
    /// The view of a conversation.
    pub fn of(key: &Key, conversation: &Conversation) -> Self {
        let system = conversation.system.as_ref().and_then(|system| {
            let history = dialect::client(system.origin)?.history();
            let spoken = Spoken { system: Some((*system.words).clone()), messages: Vec::new() };
            Some(text(&history.read(&spoken).ok()?.0))
        });
        Self {
            conversation: Arc::clone(&key.conversation),
            tenant: key.tenant.clone(),
            system,
            turns: conversation.exchanges.iter().flat_map(|exchange| exchange.view()).collect(),
        }
    }
}

// === impl Exchange ===

impl Exchange {
    fn view(&self) -> Vec<TurnView> {
        let mut turns: Vec<TurnView> = self.common(self.asked.clone()).iter().map(TurnView::of).collect();
        let Some(answer) = &self.answer else { return turns };
        let told = self.common(answer.message.iter().cloned().collect());
        let silent = Message { role: Role::Assistant, parts: Vec::new() };
        turns.push(TurnView {
            state: Some(answer.state.name()),
            tool_calls: Some(calls(&told.first().unwrap_or(&silent).parts)),
            turn: self.turn.clone(),
            served_by: answer.served_by.as_ref().map(|by| format!("{}/{}", by.connection, by.model)),
            ..TurnView::of(told.first().unwrap_or(&silent))
        });
        turns
    }
}

// === impl TurnView ===

impl TurnView {
    fn of(message: &Message) -> Self {
        let assistant = message.role == Role::Assistant;
        Self {
            role: match message.role {
                Role::System => "system",
                Role::User => "user",
                Role::Assistant => "assistant",
                Role::Tool => "tool",
            },
            text: text(&message.parts),
            state: assistant.then_some(State::Complete.name()),
            tool_calls: assistant.then(|| calls(&message.parts)),
            turn: None,
            served_by: None,
        }
    }
}

// === helpers ===

fn text(parts: &[Part]) -> String {
    let mut all = String::new();
    for part in parts {
        match part {
            Part::Text { text: said, .. } | Part::Refusal(said) => all.push_str(said),
            Part::ToolResult { parts, .. } => all.push_str(&text(parts)),
            Part::Image(_) | Part::Document(_) | Part::ToolCall { .. } | Part::Reasoning { .. } | Part::Other(..) => {}
        }
    }
    all
}

fn calls(parts: &[Part]) -> Vec<CallView> {
    let call = |part: &Part| match part {
        Part::ToolCall { id, name, args } => {
            Some(CallView { id: id.clone(), name: name.clone(), arguments: args.clone() })
        }
        _ => None,
    };
    parts.iter().filter_map(call).collect()
}
