//! What targets were found to lack, so that no turn pays for the same refusal again.
//!
//! It is bounded, and forgotten after a while: a provider may learn what it did not know.

use super::blame::Mark;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What the models of a connection lack.
#[derive(Clone, Debug, Default)]
pub struct Lessons(HashMap<Arc<str>, HashMap<Lesson, Instant>>);

/// What is lacking, and for which tenant; `None`: for all.
type Lesson = (Mark, Option<Mark>);

// === impl Lessons ===

impl Lessons {
    /// `model` lacks `what`; `tenant`: as far as that tenant is concerned, or else everybody.
    pub fn learn(&mut self, model: &Arc<str>, what: Mark, tenant: Option<Mark>, now: Instant) {
        let known = self.0.get(model).is_some_and(|of_model| of_model.contains_key(&(what, tenant)));
        if !known && LESSONS <= self.0.values().map(HashMap::len).sum() {
            self.0.values_mut().for_each(|of_model| {
                of_model.retain(|_, at| now.saturating_duration_since(*at) < MEMORY);
            });
            self.0.retain(|_, of_model| !of_model.is_empty());
            if LESSONS <= self.0.values().map(HashMap::len).sum() {
                return;
            }
        }
        self.0.entry(Arc::clone(model)).or_default().insert((what, tenant), now);
    }

    /// Whether `model` is known to lack `what`, for everybody or for `tenant`.
    pub fn knows(&self, model: &str, what: Mark, tenant: Option<Mark>, now: Instant) -> bool {
        let Some(of_model) = self.0.get(model) else { return false };
        let fresh =
            |tenant| of_model.get(&(what, tenant)).is_some_and(|at| now.saturating_duration_since(*at) < MEMORY);
        fresh(None) || (tenant.is_some() && fresh(tenant))
    }

    /// Forgets what is known of `model`, or of all.
    pub fn clear(&mut self, model: Option<&str>) {
        match model {
            Some(model) => drop(self.0.remove(model)),
            None => self.0.clear(),
        }
    }
}

/// The most lessons of a connection; past it nothing new is learned until something is forgotten.
const LESSONS: usize = 4096;
/// A lesson holds for so long.
const MEMORY: Duration = Duration::from_secs(3600);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenants_lesson_is_its_own_and_all_are_forgotten() {
        let now = tokio::time::Instant::now().into_std();
        let (model, what) = (Arc::from("m"), Mark(1));
        let mut lessons = Lessons::default();
        lessons.learn(&model, what, Some(Mark(7)), now);
        assert!(lessons.knows("m", what, Some(Mark(7)), now));
        assert!(!lessons.knows("m", what, Some(Mark(8)), now) && !lessons.knows("m", what, None, now));
        lessons.learn(&model, what, None, now);
        assert!(lessons.knows("m", what, Some(Mark(8)), now) && !lessons.knows("n", what, None, now));
        assert!(!lessons.knows("m", what, None, now + MEMORY));
        lessons.clear(Some("m"));
        assert!(!lessons.knows("m", what, None, now));
    }

    #[test]
    fn lessons_are_bounded_and_old_ones_make_room() {
        let now = tokio::time::Instant::now().into_std();
        let mut lessons = Lessons::default();
        let fill = |lessons: &mut Lessons, from: u64, at| {
            (from..from + 2 * LESSONS as u64)
                .for_each(|n| lessons.learn(&Arc::from(format!("m{n}")), Mark(n), None, at));
        };
        fill(&mut lessons, 0, now);
        assert_eq!(lessons.0.len(), LESSONS);
        fill(&mut lessons, 100_000, now + MEMORY);
        assert_eq!(lessons.0.len(), LESSONS);
        assert!(lessons.knows("m100000", Mark(100_000), None, now + MEMORY));
    }
}
