//! The answer of one turn, as the parts of a message.
//!
//! [`Told`] takes what is emitted to the client, as [`Turn`](crate::turn::Turn) does, but keeps the order of its parts and
//! what must be sent back with them. What comes out at the end is what a model may be told again: calls that were cut off
//! are left out, and so is reasoning that nobody signed or that nothing follows.

use crate::chat::{DialectId, Part};
use crate::event::{Event, Step};
use crate::turn::is_whole;

/// What a client was told of the first choice of an answer.
#[derive(Clone, Debug, Default)]
pub struct Told {
    pieces: Vec<Piece>,
    /// The calls that are not complete: number and place in `pieces`.
    open: Vec<(u32, usize)>,
    /// The last piece is reasoning that goes on.
    thinking: bool,
}

/// A part that may still grow.
#[derive(Clone, Debug)]
struct Piece {
    part: Part,
    /// It is a call that is not complete.
    open: bool,
}

// === impl Told ===

impl Told {
    /// Notes what is being told. `issuer`: the dialect of whoever says it, for what it signs.
    pub fn note(&mut self, step: &Step, issuer: DialectId, name: impl Fn(u32) -> String) {
        for event in &step.events {
            self.event(event, issuer, &name);
        }
    }

    fn event(&mut self, event: &Event, issuer: DialectId, name: &impl Fn(u32) -> String) {
        match event {
            Event::Text { choice: 0, text } => {
                self.thinking = false;
                match self.last() {
                    Some(Part::Text { text: so_far, .. }) => so_far.push_str(text),
                    _ => self.push(Part::text(text.as_str())),
                }
            }
            Event::Refusal { choice: 0, text } => {
                self.thinking = false;
                match self.last() {
                    Some(Part::Refusal(so_far)) => so_far.push_str(text),
                    _ => self.push(Part::Refusal(text.clone())),
                }
            }
            Event::Reasoning { choice: 0, text } => {
                let goes_on = self.thinking;
                match self.last() {
                    Some(Part::Reasoning { text: so_far, .. }) if goes_on => so_far.push_str(text),
                    _ => self.push(reasoning(text.clone(), issuer)),
                }
                self.thinking = true;
            }
            Event::Signature { choice: 0, data, redacted: false } => {
                if !std::mem::take(&mut self.thinking) {
                    // A block whose text is not shown has its signature all the same.
                    self.push(reasoning(String::new(), issuer));
                }
                if let Some(Part::Reasoning { signature, .. }) = self.last() {
                    *signature = Some(data.clone());
                }
            }
            Event::Signature { choice: 0, data, redacted: true } => {
                self.thinking = false;
                let signature = Some(data.clone());
                self.push(Part::Reasoning { text: String::new(), signature, issuer, redacted: true });
            }
            Event::ToolOpen { choice: 0, call, id, name: function } => {
                self.thinking = false;
                if let Some(Part::ToolCall { name, .. }) = self.call(*call).map(|piece| &mut piece.part) {
                    name.clone_from(function);
                    return;
                }
                let id = if id.is_empty() { name(*call) } else { id.clone() };
                let part = Part::ToolCall { id, name: function.clone(), args: String::new() };
                self.open.push((*call, self.pieces.len()));
                self.pieces.push(Piece { part, open: true });
            }
            Event::ToolArgs { choice: 0, call, args: more } => {
                if let Some(Part::ToolCall { args, .. }) = self.call(*call).map(|piece| &mut piece.part) {
                    args.push_str(more);
                }
            }
            Event::ToolClose { choice: 0, call } => {
                if let Some(piece) = self.call(*call) {
                    piece.open = false;
                    self.open.retain(|(number, _)| number != call);
                }
            }
            Event::Finish { choice: 0, .. } => {
                for (_, at) in self.open.drain(..) {
                    self.pieces[at].open = false;
                }
            }
            Event::Thinking(false) => self.thinking = false,
            // Other choices are other answers, and what has no common form has no place in another turn.
            Event::Alive
            | Event::Identity(_)
            | Event::Thinking(true)
            | Event::ServerTool(_)
            | Event::Usage(_)
            | Event::Extra(_)
            | Event::Text { .. }
            | Event::Refusal { .. }
            | Event::Reasoning { .. }
            | Event::Signature { .. }
            | Event::ToolOpen { .. }
            | Event::ToolArgs { .. }
            | Event::ToolClose { .. }
            | Event::Finish { .. } => {}
        }
    }

    /// What a model may be told again, in order; empty if nothing.
    pub fn into_parts(self) -> Vec<Part> {
        let whole = |piece: &Piece| match &piece.part {
            Part::ToolCall { .. } => !piece.open,
            // Some providers refuse a text of blanks, and no model misses it.
            Part::Text { text, .. } => !text.trim().is_empty(),
            Part::Reasoning { signature, .. } => signature.as_ref().is_some_and(|s| !s.is_empty()),
            _ => true,
        };
        let mut parts: Vec<Part> = self.pieces.into_iter().filter(whole).map(|piece| piece.part).collect();
        for part in &mut parts {
            // A call that was told as whole and is none: its result may come, and a provider refuses what is no JSON.
            if let Part::ToolCall { args, .. } = part
                && !is_whole(args)
            {
                *args = serde_json::json!({"_raw": args}).to_string();
            }
        }
        while parts.last().is_some_and(|part| matches!(part, Part::Reasoning { .. })) {
            parts.pop();
        }
        parts
    }

    fn last(&mut self) -> Option<&mut Part> {
        self.pieces.last_mut().map(|piece| &mut piece.part)
    }

    fn push(&mut self, part: Part) {
        self.pieces.push(Piece { part, open: false });
    }

    fn call(&mut self, number: u32) -> Option<&mut Piece> {
        let (_, at) = self.open.iter().rfind(|(open, _)| *open == number)?;
        self.pieces.get_mut(*at)
    }
}

// === helpers ===

fn reasoning(text: String, issuer: DialectId) -> Part {
    Part::Reasoning { text, signature: None, issuer, redacted: false }
}

#[cfg(test)]
#[path = "tests/told.rs"]
mod tests;
