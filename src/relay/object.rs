//! A structured answer on its way to the client: held or watched, and checked before its finish is told.

use super::Checked;
use super::calls::Differs;
use super::sieve::{Sieve, differs};
use super::structure::Object;
use crate::event::{Event, Finish, Step};
use crate::failure::{Failure, Kind, Stage};
use std::sync::Arc;

// === impl Sieve ===

impl Sieve {
    /// Gives whether the object must be checked before its finish is told.
    pub(super) fn finish_object(
        &mut self,
        choice: u32,
        reason: &Finish,
        hold: bool,
        told: &mut Step,
    ) -> Result<bool, Box<Failure>> {
        match std::mem::replace(&mut self.object, Object::Plain) {
            Object::Held(text) if is_no_object(reason) => told.events.push(Event::Text { choice, text }),
            Object::Watched(_) if is_no_object(reason) => {}
            Object::Held(text) => {
                self.ask(choice, text, false, hold);
                return Ok(true);
            }
            Object::Watched(text) => {
                self.ask(choice, text, true, hold);
                return Ok(true);
            }
            Object::Forward { told: known, at } if at < known.len() => return Err(differs(Differs)),
            _ => {}
        }
        Ok(false)
    }

    fn ask(&mut self, choice: u32, text: String, shown: bool, hold: bool) {
        let text = Arc::new(text);
        self.object = Object::Asked { choice, text, shown, told: false, hold, rest: Vec::new() };
    }

    /// The answer whose check is to be asked for; once.
    pub(super) fn asks(&mut self) -> Option<Arc<String>> {
        let Object::Asked { text, told, .. } = &mut self.object else { return None };
        (!std::mem::replace(told, true)).then(|| Arc::clone(text))
    }

    /// Whether a check is being waited for.
    pub(super) fn is_asking(&self) -> bool {
        matches!(self.object, Object::Asked { .. })
    }

    /// What can be told now that the check has been made.
    pub(super) fn answer(&mut self, checked: Checked) -> Result<Step, Box<Failure>> {
        let mut told = Step::default();
        let Object::Asked { choice, text, shown, hold, rest, .. } = std::mem::replace(&mut self.object, Object::Plain)
        else {
            return Ok(told);
        };
        if checked == Checked::Differs {
            let failure = Failure::new(Kind::Malformed, Stage::Streaming);
            return Err(Box::new(failure.saying("the structured answer does not meet its schema")));
        }
        if !shown {
            told.events.push(Event::Text { choice, text: Arc::unwrap_or_clone(text) });
        }
        for event in rest {
            self.event(event, hold, &mut told)?;
        }
        Ok(told)
    }
}

// === helpers ===

/// What a limit or a filter cut short is told as it is: its finish says so. What comes before a call is no object.
fn is_no_object(reason: &Finish) -> bool {
    matches!(reason, Finish::Length | Finish::ContentFilter | Finish::Pause | Finish::ToolCalls)
}
