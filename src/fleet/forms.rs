//! The forms in which targets take requests, as their answers have shown.
//!
//! A refusal is only a guess at what a target takes: its words may be the client's own, repeated. So nothing is learnt from
//! it but by its consequence: an attempt in the form that it suggested was answered. What has no such proof (it takes no
//! prefill, or no pictures) is a matter of [`super::Fleet::learn_lack`].

use crate::routing::Target;
use crate::turn::form::Form;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What was learnt, by connection and model.
#[derive(Debug, Default)]
pub(super) struct Forms {
    targets: HashMap<Arc<str>, HashMap<Arc<str>, Learnt>>,
    count: usize,
}

#[derive(Debug)]
struct Learnt {
    form: Form,
    until: Instant,
}

// === impl Forms ===

impl Forms {
    /// The form in which `target` takes requests, as far as it is known.
    pub(super) fn of(&self, target: &Target, now: Instant) -> Form {
        let learnt = self.targets.get(&target.connection).and_then(|models| models.get(&target.model));
        learnt.filter(|learnt| now < learnt.until).map(|learnt| learnt.form.clone()).unwrap_or_default()
    }

    /// `target` has answered to a request in that form.
    pub(super) fn answered(&mut self, target: &Target, form: &Form, now: Instant) {
        if let Some(form) = form.lasting() {
            self.learn(target, now, |known| known.join(&form));
        }
    }

    /// Forgets all targets of a connection.
    pub(super) fn forget(&mut self, connection: &str) {
        if let Some(models) = self.targets.remove(connection) {
            self.count -= models.len();
        }
    }

    /// What is learnt is forgotten after a while, whether or not it is learnt again meanwhile: a target may have changed.
    fn learn(&mut self, target: &Target, now: Instant, learn: impl FnOnce(&mut Form)) {
        let known = self.targets.get_mut(&target.connection).and_then(|models| models.get_mut(&target.model));
        if let Some(learnt) = known {
            if learnt.until <= now {
                *learnt = Learnt { form: Form::default(), until: now + MEMORY };
            }
            return learn(&mut learnt.form);
        }
        if MOST <= self.count {
            self.sweep(now);
        }
        if self.count < MOST {
            let mut form = Form::default();
            learn(&mut form);
            let models = self.targets.entry(Arc::clone(&target.connection)).or_default();
            models.insert(Arc::clone(&target.model), Learnt { form, until: now + MEMORY });
            self.count += 1;
        }
    }

    fn sweep(&mut self, now: Instant) {
        self.targets.retain(|_, models| {
            models.retain(|_, learnt| now < learnt.until);
            !models.is_empty()
        });
        self.count = self.targets.values().map(HashMap::len).sum();
    }
}

/// The most targets of which a form is known. Clients that may name any model cannot fill more.
const MOST: usize = 1024;
/// How long it is remembered.
const MEMORY: Duration = Duration::from_secs(3600);

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "a start for a clock that is moved by hand")]
    use super::*;
    use crate::chat::DialectId;
    use crate::failure::Remedy;

    fn target(model: &str) -> Target {
        Target::new("a", model, DialectId::Chat)
    }

    fn lacking(field: &str, lasting: bool) -> Form {
        let mut form = Form::default();
        form.learn(&Remedy::Drop { fields: vec![field.to_owned()], lasting });
        form
    }

    #[test]
    fn a_form_is_remembered_for_its_target_and_forgotten() {
        let (mut forms, start) = (Forms::default(), Instant::now());
        forms.answered(&target("m"), &lacking("seed", true), start);
        forms.answered(&target("m"), &lacking("user", true), start + MEMORY / 2);
        assert_eq!(forms.of(&target("m"), start + MEMORY / 2).drops().collect::<Vec<_>>(), ["seed", "user"]);
        assert_eq!(forms.of(&target("n"), start), Form::default());
        assert_eq!(forms.of(&target("m"), start + MEMORY), Form::default());
        forms.answered(&target("m"), &lacking("user", true), start + MEMORY);
        assert_eq!(forms.of(&target("m"), start + MEMORY).drops().collect::<Vec<_>>(), ["user"]);
        forms.forget("a");
        assert_eq!((forms.of(&target("m"), start + MEMORY), forms.count), (Form::default(), 0));
    }

    #[test]
    fn what_one_requests_value_came_to_says_nothing_of_the_next() {
        let (mut forms, now) = (Forms::default(), Instant::now());
        forms.answered(&target("m"), &lacking("temperature", false), now);
        assert_eq!((forms.of(&target("m"), now), forms.count), (Form::default(), 0));
    }

    #[test]
    fn the_memory_has_an_end() {
        let (mut forms, now) = (Forms::default(), Instant::now());
        for n in 0..MOST + 10 {
            forms.answered(&target(&n.to_string()), &lacking("seed", true), now);
        }
        assert_eq!(forms.count, MOST);
        forms.answered(&target("new"), &lacking("seed", true), now + MEMORY);
        assert_eq!(forms.count, 1);
    }
}
