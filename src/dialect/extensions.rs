//! What a client asks of Segue itself, in headers that every dialect shares: `x-segue-…`.
//!
//! A header of that family that nobody knows is refused, not ignored: `x-segue-fail-over: off` would otherwise do the
//! opposite of what its author meant, in silence.

use super::{Reason, Refusal};
use crate::chat::Extensions;
use http::HeaderMap;

/// Reads Segue's own request headers.
///
/// # Errors
/// A 400 that names the header, for one that is unknown, given twice, or of a value that cannot be read.
pub fn extensions(headers: &HeaderMap) -> Result<Extensions, Refusal> {
    let mut found = Extensions::default();
    for name in headers.keys() {
        let Some(field) = name.as_str().strip_prefix(PREFIX) else { continue };
        let mut values = headers.get_all(name).iter();
        let value = values.next().and_then(|v| v.to_str().ok()).map(str::trim).unwrap_or_default();
        if values.next().is_some() {
            return Err(refusal(name.as_str(), "is given more than once; send it once"));
        }
        match field {
            "conversation" => {
                found.conversation = Some(conversation(value).map_err(|why| refusal(name.as_str(), why))?)
            }
            "history" => found.append_history = choose(name.as_str(), value, ["full", "append"])?,
            "deadline-ms" => match value.parse::<u64>() {
                Ok(ms) if ms > 0 => found.deadline_ms = Some(ms),
                _ => return Err(refusal(name.as_str(), "must be a whole number of milliseconds, at least 1")),
            },
            "resumable" => found.resumable = choose(name.as_str(), value, ["false", "true"])?,
            "failover" => found.failover_off = choose(name.as_str(), value, ["on", "off"])?,
            "hedge" => found.hedge_off = choose(name.as_str(), value, ["on", "off"])?,
            "order" => {
                found.order = value.split(',').map(str::trim).filter(|s| !s.is_empty()).map(str::to_owned).collect();
                if found.order.is_empty() {
                    return Err(refusal(name.as_str(), "must name connections, separated by commas"));
                }
            }
            "strict" => found.strict = choose(name.as_str(), value, ["false", "true"])?,
            _ => {
                let known = KNOWN.map(|k| format!("{PREFIX}{k}")).join(", ");
                return Err(refusal(name.as_str(), &format!("is not known; known are {known}")));
            }
        }
    }
    Ok(found)
}

/// Checks a conversation's name, from a header or a body.
///
/// # Errors
/// What is wrong with it, to follow the field's name.
pub fn conversation(name: &str) -> Result<String, &'static str> {
    if name.is_empty() {
        Err("must not be empty")
    } else if name.len() > MAX_CONVERSATION {
        Err("must be at most 256 bytes long")
    } else if name.chars().any(char::is_control) {
        Err("must not contain control characters")
    } else {
        Ok(name.to_owned())
    }
}

// === helpers ===

/// Whether `value` is the second of two words; refused if it is neither.
fn choose(name: &str, value: &str, [no, yes]: [&str; 2]) -> Result<bool, Refusal> {
    match value {
        v if v.eq_ignore_ascii_case(yes) => Ok(true),
        v if v.eq_ignore_ascii_case(no) => Ok(false),
        _ => Err(refusal(name, &format!("must be `{no}` or `{yes}`"))),
    }
}

fn refusal(name: &str, what: &str) -> Refusal {
    Refusal::new(Reason::Request, "invalid_header", format!("The header `{name}` {what}.")).about(name)
}

const PREFIX: &str = "x-segue-";
const KNOWN: [&str; 8] =
    ["conversation", "history", "deadline-ms", "resumable", "failover", "hedge", "order", "strict"];
/// The longest name of a conversation, in bytes.
pub const MAX_CONVERSATION: usize = 256;

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test's panic is its report")]
    use super::*;
    use http::HeaderName;

    fn read(pairs: &[(&str, &str)]) -> Result<Extensions, Refusal> {
        let mut map = HeaderMap::new();
        for (name, value) in pairs {
            map.append(HeaderName::from_bytes(name.as_bytes()).unwrap(), value.parse().unwrap());
        }
        extensions(&map)
    }

    #[test]
    fn all_are_read() {
        let all = read(&[
            ("x-segue-conversation", "c1"),
            ("x-segue-history", "append"),
            ("x-segue-deadline-ms", "1500"),
            ("x-segue-resumable", "true"),
            ("X-Segue-Failover", "off"),
            ("x-segue-hedge", "OFF"),
            ("x-segue-order", "a, b"),
            ("x-segue-strict", "true"),
            ("authorization", "Bearer x"),
        ]);
        let expected = Extensions {
            conversation: Some("c1".to_owned()),
            turn_index: None,
            append_history: true,
            deadline_ms: Some(1500),
            resumable: true,
            failover_off: true,
            hedge_off: true,
            order: vec!["a".to_owned(), "b".to_owned()],
            strict: true,
            ..Extensions::default()
        };
        assert_eq!(all.unwrap(), expected);
        assert_eq!(read(&[("x-segue-history", "full"), ("x-segue-hedge", "on")]).unwrap(), Extensions::default());
    }

    #[test]
    fn the_reference_names_each_that_is_built() {
        let reference = include_str!("../../docs/api.md");
        for field in KNOWN.iter().filter(|field| **field != "resumable") {
            assert!(reference.contains(&format!("`{PREFIX}{field}")), "docs/api.md lacks {PREFIX}{field}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_refused_by_name() {
        for (pair, word) in [
            (&[("x-segue-fail-over", "off")][..], "x-segue-failover"),
            (&[("x-segue-failover", "no")], "`on` or `off`"),
            (&[("x-segue-deadline-ms", "0")], "milliseconds"),
            (&[("x-segue-deadline-ms", "1.5")], "milliseconds"),
            (&[("x-segue-history", "")], "`full` or `append`"),
            (&[("x-segue-order", " , ")], "connections"),
            (&[("x-segue-conversation", "")], "empty"),
            (&[("x-segue-strict", "true"), ("x-segue-strict", "false")], "more than once"),
        ] {
            let refusal = read(pair).unwrap_err();
            assert_eq!(refusal.param.as_deref(), Some(pair[0].0));
            assert!(refusal.message.contains(pair[0].0) && refusal.message.contains(word), "{}", refusal.message);
            assert_eq!(refusal.reason.status(), 400);
        }
    }
}
