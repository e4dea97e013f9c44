//! Takes secrets out of a provider's words before anybody reads or cuts them: this is where foreign words come in.

use crate::event::{Event, Identity, Signal, Step};
use crate::failure::Remedy;
use crate::words::redact::Redactor;
use serde_json::Value;

/// `signal` without what `secrets` know. What is said of a failure is searched in every encoding. What an answer says is
/// searched as it stands, piece by piece, so that a stream costs little: a provider that repeats what it was sent does so
/// in one piece.
pub(super) fn hush(mut signal: Signal, secrets: &[&Redactor]) -> Signal {
    match &mut signal {
        Signal::Failed(failure) => {
            failure.said = std::mem::take(&mut failure.said).without(secrets);
            if let Some(Remedy::Drop { fields, .. } | Remedy::DropInside(fields)) = &mut failure.remedy {
                fields.iter_mut().for_each(|field| *field = clean(std::mem::take(field), secrets));
            }
        }
        Signal::Step(step) => hush_step(step, secrets),
        _ => {}
    }
    signal
}

// === helpers ===

fn hush_step(step: &mut Step, secrets: &[&Redactor]) {
    let mut changed = false;
    for event in &mut step.events {
        changed |= match event {
            Event::Identity(identity) => hush_names(identity, secrets),
            Event::Text { text, .. } | Event::Reasoning { text, .. } | Event::Refusal { text, .. } => {
                scrub(text, secrets)
            }
            Event::ToolOpen { id, name, .. } => scrub(id, secrets) | scrub(name, secrets),
            Event::ToolArgs { args, .. } => scrub(args, secrets),
            Event::Extra(extra) => {
                extra.fields.values_mut().fold(false, |any, value| scrub_value(value, secrets) | any)
            }
            _ => false,
        };
    }
    if changed {
        step.raw = None;
    }
}

/// The names that an answer gives itself go into every event, so they are short besides.
fn hush_names(identity: &mut Identity, secrets: &[&Redactor]) -> bool {
    let mut changed = false;
    for name in [&mut identity.id, &mut identity.model] {
        let cleaned = clean(name.chars().take(LONGEST_NAME).collect(), secrets);
        if cleaned != *name {
            *name = cleaned;
            changed = true;
        }
    }
    changed
}

fn clean(text: String, secrets: &[&Redactor]) -> String {
    secrets.iter().fold(text, |text, redactor| redactor.clean(text))
}

/// Whether there was something to take out.
fn scrub(text: &mut String, secrets: &[&Redactor]) -> bool {
    let found = secrets.iter().any(|redactor| redactor.finds(text));
    if found {
        *text = clean(std::mem::take(text), secrets);
    }
    found
}

/// A value that a parser made is no deeper than that parser goes.
fn scrub_value(value: &mut Value, secrets: &[&Redactor]) -> bool {
    match value {
        Value::String(text) => scrub(text, secrets),
        Value::Array(list) => list.iter_mut().fold(false, |any, value| scrub_value(value, secrets) | any),
        Value::Object(fields) => fields.values_mut().fold(false, |any, value| scrub_value(value, secrets) | any),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// The most characters of an answer's id, and of a model's name for itself: both are repeated in every event.
const LONGEST_NAME: usize = 512;

#[cfg(test)]
mod tests {
    #![expect(clippy::panic, reason = "a test's panic is its report")]
    use super::*;
    use crate::chat::DialectId;
    use crate::event::{Extra, Place};
    use serde_json::json;

    fn hushed(event: Event) -> Step {
        let secrets = Redactor::new(["sk-0123456789-secret"]);
        let raw = Some((DialectId::Chat, bytes::Bytes::from_static(b"{}")));
        let step = Step { raw, ..Step::of(event) };
        match hush(Signal::Step(step), &[&secrets]) {
            Signal::Step(step) => step,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_answer_tells_no_secret_and_else_stays_as_it_is() {
        let fields =
            |text: &str| json!({"debug": [{"headers": text}], "n": 1}).as_object().cloned().unwrap_or_default();
        for (told, kept) in [("key sk-0123456789-secret!", "key [secret]!"), ("50 % of it", "50 % of it")] {
            let identity = |name: &str| Identity { id: name.to_owned(), model: name.to_owned(), created: 1 };
            let extra =
                |text| Extra { dialect: DialectId::Chat, place: Place::Top, fields: fields(text), bound: false };
            for (event, expected) in [
                (Event::Identity(Box::new(identity(told))), Event::Identity(Box::new(identity(kept)))),
                (Event::Text { choice: 0, text: told.to_owned() }, Event::Text { choice: 0, text: kept.to_owned() }),
                (
                    Event::ToolArgs { choice: 0, call: 0, args: told.to_owned() },
                    Event::ToolArgs { choice: 0, call: 0, args: kept.to_owned() },
                ),
                (Event::Extra(Box::new(extra(told))), Event::Extra(Box::new(extra(kept)))),
            ] {
                let step = hushed(event);
                assert_eq!(step.events.as_slice(), [expected]);
                assert_eq!(step.raw.is_some(), told == kept, "what was changed is not passed on as it came");
            }
        }
    }

    #[test]
    fn a_name_is_short() {
        let long = Identity { id: "i".repeat(2 << 20), model: "m".to_owned(), created: 1 };
        let step = hushed(Event::Identity(Box::new(long)));
        let Some(Event::Identity(identity)) = step.events.first() else { panic!("{step:?}") };
        assert_eq!((identity.id.len(), &*identity.model, step.raw), (LONGEST_NAME, "m", None));
    }
}
