//! Tenants: who may ask for what, with which keys.

use super::alias::{self, Alias};
use super::connection::{Connection, check_name};
use super::document::{Named, Section, Value};
use super::problem::did_you_mean;
use super::quota::Quota;
use super::secret::Secret;
use crate::routing::Level;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::SystemTime;

/// One tenant.
#[derive(Clone, Debug, PartialEq)]
pub struct Tenant {
    /// Its name.
    pub name: Arc<str>,
    /// Its keys.
    pub keys: Vec<Key>,
    /// What it may ask for, and which level serves it. Every level under its own name, unless the file says less.
    pub levels: Vec<(Arc<str>, Arc<str>)>,
    /// Other names for what it may ask for; they go before those for everyone.
    pub aliases: Vec<Alias>,
    /// It may address `connection/model`.
    pub direct: bool,
    /// Its own credentials, by connection.
    pub credentials: Vec<(Arc<str>, Secret)>,
    /// Only targets in one of these domains may serve it; empty: all may.
    pub only: Vec<String>,
    /// What all its keys together may use.
    pub limits: Quota,
}

/// A key, of which only the digest is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// SHA-256 of the key.
    pub sha256: [u8; 32],
    /// It is refused from then on.
    pub expires: Option<SystemTime>,
    /// What it may use.
    pub limits: Quota,
}

/// What tenants are read against.
pub(super) struct Around<'a> {
    /// Every name under `connections` and `levels`, those with mistakes too.
    pub(super) connection_names: &'a [&'a str],
    pub(super) level_names: &'a [&'a str],
    pub(super) connections: &'a [Connection],
    pub(super) levels: &'a [Arc<Level>],
}

/// Reads all tenants.
pub(super) fn read_all(value: &Value<'_>, around: &Around<'_>) -> Vec<Tenant> {
    let entries = value.names();
    if entries.is_empty() && value.value.is_table() {
        value.error(
            "is empty: nobody could use the gateway",
            "add `[tenants.NAME]` with `keys = [{ sha256 = \"…\" }]`, or remove the table",
        );
    }
    let mut owners: HashMap<[u8; 32], String> = HashMap::new();
    entries.iter().filter_map(|entry| read(entry, around, &mut owners)).collect()
}

fn read(entry: &Named<'_>, around: &Around<'_>, owners: &mut HashMap<[u8; 32], String>) -> Option<Tenant> {
    check_name(entry, "tenant");
    let section = entry.value.section()?;
    let levels = levels(&section, around);
    let tenant = Tenant {
        name: entry.name.into(),
        keys: keys(&section, entry.name, owners),
        aliases: aliases(&section, &levels),
        levels,
        direct: section.flag("direct", false),
        credentials: credentials(&section, entry.name, around),
        only: section.domains("only"),
        limits: Quota::of(&section),
    };
    tenant.judge_only(&section, around);
    Some(tenant)
}

// === impl Tenant ===

impl Tenant {
    /// Whether a target in these domains may serve it.
    pub fn admits(&self, domains: &[String]) -> bool {
        self.only.is_empty() || self.only.iter().any(|d| domains.contains(d))
    }

    /// A level that can never serve the tenant is a mistake that would show only as refusals.
    fn judge_only(&self, section: &Section<'_>, around: &Around<'_>) {
        let Some(only) = section.get("only") else { return };
        for (_, served_by) in &self.levels {
            let Some(level) = around.levels.iter().find(|l| l.name == *served_by) else { continue };
            if !level.chain.iter().any(|e| self.admits(&e.target.domains)) {
                let known = around.connections.iter().flat_map(|c| &c.domains).map(String::as_str);
                let given = self.only.first().map_or("", String::as_str);
                only.error(
                    format!("no target of the level `{served_by}` is in one of these domains"),
                    did_you_mean(given, known, "add `domains` to the connections, or take the level from the tenant"),
                );
            }
        }
    }
}

// === helpers ===

fn keys(section: &Section<'_>, tenant: &str, owners: &mut HashMap<[u8; 32], String>) -> Vec<Key> {
    const EXAMPLE: &str = "[{ sha256 = \"…\" }]";
    let Some(value) = section.need("keys", EXAMPLE) else { return Vec::new() };
    let mut keys = Vec::new();
    let rows = value.list(EXAMPLE).unwrap_or_default();
    if rows.is_empty() && value.value.is_array() {
        value.warn("is empty: the tenant cannot use the gateway", "");
    }
    for row in rows {
        let Some(section) = row.section() else { continue };
        let digest = section.need("sha256", "\"…\"").and_then(|value| Some((digest(&value)?, value)));
        let expires = section.get("expires").and_then(|v| v.moment());
        let limits = Quota::of(&section);
        let Some((sha256, value)) = digest else { continue };
        if let Some(owner) = owners.insert(sha256, tenant.to_owned()) {
            value.error(format!("is a key of the tenant `{owner}` already"), "give each tenant keys of its own");
        }
        keys.push(Key { sha256, expires, limits });
    }
    keys
}

/// 64 hexadecimal digits. What was given instead may be the key itself and is not repeated.
fn digest(value: &Value<'_>) -> Option<[u8; 32]> {
    const HOW: &str = "make it with: printf %s \"$KEY\" | sha256sum";
    let text = value.text("\"…\"")?;
    let mut bytes = [0; 32];
    let digits: Option<Vec<u8>> = text.chars().map(|c| c.to_digit(16).and_then(|d| u8::try_from(d).ok())).collect();
    match digits {
        Some(digits) if digits.len() == 64 => {
            for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
                *byte = pair[0] << 4 | pair[1];
            }
        }
        _ => {
            value.error("must be the SHA-256 of the key in 64 hexadecimal digits", HOW);
            return None;
        }
    }
    if bytes == EMPTY {
        value.error("is the SHA-256 of nothing", HOW);
        return None;
    }
    Some(bytes)
}

fn levels(section: &Section<'_>, around: &Around<'_>) -> Vec<(Arc<str>, Arc<str>)> {
    if section.get("levels").is_none() {
        return around.levels.iter().map(|l| (Arc::clone(&l.name), Arc::clone(&l.name))).collect();
    }
    let mut levels = Vec::new();
    for entry in section.names("levels") {
        let Some(served_by) = entry.value.text("\"normal\"") else { continue };
        if !around.level_names.contains(&served_by) {
            let known = around.level_names.iter().copied();
            let remedy = did_you_mean(served_by, known, &format!("add `[levels.{served_by}]`"));
            entry.value.error(format!("there is no level `{served_by}`"), remedy);
        }
        levels.push((entry.name.into(), served_by.into()));
    }
    levels
}

fn aliases(section: &Section<'_>, levels: &[(Arc<str>, Arc<str>)]) -> Vec<Alias> {
    let names: Vec<&str> = levels.iter().map(|(asked, _)| asked.as_ref()).collect();
    alias::read(section, &names, ("the tenant", "add it to the tenant's `levels`"))
}

fn credentials(section: &Section<'_>, tenant: &str, around: &Around<'_>) -> Vec<(Arc<str>, Secret)> {
    let mut credentials = Vec::new();
    for entry in section.names("credentials") {
        if !around.connection_names.contains(&entry.name) {
            let known = around.connection_names.iter().copied();
            let remedy = did_you_mean(entry.name, known, "add the connection, or remove the credential");
            let message = format!("there is no connection `{}`", entry.name);
            section.doc.error(entry.at.start, &entry.value.key, message, remedy);
        }
        let whose = format!("the key of the tenant `{tenant}` for the connection `{}`", entry.name);
        credentials.extend(entry.value.secret(&whose).map(|secret| (entry.name.into(), secret)));
    }
    credentials
}

/// SHA-256 of the empty text: what a slip of the shell makes.
const EMPTY: [u8; 32] = [
    0xe3, 0xb0, 0xc4, 0x42, 0x98, 0xfc, 0x1c, 0x14, 0x9a, 0xfb, 0xf4, 0xc8, 0x99, 0x6f, 0xb9, 0x24, 0x27, 0xae, 0x41,
    0xe4, 0x64, 0x9b, 0x93, 0x4c, 0xa4, 0x95, 0x99, 0x1b, 0x78, 0x52, 0xb8, 0x55,
];
