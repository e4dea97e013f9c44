//! The house rules, as tests: what each file may see, what no file may hold, and what must not be missing.
//!
//! A rule without a test is a wish. Each of these says which file breaks it, and what to do.
#![expect(clippy::unwrap_used, reason = "a test's panic is its report")]

mod circles;
mod tree;

use segue::config::{self, Resolver};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use tree::{dialects, files, has_word, imports, product, root, rust_files, sources, walk};

/// Every module at the top of the crate and its floor. A file imports its own folder and lower floors only.
const FLOORS: [(&str, u32); 29] = [
    ("bounds", 1),
    ("chat", 1),
    ("event", 1),
    ("failure", 1),
    ("health", 1),
    ("json", 1),
    ("retry_after", 1),
    ("schema", 1),
    ("sse", 1),
    ("words", 1),
    ("routing", 2),
    ("turn", 2),
    ("config", 3),
    ("dialect", 3),
    ("relay", 3),
    ("ledger", 4),
    ("record", 4),
    ("store", 4),
    ("telemetry", 4),
    ("upstream", 4),
    ("fleet", 5),
    ("rig", 5),
    ("gateway", 6),
    ("admin", 7),
    ("bench", 7),
    ("server", 7),
    ("cli", 8),
    ("lib", 9),
    ("main", 9),
];

/// Imports within a floor, each with its reason. Together they must not make a circle.
const NEIGHBOURS: [(&str, &str, &str); 16] = [
    ("admin", "server", "it listens in the same way, behind the same door"),
    ("bench", "server", "it measures a gateway that serves"),
    ("bounds", "chat", "it counts what a request consists of"),
    ("event", "chat", "an event names the dialect of what has no common form"),
    ("event", "failure", "a signal may be a failure"),
    ("failure", "chat", "a remedy names a kind of content that a target does not take"),
    ("failure", "words", "secrets are taken out of a provider's words before they are cut"),
    ("health", "chat", "what an attempt said is weighed in the tokens of a prompt"),
    ("health", "event", "what an attempt says is what its target is judged by"),
    ("health", "failure", "a verdict is what a failure means for a target"),
    ("ledger", "record", "its rows are records"),
    ("record", "upstream", "alerts call a webhook"),
    ("retry_after", "failure", "it reads a time to ask again"),
    ("rig", "fleet", "it breaks what the fleet asks, inside the process"),
    ("telemetry", "record", "metrics count what is recorded"),
    ("routing", "turn", "a candidate says how its target goes on with a turn"),
];

/// Folders are called after what they hold.
const BANNED_NAMES: [&str; 8] = ["common", "helper", "helpers", "manager", "misc", "types", "util", "utils"];

/// No file is longer, tests included.
const MAX_LINES: usize = 500;

// === who sees whom ===

#[test]
fn every_file_has_a_floor() {
    let floors = floors();
    let homeless = sources().into_iter().filter(|s| !floors.contains_key(&*s.room)).map(|s| s.path);
    report("in no room of FLOORS; give the room a floor there and in the crate's documentation", homeless);
}

#[test]
fn imports_go_down() {
    let floors = floors();
    let mut wrong = Vec::new();
    for source in sources() {
        let Some(&floor) = floors.get(&*source.room) else { continue };
        for import in imports(&source.code) {
            let neighbour = NEIGHBOURS.iter().any(|(from, to, _)| *from == source.room && *to == import);
            let down = floors.get(&*import).is_some_and(|&below| below < floor);
            if import != source.room && !neighbour && !down {
                wrong.push(format!("{} (floor {floor}) sees {import}", source.path));
            }
        }
    }
    report("imports that do not go down; move the thing to a lower floor, or hand it in as an argument", wrong);
}

#[test]
fn neighbours_stand_on_one_floor_and_make_no_circle() {
    let floors = floors();
    let mut left: Vec<_> = NEIGHBOURS.to_vec();
    for (from, to, why) in NEIGHBOURS {
        assert_eq!(floors[from], floors[to], "{from} sees {to}: {why}");
    }
    while !left.is_empty() {
        let before = left.len();
        // Whoever sees nobody that still sees somebody is settled.
        let leaves: Vec<_> =
            left.iter().filter(|(_, to, _)| !left.iter().any(|(from, ..)| from == to)).copied().collect();
        left.retain(|edge| !leaves.contains(edge));
        assert!(left.len() < before, "a circle among {left:?}");
    }
}

#[test]
fn libraries_are_seen_where_they_belong() {
    let rules: [(&str, &[&str]); 3] = [
        ("reqwest", &["src/upstream/http.rs", "src/upstream/client.rs"]),
        ("axum", &["src/server/", "src/admin/"]),
        ("clap", &["src/cli/"]),
    ];
    let mut wrong = Vec::new();
    for source in sources() {
        for (library, places) in rules {
            if has_word(&source.code, library) && !places.iter().any(|place| source.path.starts_with(place)) {
                wrong.push(format!("{} sees {library}, which belongs to {}", source.path, places.join(" and ")));
            }
        }
    }
    report("libraries out of place", wrong);
}

#[test]
fn the_relay_knows_neither_http_nor_json() {
    let libraries = ["serde_json", "serde", "http", "hyper", "tokio", "futures"];
    let mut wrong = Vec::new();
    for source in sources().into_iter().filter(|source| source.room == "relay") {
        let seen = libraries.iter().filter(|library| has_word(&source.code, &format!("{library}::")));
        wrong.extend(seen.map(|library| format!("{} sees {library}", source.path)));
    }
    report("the relay is a value over signals", wrong);
}

#[test]
fn the_lower_floors_are_pure() {
    let banned = [
        ("tokio::", "tokio"),
        ("async ", "async code"),
        (".await", "async code"),
        ("Instant::now", "a clock of its own"),
        ("SystemTime::now", "a clock of its own"),
        (".elapsed()", "a clock of its own"),
        ("rand::", "randomness of its own"),
        ("Mutex", "a lock"),
        ("RwLock", "a lock"),
        ("thread::", "a thread"),
        ("std::fs", "I/O"),
        ("std::env", "the environment"),
        ("TcpStream", "I/O"),
        ("println!", "I/O"),
    ];
    let floors = floors();
    let mut wrong = Vec::new();
    for source in sources() {
        if source.test || floors.get(&*source.room).is_none_or(|&floor| floor > 3) {
            continue;
        }
        let product = product(&source.code);
        for (word, what) in banned {
            if has_word(&product, word) {
                wrong.push(format!("{} has {what} (`{word}`)", source.path));
            }
        }
    }
    report("floors 1 to 3 take time, seeds and input as arguments", wrong);
}

#[test]
fn dialects_do_not_see_each_other_and_the_rig_sees_none() {
    let dialects = dialects();
    let mut wrong = Vec::new();
    for source in sources() {
        if source.test {
            continue;
        }
        let code = &product(&source.code);
        if source.room == "rig" && has_word(code, "dialect::") {
            wrong.push(format!("{}: the rig writes wire bytes itself, or two bugs could cancel out", source.path));
        }
        let own = source.path.strip_prefix("src/dialect/").and_then(|rest| rest.split_once('/')).map(|(own, _)| own);
        for other in dialects.iter().filter(|other| own.is_some_and(|own| own != *other)) {
            if has_word(code, &format!("dialect::{other}")) || has_word(code, &format!("super::{other}::")) {
                wrong.push(format!("{} sees the dialect {other}; they meet in chat and event", source.path));
            }
        }
    }
    report("dialects", wrong);
}

// === what files look like ===

#[test]
fn files_are_short_and_begin_with_what_they_are() {
    let mut wrong = Vec::new();
    for (path, text) in rust_files() {
        let lines = text.lines().count();
        if lines > MAX_LINES {
            wrong.push(format!("{path} has {lines} lines; at most {MAX_LINES} fit into a head: split it by concern"));
        }
        if !text.starts_with("//!") {
            wrong.push(format!("{path} does not begin with `//!` and a sentence of what it is"));
        }
    }
    report("files", wrong);
}

#[test]
fn names_say_what_is_inside() {
    let wrong = files().into_iter().filter(|path| {
        let names = Path::new(path).iter().filter_map(|part| part.to_str());
        path.ends_with(".rs") && names.map(|n| n.trim_end_matches(".rs")).any(|n| BANNED_NAMES.contains(&n))
    });
    report("names that fit anything", wrong);
}

#[test]
fn relaxations_carry_a_reason() {
    let mut wrong = Vec::new();
    for (path, text) in rust_files() {
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim_start();
            if line.starts_with(concat!("#[", "allow(")) || line.starts_with(concat!("#![", "allow(")) {
                wrong.push(format!("{path}:{number}: write #[expect(lint, reason = \"…\")]"));
            }
        }
        // An attribute may span lines.
        for attribute in text.split(concat!("[", "expect(")).skip(1) {
            let attribute = attribute.split_once(")]").map_or(attribute, |(inside, _)| inside);
            if attribute.starts_with("clippy::") && !attribute.contains("reason") {
                wrong.push(format!("{path}: expect({attribute}) has no reason"));
            }
        }
    }
    report("relaxed lints", wrong);
}

#[test]
fn nothing_speaks_of_one_machine_or_of_how_it_was_made() {
    let banned = [
        ["/ro", "ot/"].concat(),
        ["/wo", "rk/"].concat(),
        ["/tmp/", "wt"].concat(),
        ["crates", ".io"].concat(),
        ["pypi", ".org"].concat(),
        ["npm", "js."].concat(),
        ["DESI", "GN"].concat(),
        ["FAC", "TS"].concat(),
        ["FAIL", "URES"].concat(),
        // A merge that nobody finished.
        ["\n<<<<", "<<< "].concat(),
        ["../", "shared"].concat(),
    ];
    let mut wrong = Vec::new();
    for path in files() {
        // Cargo writes its own registry into the lock file.
        if path.ends_with("Cargo.lock") {
            continue;
        }
        let Ok(text) = fs::read_to_string(root().join(&path)) else { continue };
        for word in banned.iter().filter(|word| text.contains(word.as_str())) {
            let line = text.lines().position(|line| line.contains(word.as_str())).unwrap_or_default() + 1;
            wrong.push(format!("{path}:{line} says {word}"));
        }
    }
    report("words that do not belong to the project", wrong);
}

// === what must not be missing ===

#[test]
fn every_dialect_has_goldens() {
    let wrong = dialects().into_iter().filter(|dialect| {
        let golden = root().join("tests/golden").join(dialect);
        let count = |end: &str| walk(&golden).iter().filter(|p| p.to_string_lossy().ends_with(end)).count();
        count(".sse") + count(".bin") < 10
    });
    report("dialects with fewer than ten transcripts in tests/golden", wrong);
}

#[test]
fn every_configuration_loads() {
    let configurations = files().into_iter().filter(|p| {
        // What models cost is a table of its own.
        p.starts_with("config/") && p.ends_with(".toml") && p != "config/prices.toml"
    });
    let mut wrong = Vec::new();
    for path in configurations {
        let text = fs::read_to_string(root().join(&path)).unwrap();
        // The table of models is part of the program, and what is built of it runs without a configuration.
        let loaded = if path == "config/models.toml" {
            config::from_environment(&Everything).unwrap()
        } else {
            config::load(&text, &path, &Everything)
        };
        wrong.extend(loaded.err().into_iter().flatten().map(|problem| problem.to_string()));
    }
    report("configurations", wrong);
}

#[test]
fn links_between_documents_lead_somewhere() {
    let mut wrong = Vec::new();
    for path in files().into_iter().filter(|path| path.ends_with(".md")) {
        let text = fs::read_to_string(root().join(&path)).unwrap();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(link, _)| link) {
            let file = link.split('#').next().unwrap_or_default();
            let here = root().join(&path).with_file_name(file);
            if !file.is_empty() && !link.contains("://") && !link.starts_with("mailto:") && !here.exists() {
                wrong.push(format!("{path} links to {link}"));
            }
        }
    }
    report("links to files that are not there", wrong);
}

// === helpers ===

/// Every secret and every file there could be.
struct Everything;

impl Resolver for Everything {
    fn env(&self, name: &str) -> Option<String> {
        let value = match name.rsplit('_').next() {
            _ if name.starts_with("REDIS") => "redis://localhost/",
            _ if name == "SEGUE_KEYS_FILE" => "clients",
            Some("URL" | "HOST" | "WEBHOOK") => "https://localhost/",
            _ => "a-secret-of-some-length",
        };
        Some(value.to_owned())
    }

    fn file(&self, path: &str) -> Result<String, String> {
        // A file of clients' keys holds a name before each.
        Ok(if path.contains("clients") { "acme a-secret-of-some-length" } else { "a-secret-of-some-length" }.to_owned())
    }
}

fn report(what: &str, wrong: impl IntoIterator<Item = String>) {
    let wrong: Vec<String> = wrong.into_iter().collect();
    assert!(wrong.is_empty(), "{what}:\n  {}", wrong.join("\n  "));
}

fn floors() -> BTreeMap<&'static str, u32> {
    FLOORS.into_iter().collect()
}
