//! What the SDKs report, and whether it is what it must be.

use crate::cases::{Case, Client, Expect};
use segue::rig::script::ToolCall;
use serde::Deserialize;
use serde_json::{Value, json};

/// What one script writes.
#[derive(Deserialize)]
pub(crate) struct Answer {
    /// The SDK and its version.
    pub(crate) sdk: String,
    pub(crate) reports: Vec<Report>,
}

/// What an SDK came to in one call.
#[derive(Debug, Deserialize)]
pub(crate) struct Report {
    name: String,
    /// `raw`, `helper` or `whole`.
    how: String,
    /// Every id, model and time of creation that its chunks named, each once.
    id: Vec<String>,
    model: Vec<String>,
    created: Vec<u64>,
    role: Option<String>,
    text: String,
    /// Id, name and arguments.
    calls: Vec<[String; 3]>,
    /// The kinds of blocks of a Messages answer, or of items of a Responses answer.
    #[serde(default)]
    blocks: Vec<String>,
    finish: Option<String>,
    /// Tokens of the prompt, of the completion, and both.
    usage: Option<[u64; 3]>,
    error: Option<Raised>,
}

/// What an SDK raised.
#[derive(Debug, Deserialize)]
struct Raised {
    class: String,
    /// It is one of the SDK's own API errors.
    #[serde(default)]
    api: bool,
    #[serde(default)]
    status: Option<u16>,
    #[serde(default)]
    retry_after: Option<String>,
    message: String,
}

/// The ways to ask: a stream that is iterated, the SDK's accumulator, and an answer that is not streamed.
pub(crate) const HOWS: [&str; 3] = ["raw", "helper", "whole"];

/// The calls to make.
pub(crate) fn asked(cases: &[Case]) -> Value {
    let calls = cases.iter().flat_map(|case| {
        HOWS.map(|how| json!({"name": case.name, "model": case.name, "how": how, "tools": case.tools}))
    });
    Value::Array(calls.collect())
}

pub(crate) fn read(output: &str) -> Answer {
    serde_json::from_str(output).unwrap_or_else(|error| panic!("no report: {error}\n{output}"))
}

/// Everything that is not as it must be.
pub(crate) fn judge(client: Client, cases: &[Case], reports: &[Report]) -> Vec<String> {
    let mut faults = Vec::new();
    for case in cases {
        for how in HOWS {
            let Some(report) = reports.iter().find(|r| r.name == case.name && r.how == how) else {
                faults.push(case.says(how, "no report"));
                continue;
            };
            let wrong = match &case.expect {
                Expect::Answer { text, calls, .. } => report.answer(client, text, calls),
                Expect::Refused { status, retry_after, .. } => report.refusal(*status, *retry_after),
                Expect::Broken { begins } => report.broken(begins),
                Expect::Unknown => report.refusal(404, false),
            };
            faults.extend(wrong.iter().map(|what| case.says(how, what)));
        }
    }
    faults
}

// === impl Report ===

impl Report {
    fn answer(&self, client: Client, text: &str, calls: &[ToolCall]) -> Vec<String> {
        let mut wrong = Vec::new();
        if let Some(error) = &self.error {
            return vec![format!("raised {error:?} after {:?}", self.text)];
        }
        let mut check = |is: bool, what: &str| {
            if !is {
                wrong.push(format!("{what}: {self:?}"));
            }
        };
        check(self.text == text, "the text");
        check(same_calls(&self.calls, calls), "the calls");
        check(self.id.len() == 1 && !self.id[0].is_empty(), "one id");
        check(self.model.len() == 1 && !self.model[0].is_empty(), "one model");
        check(self.role.as_deref() == Some("assistant"), "the role, once");
        let finish = match (client, calls.is_empty()) {
            (Client::OpenAi, true) => "stop",
            (Client::OpenAi, false) => "tool_calls",
            (Client::Responses, _) => "completed",
            (Client::Anthropic, true) => "end_turn",
            (Client::Anthropic, false) => "tool_use",
        };
        check(self.finish.as_deref() == Some(finish), "the finish");
        match client {
            // Usage was not asked for.
            Client::OpenAi if self.how == "raw" => check(self.usage.is_none(), "no usage"),
            _ => check(self.usage.is_some_and(|[p, c, sum]| p > 0 && c > 0 && sum == p + c), "the usage"),
        }
        match client {
            Client::OpenAi => check(self.created.len() == 1 && self.created[0] > 0, "one time of creation"),
            Client::Responses | Client::Anthropic => {
                let (said, called) =
                    if client == Client::Anthropic { ("text", "tool_use") } else { ("message", "function_call") };
                let texts = usize::from(!text.is_empty());
                let blocks = [vec![said; texts], vec![called; calls.len()]].concat();
                check(self.blocks == blocks, "one block of text, then one for each call");
            }
        }
        wrong
    }

    /// An error before anything was told.
    fn refusal(&self, status: u16, retry_after: bool) -> Vec<String> {
        let Some(error) = &self.error else { return vec![format!("raised nothing: {self:?}")] };
        let mut wrong = Vec::new();
        if !self.text.is_empty() || !self.id.is_empty() {
            wrong.push(format!("something was told before: {self:?}"));
        }
        // An overloaded Anthropic says 529.
        let statuses = if status == 503 { vec![503, 529] } else { vec![status] };
        if !error.api || !error.status.is_some_and(|status| statuses.contains(&status)) {
            wrong.push(format!("no API error with status {status}: {error:?}"));
        }
        let wait = error.retry_after.as_deref().map(str::parse::<u64>);
        if retry_after && !matches!(wait, Some(Ok(1..=60))) {
            wrong.push(format!("no retry-after: {error:?}"));
        }
        if error.message.trim().is_empty() {
            wrong.push(format!("no message: {error:?}"));
        }
        wrong
    }

    /// An error after a part of the text; an answer that is not streamed has no part.
    fn broken(&self, begins: &str) -> Vec<String> {
        if self.how == "whole" {
            return self.refusal(502, false);
        }
        let Some(error) = &self.error else { return vec![format!("raised nothing: {self:?}")] };
        let mut wrong = Vec::new();
        if self.text != begins {
            wrong.push(format!("not the text that was told, {begins:?}: {self:?}"));
        }
        if !error.api || error.status.is_some() || error.class.contains("Connection") {
            wrong.push(format!("not an error of the stream: {error:?}"));
        }
        if self.finish.is_some() {
            wrong.push(format!("a finish: {self:?}"));
        }
        wrong
    }
}

// === helpers ===

/// Arguments are compared as JSON: some SDKs hand them out parsed.
fn same_calls(got: &[[String; 3]], expected: &[ToolCall]) -> bool {
    let value = |args: &str| serde_json::from_str::<Value>(args).ok();
    got.len() == expected.len()
        && got.iter().zip(expected).all(|([id, name, args], call)| {
            let args = value(args);
            *id == call.id && *name == call.name && args.is_some() && args == value(&call.args.concat())
        })
}
