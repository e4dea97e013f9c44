//! How an answer ends: its status, its usage, or the terminator of another API.

use super::{Decoder, empty};
use crate::chat::DialectId;
use crate::dialect::Flow;
use crate::dialect::responses::classify;
use crate::event::{Event, Finish, Step, Usage};
use crate::failure::{Failure, Kind, Stage};
use serde_json::{Map, Value, json};

impl Decoder {
    /// The answer is over: its usage, and how it ended.
    pub(super) fn conclude(&mut self, answer: &Map<String, Value>, step: &mut Step) -> Result<(), Failure> {
        if let Some(Value::Object(usage)) = answer.get("usage") {
            let number = |field: &str| usage.get(field).and_then(Usage::count);
            let within = |field: &str, inner: &str| usage.get(field)?.get(inner).and_then(Usage::count);
            let mut kept = Map::new();
            Usage::keep(&mut kept, usage.clone());
            step.push(Event::Usage(Box::new(Usage {
                prompt: number("input_tokens"),
                completion: number("output_tokens"),
                reasoning: within("output_tokens_details", "reasoning_tokens"),
                cache_read: within("input_tokens_details", "cached_tokens"),
                cache_write: None,
                native: Some((DialectId::Responses, kept)),
            })));
        }
        let why = answer.get("incomplete_details").and_then(|d| d.get("reason")?.as_str()).unwrap_or_default();
        let reason = match answer.get("status").and_then(Value::as_str).unwrap_or("completed") {
            "failed" => {
                let error = answer.get("error").filter(|error| !error.is_null());
                return Err(error.map_or_else(
                    || Failure::new(Kind::ServerError, Stage::Streaming).saying("the answer failed, without a reason"),
                    |error| classify::event(json!({ "error": error }).to_string().as_bytes()),
                ));
            }
            "cancelled" => {
                let failure = Failure::new(Kind::ServerError, Stage::Streaming);
                return Err(failure.saying("the provider cancelled the answer"));
            }
            "incomplete" if why == "content_filter" => Finish::ContentFilter,
            "incomplete" => Finish::Length,
            "queued" | "in_progress" => return Err(classify::unfinished()),
            _ if self.calls > 0 => Finish::ToolCalls,
            _ => Finish::Stop,
        };
        self.finish(reason, step);
        Ok(())
    }

    fn finish(&mut self, reason: Finish, step: &mut Step) {
        let open: Vec<u64> = self.items.iter().filter(|(_, item)| !item.done).map(|(index, _)| *index).collect();
        open.into_iter().for_each(|index| self.close(index, step));
        self.finished = true;
        step.push(Event::Finish { choice: 0, reason, stop_sequence: None });
    }

    /// The terminator of other APIs. Where it comes after content, the turn is whole all the same.
    pub(super) fn stop(&mut self, step: &mut Step) -> Result<Flow, Failure> {
        if !self.finished {
            if !self.spoke {
                return Err(empty());
            }
            let reason = if self.calls > 0 { Finish::ToolCalls } else { Finish::Stop };
            self.finish(reason, step);
        }
        Ok(Flow::Done)
    }
}
