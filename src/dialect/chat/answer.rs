//! Reads a whole answer that came where a stream was asked for.
//!
//! Its messages are read as deltas by the decoder of streams, so that both forms of an answer are understood alike.

use super::classify;
use super::decode::Decoder;
use crate::dialect::{Decode, Expect, refusals};
use crate::event::Step;
use crate::failure::{Failure, Kind, Stage};
use crate::sse;
use bytes::Bytes;
use http::HeaderMap;
use serde_json::Value;

/// The steps of a stream that would have told the same.
pub(super) fn steps(body: &[u8], expect: Expect) -> Result<Vec<Step>, Failure> {
    if let Err(excess) = expect.bounds.event(body) {
        let failure = Failure::new(Kind::Malformed, Stage::Streaming);
        return Err(failure.saying(format!("the answer holds {excess}")));
    }
    let value = serde_json::from_slice::<Value>(body.trim_ascii());
    let reported = value.as_ref().is_ok_and(refusals::is_error);
    let Ok(Value::Object(mut answer)) = value else { return Err(classify::response(200, &HeaderMap::new(), body)) };
    let Some(Value::Array(choices)) = answer.get_mut("choices") else {
        return Err(classify::response(200, &HeaderMap::new(), body));
    };
    if choices.is_empty() {
        if reported {
            return Err(classify::response(200, &HeaderMap::new(), body));
        }
        return Err(Failure::new(Kind::EmptyTurn, Stage::Streaming).saying("the answer holds no choice"));
    }
    if let Some(Value::Array(choices)) = answer.get_mut("choices") {
        for choice in choices.iter_mut().filter_map(Value::as_object_mut) {
            if let Some(mut message) = choice.shift_remove("message") {
                number_calls(&mut message);
                choice.insert("delta".to_owned(), message);
            }
        }
    }
    // An answer that is whole has ended, whether or not it says why.
    let events = [Value::Object(answer).to_string(), "[DONE]".to_owned()];
    let mut decoder = Decoder::new(expect);
    let mut steps = Vec::with_capacity(events.len());
    for data in events {
        let mut step = Step::default();
        let event = sse::Event { name: Bytes::new(), data: Bytes::from(data), single_line: true };
        decoder.event(&event, &mut step)?;
        step.raw = None;
        if !step.events.is_empty() {
            steps.push(step);
        }
    }
    Ok(steps)
}

/// A message's calls stand in their order and have no index.
fn number_calls(message: &mut Value) {
    if let Some(Value::Array(calls)) = message.get_mut("tool_calls") {
        for (at, call) in calls.iter_mut().enumerate() {
            if let Some(call) = call.as_object_mut() {
                call.insert("index".to_owned(), at.into());
            }
        }
    }
}
