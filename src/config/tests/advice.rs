//! What `check` says, how chains are drawn, and what a redacted configuration shows.

use super::super::check::{Severity, findings};
use super::super::draw::draw;
use super::super::redact::{HIDDEN, redact};
use super::config;

fn told(text: &str) -> Vec<String> {
    findings(&config(text)).iter().map(ToString::to_string).collect()
}

/// Two connections on hosts and in domains of their own choosing.
fn two(a: &str, b: &str, rest: &str) -> String {
    format!(
        "{rest}\n[connections.a]\ndialect = \"chat\"\n{a}\napi_key = {{ env = \"K\" }}\n\
         [connections.b]\ndialect = \"chat\"\n{b}\napi_key = {{ env = \"K\" }}\n{}",
        super::LEVELS
    )
}

#[test]
fn a_sound_pair_gives_notes_at_most() {
    let all = findings(&config(""));
    assert!(all.iter().all(|f| f.severity == Severity::Note), "{all:?}");
}

#[test]
fn addresses_that_ask_amiss_are_told() {
    for (text, expected) in [
        (
            two("base_url = \"https://x.openai.azure.com/openai/deployments/gpt\"", "", ""),
            "looks like a deployment of Azure OpenAI, whose paths have no version",
        ),
        (
            "[server]\nlisten = \"0.0.0.0:80\"\nallow_anonymous = true".to_owned(),
            "server.hosts: without tenants, requests for a name with a dot in it are refused",
        ),
    ] {
        let told = told(&text);
        assert!(told.iter().any(|line| line.contains(expected)), "{expected}\n{}", told.join("\n"));
    }
    let url = "base_url = \"https://x.openai.azure.com/openai/deployments/gpt\"\nversioned = false";
    assert!(!told(&two(url, "", "")).iter().any(|line| line.contains("version")));
    let named = "[server]\nlisten = \"0.0.0.0:80\"\nallow_anonymous = true\nhosts = [\"llm.example.com\"]";
    assert!(!told(named).iter().any(|line| line.contains("server.hosts")));
}

#[test]
fn what_cannot_be_kept_is_named() {
    let url = |n: u8| format!("base_url = \"https://h{n}.example.com\"");
    let limited = |n: u8, limits: &str| format!("{}\nlimits = {{ {limits} }}", url(n));
    let level = |more: &str, first: &str, second: &str| {
        format!(
            "[levels.n]\n{more}\nchain = [{{ connection = \"a\", model = \"1\"{first} }}, {{ connection = \"b\", model = \
             \"2\"{second} }}]"
        )
    };
    for (text, expected) in [
        (
            two(&limited(1, "rpm = 5000"), &limited(2, "rpm = 15"), ""),
            "a/ma takes 5000 requests a minute, b/mb only 15: when it is down, turns wait or are refused",
        ),
        (
            level("", ", context_window = 8000, max_output = 8000", ""),
            "a/1: `max_output` (8000) leaves no room for a prompt in 8000 tokens",
        ),
        (
            level("", ", max_output = 8000", ", max_output = 4000"),
            "b/2 answers with 4000 tokens at most, a/1 with 8000: a long answer ends there",
        ),
        (
            level("timeouts = { first_token = \"1s\" }", "", ""),
            "the first pause before a retry (1s) is not shorter than `first_token` (1s): no retry fits",
        ),
    ] {
        let told = told(&text);
        assert!(told.iter().any(|line| line.contains(expected)), "{expected}\n{}", told.join("\n"));
    }
    let rare = |breaker: &str| two(&format!("{}\n{breaker}", limited(1, "rpm = 15")), &url(2), "");
    let told_of_rare = told(&rare(""));
    let blind = "connections.a: 15 requests a minute are 15 in the breaker's window (1m), below `min_samples` (100)";
    assert!(told_of_rare.iter().any(|line| line.contains(blind)), "{}", told_of_rare.join("\n"));
    let sees = told(&rare("breaker = { min_samples = 20, window = \"2m\" }"));
    assert!(!sees.iter().any(|line| line.contains("min_samples")), "{}", sees.join("\n"));
    let same = two(&limited(1, "rpm = 5000"), &url(2), "");
    assert!(!told(&same).iter().any(|line| line.contains("only")), "who has no limit takes all");
    let quiet = level("retries = 0\ntimeouts = { first_token = \"1s\" }", "", "");
    assert!(!told(&quiet).iter().any(|line| line.contains("no retry fits")));
}

#[test]
fn what_falls_together_is_named() {
    let url = |n: u8| format!("base_url = \"https://h{n}.example.com\"");
    for (text, expected) in [
        (
            two(
                &format!("{}\ndomains = [\"cloud:x\", \"vendor:1\"]", url(1)),
                &format!("{}\ndomains = [\"cloud:x\", \"vendor:2\"]", url(2)),
                "",
            ),
            "warning: levels.normal: an outage of `cloud:x` takes out the whole chain",
        ),
        (
            two(
                &format!("{}\ndomains = [\"vendor:1\"]", url(1)),
                &format!("{}\ndomains = [\"vendor:2\"]", url(1)),
                "",
            ),
            "a/ma and b/mb are both at `h1.example.com`, but share no domain",
        ),
        (
            "[levels.n]\nchain = [{ connection = \"a\", model = \"1\" }, { connection = \"a\", model = \"2\" }, { connection = \"b\", model = \"3\" }]".to_owned(),
            "the connection `a` failing takes out a/1 and a/2",
        ),
        (
            "[server]\ndomains = [\"region:us\"]".to_owned(),
            "an outage of `region:us` takes out a/ma together with Segue",
        ),
        ("[store]\ndomains = [\"region:eu\"]".to_owned(), "an outage of `region:eu` takes out b/mb together with the store"),
        ("[levels.n]\nchain = [{ connection = \"a\", model = \"1\" }]".to_owned(), "a/1 has no fallback"),
        (two(&url(1), &url(2), ""), "note: levels.normal: nothing is known of what a/ma shares its fate with"),
    ] {
        let told = told(&text);
        assert!(told.iter().any(|line| line.contains(expected)), "{expected}\n{}", told.join("\n"));
    }
}

#[test]
fn clocks_that_cannot_be_kept_are_named() {
    let level = |more: &str| format!("{}{more}", super::LEVELS.trim_start());
    for (text, expected) in [
        (
            level("timeouts = { first_token = \"6s\", turn = \"10s\" }"),
            "the targets may take 12s to their first tokens together, but the turn ends after 10s",
        ),
        (level("timeouts = { suspect = \"5s\" }"), "`suspect` (5s) is not shorter than `stall` (5s)"),
        (level("timeouts = { suspect = \"6s\" }"), "lower `suspect`, or raise `stall`"),
        (level("timeouts = { stall = \"20s\", turn = \"20s\" }"), "`stall` (20s) is not shorter than `turn` (20s)"),
        (
            level("shed_at = 0.9\nqueue = \"5m\""),
            "a turn may wait 5m for its place, but ends after 5m: it would never be asked",
        ),
        (level("hedge = { after = \"p90\", min = \"9s\" }"), "a hedge may start after 9s, when `first_token` (8s)"),
        (level("timeouts = { stall = \"40s\" }"), "`stall` (40s) is not shorter than `idle` (30s)"),
        (level("timeouts = { connect = \"8s\" }"), "`connect` (8s) is not shorter than `first_token` (8s)"),
        (level("timeouts = { first_token = \"6m\" }"), "`first_token` (6m) is not shorter than `turn` (5m)"),
        (level("timeouts = { turn = \"20s\" }"), "`client_write` (30s) is longer than the turn (20s)"),
        (level("hedge = { after = \"9s\" }"), "a hedge may start after 9s, when `first_token` (8s)"),
        (level("hedge = { after = \"p90\", budget = 0 }"), "no hedge ever starts"),
        (
            "[levels.n]\nchain = [{ connection = \"a\", model = \"1\", reasons = true }, { connection = \"b\", model = \"2\" }]\ntimeouts = { turn = \"1m\" }".to_owned(),
            "`thinking` (2m) is not shorter than `turn` (1m)",
        ),
        (
            "[levels.n]\nchain = [{ connection = \"a\", model = \"1\" }]\ntimeouts = { suspect = \"1s\" }".to_owned(),
            "there is no second target",
        ),
    ] {
        let told = told(&text);
        assert!(told.iter().any(|line| line.contains(expected)), "{expected}\n{}", told.join("\n"));
    }
}

#[test]
fn windows_that_are_too_narrow_are_named_with_the_requests_that_do_not_fit() {
    let told_of = |windows: &[Option<u64>]| {
        let row = |(index, window): (usize, &Option<u64>)| {
            let connection = if index == 0 { "a" } else { "b" };
            let window = window.map(|w| format!(", context_window = {w}")).unwrap_or_default();
            format!("{{ connection = \"{connection}\", model = \"{index}\"{window} }}, ")
        };
        let chain: String = windows.iter().enumerate().map(row).collect();
        let lines = told(&format!("[levels.n]\nchain = [{chain}]"));
        lines.into_iter().filter(|line| line.contains("prompts over")).collect::<Vec<_>>()
    };
    let same: [&[Option<u64>]; 4] =
        [&[Some(9000), Some(9000)], &[Some(9000), None], &[None, Some(8000)], &[Some(9000), Some(10_000)]];
    assert!(same.iter().all(|windows| told_of(windows).is_empty()));
    assert_eq!(
        told_of(&[Some(9000), Some(8000)]),
        [
            "warning: levels.n: a/0 takes 9000 tokens, no fallback more than 8000: requests with prompts over 7984 tokens \
          have no fallback\n  help: add a target with a `context_window` of 9000 or more"
        ]
    );
    let mixed = told_of(&[Some(9000), Some(8000), Some(9000)]);
    assert_eq!(mixed.len(), 1, "{mixed:?}");
    assert!(mixed[0].contains("warning: levels.n: b/1 takes 8000 tokens, a/0 9000: requests with prompts over 7984"));
    let narrow = told_of(&[Some(9000), Some(4000), Some(8000)]);
    assert_eq!(narrow.len(), 2, "{narrow:?}");
    assert!(narrow[0].contains("b/1 takes 4000 tokens") && narrow[1].contains("no fallback more than 8000"));
}

#[test]
fn places_that_never_serve_and_limits_that_never_count_are_named() {
    let key = "1".repeat(64);
    for (text, expected) in [
        (
            "[levels.n]\nchain = [{ connection = \"a\", model = \"1\" }, { connection = \"b\", model = \"2\", quality = 3 }]\nmin_quality = 2".to_owned(),
            "b/2 is of quality 3 and never serves",
        ),
        ("[levels.n]\nchain = [{ connection = \"a\", model = \"1\" }]".to_owned(), "warning: connections.b: no chain uses it"),
        (
            "[levels.n]\nchain = [{ connection = \"a\", model = \"1\", continuation = \"restart\" }]".to_owned(),
            "no target continues a turn",
        ),
        (format!("[tenants.t]\nkeys = [{{ sha256 = \"{key}\" }}]\nonly = [\"region:eu\"]"), "leaves b/mb alone to serve `normal`"),
        (format!("[tenants.t]\nkeys = [{{ sha256 = \"{key}\" }}]\nlimits = {{ rpm = 200000 }}"), "above those of the gateway"),
        (
            format!("[tenants.t]\nkeys = [{{ sha256 = \"{key}\", limits = {{ rpm = 9 }} }}]\nlimits = {{ rpm = 8 }}"),
            "a key's limits are above the tenant's",
        ),
        ("[server]\nmax_turns = 10".to_owned(), "20000 is more than `server.max_turns` (10)"),
        ("[limits]\nmax_event = \"64MiB\"".to_owned(), "one event may be larger than a whole turn"),
    ] {
        let told = told(&text);
        assert!(told.iter().any(|line| line.contains(expected)), "{expected}\n{}", told.join("\n"));
    }
}

#[test]
fn chains_are_drawn_down_to_vendor_cloud_and_region() {
    let text = two(
        "base_url = \"https://one.example.com/v1\"\ndomains = [\"vendor:va\", \"cloud:azure\", \"org:acme\"]",
        "domains = [\"region:eu\"]",
        "[timeouts]\nturn = \"90s\"",
    );
    assert_eq!(
        draw(&config(&text)),
        "normal (turn 90s, retries 1)\n\
         ├─ first a/ma  quality 1, first token 8s, stall 5s\n\
         │        vendor va · cloud azure · region ? · org acme · one.example.com\n\
         └─ then  b/mb  quality 1, first token 8s, stall 5s\n\
         \u{20}        vendor ? · cloud ? · region eu · the vendor's own address\n"
    );
}

#[test]
fn a_redacted_configuration_has_everything_but_the_secrets() {
    let digest = "ab".repeat(32);
    let config = config(&format!(
        r#"
        [admin]
        token = {{ env = "T" }}
        [connections.a]
        dialect = "anthropic"
        api_key = {{ env = "K" }}
        headers = {{ x-a = "hush-header", x-b = {{ env = "H" }} }}
        query = {{ key = {{ env = "Q" }} }}
        [levels.n]
        chain = [{{ connection = "a", model = "m" }}]
        hedge = {{ after = "p90" }}
        [tenants.t]
        keys = [{{ sha256 = "{digest}", expires = 2027-01-01 }}]
        credentials = {{ a = {{ env = "C" }} }}
        [store]
        backend = "redis"
        url = {{ env = "REDIS_URL" }}
        [alerts]
        webhook = {{ env = "SEGUE_WEBHOOK" }}
        "#
    ));
    let shown = redact(&config);
    let text = shown.to_string();
    for secret in ["hush", "redis://", &digest] {
        assert!(!text.contains(secret), "{text}");
    }
    for hidden in [
        "/admin/token",
        "/connections/a/api_key",
        "/connections/a/headers/x-a",
        "/connections/a/headers/x-b",
        "/connections/a/query/key",
        "/tenants/t/credentials/a",
        "/store/url",
        "/alerts/webhook",
    ] {
        assert_eq!(shown.pointer(hidden).and_then(|v| v.as_str()), Some(HIDDEN), "{hidden}");
    }
    for (at, value) in [
        ("/connections/a/dialect", "anthropic"),
        ("/levels/n/chain/0/timeouts/first_token", "8s"),
        ("/levels/n/hedge/after", "p90"),
        ("/levels/n/timeouts/suspect", "off"),
        ("/tenants/t/keys/0/sha256", "abababab…"),
        ("/tenants/t/levels/n", "n"),
        ("/ledger/path", "segue.db"),
    ] {
        assert_eq!(shown.pointer(at).and_then(|v| v.as_str()), Some(value), "{at}");
    }
}

/// Every key of the file has its place in what is shown, so that a new key is not forgotten there.
#[test]
fn a_redacted_configuration_has_every_key() {
    let config = config(&format!(
        "[server]\ntls = {{ cert = \"c\", key = \"k\" }}\n\
         [connections.x]\ndialect = \"mock\"\nbreaker = {{ latency = {{ p95 = \"1s\" }} }}\n\
         [levels.x]\nchain = [{{ connection = \"x\", model = \"m\" }}]\nhedge = {{ after = \"p90\" }}\n\
         [tenants.x]\nkeys = [{{ sha256 = \"{}\" }}]\n[ledger]\nprices = {{ \"x/m\" = {{ input = 1, output = 1 }} }}",
        "1".repeat(64)
    ));
    let shown = redact(&config);
    // The clocks of all levels are shown where they came to hold, in each level.
    for (pattern, names) in super::super::keys::KEYS.iter().filter(|(pattern, _)| *pattern != "timeouts") {
        let name = if pattern.starts_with("ledger") { "x~1m" } else { "x" };
        let way: String = pattern
            .split('.')
            .filter(|p| !p.is_empty())
            .map(|p| format!("/{}", p.replace('*', name).replace("[]", "/0")))
            .collect();
        let table = shown.pointer(&way).unwrap_or_else(|| panic!("{pattern} is not shown"));
        for key in *names {
            assert!(
                pattern.is_empty() && *key == "timeouts" || table.get(key).is_some(),
                "{pattern}.{key} is not shown"
            );
        }
    }
}
