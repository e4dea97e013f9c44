//! Whole answers: what a timeline says, as one JSON body.

use super::{Api, Names, Quoted, anthropic, chat, responses};
use crate::rig::play::{Say, Tokens};
use crate::rig::script::Finish;
use std::fmt::Write;

/// Collects what is said.
#[derive(Debug, Default)]
pub struct Whole {
    reasoning: String,
    texts: Vec<String>,
    refusal: String,
    tools: Vec<(String, String, String)>,
    finishes: Vec<Finish>,
    tokens: Option<Tokens>,
}

// === impl Whole ===

impl Whole {
    /// Takes what is said next.
    pub fn say(&mut self, say: &Say<'_>) {
        match say {
            Say::Reasoning(text) => self.reasoning.push_str(text),
            Say::Text { choice, text } => self.text(*choice).push_str(text),
            Say::Refusal(text) => self.refusal.push_str(text),
            Say::ToolOpen { id, name, .. } => {
                self.tools.push(((*id).to_owned(), (*name).to_owned(), String::new()));
            }
            Say::ToolArgs { args, .. } => {
                if let Some((_, _, all)) = self.tools.last_mut() {
                    all.push_str(args);
                }
            }
            Say::Finish { choice, reason, tokens } => {
                self.text(*choice);
                self.finishes.push(*reason);
                self.tokens = *tokens;
            }
            Say::Open(_)
            | Say::Thinking(_)
            | Say::ToolClose { .. }
            | Say::Usage(_)
            | Say::Done
            | Say::Error { .. }
            | Say::Ping => {}
        }
    }

    /// Whether every choice has finished.
    pub fn is_finished(&self) -> bool {
        !self.finishes.is_empty() && self.finishes.len() == self.texts.len()
    }

    /// The body.
    pub fn render(&self, api: Api, names: &Names) -> String {
        match api {
            Api::Chat => self.chat(names),
            Api::Anthropic => self.anthropic(names),
            Api::Responses => {
                let reason = self.finishes.first().copied().unwrap_or_default();
                let text = self.texts.first().map_or("", String::as_str);
                responses::whole(
                    names,
                    reason,
                    self.tokens.as_ref(),
                    (&self.reasoning, text, &self.refusal),
                    &self.tools,
                )
            }
        }
    }

    fn text(&mut self, choice: u32) -> &mut String {
        let choice = usize::try_from(choice).unwrap_or_default();
        if self.texts.len() <= choice {
            self.texts.resize(choice + 1, String::new());
        }
        &mut self.texts[choice]
    }

    fn chat(&self, names: &Names) -> String {
        let mut choices = String::new();
        for (index, (text, reason)) in self.texts.iter().zip(&self.finishes).enumerate() {
            let first = index == 0;
            let comma = if first { "" } else { "," };
            let _ = write!(choices, "{comma}{{\"index\":{index},\"message\":{{\"role\":\"assistant\",\"content\":");
            if text.is_empty() && !self.tools.is_empty() {
                choices.push_str("null");
            } else {
                let _ = write!(choices, "{}", Quoted(text));
            }
            if first && !self.reasoning.is_empty() {
                let _ = write!(choices, ",\"reasoning_content\":{}", Quoted(&self.reasoning));
            }
            if first && !self.refusal.is_empty() {
                let _ = write!(choices, ",\"refusal\":{}", Quoted(&self.refusal));
            } else {
                choices.push_str(",\"refusal\":null");
            }
            if first && !self.tools.is_empty() {
                let calls: Vec<String> = self
                    .tools
                    .iter()
                    .map(|(id, name, args)| {
                        format!(
                            "{{\"id\":{},\"type\":\"function\",\"function\":{{\"name\":{},\"arguments\":{}}}}}",
                            Quoted(id),
                            Quoted(name),
                            Quoted(args)
                        )
                    })
                    .collect();
                let _ = write!(choices, ",\"tool_calls\":[{}]", calls.join(","));
            }
            let _ = write!(choices, "}},\"logprobs\":null,\"finish_reason\":\"{}\"}}", chat::finish(*reason));
        }
        let usage = self.tokens.map(|t| format!(",\"usage\":{}", chat::usage(&t))).unwrap_or_default();
        format!(
            "{{\"id\":{},\"object\":\"chat.completion\",\"created\":{},\"model\":{},\"choices\":[{choices}]{usage},\
             \"service_tier\":\"default\",\"system_fingerprint\":\"fp_rig\"}}",
            Quoted(&names.id),
            names.created,
            Quoted(&names.model)
        )
    }

    fn anthropic(&self, names: &Names) -> String {
        let mut blocks = Vec::new();
        if !self.reasoning.is_empty() {
            blocks.push(format!(
                "{{\"type\":\"thinking\",\"thinking\":{},\"signature\":\"{}\"}}",
                Quoted(&self.reasoning),
                anthropic::SIGNATURE
            ));
        }
        let text = self.texts.first().map(|text| format!("{text}{}", self.refusal)).unwrap_or_default();
        if !text.is_empty() {
            blocks.push(format!("{{\"type\":\"text\",\"text\":{}}}", Quoted(&text)));
        }
        for (id, name, args) in &self.tools {
            // Arguments that are no JSON cannot be said in this API; an empty object is what it says without any.
            let valid = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(args).is_ok();
            blocks.push(format!(
                "{{\"type\":\"tool_use\",\"id\":{},\"name\":{},\"input\":{}}}",
                Quoted(id),
                Quoted(name),
                if valid { args } else { "{}" }
            ));
        }
        let reason = self.finishes.first().copied().unwrap_or_default();
        let usage = self.tokens.map(|t| format!(",\"usage\":{}", anthropic::usage(&t, t.completion)));
        format!(
            "{{\"id\":{},\"type\":\"message\",\"role\":\"assistant\",\"model\":{},\"content\":[{}],\
             \"stop_reason\":\"{}\",\"stop_sequence\":null{}}}",
            Quoted(&names.id),
            Quoted(&names.model),
            blocks.join(","),
            anthropic::finish(reason),
            usage.unwrap_or_default()
        )
    }
}
