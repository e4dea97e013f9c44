//! What is kept of turns, for how long, and who is told of trouble.

use super::document::{Section, Value};
use super::problem::did_you_mean;
use super::secret::Secret;
use super::value::Zero;
use std::time::Duration;

/// Conversations and resumable turns.
#[derive(Clone, Debug, PartialEq)]
pub struct Store {
    /// Where.
    pub backend: Backend,
    /// How long a conversation is kept after its last turn.
    pub ttl: Duration,
    /// The most bytes in memory.
    pub max_bytes: usize,
    /// How long a resumable turn goes on without its client.
    pub resume_grace: Duration,
    /// Where the store runs.
    pub domains: Vec<String>,
}

/// Where the store keeps.
#[derive(Clone, Debug, PartialEq)]
pub enum Backend {
    /// In this process.
    Memory,
    /// In Redis or Valkey at this URL.
    Redis(Secret),
}

/// The account of every attempt.
#[derive(Clone, Debug, PartialEq)]
pub struct Ledger {
    /// The SQLite file; `None`: no ledger.
    pub path: Option<String>,
    /// How long a row is kept.
    pub keep: Duration,
    /// Whether requests and answers are kept too.
    pub bodies: bool,
    /// What targets cost.
    pub prices: Vec<Price>,
}

/// What a target costs per million tokens.
#[derive(Clone, Debug, PartialEq)]
pub struct Price {
    /// The connection.
    pub connection: String,
    /// The model.
    pub model: String,
    /// A million prompt tokens.
    pub input: f64,
    /// A million generated tokens.
    pub output: f64,
}

/// Who is told of trouble.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Alerts {
    /// The URL that is called; it often holds a key.
    pub webhook: Option<Secret>,
}

// === impl Store ===

impl Default for Store {
    fn default() -> Self {
        Self {
            backend: Backend::Memory,
            ttl: Duration::from_secs(3600),
            max_bytes: 256 << 20,
            resume_grace: Duration::from_secs(120),
            domains: Vec::new(),
        }
    }
}

impl Store {
    pub(super) fn read(section: &Section<'_>) -> Self {
        let default = Self::default();
        let redis = section.choice("backend", &[("memory", false), ("redis", true)], false);
        let mut backend = default.backend;
        match (redis, section.get("url")) {
            (true, None) => {
                section.need("url", "{ env = \"REDIS_URL\" }");
            }
            (true, Some(url)) => {
                if let Some(secret) = url.secret("the address of the store") {
                    has_scheme(&url, &secret, &["redis://", "rediss://"]);
                    backend = Backend::Redis(secret);
                }
            }
            (false, Some(url)) => {
                url.warn("is not used by the store in memory", "add `backend = \"redis\"`, or leave `url` out");
            }
            (false, None) => {}
        }
        Self {
            backend,
            ttl: section.duration("ttl", Zero::Refused, default.ttl),
            max_bytes: section.size("max_bytes", default.max_bytes),
            resume_grace: section.duration("resume_grace", Zero::Refused, default.resume_grace),
            domains: section.domains("domains"),
        }
    }
}

// === impl Ledger ===

impl Default for Ledger {
    fn default() -> Self {
        Self {
            path: Some("segue.db".to_owned()),
            keep: Duration::from_secs(30 * 86400),
            bodies: false,
            prices: Vec::new(),
        }
    }
}

impl Ledger {
    /// `connections` are the names that prices may speak of.
    pub(super) fn read(section: &Section<'_>, connections: &[&str]) -> Self {
        let default = Self::default();
        let path = match section.get("path") {
            None => default.path,
            Some(value) if value.is_off() => None,
            Some(value) => value.text("\"segue.db\"").map(str::to_owned),
        };
        let mut prices = Vec::new();
        for entry in section.names("prices") {
            let Some((connection, model)) = entry.name.split_once('/').filter(|(c, m)| !c.is_empty() && !m.is_empty())
            else {
                let message = format!("{:?} is no target: a target is a connection, a slash and a model", entry.name);
                let remedy = "write for example \"openai-prod/gpt-4.1\" = { input = 2.0, output = 8.0 }";
                section.doc.error(entry.at.start, &entry.value.key, message, remedy);
                continue;
            };
            if !connections.contains(&connection) {
                let remedy =
                    did_you_mean(connection, connections.iter().copied(), "add the connection, or remove the price");
                let message = format!("there is no connection `{connection}`");
                section.doc.error(entry.at.start, &entry.value.key, message, remedy);
            }
            let Some(price) = entry.value.section() else { continue };
            let cost = |key: &str| {
                let value = price.need(key, "2.0")?;
                let cost = value.decimal("2.0")?;
                if cost < 0.0 {
                    value.error(format!("must not be negative, not {cost}"), value.example("2.0"));
                }
                Some(cost)
            };
            if let (Some(input), Some(output)) = (cost("input"), cost("output")) {
                prices.push(Price { connection: connection.to_owned(), model: model.to_owned(), input, output });
            }
        }
        Self {
            path,
            keep: section.duration("keep", Zero::Refused, default.keep),
            bodies: section.flag("bodies", default.bodies),
            prices,
        }
    }
}

// === impl Alerts ===

impl Alerts {
    pub(super) fn read(section: &Section<'_>) -> Self {
        let webhook = section.get("webhook").and_then(|value| {
            let secret = value.secret("the address for alerts")?;
            has_scheme(&value, &secret, &["https://", "http://"]);
            Some(secret)
        });
        Self { webhook }
    }
}

// === helpers ===

/// Complains about a URL of another scheme, without a word of the URL itself.
fn has_scheme(value: &Value<'_>, url: &Secret, schemes: &[&str]) {
    if !schemes.iter().any(|scheme| url.expose().len() > scheme.len() && url.expose().starts_with(scheme)) {
        value.error(
            format!("what it refers to is no URL that begins with {}", schemes.join(" or ")),
            "put the whole URL, scheme included, into the variable or file",
        );
    }
}
