//! The configuration as its users meet it: good files, bad files, example files, no file.

#![expect(clippy::expect_used, clippy::panic, reason = "a test's panic is its report")]

mod advice;
mod bad;
mod defaults;
mod evaluated;
mod files;
mod sources;
mod warnings;
mod written;

use super::{Config, Loaded, Places, Problem, Resolver, load};
use std::collections::HashMap;

/// An environment and files made of tables.
#[derive(Default)]
pub(super) struct Fake {
    env: HashMap<String, String>,
    files: HashMap<String, String>,
    /// A variable that is not in `env` has this value.
    any: Option<String>,
}

impl Fake {
    /// Every variable is set.
    pub(super) fn generous() -> Self {
        Self { any: Some("sk-hush".to_owned()), ..Self::default() }
    }

    pub(super) fn env(mut self, name: &str, value: &str) -> Self {
        self.env.insert(name.to_owned(), value.to_owned());
        self
    }

    pub(super) fn file(mut self, path: &str, text: &str) -> Self {
        self.files.insert(path.to_owned(), text.to_owned());
        self
    }
}

impl Resolver for Fake {
    fn env(&self, name: &str) -> Option<String> {
        match name {
            "UNSET" => None,
            "OPENAI_BASE_URL" | "ANTHROPIC_BASE_URL" | "SEGUE_CONFIG" | "SEGUE_KEYS_FILE" => {
                self.env.get(name).cloned()
            }
            "REDIS_URL" => Some("redis://store:6379".to_owned()),
            "SEGUE_WEBHOOK" => Some("https://hooks.example.com/T0/hush".to_owned()),
            _ => self.env.get(name).cloned().or_else(|| self.any.clone()),
        }
    }

    fn file(&self, path: &str) -> Result<String, String> {
        self.files.get(path).cloned().ok_or_else(|| "there is no such file".to_owned())
    }
}

impl Places for Fake {
    fn exists(&self, path: &str) -> bool {
        self.files.contains_key(path)
    }
}

/// What most tests need besides their own lines.
pub(super) const CONNECTIONS: &str = "
[connections.a]
dialect = \"chat\"
base_url = \"http://127.0.0.1:1/v1\"
domains = [\"vendor:va\", \"region:us\"]
[connections.b]
dialect = \"anthropic\"
base_url = \"http://127.0.0.1:2\"
domains = [\"vendor:vb\", \"region:eu\"]
";

pub(super) const LEVELS: &str = "
[levels.normal]
chain = [{ connection = \"a\", model = \"ma\" }, { connection = \"b\", model = \"mb\" }]
";

/// `text` with connections and levels, unless it brings its own.
pub(super) fn whole(text: &str) -> String {
    let connections = if text.replace("max_connections", "").contains("connections") { "" } else { CONNECTIONS };
    let levels = if text.contains("[levels") { "" } else { LEVELS };
    format!("{text}\n{connections}{levels}")
}

pub(super) fn try_load(text: &str) -> Result<Loaded, Vec<Problem>> {
    load(&whole(text), "segue.toml", &Fake::generous())
}

pub(super) fn loaded(text: &str) -> Loaded {
    try_load(text).unwrap_or_else(|problems| panic!("{text}\n{}", lines(&problems)))
}

pub(super) fn config(text: &str) -> Config {
    loaded(text).config
}

pub(super) fn lines(problems: &[Problem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}
