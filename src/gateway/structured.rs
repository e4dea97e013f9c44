//! The check of a whole structured answer: it is JSON, and it meets its schema.
//!
//! Answer and schema are both foreign, so the check is made by the pool, for a bounded time and number of steps. What is
//! more than that is only checked to be JSON, and told: that a schema is dear is not its provider's fault. The journal
//! says so.

use super::pool::Pool;
use crate::chat::{Format, Request};
use crate::json;
use crate::relay::Checked;
use crate::schema::{self, Budget, Verdict};
use serde::de::IgnoredAny;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Whether an answer in this form can be checked.
pub(super) fn is_checked(format: &Format) -> bool {
    *format != Format::Text
}

/// Says whether `answer` is what `request` asks for; ready `within` this time at the latest.
pub(super) fn check(
    pool: &Pool,
    request: &Arc<Request>,
    answer: &Arc<String>,
    within: Duration,
) -> impl Future<Output = Checked> + Send + use<> {
    let is_json = Arc::new(AtomicBool::new(false));
    let work = {
        let (request, answer, is_json) = (Arc::clone(request), Arc::clone(answer), Arc::clone(&is_json));
        move || {
            // Both are given back before the result is.
            judge(&request.format, &answer, &is_json)
        }
    };
    let result = pool.run(work).ok_or_else(|| at_once(answer));
    async move {
        match result {
            Err(checked) => checked,
            Ok(result) => match tokio::time::timeout(within, result).await {
                Ok(Ok(checked)) => checked,
                Ok(Err(_)) => Checked::Unsure("the check could not be made"),
                Err(_) if is_json.load(Ordering::Relaxed) => Checked::Unsure("the schema was not checked in time"),
                Err(_) => Checked::Unsure("nothing was checked in time"),
            },
        }
    }
}

/// Where nobody has time: a short answer is at least JSON.
fn at_once(answer: &str) -> Checked {
    match answer.len() {
        ..=AT_ONCE => match syntax(answer) {
            Checked::Fits => Checked::Unsure("the schema was not checked: too many checks wait"),
            other => other,
        },
        _ => Checked::Unsure("nothing was checked: too many checks wait"),
    }
}

fn judge(format: &Format, answer: &str, is_json: &AtomicBool) -> Checked {
    let syntax = syntax(answer);
    if syntax != Checked::Fits {
        return syntax;
    }
    is_json.store(true, Ordering::Relaxed);
    match format {
        Format::Text => Checked::Fits,
        Format::Json if answer.trim_start().starts_with('{') => Checked::Fits,
        Format::Json => Checked::Differs,
        Format::Schema { schema, .. } => {
            let shape = json::shape(answer.as_bytes());
            if LARGEST < shape.heap {
                return Checked::Unsure("the answer is too large to be checked against its schema");
            }
            if json::DEEPEST < shape.depth {
                return Checked::Unsure("the answer is nested too deeply to be checked");
            }
            let Ok(value) = serde_json::from_str(answer) else { return Checked::Differs };
            match schema::check(schema, &value, Budget::default()) {
                Verdict::Fits => Checked::Fits,
                Verdict::Differs => Checked::Differs,
                Verdict::Undecided(why) => Checked::Unsure(why),
            }
        }
    }
}

/// Whether it is JSON. What is nested more deeply than can be read is not called wrong.
fn syntax(answer: &str) -> Checked {
    if serde_json::from_str::<IgnoredAny>(answer).is_ok() {
        Checked::Fits
    } else if json::shape(answer.as_bytes()).depth > json::DEEPEST {
        Checked::Unsure("the answer is nested too deeply to be checked")
    } else {
        Checked::Differs
    }
}

/// The longest answer that is read by whoever asks, in bytes: it takes less than a millisecond.
const AT_ONCE: usize = 64 << 10;
/// The most heap that an answer may take while it is checked, in bytes.
const LARGEST: usize = 32 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn judged(format: &Format, answer: &str) -> Checked {
        judge(format, answer, &AtomicBool::default())
    }

    fn asked(schema: serde_json::Value) -> Format {
        Format::Schema { name: "x".into(), schema, strict: None }
    }

    #[test]
    fn an_answer_must_be_json_and_meet_the_schema() {
        let format = asked(json!({"type": "object", "required": ["city"], "properties": {"city": {"type": "string"}}}));
        for (answer, checked) in [
            (r#"{"city":"Ulm"}"#, Checked::Fits),
            (r#"{"city":7}"#, Checked::Differs),
            (r#"{"city":"Ulm""#, Checked::Differs),
            ("", Checked::Differs),
        ] {
            assert_eq!(judged(&format, answer), checked, "{answer}");
        }
    }

    #[test]
    fn json_mode_wants_an_object() {
        assert!(!is_checked(&Format::Text) && is_checked(&Format::Json));
        assert_eq!(judged(&Format::Json, " {}"), Checked::Fits);
        assert_eq!(judged(&Format::Json, "[1]"), Checked::Differs);
    }

    #[test]
    fn what_is_too_much_is_not_held_against_the_answer() {
        let circle = asked(json!({"$ref": "#"}));
        assert!(matches!(judged(&circle, "{}"), Checked::Unsure(_)));
        assert_eq!(judged(&circle, "{"), Checked::Differs, "it is checked as JSON all the same");
        let deep = format!("{}{}", "[".repeat(1_000_000), "]".repeat(1_000_000));
        assert!(matches!(judged(&asked(json!({})), &deep), Checked::Unsure(_)));
        let wide = format!("[{}[]]", "[[]],".repeat(500_000));
        assert!(matches!(judged(&asked(json!({})), &wide), Checked::Unsure(_)));
    }

    #[tokio::test]
    async fn where_the_pool_is_full_a_short_answer_is_still_json() {
        assert_eq!(at_once("{"), Checked::Differs);
        assert!(matches!(at_once("{}"), Checked::Unsure(why) if why.contains("schema")));
        assert!(matches!(at_once(&" ".repeat(AT_ONCE + 1)), Checked::Unsure(why) if why.contains("nothing")));
    }
}
