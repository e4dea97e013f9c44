//! The tool calls of a streamed answer.

use super::{CALLS, CONTENT, Stream, Told, call_id};
use crate::dialect::json;
use bytes::{BufMut, BytesMut};
use serde_json::{Map, Value};
use std::fmt::Write;

impl Stream {
    /// The client's index of a call that was told, and how much of its name it knows.
    fn told(&self, choice: u32, call: u32) -> Option<(usize, usize)> {
        let calls = &self.choice(choice)?.calls;
        let at = calls.iter().rposition(|told| told.call == call)?;
        Some((at, calls[at].name))
    }

    pub(super) fn tool_open(
        &mut self,
        index: u32,
        call: u32,
        (id, name): (&str, &str),
        args: &str,
        out: &mut BytesMut,
    ) {
        if let Some((at, known)) = self.told(index, call) {
            // More of its name: the client's library joins the pieces.
            let more = name.get(known..).unwrap_or_default().to_owned();
            if !self.old && self.field(index, CALLS, out) {
                let _ = write!(out, "\"tool_calls\":[{{\"index\":{at},\"function\":{{\"name\":");
                json::string(&more, out);
                out.put_slice(b",\"arguments\":");
                json::string(args, out);
                out.put_slice(b"}}]");
            }
            let choice = usize::try_from(index).ok().and_then(|at| self.choices.get_mut(at));
            if let Some(told) = choice.and_then(|choice| choice.calls.get_mut(at)) {
                told.name = name.len();
            }
            return;
        }
        let untold = self.choice(index).is_some_and(|c| !c.role);
        // The old form has room for one call.
        let surplus = self.old && self.choice(index).is_some_and(|c| !c.calls.is_empty());
        if surplus || !self.field(index, CALLS, out) {
            return;
        }
        if untold {
            // The whole message then says that it has no text.
            out.put_slice(b"\"content\":null,");
            if let Some(open) = &mut self.open {
                open.has |= CONTENT;
            }
        }
        let Some(choice) = usize::try_from(index).ok().and_then(|at| self.choices.get_mut(at)) else { return };
        let at = choice.calls.len();
        choice.calls.push(Told { call, name: name.len() });
        if self.old {
            out.put_slice(b"\"function_call\":{\"name\":");
            json::string(name, out);
            out.put_slice(b",\"arguments\":");
            json::string(args, out);
            out.put_u8(b'}');
            return;
        }
        let besides = self.calls.iter().position(|(c, n, _)| *c == index && *n == call);
        let mut besides = besides.map(|at| self.calls.swap_remove(at).2).unwrap_or_default();
        let function = besides.shift_remove("function");
        let _ = write!(out, "\"tool_calls\":[{{\"index\":{at},\"id\":");
        if id.is_empty() {
            json::string(&call_id(self.minted, index, at), out);
        } else {
            json::string(id, out);
        }
        out.put_slice(b",\"type\":\"function\",\"function\":{\"name\":");
        json::string(name, out);
        out.put_slice(b",\"arguments\":");
        json::string(args, out);
        for (name, value) in function.iter().filter_map(Value::as_object).flatten() {
            out.put_u8(b',');
            json::member(name, value, out);
        }
        out.put_u8(b'}');
        for (name, value) in &besides {
            out.put_u8(b',');
            json::member(name, value, out);
        }
        out.put_slice(b"}]");
    }

    pub(super) fn tool_args(&mut self, choice: u32, call: u32, args: &str, out: &mut BytesMut) {
        let Some((at, _)) = self.told(choice, call) else { return };
        if self.old {
            if at == 0 && self.field(choice, CALLS, out) {
                out.put_slice(b"\"function_call\":{\"arguments\":");
                json::string(args, out);
                out.put_u8(b'}');
            }
        } else if self.field(choice, CALLS, out) {
            let _ = write!(out, "\"tool_calls\":[{{\"index\":{at},\"function\":{{\"arguments\":");
            json::string(args, out);
            out.put_slice(b"}}]");
        }
    }

    /// Fields of a call: with its opening, or as a piece of it that comes later.
    pub(super) fn call_extra(&mut self, choice: u32, call: u32, fields: &Map<String, Value>, out: &mut BytesMut) {
        if self.old {
            return;
        }
        match self.told(choice, call) {
            Some((at, _)) if self.field(choice, CALLS, out) => {
                let _ = write!(out, "\"tool_calls\":[{{\"index\":{at}");
                for (name, value) in fields {
                    out.put_u8(b',');
                    json::member(name, value, out);
                }
                out.put_slice(b"}]");
            }
            Some(_) => {}
            None if self.calls.len() < STASHED => self.calls.push((choice, call, fields.clone())),
            None => {}
        }
    }
}

/// The most calls whose fields are kept until they open.
const STASHED: usize = 256;
