//! Finish reasons that are none, and those that tell a failure: providers put both where a reason stands.

use crate::failure::Kind;

/// Whether a word in the place of a finish reason says that there is none yet.
pub(super) fn is_none(word: &str) -> bool {
    let word = word.trim();
    word.is_empty() || NONE.iter().any(|none| word.eq_ignore_ascii_case(none))
}

/// The failure that a finish reason tells, if its word is one of failing.
pub(super) fn failure(word: &str) -> Option<Kind> {
    let word = word.to_ascii_lowercase();
    FAILING.iter().find(|(part, _)| word.contains(part)).map(|(_, kind)| *kind)
}

/// In any case of letters.
const NONE: [&str; 9] = [
    "null",
    "none",
    "nil",
    "undefined",
    "unspecified",
    "finish_reason_unspecified",
    "not_finished",
    "unfinished",
    "in_progress",
];

/// Parts of words; the first that is met holds.
const FAILING: [(&str, Kind); 13] = [
    ("malformed", Kind::Malformed),
    ("unexpected", Kind::Malformed),
    ("invalid", Kind::Malformed),
    ("unparsable", Kind::Malformed),
    // DeepSeek: the inference was interrupted for want of resources.
    ("insufficient_system_resource", Kind::Overloaded),
    ("overloaded", Kind::Overloaded),
    // An engine that gives the request up (vLLM, SGLang), or cannot go on.
    ("abort", Kind::ServerError),
    ("cancel", Kind::ServerError),
    ("error", Kind::ServerError),
    ("fail", Kind::ServerError),
    ("timeout", Kind::ServerError),
    ("timed_out", Kind::ServerError),
    ("exception", Kind::ServerError),
];

#[cfg(test)]
mod tests {
    use super::{failure, is_none};
    use crate::failure::Kind;

    #[test]
    fn words_that_are_no_reason() {
        for word in ["", "null", "None", "NOT_FINISHED", " ", "FINISH_REASON_UNSPECIFIED"] {
            assert!(is_none(word), "{word}");
        }
        for word in ["stop", "nonexistent", "end_turn", "length"] {
            assert!(!is_none(word), "{word}");
        }
    }

    #[test]
    fn words_that_tell_a_failure() {
        for (word, kind) in [
            ("function_call_filter: MALFORMED_FUNCTION_CALL", Some(Kind::Malformed)),
            ("UNEXPECTED_TOOL_CALL", Some(Kind::Malformed)),
            ("network_error", Some(Kind::ServerError)),
            ("insufficient_system_resource", Some(Kind::Overloaded)),
            ("aborted", Some(Kind::ServerError)),
            ("stop", None),
            ("novel", None),
        ] {
            assert_eq!(failure(word), kind, "{word}");
        }
    }
}
