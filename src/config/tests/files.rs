//! The files in `config/`, the files that programs write, and files gone wrong.

use super::super::{check, keys, redact, units};
use super::{Fake, lines, load};
use proptest::prelude::*;

const FILES: [(&str, &str); 4] = [
    ("config/minimal.toml", include_str!("../../../config/minimal.toml")),
    ("config/voice.toml", include_str!("../../../config/voice.toml")),
    ("config/rehearsal.toml", include_str!("../../../config/rehearsal.toml")),
    ("config/production.toml", include_str!("../../../config/production.toml")),
];

const REFERENCE: &str = include_str!("../../../docs/configuration.md");

fn generous() -> Fake {
    Fake::generous().file("/run/secrets/anthropic", "sk-hush\n")
}

#[test]
fn the_example_files_load_and_are_wise() {
    for (path, text) in FILES {
        let loaded = load(text, path, &generous()).unwrap_or_else(|problems| panic!("{}", lines(&problems)));
        for warning in &loaded.warnings {
            let to_come = keys::NOT_YET.iter().any(|(_, what)| *what == warning.message);
            assert!(to_come, "{warning}");
        }
        // An example may not be able to avoid notes, but it must not do what `check` warns of.
        let unwise: Vec<_> = check::findings(&loaded.config)
            .into_iter()
            .filter(|f| f.severity == check::Severity::Warning)
            .map(|f| f.to_string())
            .collect();
        assert!(unwise.is_empty(), "{path}\n{}", unwise.join("\n"));
    }
}

#[test]
fn the_reference_names_every_key_with_its_table() {
    for (pattern, known) in keys::KEYS.iter().filter(|(pattern, _)| !pattern.is_empty()) {
        // Clocks and limits are explained once, where they hold for everything.
        let explained = match *pattern {
            "levels.*.timeouts" | "levels.*.chain[].timeouts" => "timeouts",
            "connections.*.limits" | "tenants.*.limits" | "tenants.*.keys[].limits" => "connections.*.limits",
            other => other,
        };
        for key in *known {
            let row = format!("| `{explained}.{key}` |");
            assert!(REFERENCE.contains(&row), "docs/configuration.md lacks the row {row}");
        }
    }
}

#[test]
fn the_reference_says_what_is_not_built_yet() {
    let (_, section) = REFERENCE.split_once("\n## Not built yet\n").expect("the section");
    let (section, _) = section.split_once("\n## ").expect("another one after it");
    let rows: Vec<&str> = section.lines().filter(|line| line.starts_with("| `")).collect();
    let expected: Vec<String> = keys::NOT_YET.iter().map(|(rule, what)| format!("| `{rule}` | {what} |")).collect();
    assert_eq!(rows, expected);
}

#[test]
fn the_reference_names_no_key_that_is_not_known() {
    let rows = REFERENCE.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` |"));
    let mut count = 0;
    for (key, _) in rows {
        let (table, name) = key.rsplit_once('.').unwrap_or(("", key));
        if keys::NOT_YET.iter().any(|(rule, _)| *rule == key) {
            continue;
        }
        let known = keys::KEYS.iter().any(|(pattern, names)| *pattern == table && names.contains(&name));
        assert!(known, "docs/configuration.md explains {key}, which is no key");
        count += 1;
    }
    assert!(count > 80, "{count}");
}

/// Shapes that test programs generate: one process a file, everything on loopback.
#[test]
fn generated_files_load() {
    let head = "[server]\nlisten = \"127.0.0.1:18080\"\nkeep_alive = \"200ms\"\nheaders_after = \"off\"\ndrain = \"5000ms\"\n\n\
                [admin]\nlisten = \"127.0.0.1:19090\"\n\n\
                [timeouts]\nfirst_token = \"400ms\"\nidle = \"2000ms\"\nstall = \"300ms\"\nturn = \"1000ms\"\nclient_write = \"1000ms\"\n\n\
                [limits]\nmax_event = \"16MiB\"\nretry_after_cap = \"60s\"\n\n";
    let connection = |name: &str, more: &str| {
        format!(
            "[connections.{name}]\ndialect = \"chat\"\nbase_url = \"http://127.0.0.1:1/{name}/v1\"\n\
             api_key = {{ env = \"CASE_KEY\" }}\ndomains = [\"vendor:{name}\"]\n{more}\n"
        )
    };
    let tail = "[store]\nbackend = \"memory\"\n\n[ledger]\npath = \"/tmp/w/ledger.db\"\n";
    let level = |chain: &[&str], more: &str| {
        let rows: Vec<_> = chain
            .iter()
            .map(|c| format!("{{ connection = \"{c}\", model = \"m-{c}\", continuation = \"auto\" }}"))
            .collect();
        format!("[levels.main]\nchain = [{}]\n{more}\n", rows.join(", "))
    };
    let never = "breaker = { consecutive = 1000000, error_rate = 1.0, min_samples = 1000000 }\n";
    let digest = "4735393705c91dccb494dd89dc6279282075ca2a9ec00fa279c9715434f41651";
    let cases = [
        (
            connection("a", never) + &connection("b", ""),
            level(&["a", "b", "a", "b"], "retries = 2\nbackoff = { base = \"50ms\", cap = \"30s\" }"),
            String::new(),
            2,
        ),
        (
            connection("a", "http2 = \"prior_knowledge\"\n"),
            level(&["a"], "rate_limited = \"switch\"\nretries = 0"),
            String::new(),
            1,
        ),
        (
            connection("a", "breaker = { consecutive = 3, cooldown = \"300ms\" }\n") + &connection("b", ""),
            level(&["a", "b"], "hedge = { after = \"20ms\", budget = 1.0 }"),
            String::new(),
            2,
        ),
        (
            connection("a", "") + &connection("a-t1", ""),
            level(&["a-t1"], ""),
            format!(
                "[tenants.t1]\nkeys = [{{ sha256 = \"{digest}\" }}]\nlevels = {{ main = \"main\" }}\nlimits = {{ in_flight = 1 }}\n"
            ),
            1,
        ),
    ];
    for (connections, levels, tenants, targets) in cases {
        let text = format!("{head}{connections}{levels}{tenants}{tail}");
        let env = Fake::default().env("CASE_KEY", "sk-case");
        let loaded = load(&text, "segue.toml", &env).unwrap_or_else(|problems| panic!("{text}\n{}", lines(&problems)));
        assert_eq!(loaded.config.levels[0].chain.len(), targets, "{text}");
        let hedge = loaded.config.levels[0].hedge;
        assert!(hedge.is_none_or(|h| h.min == units::duration("20ms").expect("good")), "a fixed time is kept");
    }
}

#[test]
fn absurd_files_are_refused_and_not_fatal() {
    let deep = 20_000;
    for text in [
        format!("x = {}", "[".repeat(deep)),
        format!("x = {}", "{a=".repeat(deep)),
        format!("[{}a]", "a.".repeat(deep)),
        format!("{}a = 1", "a.".repeat(deep)),
        "a = 1\n".repeat(deep),
        (0..deep).map(|n| format!("k{n} = 1\n")).collect(),
        "\0\u{1}\u{7f}".to_owned(),
    ] {
        let problems = load(&text, "x", &generous()).expect_err("absurd");
        assert!((1..=200).contains(&problems.len()), "{}", problems.len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever happens to a file, it is read or refused with places inside it, and what is read can be shown.
    #[test]
    fn no_mutation_of_a_good_file_breaks_the_reader(
        which in 0..FILES.len(),
        edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0..PIECES.len(), 0..4_u8), 1..6),
    ) {
        let mut text: Vec<char> = FILES[which].1.chars().collect();
        for (from, to, piece, kind) in edits {
            let (a, b) = (from.index(text.len() + 1), to.index(text.len() + 1));
            let (low, high) = (a.min(b), a.max(b).min(a.min(b) + 40));
            match kind {
                0 => { text.drain(low..high); }
                1 => { text.splice(low..low, PIECES[piece].chars()); }
                2 => { text.splice(low..high.min(low + 8), PIECES[piece].chars()); }
                _ => { let copy: Vec<char> = text[low..high].to_vec(); text.splice(b.min(text.len())..b.min(text.len()), copy); }
            }
        }
        let text: String = text.into_iter().collect();
        match load(&text, "x", &generous()) {
            Ok(loaded) => {
                check::findings(&loaded.config);
                prop_assert!(!redact::redact(&loaded.config).to_string().contains("hush"));
            }
            Err(problems) => {
                prop_assert!(!problems.is_empty());
                let count = text.matches('\n').count() + 1;
                for problem in &problems {
                    prop_assert!(problem.place.line <= count, "{problem}");
                    prop_assert!(!problem.message.is_empty());
                }
            }
        }
    }
}

/// What fingers and editors put into files.
const PIECES: [&str; 24] = [
    "\"",
    "{",
    "}",
    "[",
    "]",
    "=",
    "\n",
    "#",
    ",",
    ".",
    "0",
    "-1",
    "true",
    "\"\"",
    "{}",
    "[]",
    "é",
    "\u{feff}",
    "nan",
    "1e999",
    "2027-01-01",
    "\"0s\"",
    "'''",
    "[connections.x]\n",
];
