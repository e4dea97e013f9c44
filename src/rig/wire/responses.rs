//! OpenAI Responses events: each has a name and a number, items open and close, the whole answer stands at the end.

use super::{Frames, Names, Quoted, chat};
use crate::rig::play::{Say, Tokens};
use crate::rig::script::{Finish, Wrong};
use std::fmt::{Arguments, Write};

/// The items of one answer: one open at a time, ascending numbers.
#[derive(Debug, Default)]
pub(super) struct Items {
    /// How many events were written.
    number: u64,
    /// Items that are complete, as JSON.
    output: Vec<String>,
    open: Option<Item>,
    end: Option<(Finish, Option<Tokens>)>,
}

#[derive(Debug)]
struct Item {
    kind: Kind,
    /// Text, reasoning or arguments so far.
    said: String,
    /// The call's id and name.
    call: (String, String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Refusal,
    Reasoning,
    Tool(u32),
}

// === impl Items ===

impl Items {
    /// Writes what is said as events.
    pub(super) fn say(&mut self, say: &Say<'_>, names: &Names, frames: &mut Frames<'_>) {
        match say {
            Say::Open(_) => {
                let answer = answer(names, "in_progress", "null", "", None);
                self.event("response.created", frames, format_args!("\"response\":{answer}"));
                self.event("response.in_progress", frames, format_args!("\"response\":{answer}"));
            }
            Say::Thinking(true) => self.ensure(Kind::Reasoning, frames),
            Say::Thinking(false) => self.close(frames),
            Say::Reasoning(text) => self.piece(Kind::Reasoning, text, frames),
            // One answer has one message.
            Say::Text { choice: 1.., .. } | Say::Finish { choice: 1.., .. } | Say::Usage(_) => {}
            Say::Text { text, .. } => self.piece(Kind::Text, text, frames),
            Say::Refusal(text) => self.piece(Kind::Refusal, text, frames),
            Say::ToolOpen { call, id, name } => {
                self.start(Kind::Tool(*call), ((*id).to_owned(), (*name).to_owned()), frames);
            }
            Say::ToolArgs { call, args } => self.piece(Kind::Tool(*call), args, frames),
            Say::ToolClose { .. } => self.close(frames),
            // The API says why it ended with the whole answer.
            Say::Finish { reason, tokens, .. } => {
                self.close(frames);
                self.end = Some((*reason, *tokens));
            }
            Say::Done => {
                self.close(frames);
                let (reason, tokens) = self.end.unwrap_or_default();
                let (status, why) = ending(reason);
                let answer = answer(names, status, why, &self.output.join(","), tokens.as_ref());
                self.event(&format!("response.{status}"), frames, format_args!("\"response\":{answer}"));
            }
            Say::Error { wrong, .. } => {
                let error = chat::error(*wrong, None);
                self.event("error", frames, format_args!("\"error\":{error}"));
            }
            Say::Ping => self.event("keepalive", frames, format_args!("\"rig\":true")),
        }
    }

    fn event(&mut self, name: &str, frames: &mut Frames<'_>, fields: Arguments<'_>) {
        let number = self.number;
        self.number += 1;
        frames.event(Some(name), format_args!("{{\"type\":\"{name}\",\"sequence_number\":{number},{fields}}}"));
    }

    fn ensure(&mut self, kind: Kind, frames: &mut Frames<'_>) {
        if self.open.as_ref().is_none_or(|open| open.kind != kind) {
            self.start(kind, (String::new(), String::new()), frames);
        }
    }

    fn start(&mut self, kind: Kind, call: (String, String), frames: &mut Frames<'_>) {
        self.close(frames);
        let index = self.output.len();
        let item = Item { kind, said: String::new(), call };
        let (head, id) = (item.json(index, "in_progress", false), item.id(index));
        self.event("response.output_item.added", frames, format_args!("\"output_index\":{index},\"item\":{head}"));
        let place = format!("\"item_id\":\"{id}\",\"output_index\":{index}");
        match kind {
            Kind::Text | Kind::Refusal => {
                let part = item.part();
                self.event(
                    "response.content_part.added",
                    frames,
                    format_args!("{place},\"content_index\":0,\"part\":{part}"),
                );
            }
            Kind::Reasoning => self.event(
                "response.reasoning_summary_part.added",
                frames,
                format_args!("{place},\"summary_index\":0,\"part\":{{\"type\":\"summary_text\",\"text\":\"\"}}"),
            ),
            Kind::Tool(_) => {}
        }
        self.open = Some(item);
    }

    fn piece(&mut self, kind: Kind, text: &str, frames: &mut Frames<'_>) {
        self.ensure(kind, frames);
        let index = self.output.len();
        let Some(item) = &mut self.open else { return };
        item.said.push_str(text);
        let (name, part) = match kind {
            Kind::Text => ("response.output_text.delta", ",\"content_index\":0"),
            Kind::Refusal => ("response.refusal.delta", ",\"content_index\":0"),
            Kind::Reasoning => ("response.reasoning_summary_text.delta", ",\"summary_index\":0"),
            Kind::Tool(_) => ("response.function_call_arguments.delta", ""),
        };
        let id = item.id(index);
        self.event(
            name,
            frames,
            format_args!("\"item_id\":\"{id}\",\"output_index\":{index}{part},\"delta\":{}", Quoted(text)),
        );
    }

    fn close(&mut self, frames: &mut Frames<'_>) {
        let Some(item) = self.open.take() else { return };
        let index = self.output.len();
        let place = format!("\"item_id\":\"{}\",\"output_index\":{index}", item.id(index));
        let said = Quoted(&item.said);
        let part = item.part();
        match item.kind {
            Kind::Text => {
                let place = format!("{place},\"content_index\":0");
                self.event(
                    "response.output_text.done",
                    frames,
                    format_args!("{place},\"text\":{said},\"logprobs\":[]"),
                );
                self.event("response.content_part.done", frames, format_args!("{place},\"part\":{part}"));
            }
            Kind::Refusal => {
                let place = format!("{place},\"content_index\":0");
                self.event("response.refusal.done", frames, format_args!("{place},\"refusal\":{said}"));
                self.event("response.content_part.done", frames, format_args!("{place},\"part\":{part}"));
            }
            Kind::Reasoning => {
                let place = format!("{place},\"summary_index\":0");
                self.event("response.reasoning_summary_text.done", frames, format_args!("{place},\"text\":{said}"));
                self.event("response.reasoning_summary_part.done", frames, format_args!("{place},\"part\":{part}"));
            }
            Kind::Tool(_) => {
                let arguments = format_args!("{place},\"name\":{},\"arguments\":{said}", Quoted(&item.call.1));
                self.event("response.function_call_arguments.done", frames, arguments);
            }
        }
        let whole = item.json(index, "completed", true);
        self.event("response.output_item.done", frames, format_args!("\"output_index\":{index},\"item\":{whole}"));
        self.output.push(whole);
    }
}

// === impl Item ===

impl Item {
    fn id(&self, index: usize) -> String {
        let prefix = match self.kind {
            Kind::Text | Kind::Refusal => "msg",
            Kind::Reasoning => "rs",
            Kind::Tool(_) => "fc",
        };
        format!("{prefix}_rig{index}")
    }

    fn part(&self) -> String {
        let said = Quoted(&self.said);
        match self.kind {
            Kind::Refusal => format!("{{\"type\":\"refusal\",\"refusal\":{said}}}"),
            Kind::Reasoning => format!("{{\"type\":\"summary_text\",\"text\":{said}}}"),
            Kind::Text | Kind::Tool(_) => {
                format!("{{\"type\":\"output_text\",\"text\":{said},\"annotations\":[],\"logprobs\":[]}}")
            }
        }
    }

    /// The item; `whole` with what was said.
    fn json(&self, index: usize, status: &str, whole: bool) -> String {
        let id = self.id(index);
        let part = if whole { self.part() } else { String::new() };
        match self.kind {
            Kind::Text | Kind::Refusal => format!(
                "{{\"id\":\"{id}\",\"type\":\"message\",\"status\":\"{status}\",\"role\":\"assistant\",\
                 \"content\":[{part}]}}"
            ),
            Kind::Reasoning => {
                let sealed = if whole { format!(",\"encrypted_content\":\"{SEALED}\"") } else { String::new() };
                format!("{{\"id\":\"{id}\",\"type\":\"reasoning\",\"summary\":[{part}]{sealed}}}")
            }
            Kind::Tool(_) => format!(
                "{{\"id\":\"{id}\",\"type\":\"function_call\",\"status\":\"{status}\",\"call_id\":{},\"name\":{},\
                 \"arguments\":{}}}",
                Quoted(&self.call.0),
                Quoted(&self.call.1),
                Quoted(if whole { &self.said } else { "" })
            ),
        }
    }
}

// === helpers ===

/// A whole answer of these texts and calls, where it is not streamed.
pub(super) fn whole(
    names: &Names,
    reason: Finish,
    tokens: Option<&Tokens>,
    (reasoning, text, refusal): (&str, &str, &str),
    tools: &[(String, String, String)],
) -> String {
    let mut output: Vec<String> = Vec::new();
    let told = [(Kind::Reasoning, reasoning), (Kind::Text, text), (Kind::Refusal, refusal)];
    for (kind, said) in told.into_iter().filter(|(_, said)| !said.is_empty()) {
        let item = Item { kind, said: said.to_owned(), call: (String::new(), String::new()) };
        output.push(item.json(output.len(), "completed", true));
    }
    for (id, name, args) in tools {
        let item = Item { kind: Kind::Tool(0), said: args.clone(), call: (id.clone(), name.clone()) };
        output.push(item.json(output.len(), "completed", true));
    }
    let (status, why) = ending(reason);
    answer(names, status, why, &output.join(","), tokens)
}

/// The API's status for a finish, and why it is not complete.
fn ending(reason: Finish) -> (&'static str, &'static str) {
    match reason {
        Finish::Auto | Finish::Stop | Finish::ToolCalls => ("completed", "null"),
        Finish::Length => ("incomplete", "{\"reason\":\"max_output_tokens\"}"),
        Finish::ContentFilter => ("incomplete", "{\"reason\":\"content_filter\"}"),
    }
}

fn answer(names: &Names, status: &str, why: &str, output: &str, tokens: Option<&Tokens>) -> String {
    let mut usage = String::new();
    match tokens {
        Some(t) => {
            let sum = t.prompt + t.completion;
            let _ = write!(
                usage,
                "{{\"input_tokens\":{},\"input_tokens_details\":{{\"cached_tokens\":0}},\"output_tokens\":{},\
                 \"output_tokens_details\":{{\"reasoning_tokens\":0}},\"total_tokens\":{sum}}}",
                t.prompt, t.completion
            );
        }
        None => usage.push_str("null"),
    }
    format!(
        "{{\"id\":{},\"object\":\"response\",\"created_at\":{},\"status\":\"{status}\",\"error\":null,\
         \"incomplete_details\":{why},\"model\":{},\"output\":[{output}],\"parallel_tool_calls\":true,\
         \"previous_response_id\":null,\"store\":false,\"tool_choice\":\"auto\",\"tools\":[],\"usage\":{usage}}}",
        Quoted(&names.id),
        names.created,
        Quoted(&names.model)
    )
}

/// The status that goes with an error where the answer is not streamed, as in the other API of this vendor.
pub(super) fn error(wrong: Wrong, message: Option<&str>) -> String {
    format!("{{\"error\":{}}}", chat::error(wrong, message))
}

/// What only its issuer can read.
const SEALED: &str = "cmlnLXNlYWxlZA==";
