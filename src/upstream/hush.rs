//! Takes secrets out of a provider's words before anybody reads or cuts them: this is where foreign words come in.

use crate::event::{Event, Signal};
use crate::failure::Remedy;
use crate::words::redact::Redactor;

/// `signal` without what `secrets` know, in what is said of a failure and in the names that an answer gives itself. The
/// text of an answer is nobody's to change.
pub(super) fn hush(mut signal: Signal, secrets: &[&Redactor]) -> Signal {
    let clean = |text| secrets.iter().fold(text, |text, redactor| redactor.clean(text));
    match &mut signal {
        Signal::Failed(failure) => {
            failure.said = std::mem::take(&mut failure.said).without(secrets);
            if let Some(Remedy::Drop(field)) = &mut failure.remedy {
                *field = clean(std::mem::take(field));
            }
        }
        Signal::Step(step) => {
            for event in &mut step.events {
                let Event::Identity(identity) = event else { continue };
                for name in [&mut identity.id, &mut identity.model] {
                    let cleaned = clean(name.chars().take(LONGEST_NAME).collect());
                    if cleaned != *name {
                        *name = cleaned;
                        step.raw = None;
                    }
                }
            }
        }
        _ => {}
    }
    signal
}

/// The most characters of an answer's id, and of a model's name for itself: both are repeated in every event.
const LONGEST_NAME: usize = 512;
