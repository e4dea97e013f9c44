//! What holds where the file says nothing, and that what it says arrives.

use super::super::{
    Admin, Alerts, Alias, Backend, Breaker, Config, Connection, Http2, Latency, Ledger, Limits, Price, Quota, Server,
    Store, Tls,
};
use super::{Fake, config, loaded};
use crate::bounds::Bounds;
use crate::chat::DialectId;
use crate::routing::{
    After, Backoff, Concurrency, Continuation, Delivery, Empty, Hedge, History, Level, Pace, RateLimited, Timeouts,
};
use crate::words::redact::Redactor;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

const fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

#[test]
fn a_silent_file_gets_the_documented_defaults() {
    let Config {
        server,
        admin,
        connections,
        timeouts,
        levels,
        tenants,
        aliases,
        limits,
        store,
        ledger,
        alerts,
        secrets,
    } = config("");
    assert_eq!((aliases, secrets), (Vec::new(), Redactor::default()));
    assert_eq!(timeouts, Timeouts::default());
    let Server {
        listen,
        max_body,
        receive,
        buffer,
        max_turns,
        headers_after,
        keep_alive,
        drain_delay,
        drain,
        tls,
        domains,
        allow_anonymous,
        cors,
        hosts,
        default_level,
        max_connections,
    } = server;
    assert_eq!((cors.len(), hosts.len(), default_level, max_connections), (0, 0, None, None));
    assert_eq!(listen.to_string(), "127.0.0.1:8080");
    assert_eq!((max_body, buffer, max_turns), (32 << 20, 1 << 30, 20_000));
    assert_eq!(receive, secs(120));
    assert_eq!((headers_after, keep_alive), (Some(secs(10)), secs(15)));
    assert_eq!((drain_delay, drain), (secs(0), secs(30)));
    assert_eq!((tls, domains.len(), allow_anonymous), (None, 0, false));

    let Admin { listen, token } = admin;
    assert_eq!((listen.to_string().as_str(), token), ("127.0.0.1:9090", None));

    let Connection {
        name,
        dialect,
        mock,
        api_key,
        headers,
        query,
        versioned,
        version,
        http2,
        warm,
        limits: quota,
        breaker,
        ..
    } = connections[0].clone();
    assert_eq!((&*name, dialect, mock), ("a", DialectId::Chat, false));
    assert_eq!((api_key, headers.len(), query.len(), version), (None, 0, 0, None));
    assert!(versioned);
    assert_eq!((http2, warm, quota), (Http2::Auto, 1, Quota { in_flight: None, rpm: None, tpm: None }));
    let Breaker {
        consecutive,
        error_rate,
        window,
        min_samples,
        latency,
        cooldown,
        max_cooldown,
        max_cooldown_degraded,
    } = breaker;
    assert_eq!((consecutive, error_rate, window, min_samples, latency), (5, 0.05, secs(60), 100, None));
    assert_eq!((cooldown, max_cooldown, max_cooldown_degraded), (secs(5), secs(20), secs(300)));

    let level = &*levels[0];
    let clocks = Timeouts {
        connect: secs(2),
        first_token: secs(8),
        first_token_per_1k: None,
        first_word: None,
        thinking: secs(120),
        suspect: None,
        pace: None,
        stall: secs(5),
        idle: secs(30),
        turn: secs(300),
        client_write: secs(30),
        error_body: secs(2),
    };
    let expected = Level {
        name: "normal".into(),
        chain: level.chain.clone(),
        timeouts: clocks,
        min_quality: None,
        retries: 1,
        backoff: Backoff { base: secs(1), cap: secs(30) },
        same_first: false,
        history: History::Full,
        rate_limited: RateLimited::Auto,
        empty: Empty::Tell,
        tool_calls: Delivery::Hold,
        structured: Delivery::Hold,
        conversation: Concurrency::Reject,
        affinity: secs(600),
        budget: 0.10,
        hedge: None,
        shed_at: None,
        queue: None,
        announce: false,
        seam_window: 240,
    };
    assert_eq!(*level, expected);
    let target = &level.chain[0].target;
    assert_eq!((target.quality, target.continuation, target.reasons), (1, Continuation::Auto, false));
    assert_eq!((target.context_window, target.max_output, target.drops.len(), target.inputs), (None, None, 0, None));
    assert_eq!((&*target.issuer, target.deterministic, level.chain[0].timeouts), ("va", false, clocks));

    assert_eq!(tenants, None);
    let Limits { rpm, tpm, in_flight, retry_after_cap, max_event, max_turn, bounds, check } = limits;
    assert_eq!((rpm, tpm, in_flight), (100_000, 100_000_000, 20_000));
    assert_eq!((retry_after_cap, max_event, max_turn, check), (secs(60), 16 << 20, 32 << 20, secs(1)));
    assert_eq!((bounds.depth, bounds.values, bounds.messages, bounds.parts), (127, 250_000, 10_000, 50_000));
    assert_eq!((bounds.tools, bounds.stops, bounds.choices, bounds.calls), (1024, 64, 16, 512));
    let Store { backend, ttl, max_bytes, resume_grace, domains } = store;
    assert_eq!((backend, ttl, max_bytes, resume_grace), (Backend::Memory, secs(3600), 256 << 20, secs(120)));
    assert!(domains.is_empty());
    let Ledger { path, keep, bodies, prices } = ledger;
    assert_eq!((path.as_deref(), keep, bodies, prices.len()), (Some("segue.db"), secs(30 * 86400), false, 0));
    assert_eq!(alerts, Alerts { webhook: None });
}

#[test]
fn every_key_arrives() {
    let config = config(
        r#"
        [server]
        listen = "[::1]:1"
        max_body = "1MiB"
        buffer = "2MiB"
        receive = "9s"
        max_turns = 7
        headers_after = "off"
        keep_alive = "1s"
        drain = "0s"
        drain_delay = "3s"
        tls = { cert = "c", key = "k" }
        domains = ["region:x", "region:x"]
        allow_anonymous = true
        cors = ["https://App.example.com/", "http://localhost:3000"]
        hosts = ["LLM.example.com", "llm.example.com"]
        default_level = "l"
        max_connections = 9
        [aliases]
        "gpt-4o*" = "l"
        [admin]
        listen = "0.0.0.0:2"
        token = { env = "T" }
        [seam]
        window = 100
        [connections.a]
        dialect = "anthropic"
        base_url = "https://example.com/x//"
        api_key = { env = "K" }
        headers = { "X-Project" = "p", Authorization = { env = "H" } }
        query = { "api-version" = "1", key = { env = "Q" } }
        versioned = false
        version = "2026-10-21"
        http2 = "prior_knowledge"
        warm = 3
        domains = ["cloud:c", "vendor:v"]
        limits = { in_flight = 1, rpm = 2, tpm = 3 }
        breaker = { consecutive = 1, error_rate = 1, window = "1s", min_samples = 2, latency = { p95 = "3s", over_baseline = 1.5 }, cooldown = "40s", max_cooldown_degraded = "50s" }
        [levels.l]
        chain = [{ connection = "a", model = "m", quality = 2, continuation = "prefill", context_window = 9, max_output = 8, drops = ["seed"], reasons = true, deterministic = true }]
        min_quality = 2
        retries = 0
        backoff = { base = "100ms", cap = "1s" }
        same_first = true
        history = "last_user_message"
        rate_limited = "switch"
        empty = "next"
        tool_calls = "stream"
        structured = "stream"
        conversation = "supersede"
        affinity = "0s"
        budget = 0
        shed_at = 0.5
        queue = "1s"
        announce = "comment"
        hedge = { after = "p50", min = "10ms", max = "20ms", budget = 1 }
        [limits]
        rpm = 1
        tpm = 2
        in_flight = 3
        retry_after_cap = "4s"
        max_event = "5B"
        max_turn = "6B"
        max_depth = 7
        max_values = 8
        max_messages = 9
        max_parts = 10
        max_tools = 11
        max_stops = 12
        max_choices = 13
        max_calls = 14
        check = "7s"
        [store]
        backend = "redis"
        url = { env = "REDIS_URL" }
        ttl = "1m"
        max_bytes = "1KiB"
        resume_grace = "1s"
        domains = ["region:y"]
        [ledger]
        path = "off"
        keep = "1d"
        bodies = true
        prices = { "a/m/n" = { input = 1, output = 2.5 } }
        [alerts]
        webhook = { env = "SEGUE_WEBHOOK" }
        "#,
    );
    let server = &config.server;
    assert_eq!((server.listen.to_string().as_str(), server.max_body, server.buffer), ("[::1]:1", 1 << 20, 2 << 20));
    assert_eq!(server.receive, secs(9));
    assert_eq!((server.max_turns, server.headers_after, server.keep_alive, server.drain), (7, None, secs(1), secs(0)));
    assert_eq!(server.drain_delay, secs(3));
    assert_eq!(server.tls, Some(Tls { cert: "c".into(), key: "k".into() }));
    assert_eq!((server.domains.as_slice(), server.allow_anonymous), (&["region:x".to_owned()][..], true));
    assert_eq!(server.cors, ["https://app.example.com", "http://localhost:3000"]);
    assert_eq!(server.hosts, ["llm.example.com"]);
    assert_eq!((server.default_level.as_deref(), server.max_connections), (Some("l"), Some(9)));
    assert_eq!(config.aliases, [Alias { name: "gpt-4o*".into(), level: "l".into() }]);
    assert_eq!(config.admin.token.as_ref().map(super::super::Secret::expose), Some("sk-hush"));

    let connection = &config.connections[0];
    assert_eq!(connection.base_url.as_deref(), Some("https://example.com/x"));
    assert_eq!((connection.dialect, connection.version.as_deref()), (DialectId::Anthropic, Some("2026-10-21")));
    let pairs = |pairs: &[(String, super::super::Secret)]| -> Vec<String> {
        pairs.iter().map(|(k, v)| format!("{k}={}", v.expose())).collect()
    };
    assert_eq!(pairs(&connection.headers), ["X-Project=p", "Authorization=sk-hush"]);
    assert_eq!(pairs(&connection.query), ["api-version=1", "key=sk-hush"]);
    assert!(!connection.versioned);
    assert_eq!((connection.http2, connection.warm), (Http2::PriorKnowledge, 3));
    assert_eq!(connection.limits, Quota { in_flight: Some(1), rpm: Some(2), tpm: Some(3) });
    let breaker = &connection.breaker;
    assert_eq!((breaker.consecutive, breaker.error_rate, breaker.window, breaker.min_samples), (1, 1.0, secs(1), 2));
    assert_eq!(breaker.latency, Some(Latency { p95: Some(secs(3)), over_baseline: Some(1.5) }));
    // A longer first pause carries the longest along where that is not given.
    assert_eq!((breaker.cooldown, breaker.max_cooldown, breaker.max_cooldown_degraded), (secs(40), secs(40), secs(50)));

    let level = &config.levels[0];
    assert_eq!((level.min_quality, level.retries, level.same_first, level.announce), (Some(2), 0, true, true));
    assert_eq!(level.backoff, Backoff { base: ms(100), cap: secs(1) });
    assert_eq!((level.history, level.rate_limited), (History::LastUserMessage, RateLimited::Switch));
    assert_eq!(level.empty, Empty::Next);
    assert_eq!((level.tool_calls, level.structured), (Delivery::Stream, Delivery::Stream));
    assert_eq!((level.conversation, level.affinity, level.budget), (Concurrency::Supersede, secs(0), 0.0));
    assert_eq!((level.shed_at, level.queue, level.seam_window), (Some(0.5), Some(secs(1)), 100));
    assert_eq!(level.hedge, Some(Hedge { after: After::Percentile(50.0), min: ms(10), max: ms(20), budget: 1.0 }));
    let target = &level.chain[0].target;
    assert_eq!((&*target.issuer, target.dialect, target.quality), ("v", DialectId::Anthropic, 2));
    assert_eq!((target.continuation, target.reasons, target.deterministic), (Continuation::Prefill, true, true));
    assert_eq!((target.context_window, target.max_output), (Some(9), Some(8)));
    assert_eq!((target.drops.as_slice(), target.domains.len()), (&["seed".to_owned()][..], 2));

    let limits = &config.limits;
    assert_eq!((limits.rpm, limits.tpm, limits.in_flight, limits.retry_after_cap), (1, 2, 3, secs(4)));
    assert_eq!((limits.max_event, limits.max_turn, limits.check), (5, 6, secs(7)));
    let bounds = Bounds { depth: 7, values: 8, messages: 9, parts: 10, tools: 11, stops: 12, choices: 13, calls: 14 };
    assert_eq!(limits.bounds, bounds);
    assert!(matches!(&config.store.backend, Backend::Redis(url) if url.expose() == "redis://store:6379"));
    assert_eq!((config.store.ttl, config.store.max_bytes, config.store.resume_grace), (secs(60), 1024, secs(1)));
    assert_eq!(config.store.domains, ["region:y"]);
    assert_eq!((config.ledger.path.as_deref(), config.ledger.keep, config.ledger.bodies), (None, secs(86400), true));
    let price = Price { connection: "a".into(), model: "m/n".into(), input: 1.0, output: 2.5 };
    assert_eq!(config.ledger.prices, [price]);
    assert!(config.alerts.webhook.is_some());
}

#[test]
fn the_nearest_clock_wins() {
    let config = config(
        r#"
        [timeouts]
        first_token = "1s"
        stall = "2s"
        suspect = "100ms"
        pace = "10 chars/s over 1s"
        idle = "9s"
        [levels.n]
        timeouts = { stall = "3s", suspect = "off", turn = "50s" }
        chain = [
          { connection = "a", model = "x" },
          { connection = "b", model = "y", timeouts = { stall = "4s", suspect = "150ms", pace = "off" } },
        ]
        "#,
    );
    let level = &config.levels[0];
    let (a, b) = (level.chain[0].timeouts, level.chain[1].timeouts);
    assert_eq!((a.first_token, a.stall, a.suspect, a.idle, a.turn), (secs(1), secs(3), None, secs(9), secs(50)));
    assert_eq!(a.pace, Some(Pace { chars: 10.0, window: secs(1) }));
    assert_eq!((b.first_token, b.stall, b.suspect, b.pace), (secs(1), secs(4), Some(ms(150)), None));
    assert_eq!((b.turn, level.timeouts), (secs(50), a));
}

#[test]
fn hedge_bounds_tame_percentiles_and_leave_fixed_times_alone() {
    for (text, after, min, max, budget) in [
        (r#"{ after = "p90" }"#, After::Percentile(90.0), ms(80), ms(400), 0.2),
        (r#"{ after = "p90", min = "1s" }"#, After::Percentile(90.0), secs(1), secs(1), 0.2),
        (r#"{ after = "p90", max = "50ms" }"#, After::Percentile(90.0), ms(50), ms(50), 0.2),
        (r#"{ after = "20ms", budget = 1.0 }"#, After::Time(ms(20)), ms(20), ms(400), 1.0),
        (r#"{ after = "2s" }"#, After::Time(secs(2)), ms(80), secs(2), 0.2),
    ] {
        let config = config(&format!(
            "[levels.n]\nchain = [{{ connection = \"a\", model = \"x\" }}]\nbudget = 0.2\nhedge = {text}"
        ));
        assert_eq!(config.levels[0].hedge, Some(Hedge { after, min, max, budget }), "{text}");
    }
}

#[test]
fn a_tenant_is_read_whole() {
    let digest = "ab".repeat(32);
    let config = config(&format!(
        r#"
        [server]
        listen = "0.0.0.0:80"
        [tenants.t]
        keys = [{{ sha256 = "{digest}", expires = 2027-01-01, limits = {{ rpm = 1 }} }}]
        levels = {{ quick = "normal" }}
        aliases = {{ "gpt-4o" = "quick" }}
        direct = true
        credentials = {{ a = {{ env = "TK" }} }}
        only = ["region:us"]
        limits = {{ rpm = 10, tpm = 20, in_flight = 30 }}
        [tenants.u]
        keys = []
        "#
    ));
    let tenants = config.tenants.expect("tenants");
    let (t, u) = (&tenants[0], &tenants[1]);
    assert_eq!((&*t.name, t.direct, t.only.as_slice()), ("t", true, &["region:us".to_owned()][..]));
    let key = &t.keys[0];
    assert_eq!(key.sha256, [0xab; 32]);
    assert_eq!(key.expires, Some(SystemTime::UNIX_EPOCH + secs(1_798_761_600)));
    assert_eq!(key.limits, Quota { rpm: Some(1), ..Quota::default() });
    assert_eq!(t.levels, [(Arc::from("quick"), Arc::from("normal"))]);
    assert_eq!(t.aliases, [Alias { name: "gpt-4o".into(), level: "quick".into() }]);
    assert_eq!((&*t.credentials[0].0, t.credentials[0].1.expose()), ("a", "sk-hush"));
    assert_eq!(t.limits, Quota { rpm: Some(10), tpm: Some(20), in_flight: Some(30) });
    assert!(t.admits(&["region:us".to_owned()]) && !t.admits(&["region:eu".to_owned()]));
    // Without `levels` every level is there under its own name.
    assert_eq!(u.levels, [(Arc::from("normal"), Arc::from("normal"))]);
    assert!(u.admits(&[]) && !u.direct);
}

#[test]
fn secrets_come_from_the_environment_and_from_files_without_their_line_ends() {
    let text = super::whole(
        "[connections.a]\ndialect = \"chat\"\napi_key = { env = \"A\" }\n\
         [connections.b]\ndialect = \"chat\"\napi_key = { file = \"/run/b\" }\n\
         [levels.n]\nchain = [{ connection = \"a\", model = \"m\" }]",
    );
    let env = Fake::default().env("A", " one\n").file("/run/b", "two\r\n");
    let config = super::load(&text, "c.toml", &env).expect("good").config;
    let keys: Vec<_> =
        config.connections.iter().filter_map(|c| Some(c.api_key.as_ref()?.expose().to_owned())).collect();
    assert_eq!(keys, ["one", "two"]);
    assert!(!format!("{config:?}").contains("one\""), "a secret is printed");

    for (value, words) in
        [("", "is empty"), ("  ", "is empty"), ("a\nb", "no HTTP header can carry"), ("kéy", "no HTTP header")]
    {
        let env = Fake::default().env("A", value).file("/run/b", "x");
        let problems = super::load(&text, "c.toml", &env).expect_err("bad");
        assert!(problems[0].message.contains(words), "{}", problems[0]);
        assert_eq!(problems.len(), 1);
    }
}

#[test]
fn servers_nearby_need_no_key_and_headers_may_carry_one() {
    for connection in [
        "base_url = \"http://localhost:11434/v1\"",
        "base_url = \"http://10.0.0.7:8000\"",
        "base_url = \"http://vllm.models.svc/v1\"",
        "headers = { api-key = { env = \"AZURE\" } }",
    ] {
        let text = format!(
            "[connections.a]\ndialect = \"chat\"\n{connection}\n[levels.n]\nchain = [{{ connection = \"a\", model = \"m\" }}]"
        );
        assert_eq!(loaded(&text).config.connections[0].api_key, None, "{connection}");
    }
}

#[test]
fn open_to_everyone_is_possible_but_has_to_be_said() {
    assert!(config("[server]\nlisten = \"0.0.0.0:1\"\nallow_anonymous = true").server.allow_anonymous);
    assert_eq!(config("[server]\nlisten = \"localhost:0\"").server.listen.to_string(), "127.0.0.1:0");
    let both = "[server]\nlisten = \"127.0.0.1:0\"\n[admin]\nlisten = \"127.0.0.1:0\"";
    assert_eq!(config(both).admin.listen.port(), 0);
}
