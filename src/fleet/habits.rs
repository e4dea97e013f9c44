//! Which models of a connection were seen to think although nobody asked them to.

use std::collections::HashMap;
use std::sync::Arc;

/// Habits of at most [`MODELS`] models; of more nothing is learnt.
#[derive(Debug, Default)]
pub(super) struct Habits {
    /// Models that were seen to think, with how many answers without a thought make that forgotten.
    thinkers: HashMap<Arc<str>, u8>,
}

// === impl Habits ===

impl Habits {
    /// An answer to a request that did not ask for thoughts: whether there were some.
    pub(super) fn answered(&mut self, model: &Arc<str>, thought: bool) {
        let room = self.thinkers.len() < MODELS;
        match self.thinkers.get_mut(model) {
            Some(left) if thought => *left = FORGET,
            Some(left) => {
                *left -= 1;
                if *left == 0 {
                    self.thinkers.remove(model);
                }
            }
            None if thought && room => {
                self.thinkers.insert(Arc::clone(model), FORGET);
            }
            None => {}
        }
    }

    pub(super) fn thinks(&self, model: &str) -> bool {
        self.thinkers.contains_key(model)
    }
}

/// After so many answers in a row without a thought a model is no longer taken for one that thinks.
const FORGET: u8 = 20;

/// Clients name models where they may address a connection, so they are bounded.
const MODELS: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_that_thought_once_is_taken_for_one_that_thinks_until_it_has_not_for_long() {
        let mut habits = Habits::default();
        let model: Arc<str> = "m".into();
        habits.answered(&model, false);
        assert!(!habits.thinks("m"));
        habits.answered(&model, true);
        for _ in 1..FORGET {
            habits.answered(&model, false);
            assert!(habits.thinks("m"));
        }
        habits.answered(&model, false);
        assert!(!habits.thinks("m"));
    }

    #[test]
    fn only_so_many_models_are_remembered() {
        let mut habits = Habits::default();
        for number in 0..2 * MODELS {
            let model: Arc<str> = format!("m{number}").into();
            habits.answered(&model, true);
        }
        assert_eq!(habits.thinkers.len(), MODELS);
    }
}
