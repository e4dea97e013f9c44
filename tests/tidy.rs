//! The house rules, as tests: floors, purity, sizes, names, and what a repository must not say.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's panic is its report")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The rooms and their floors. A file imports its own room and lower floors only; a new room needs a line here.
const FLOORS: [(&str, u8); 23] = [
    ("chat", 1),
    ("event", 1),
    ("failure", 1),
    ("retry_after", 1),
    ("sse", 1),
    ("health", 1),
    ("turn", 2),
    ("routing", 2),
    ("relay", 3),
    ("dialect", 3),
    ("config", 3),
    ("upstream", 4),
    ("store", 4),
    ("ledger", 4),
    ("telemetry", 4),
    ("fleet", 5),
    ("rig", 5),
    ("gateway", 6),
    ("server", 7),
    ("admin", 7),
    ("bench", 7),
    ("cli", 8),
    ("main", 9),
];

/// Rooms of one floor that may see each other, in this direction: there is no way back, so there are no circles.
const BESIDE: [(&str, &str); 9] = [
    ("event", "chat"),
    ("event", "failure"),
    ("retry_after", "failure"),
    ("health", "failure"),
    ("routing", "turn"),
    ("rig", "fleet"),
    ("admin", "server"),
    ("bench", "server"),
    ("failure", "chat"),
];

/// Words that must not stand in the product's code of some rooms, with the reason.
const BANNED: [(&[&str], &[&str], &str); 4] = [
    (
        &["chat", "event", "failure", "retry_after", "sse", "health", "turn", "routing", "relay", "dialect", "config"],
        &[
            "tokio::",
            "async fn",
            "Instant::now",
            "SystemTime::now",
            "rand::",
            "Mutex",
            "RwLock",
            "std::net::Tcp",
            "std::fs",
        ],
        "floors 1 to 3 are pure: time, seeds and text are arguments",
    ),
    (&["relay"], &["serde_json", "http::", "reqwest", "axum"], "the relay knows no HTTP and no JSON"),
    (&["gateway", "fleet", "store", "relay", "dialect", "config", "rig"], &["axum"], "axum is the server's business"),
    (
        &["gateway", "fleet", "server", "admin", "dialect", "config", "rig", "store", "cli"],
        &["reqwest::"],
        "calls go through `upstream`",
    ),
];

#[test]
fn every_file_imports_its_own_room_and_lower_floors_only() {
    let floors: BTreeMap<&str, u8> = FLOORS.into();
    let mut faults = Vec::new();
    for (path, text) in product() {
        let room = room(&path);
        let Some(floor) = floors.get(&*room) else {
            faults.push(format!("{}: `{room}` has no floor; give it one in tests/tidy.rs", path.display()));
            continue;
        };
        for seen in rooms_in(&text) {
            let allowed = seen == room
                || floors.get(&*seen).is_some_and(|other| other < floor)
                || BESIDE.contains(&(&*room, &*seen));
            if !allowed {
                faults.push(format!("{}: `{room}` sees `{seen}`", path.display()));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn rooms_beside_each_other_make_no_circle() {
    for (from, to) in BESIDE {
        assert!(!BESIDE.contains(&(to, from)), "{from} and {to} see each other");
    }
}

#[test]
fn what_a_room_must_not_know_it_does_not() {
    let mut faults = Vec::new();
    for (path, text) in product() {
        let room = room(&path);
        for (rooms, words, reason) in BANNED {
            if !rooms.contains(&&*room) {
                continue;
            }
            for word in words.iter().filter(|word| text.contains(**word)) {
                faults.push(format!("{}: `{word}`: {reason}", path.display()));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn files_are_short_and_say_what_they_are() {
    let mut faults = Vec::new();
    for (path, text) in rust_files() {
        let lines = text.lines().count();
        if lines > LONGEST {
            faults.push(format!("{}: {lines} lines; it holds two ideas", path.display()));
        }
        // Tests of a file stand beside it and are explained there.
        let beside = path.components().any(|c| c.as_os_str() == "tests") || path.ends_with("tests.rs");
        if !text.starts_with("//!") && !beside {
            faults.push(format!("{}: it does not begin with //!", path.display()));
        }
        for name in ["utils", "util", "common", "helpers", "helper", "manager", "types", "misc"] {
            if path.file_stem().is_some_and(|stem| stem == name) {
                faults.push(format!("{}: `{name}` says nothing", path.display()));
            }
        }
        let relaxed = format!("#{}(", "[allow").replace("#[", "#[");
        if text.contains(&relaxed) || text.contains(&relaxed.replace("#[", "#![")) {
            faults.push(format!("{}: a lint is relaxed without `expect` and a reason", path.display()));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn every_configuration_is_loaded_by_a_test_and_every_dialect_has_goldens() {
    let tests: String = rust_files().into_iter().map(|(_, text)| text).collect();
    for entry in fs::read_dir(root().join("config")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(tests.contains(&name), "config/{name} is loaded by no test");
    }
    for entry in fs::read_dir(root().join("src/dialect")).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            let name = entry.file_name().into_string().unwrap();
            let goldens = root().join("tests/golden").join(&name);
            let count = fs::read_dir(&goldens).map_or(0, Iterator::count);
            assert!(count > 10, "the dialect {name} has {count} goldens");
        }
    }
}

#[test]
fn the_repository_speaks_of_the_project_alone() {
    let mut faults = Vec::new();
    // Put together here, so that this file does not say them.
    let banned: Vec<String> = [
        ["/wo", "rk/"],
        ["/ro", "ot/"],
        ["../sha", "red"],
        ["DESIGN", ".md"],
        ["FACTS", ".md"],
        ["FAILURES", ".md"],
        ["static.crates", ".io"],
        ["index.crates", ".io"],
        ["registry.npmjs", ".org"],
        ["files.pythonhosted", ".org"],
    ]
    .iter()
    .map(|halves| halves.concat())
    .collect();
    for path in tracked() {
        let Ok(text) = fs::read_to_string(&path) else { continue };
        for word in banned.iter().filter(|word| text.contains(word.as_str())) {
            faults.push(format!("{}: {word}", path.display()));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

// === helpers ===

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The product's files with their code: comments, and everything from a file's own tests on, left out.
fn product() -> Vec<(PathBuf, String)> {
    let tests = |path: &Path| {
        path.components().any(|c| c.as_os_str() == "tests") || path.ends_with("tests.rs") || path.ends_with("model.rs")
    };
    let files = files_below(&root().join("src"));
    files.into_iter().filter(|(path, _)| !tests(path)).map(|(path, text)| (path, code(&text))).collect()
}

fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let without = |line: &&str| !line.trim_start().starts_with("//");
    text.lines().filter(without).collect::<Vec<_>>().join("\n")
}

fn rust_files() -> Vec<(PathBuf, String)> {
    ["src", "tests", "benches", "examples"].iter().flat_map(|dir| files_below(&root().join(dir))).collect()
}

fn files_below(dir: &Path) -> Vec<(PathBuf, String)> {
    let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("node_modules") && !path.ends_with(".venv") {
            files.extend(files_below(&path));
        } else if path.extension().is_some_and(|e| e == "rs") {
            let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            files.push((path, text));
        }
    }
    files
}

/// Every text file that git would take; without git, every source file.
fn tracked() -> Vec<PathBuf> {
    let listed = std::process::Command::new("git").arg("ls-files").current_dir(root()).output();
    match listed {
        Ok(output) if output.status.success() => {
            String::from_utf8_lossy(&output.stdout).lines().map(|line| root().join(line)).collect()
        }
        _ => rust_files().into_iter().map(|(path, _)| path).collect(),
    }
}

fn room(path: &Path) -> String {
    let below = path.strip_prefix(root().join("src")).unwrap();
    let first = below.components().next().unwrap().as_os_str().to_string_lossy().into_owned();
    let room = first.trim_end_matches(".rs").to_owned();
    if room == "lib" { "main".to_owned() } else { room }
}

/// The rooms that `text` names, in `use` lines and in paths.
fn rooms_in(text: &str) -> Vec<String> {
    let mut rooms = Vec::new();
    for (at, _) in text.match_indices("crate::") {
        let rest = &text[at + "crate::".len()..];
        if let Some(group) = rest.strip_prefix('{') {
            let names = group.split('}').next().unwrap_or_default().split(',');
            rooms.extend(names.map(|n| word(n.trim())));
        } else {
            rooms.push(word(rest));
        }
    }
    rooms.retain(|room| !room.is_empty());
    rooms.sort();
    rooms.dedup();
    rooms
}

fn word(text: &str) -> String {
    text.chars().take_while(|c| c.is_ascii_lowercase() || *c == '_').collect()
}

/// Longer files hold two ideas.
const LONGEST: usize = 510;
