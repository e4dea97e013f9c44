//! What is written as text is read back as it was.

use super::super::write;
use super::{config, whole};

/// The levels and breakers of `text`, written anew in the place of the old ones.
fn again(text: &str) -> String {
    let config = config(text);
    let mut table: toml::Table = whole(text).parse().expect("TOML");
    table.remove("levels");
    let mut out = String::new();
    for connection in &config.connections {
        if let Some(connection) = table["connections"][&*connection.name].as_table_mut() {
            connection.remove("breaker");
        }
    }
    out += &table.to_string();
    for connection in &config.connections {
        out += &write::breaker(&connection.name, &connection.breaker);
    }
    for level in &config.levels {
        out += &write::level(level, &config);
    }
    out
}

#[test]
fn levels_and_breakers_are_read_back_as_they_were() {
    let everything = r#"
        [timeouts]
        connect = "5s"
        suspect = "1s"
        [connections.a]
        dialect = "chat"
        base_url = "http://127.0.0.1:1/v1"
        breaker = { consecutive = 3, error_rate = 0.2, window = "30s", min_samples = 7, latency = { p95 = "1.5s", over_baseline = 2.5 }, cooldown = "1s", max_cooldown = "9s", max_cooldown_degraded = "2m" }
        [connections.b]
        dialect = "anthropic"
        base_url = "http://127.0.0.1:2"
        [levels."bad.name"]
        chain = [
          { connection = "a", model = "m\"\\\u0007ü", quality = 2, continuation = "prefill", context_window = 9000, max_output = 800, drops = ["seed", "user"], reasons = true, deterministic = true, timeouts = { connect = "2s", pace = "15 chars/s over 3s" } },
          { connection = "b", model = "m", timeouts = { suspect = "off", stall = "1500ms" } },
        ]
        min_quality = 3
        retries = 4
        backoff = { base = "2s", cap = "1m" }
        same_first = true
        history = "last_user_message"
        rate_limited = "switch"
        tool_calls = "stream"
        structured = "stream"
        conversation = "queue"
        affinity = "0s"
        budget = 0.25
        shed_at = 0.9
        queue = "1m"
        announce = "comment"
        hedge = { after = "150ms", budget = 0.5 }
        timeouts = { connect = "2s", suspect = "off", turn = "1m" }
        [levels.plain]
        chain = [{ connection = "b", model = "m" }]
        hedge = { after = "p99.5", max = "90ms" }
    "#;
    for text in [everything, "", "[timeouts]\nfirst_token = \"3s\"\nturn = \"9m\""] {
        let (before, written) = (config(text), again(text));
        let after = config(&written);
        assert_eq!(after.levels, before.levels, "{written}");
        assert_eq!(after.connections, before.connections, "{written}");
    }
}

#[test]
fn what_holds_anyway_is_not_written() {
    let config = config("");
    let text = write::level(&config.levels[0], &config);
    let expected = "[levels.normal]\nchain = [\n  { connection = \"a\", model = \"ma\" },\n  { connection = \"b\", model = \"mb\" },\n]\n";
    assert_eq!(text, expected);
    assert_eq!(write::breaker("a.b", &config.connections[0].breaker), "[connections.\"a.b\".breaker]\n");
}
