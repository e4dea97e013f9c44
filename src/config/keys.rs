//! Every key that a configuration may hold, and the keys whose feature is still to come.
//!
//! Both are tables, so that the reader, the reference in `docs/configuration.md` and its test cannot tell different
//! stories. In a pattern `*` stands for a name that the user chose and `[]` for an entry of a list.

/// The keys of each kind of table.
pub const KEYS: &[(&str, &[&str])] = &[
    (
        "",
        &[
            "server",
            "admin",
            "timeouts",
            "connections",
            "levels",
            "tenants",
            "aliases",
            "limits",
            "seam",
            "store",
            "ledger",
            "alerts",
        ],
    ),
    (
        "server",
        &[
            "listen",
            "max_body",
            "receive",
            "buffer",
            "max_turns",
            "headers_after",
            "keep_alive",
            "drain_delay",
            "drain",
            "tls",
            "domains",
            "allow_anonymous",
            "cors",
            "hosts",
            "default_level",
            "max_connections",
        ],
    ),
    ("server.tls", &["cert", "key"]),
    ("admin", &["listen", "token"]),
    ("timeouts", TIMEOUTS),
    (
        "connections.*",
        &[
            "dialect",
            "base_url",
            "api_key",
            "headers",
            "query",
            "versioned",
            "version",
            "http2",
            "warm",
            "domains",
            "limits",
            "breaker",
        ],
    ),
    ("connections.*.limits", QUOTA),
    (
        "connections.*.breaker",
        &[
            "consecutive",
            "error_rate",
            "window",
            "min_samples",
            "latency",
            "cooldown",
            "max_cooldown",
            "max_cooldown_degraded",
        ],
    ),
    ("connections.*.breaker.latency", &["p95", "over_baseline"]),
    (
        "levels.*",
        &[
            "chain",
            "min_quality",
            "retries",
            "backoff",
            "same_first",
            "history",
            "rate_limited",
            "empty",
            "tool_calls",
            "structured",
            "conversation",
            "affinity",
            "budget",
            "shed_at",
            "queue",
            "announce",
            "hedge",
            "timeouts",
        ],
    ),
    (
        "levels.*.chain[]",
        &[
            "connection",
            "model",
            "quality",
            "continuation",
            "context_window",
            "max_output",
            "drops",
            "inputs",
            "reasons",
            "deterministic",
            "timeouts",
        ],
    ),
    ("levels.*.chain[].timeouts", TIMEOUTS),
    ("levels.*.timeouts", TIMEOUTS),
    ("levels.*.backoff", &["base", "cap"]),
    ("levels.*.hedge", &["after", "min", "max", "budget"]),
    ("tenants.*", &["keys", "levels", "aliases", "direct", "credentials", "only", "limits"]),
    ("tenants.*.keys[]", &["sha256", "expires", "limits"]),
    ("tenants.*.keys[].limits", QUOTA),
    ("tenants.*.limits", QUOTA),
    (
        "limits",
        &[
            "rpm",
            "tpm",
            "in_flight",
            "retry_after_cap",
            "max_event",
            "max_turn",
            "check",
            "max_depth",
            "max_values",
            "max_messages",
            "max_parts",
            "max_tools",
            "max_stops",
            "max_choices",
            "max_calls",
        ],
    ),
    ("seam", &["window"]),
    ("store", &["backend", "url", "ttl", "max_bytes", "resume_grace", "domains"]),
    ("ledger", &["path", "keep", "bodies", "prices"]),
    ("ledger.prices.*", &["input", "output"]),
    ("alerts", &["webhook"]),
];

/// Keys that are read and checked, but whose feature is not built yet: each present one is a warning at load. A
/// pattern may end in ` = value` and then holds for that value only. An entry is
/// removed when its feature arrives. A dialect named here makes its connections unusable: they are left out of chains.
pub const NOT_YET: &[(&str, &str)] = &[
    ("server.tls", "TLS is not served yet; put a proxy that does in front"),
    (
        "connections.*.dialect = gemini",
        "the dialect `gemini` is not spoken yet; Google also speaks `chat` at https://generativelanguage.googleapis.com/v1beta/openai",
    ),
    ("connections.*.dialect = bedrock", "the dialect `bedrock` is not spoken yet"),
    ("connections.*.warm", "no connections are kept ready yet"),
    ("levels.*.chain[].continuation = native", "providers' own ways to resume are not used yet; `auto` is taken"),
    ("store.backend = redis", "only the store in memory is built"),
];

const TIMEOUTS: &[&str] = &[
    "connect",
    "first_token",
    "first_token_per_1k",
    "first_word",
    "thinking",
    "suspect",
    "pace",
    "stall",
    "idle",
    "turn",
    "client_write",
    "error_body",
];

const QUOTA: &[&str] = &["in_flight", "rpm", "tpm"];

/// The keys of the tables of this kind.
pub(super) fn of(pattern: &str) -> &'static [&'static str] {
    KEYS.iter().find(|(p, _)| *p == pattern).map_or(&[], |(_, keys)| keys)
}

/// Where else `key` is a key, as the head of a table.
pub(super) fn home(key: &str) -> Option<&'static str> {
    KEYS.iter().find(|(_, keys)| keys.contains(&key)).map(|(pattern, _)| *pattern)
}

/// What is missing for the key of this pattern with this value; `None` if it works.
pub(super) fn not_yet(pattern: &str, value: Option<&str>) -> Option<&'static str> {
    NOT_YET
        .iter()
        .find(|(rule, _)| {
            if let Some((key, this)) = rule.split_once(" = ") {
                key == pattern && value == Some(this)
            } else {
                *rule == pattern
            }
        })
        .map(|(_, what)| *what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_for_an_unbuilt_feature_names_a_key() {
        for (rule, what) in NOT_YET {
            let key = rule.split(' ').next().unwrap_or_default();
            let known = key.rsplit_once('.').is_some_and(|(table, name)| of(table).contains(&name));
            assert!(known, "{rule}");
            assert!(!what.is_empty(), "{rule}");
        }
    }

    #[test]
    fn rules_hold_for_the_values_they_name() {
        assert!(not_yet("store.backend", Some("redis")).is_some());
        assert!(not_yet("store.backend", Some("memory")).is_none());
        assert!(not_yet("alerts.webhook", None).is_none());
        assert!(not_yet("timeouts.stall", Some("5s")).is_none());
    }
}
