//! A TOML text whose every key and value still knows where it stands, and the collector of all that is wrong in it.
//!
//! Reading never stops at a mistake: getters note it and give nothing, the reader goes on with a default, and `load`
//! refuses at the end with all of them.

use super::problem::{Place, Problem, did_you_mean, nearest, one_of};
use super::{Resolver, Secret, keys};
use crate::words::redact::Redactor;
use std::cell::RefCell;
use std::ops::Range;
use toml::de::{DeTable, DeValue};

/// The text, who resolves its secrets, and what was found wrong.
pub(super) struct Document<'a> {
    path: &'a str,
    text: &'a str,
    pub(super) env: &'a dyn Resolver,
    /// Every secret that was resolved, whatever it is for.
    secrets: RefCell<Vec<Secret>>,
    errors: RefCell<Vec<Problem>>,
    warnings: RefCell<Vec<Problem>>,
}

/// A table with a fixed set of keys.
#[derive(Clone)]
pub(super) struct Section<'a> {
    pub(super) doc: &'a Document<'a>,
    /// From the top of the file; empty for the top itself.
    pub(super) key: String,
    /// Which of [`keys::KEYS`] it is.
    pattern: String,
    at: Range<usize>,
    table: &'a DeTable<'a>,
}

/// A value, with its way from the top.
#[derive(Clone)]
pub(super) struct Value<'a> {
    pub(super) doc: &'a Document<'a>,
    pub(super) key: String,
    /// The same with `*` and `[]` for what users choose.
    pub(super) pattern: String,
    pub(super) at: Range<usize>,
    pub(super) value: &'a DeValue<'a>,
}

/// A value under a name that the user chose.
pub(super) struct Named<'a> {
    pub(super) name: &'a str,
    /// Where the name stands.
    pub(super) at: Range<usize>,
    pub(super) value: Value<'a>,
}

// === impl Document ===

impl<'a> Document<'a> {
    pub(super) fn new(text: &'a str, path: &'a str, env: &'a dyn Resolver) -> Self {
        Self { path, text, env, secrets: RefCell::default(), errors: RefCell::default(), warnings: RefCell::default() }
    }

    /// Line and column of a byte offset.
    pub(super) fn place(&self, offset: usize) -> Place {
        let mut offset = offset.min(self.text.len());
        while !self.text.is_char_boundary(offset) {
            offset -= 1;
        }
        let before = &self.text[..offset];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        Place {
            path: self.path.to_owned(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().filter(|c| *c != BOM).count() + 1,
        }
    }

    pub(super) fn error(&self, at: usize, key: &str, message: impl Into<String>, remedy: impl Into<String>) {
        self.note(&self.errors, at, key, message.into(), remedy.into());
    }

    pub(super) fn warn(&self, at: usize, key: &str, message: impl Into<String>, remedy: impl Into<String>) {
        self.note(&self.warnings, at, key, message.into(), remedy.into());
    }

    fn note(&self, list: &RefCell<Vec<Problem>>, at: usize, key: &str, message: String, remedy: String) {
        let mut list = list.borrow_mut();
        if list.len() < MAX_PROBLEMS {
            list.push(Problem { place: self.place(at), key: key.to_owned(), message, remedy });
        }
    }

    /// Notes a secret: whoever shows foreign words must know it.
    pub(super) fn keep(&self, secret: &Secret) {
        self.secrets.borrow_mut().push(secret.clone());
    }

    /// What takes the secrets of this file out of foreign words.
    pub(super) fn redactor(&self) -> Redactor {
        Redactor::new(self.secrets.borrow().iter().map(Secret::expose))
    }

    pub(super) fn is_sound(&self) -> bool {
        self.errors.borrow().is_empty()
    }

    /// Errors and warnings, each in the order of the file.
    pub(super) fn into_problems(self) -> (Vec<Problem>, Vec<Problem>) {
        let in_order = |mut problems: Vec<Problem>| {
            problems.sort_by(|a, b| a.place.cmp(&b.place));
            problems.dedup();
            problems
        };
        (in_order(self.errors.into_inner()), in_order(self.warnings.into_inner()))
    }
}

// === impl Section ===

impl<'a> Section<'a> {
    /// The whole file.
    pub(super) fn top(doc: &'a Document<'a>, table: &'a DeTable<'a>) -> Self {
        let top = Self { doc, key: String::new(), pattern: String::new(), at: 0..0, table };
        top.judge_keys();
        top
    }

    /// The offset that stands for the table as a whole.
    pub(super) fn start(&self) -> usize {
        self.at.start
    }

    /// The value of a key, if it is there.
    pub(super) fn get(&self, key: &str) -> Option<Value<'a>> {
        let (name, value) = self.table.get_key_value(key)?;
        // A table's own span may be anywhere among its parts; where its name stands is what a reader looks for.
        let at = if value.get_ref().is_table() { name.span() } else { value.span() };
        Some(Value {
            doc: self.doc,
            key: join(&self.key, key),
            pattern: join(&self.pattern, key),
            at,
            value: value.get_ref(),
        })
    }

    /// The value of a key without which the table makes no sense.
    pub(super) fn need(&self, key: &str, example: &str) -> Option<Value<'a>> {
        let value = self.get(key);
        if value.is_none() && !self.misspells(key) {
            self.doc.error(self.at.start, &join(&self.key, key), "is missing", format!("add `{key} = {example}`"));
        }
        value
    }

    /// A table under a key.
    pub(super) fn section(&self, key: &str) -> Option<Self> {
        self.get(key)?.section()
    }

    /// What stands under a key whose names are the user's.
    pub(super) fn names(&self, key: &str) -> Vec<Named<'a>> {
        self.get(key).map(|v| v.names()).unwrap_or_default()
    }

    pub(super) fn error(&self, message: impl Into<String>, remedy: impl Into<String>) {
        self.doc.error(self.at.start, &self.key, message, remedy);
    }

    pub(super) fn warn(&self, message: impl Into<String>, remedy: impl Into<String>) {
        self.doc.warn(self.at.start, &self.key, message, remedy);
    }

    /// Whether a key here is so near to `key`, and is none, that it is told of as a slip.
    pub(super) fn misspells(&self, key: &str) -> bool {
        let known = keys::of(&self.pattern);
        let names = self.table.iter().map(|(name, _)| name.get_ref().as_ref());
        names.filter(|name| !known.contains(name)).any(|name| nearest(name, known.iter().copied()) == Some(key))
    }

    /// Names keys that nobody knows, and keys whose feature is still to come.
    fn judge_keys(&self) {
        let known = keys::of(&self.pattern);
        for (name, value) in self.table {
            let (key, at) = (name.get_ref().as_ref(), name.span().start);
            let path = join(&self.key, key);
            if !known.contains(&key) {
                self.doc.error(at, &path, "unknown key", self.instead_of(key, known));
                continue;
            }
            let word = match value.get_ref() {
                DeValue::String(text) => Some(text.as_ref()),
                DeValue::Boolean(true) => Some("true"),
                DeValue::Boolean(false) => Some("false"),
                _ => None,
            };
            if let Some(what) = keys::not_yet(&join(&self.pattern, key), word) {
                self.doc.warn(at, &path, what, "");
            }
        }
    }

    fn instead_of(&self, key: &str, known: &[&str]) -> String {
        let otherwise = match keys::home(key) {
            Some("") => format!("`{key}` is a table of its own: write `[{key}]`"),
            Some(home) => format!("`{key}` is a key of `{home}`"),
            None => format!("known here: {}", one_of(known.iter().copied())),
        };
        did_you_mean(key, known.iter().copied(), &otherwise)
    }
}

// === impl Value ===

impl<'a> Value<'a> {
    /// The value as a table with the keys that its pattern stands for.
    pub(super) fn section(&self) -> Option<Section<'a>> {
        let DeValue::Table(table) = self.value else {
            self.wrong("a table", "{ … }");
            return None;
        };
        let section =
            Section { doc: self.doc, key: self.key.clone(), pattern: self.pattern.clone(), at: self.at.clone(), table };
        section.judge_keys();
        Some(section)
    }

    /// The entries of a table whose names are the user's, in the order of the file.
    pub(super) fn names(&self) -> Vec<Named<'a>> {
        let DeValue::Table(table) = self.value else {
            self.wrong("a table of names", "{ name = … }");
            return Vec::new();
        };
        table
            .iter()
            .map(|(name, value)| {
                let text = name.get_ref().as_ref();
                let at = if value.get_ref().is_table() { name.span() } else { value.span() };
                let (key, pattern) = (join(&self.key, text), join(&self.pattern, "*"));
                let value = Value { doc: self.doc, key, pattern, at, value: value.get_ref() };
                Named { name: text, at: name.span(), value }
            })
            .collect()
    }

    /// The entries of a list.
    pub(super) fn list(&self, example: &str) -> Option<Vec<Self>> {
        let DeValue::Array(list) = self.value else {
            self.wrong("a list", example);
            return None;
        };
        let entry = |(index, value): (usize, &'a toml::Spanned<DeValue<'a>>)| Self {
            doc: self.doc,
            key: format!("{}[{index}]", self.key),
            pattern: format!("{}[]", self.pattern),
            at: value.span(),
            value: value.get_ref(),
        };
        Some(list.iter().enumerate().map(entry).collect())
    }

    /// The last part of the key.
    pub(super) fn name(&self) -> &str {
        self.pattern.rsplit('.').next().unwrap_or_default().trim_end_matches("[]")
    }

    pub(super) fn error(&self, message: impl Into<String>, remedy: impl Into<String>) {
        self.doc.error(self.at.start, &self.key, message, remedy);
    }

    pub(super) fn warn(&self, message: impl Into<String>, remedy: impl Into<String>) {
        self.doc.warn(self.at.start, &self.key, message, remedy);
    }

    /// Notes that the value is of another type than it should be.
    pub(super) fn wrong(&self, expected: &str, example: &str) {
        let found = match self.value {
            DeValue::String(_) => "a string",
            DeValue::Integer(_) => "an integer",
            DeValue::Float(_) => "a float",
            DeValue::Boolean(_) => "a boolean",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        };
        self.error(format!("must be {expected}, not {found}"), self.example(example));
    }

    /// How the key would be written rightly.
    pub(super) fn example(&self, example: &str) -> String {
        match self.name() {
            "*" | "" => format!("write for example {example}"),
            name if self.key.ends_with(']') => format!("write for example `{name} = [{example}]`"),
            name => format!("write for example `{name} = {example}`"),
        }
    }
}

// === helpers ===

/// `a` and `b` with a dot, `b` in quotes if TOML would want it so.
pub(super) fn join(a: &str, b: &str) -> String {
    let bare = b == "*" || !b.is_empty() && b.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    match (a.is_empty(), bare) {
        (true, true) => b.to_owned(),
        (true, false) => format!("{b:?}"),
        (false, true) => format!("{a}.{b}"),
        (false, false) => format!("{a}.{b:?}"),
    }
}

/// More errors, or more warnings, than this are not read by anyone.
const MAX_PROBLEMS: usize = 200;

const BOM: char = '\u{feff}';
