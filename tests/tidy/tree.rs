//! The repository as the rules read it: its files, and what of their text is code, product, an import or a word.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// One source file.
pub(crate) struct Source {
    pub(crate) path: String,
    /// The module at the top of the crate that it belongs to.
    pub(crate) room: String,
    /// Without comments.
    pub(crate) code: String,
    /// All of it is for tests.
    pub(crate) test: bool,
}

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Folders beside the dialects that hold what they have in common.
const COMMON: [&str; 2] = ["refusals", "repair"];

pub(crate) fn dialects() -> Vec<String> {
    let entries = fs::read_dir(root().join("src/dialect")).unwrap().map(Result::unwrap);
    let folders = entries.filter(|e| e.path().is_dir()).map(|e| e.file_name().into_string().unwrap());
    folders.filter(|name| !COMMON.contains(&name.as_str())).collect()
}

/// Every file of the repository, from its root; not what is built or installed beside it.
pub(crate) fn files() -> Vec<String> {
    let relative = |path: &PathBuf| Some(path.strip_prefix(root()).ok()?.to_str()?.replace('\\', "/"));
    walk(root()).iter().filter_map(relative).collect()
}

pub(crate) fn walk(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut found = Vec::new();
    for path in entries.map(|entry| entry.unwrap().path()) {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let foreign =
            matches!(name, ".git" | "target" | "node_modules" | ".venv" | "__pycache__" | "corpus" | "artifacts");
        if path.is_dir() && !foreign {
            found.extend(walk(&path));
        } else if path.is_file() && !foreign {
            found.push(path);
        }
    }
    found.sort();
    found
}

pub(crate) fn rust_files() -> Vec<(String, String)> {
    let read = |path: String| {
        let text = fs::read_to_string(root().join(&path)).unwrap();
        (path, text)
    };
    files().into_iter().filter(|path| path.ends_with(".rs")).map(read).collect()
}

pub(crate) fn sources() -> Vec<Source> {
    let files: Vec<_> = rust_files().into_iter().filter(|(path, _)| path.starts_with("src/")).collect();
    let for_tests: BTreeSet<String> = files.iter().flat_map(|(path, text)| test_modules(path, text)).collect();
    let source = |(path, text): (String, String)| {
        let room = path["src/".len()..].split('/').next().unwrap_or_default().trim_end_matches(".rs").to_owned();
        let stem = path.trim_end_matches(".rs").trim_end_matches("/mod");
        let test = for_tests.iter().any(|t| stem == t || stem.starts_with(&format!("{t}/")));
        Source { room, code: without_comments(&text), test, path }
    };
    files.into_iter().map(source).collect()
}

/// The modules that a file declares for tests only, as paths without an ending.
fn test_modules(path: &str, text: &str) -> Vec<String> {
    let folder = path.trim_end_matches(".rs").trim_end_matches("/mod").trim_end_matches("/lib").to_owned();
    let declared = text.split("#[cfg(test)]\n").skip(1).filter_map(|rest| {
        let line = rest.lines().next()?.trim().trim_start_matches("pub(crate) ").trim_start_matches("pub(super) ");
        Some(format!("{folder}/{}", line.strip_prefix("mod ")?.strip_suffix(';')?))
    });
    declared.collect()
}

/// Without the items that are there for tests only.
pub(crate) fn product(code: &str) -> String {
    let mut kept = String::new();
    let mut lines = code.lines();
    while let Some(line) = lines.next() {
        let indent = &line[..line.len() - line.trim_start().len()];
        if line.trim() != "#[cfg(test)]" {
            kept.extend([line, "\n"]);
            continue;
        }
        let end = format!("{indent}}}");
        for line in lines.by_ref() {
            let one_line =
                line.starts_with(indent) && !line[indent.len()..].starts_with([' ', '#']) && line.ends_with([';', '}']);
            if line == end || one_line {
                break;
            }
        }
    }
    kept
}

/// Line comments gone. A `//` inside a text ends at its line too, which no rule here minds.
fn without_comments(text: &str) -> String {
    text.lines().map(|line| line.split("//").next().unwrap_or_default()).flat_map(|line| [line, "\n"]).collect()
}

/// The modules at the top of the crate that `code` names.
pub(crate) fn imports(code: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (at, _) in code.match_indices("crate::").filter(|(at, _)| !ends_in_word(&code[..*at])) {
        let rest = &code[at + "crate::".len()..];
        if let Some(group) = rest.strip_prefix('{') {
            let mut depth = 1;
            let mut name = String::new();
            for ch in group.chars() {
                match ch {
                    '{' => depth += 1,
                    '}' => depth -= 1,
                    _ if depth == 1 => name.push(ch),
                    _ => {}
                }
                if depth == 0 {
                    break;
                }
            }
            found.extend(name.split(',').map(first_word).filter(|name| !name.is_empty()));
        } else {
            found.insert(first_word(rest));
        }
    }
    found
}

fn first_word(text: &str) -> String {
    text.trim_start().chars().take_while(|ch| ch.is_alphanumeric() || *ch == '_').collect()
}

fn ends_in_word(text: &str) -> bool {
    text.ends_with(|ch: char| ch.is_alphanumeric() || matches!(ch, '_' | ':' | '$'))
}

/// Whether `word` stands in `code`, not as a part of a longer one.
pub(crate) fn has_word(code: &str, word: &str) -> bool {
    let letter = |ch: char| ch.is_alphanumeric() || ch == '_';
    code.match_indices(word).any(|(at, _)| {
        let (before, after) = (&code[..at], &code[at + word.len()..]);
        let inside = (word.starts_with(letter) && before.ends_with(letter))
            || (word.ends_with(letter) && after.starts_with(letter));
        !inside
    })
}

// === tests ===

#[test]
fn imports_are_found_however_they_are_written() {
    let code =
        "use crate::{admin, server::{self, listen}};\npub(crate) use crate::turn::Turn; fn f() -> crate::chat::Part {}";
    assert_eq!(imports(code), BTreeSet::from(["admin", "chat", "server", "turn"].map(str::to_owned)));
    assert_eq!(
        imports(&without_comments("// use crate::rig;\nlet url = \"http://crate\"; /// crate::fleet\n")),
        BTreeSet::new()
    );
}

#[test]
fn words_are_whole() {
    assert!(has_word("use http::HeaderMap", "http::") && !has_word("use xhttp::A; std::http_x", "http::"));
    assert!(has_word("axum::Router", "axum") && !has_word("maxaxum axum_extra", "axum"));
}

#[test]
fn what_is_for_tests_is_not_the_product() {
    let code = "fn a() {}\n#[cfg(test)]\nmod tests;\nfn b() {}\nimpl A {\n    #[cfg(test)]\n    fn c() {\n        {\n        }\n    }\n    \
                fn d();\n}\n#[cfg(test)]\nmod tests {\n    Mutex\n}\nfn e() {}\n";
    assert_eq!(product(code), "fn a() {}\nfn b() {}\nimpl A {\n    fn d();\n}\nfn e() {}\n");
}
