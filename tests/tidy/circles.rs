//! Circles inside a room: which file imports which, among files of which none is inside another.
//!
//! A module and what is inside it may see each other; two that stand side by side, or in different folders of a room, may
//! do so one way only, over however many steps.

use crate::tree::{Source, product};
use std::collections::{BTreeMap, BTreeSet};

/// A module's path below the crate.
type Module = Vec<String>;

/// The modules that are part of circles, and what each of them sees of the others.
pub(crate) fn circles(sources: &[Source]) -> Vec<String> {
    let code = sources.iter().filter(|source| !source.test).map(|source| (module(&source.path), product(&source.code)));
    let code: BTreeMap<Module, String> = code.collect();
    let mut edges: BTreeMap<&Module, BTreeSet<&Module>> = BTreeMap::new();
    for (from, text) in &code {
        for path in paths(text) {
            let Some(to) = target(from, &path, &code) else { continue };
            let inside = to.starts_with(from) || from.starts_with(to);
            if to[0] == from[0] && !inside {
                edges.entry(from).or_default().insert(to);
            }
        }
    }
    loop {
        // Who sees nobody, or is seen by nobody, is in no circle.
        let seen: BTreeSet<&Module> = edges.values().flatten().copied().collect();
        let left: BTreeSet<&Module> = edges.keys().copied().filter(|module| seen.contains(module)).collect();
        let before = edges.values().map(BTreeSet::len).sum::<usize>();
        edges.retain(|from, to| {
            to.retain(|to| left.contains(to));
            left.contains(from) && !to.is_empty()
        });
        if edges.values().map(BTreeSet::len).sum::<usize>() == before {
            break;
        }
    }
    let name = |module: &Module| module.join("/");
    let row = |(from, to): (&&Module, &BTreeSet<&Module>)| {
        format!("{} sees {}", name(from), to.iter().map(|to| name(to)).collect::<Vec<_>>().join(", "))
    };
    edges.iter().map(row).collect()
}

fn module(path: &str) -> Module {
    let stem = path.trim_start_matches("src/").trim_end_matches(".rs").trim_end_matches("/mod");
    stem.split('/').map(str::to_owned).collect()
}

/// The module that a path leads into, seen from `from`.
fn target<'a>(from: &Module, path: &[String], code: &'a BTreeMap<Module, String>) -> Option<&'a Module> {
    let (base, rest) = match path.first()?.as_str() {
        "crate" => (Vec::new(), &path[1..]),
        _ => {
            let ups = path.iter().take_while(|part| *part == "super").count();
            (from[..from.len().checked_sub(ups)?].to_vec(), &path[ups..])
        }
    };
    let full: Module = base.into_iter().chain(rest.iter().cloned()).collect();
    (1..=full.len()).rev().find_map(|length| code.get_key_value(&full[..length].to_vec())).map(|(module, _)| module)
}

/// All paths that begin with `crate` or `super`, groups taken apart.
fn paths(code: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(next) = ["crate::", "super::"].iter().filter_map(|start| code[at..].find(start)).min() {
        let start = at + next;
        let before = code[..start].chars().next_back();
        if before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | ':')) {
            at = start + 1;
            continue;
        }
        at = start + follow(&code[start..], Vec::new(), &mut found);
    }
    found
}

/// Reads one path, or a group of them, that goes on from `path`; gives how many bytes it took.
fn follow(text: &str, mut path: Vec<String>, found: &mut Vec<Vec<String>>) -> usize {
    let mut at = 0;
    loop {
        at += text[at..].len() - text[at..].trim_start().len();
        if text[at..].starts_with('{') {
            at += 1;
            loop {
                at += follow(&text[at..], path.clone(), found);
                // A name may be given another one.
                let Some(end) = text[at..].find([',', '}']) else { return text.len() };
                at += end + 1;
                if text[..at].ends_with('}') {
                    return at;
                }
            }
        }
        let word: String = text[at..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        at += word.len();
        if word.is_empty() {
            break;
        }
        path.push(word);
        if !text[at..].starts_with("::") {
            break;
        }
        at += "::".len();
    }
    found.push(path);
    at
}

// === tests ===

#[test]
fn no_circle_is_inside_a_room() {
    let circles = circles(&crate::tree::sources());
    assert!(circles.is_empty(), "circles; move what both need to a file of its own:\n  {}", circles.join("\n  "));
}

#[test]
fn a_circle_is_found_over_groups_and_steps() {
    let source = |path: &str, code: &str| {
        let room = path["src/".len()..].split('/').next().unwrap().trim_end_matches(".rs").to_owned();
        Source { path: path.to_owned(), room, code: code.to_owned(), test: false }
    };
    let mut sources = vec![
        source("src/a/mod.rs", "mod b; use b::B;"),
        source("src/a/b.rs", "use super::{A, c::{self as other, C}};"),
        source("src/a/c.rs", "fn f() { crate::a::d::f() }"),
        source("src/a/d.rs", "use super::b::B; use crate::e::E;"),
        source("src/a/d/inner.rs", "use super::super::c::C;"),
        source("src/e.rs", "#[cfg(test)]\nmod tests {\n    use crate::a::d::D;\n}\n"),
    ];
    assert_eq!(circles(&sources), ["a/b sees a/c", "a/c sees a/d", "a/d sees a/b"]);
    sources[3].code = "use super::A;".to_owned();
    assert_eq!(circles(&sources), [""; 0]);
}
