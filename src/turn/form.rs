//! The form in which a target takes a request, as far as that differs from how the client wrote it.
//!
//! Some of it is known of a vendor and stands in its dialect's tables; the rest a target's refusals teach. What it then
//! answers to is remembered for it, so that the next turn does not pay the refusal again.

use crate::chat::modality::Modalities;
use crate::failure::{CallIds, Instructions, Remedy};

/// How a request is to be written for one target. The default changes nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Form {
    /// Leave earlier reasoning out of the history.
    pub strip_reasoning: bool,
    /// Ask it not to think: it would miss reasoning that the history lacks.
    pub no_thinking: bool,
    /// Sign calls that lack a signature with the mark that its vendor documents.
    pub mark_calls: bool,
    /// It takes one name of the limit of tokens.
    pub one_limit: bool,
    /// Nothing but text in the results of tools; media follow them in a message of the user's.
    pub tool_text: bool,
    /// Content of texts alone is one text.
    pub flat: bool,
    /// Neighbours of one role are one message.
    pub alternate: bool,
    /// Its ids of calls.
    pub call_ids: CallIds,
    /// Where instructions stand.
    pub instructions: Instructions,
    /// Kinds of content that it does not take.
    pub lacks: Modalities,
    /// The most tokens of an answer.
    cap: Option<u64>,
    /// Request fields to leave out.
    drops: Vec<String>,
    /// Fields to leave out of messages, parts, calls and tools.
    inside: Vec<String>,
    /// What holds for this request alone.
    once: Once,
}

/// What depends on the request's own values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Once {
    cap: Option<u64>,
    drops: Vec<String>,
}

// === impl Form ===

impl Form {
    /// The most fields that are left out on a target's word, at the top and inside each.
    pub const MOST_FIELDS: usize = 32;

    /// The form that one refusal teaches.
    pub fn after(remedy: &Remedy) -> Self {
        let mut form = Self::default();
        form.learn(remedy);
        form
    }

    /// Takes what a refusal suggests; whether that changes anything. [`Remedy::Instruct`] is no matter of form.
    pub fn learn(&mut self, remedy: &Remedy) -> bool {
        let before = self.clone();
        match remedy {
            Remedy::Instruct => {}
            Remedy::StripReasoning => self.strip_reasoning = true,
            Remedy::NoThinking => self.no_thinking = true,
            Remedy::MarkCalls => self.mark_calls = true,
            Remedy::Drop { fields, lasting: true } => add(&mut self.drops, fields),
            Remedy::Drop { fields, lasting: false } => add(&mut self.once.drops, fields),
            Remedy::DropInside(fields) => add(&mut self.inside, fields),
            Remedy::Cap { tokens, lasting } => {
                let cap = if *lasting { &mut self.cap } else { &mut self.once.cap };
                *cap = Some(cap.map_or(*tokens, |known| known.min(*tokens)));
            }
            Remedy::OneLimit => self.one_limit = true,
            Remedy::CallIds(ids) => self.call_ids = self.call_ids.max(*ids),
            Remedy::Instructions(role) => self.instructions = self.instructions.max(*role),
            Remedy::Lacks(modality) => self.lacks = self.lacks.with(*modality),
            Remedy::ToolText => self.tool_text = true,
            Remedy::Flat => self.flat = true,
            Remedy::Alternate => self.alternate = true,
        }
        *self != before
    }

    /// This and `other`, both obeyed.
    pub fn join(&mut self, other: &Self) {
        self.strip_reasoning |= other.strip_reasoning;
        self.no_thinking |= other.no_thinking;
        self.mark_calls |= other.mark_calls;
        self.one_limit |= other.one_limit;
        self.tool_text |= other.tool_text;
        self.flat |= other.flat;
        self.alternate |= other.alternate;
        self.call_ids = self.call_ids.max(other.call_ids);
        self.instructions = self.instructions.max(other.instructions);
        self.lacks = self.lacks.and(other.lacks);
        self.cap = least(self.cap, other.cap);
        self.once.cap = least(self.once.cap, other.once.cap);
        add(&mut self.drops, &other.drops);
        add(&mut self.inside, &other.inside);
        add(&mut self.once.drops, &other.once.drops);
    }

    /// What of it holds for other requests too, and is shown by an answer; `None` if nothing is.
    pub fn lasting(&self) -> Option<Self> {
        let lasting = Self { once: Once::default(), lacks: Modalities::NONE, ..self.clone() };
        (lasting != Self::default()).then_some(lasting)
    }

    /// The most tokens of an answer that may be asked for.
    pub fn cap(&self) -> Option<u64> {
        least(self.cap, self.once.cap)
    }

    /// The request fields to leave out.
    pub fn drops(&self) -> impl Iterator<Item = &str> {
        self.drops.iter().chain(&self.once.drops).map(String::as_str)
    }

    /// The fields to leave out of messages, parts, calls and tools.
    pub fn inside(&self) -> &[String] {
        &self.inside
    }
}

// === helpers ===

fn add(known: &mut Vec<String>, fields: &[String]) {
    for field in fields {
        if known.len() < Form::MOST_FIELDS && !known.contains(field) {
            known.push(field.clone());
        }
    }
}

fn least(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test's panic is its report")]
    use super::*;
    use crate::chat::modality::Modality;

    fn drop(field: &str, lasting: bool) -> Remedy {
        Remedy::Drop { fields: vec![field.to_owned()], lasting }
    }

    #[test]
    fn a_remedy_is_learnt_once() {
        for remedy in [
            Remedy::StripReasoning,
            Remedy::NoThinking,
            Remedy::MarkCalls,
            drop("seed", true),
            drop("seed", false),
            Remedy::DropInside(vec!["name".to_owned()]),
            Remedy::Cap { tokens: 8192, lasting: true },
            Remedy::Cap { tokens: 8192, lasting: false },
            Remedy::OneLimit,
            Remedy::CallIds(CallIds::Nine),
            Remedy::Instructions(Instructions::System),
            Remedy::Lacks(Modality::Audio),
            Remedy::ToolText,
            Remedy::Flat,
            Remedy::Alternate,
        ] {
            let mut form = Form::default();
            assert!(form.learn(&remedy), "{remedy:?}");
            assert!(!form.learn(&remedy), "{remedy:?} twice");
            let mut other = Form::default();
            other.join(&form);
            assert_eq!(other, form, "{remedy:?}");
        }
        assert!(!Form::default().learn(&Remedy::Instruct));
    }

    #[test]
    fn only_what_does_not_depend_on_the_request_lasts() {
        let mut form = Form::default();
        form.learn(&drop("temperature", false));
        form.learn(&Remedy::Cap { tokens: 100, lasting: false });
        assert_eq!(form.lasting(), None);
        form.learn(&drop("seed", true));
        form.learn(&Remedy::Cap { tokens: 8192, lasting: true });
        let lasting = form.lasting().unwrap();
        assert_eq!((form.cap(), lasting.cap()), (Some(100), Some(8192)));
        assert_eq!(form.drops().collect::<Vec<_>>(), ["seed", "temperature"]);
        assert_eq!(lasting.drops().collect::<Vec<_>>(), ["seed"]);
    }

    #[test]
    fn a_provider_cannot_fill_the_memory() {
        let mut form = Form::default();
        for n in 0..1000 {
            form.learn(&drop(&format!("f{n}"), true));
            form.learn(&Remedy::DropInside(vec![format!("f{n}")]));
        }
        assert_eq!((form.drops().count(), form.inside().len()), (Form::MOST_FIELDS, Form::MOST_FIELDS));
    }
}
