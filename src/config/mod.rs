//! The configuration: text and a resolver of secrets in, checked values out.
//!
//! [`load`] reads a whole file, notes every mistake in it with place, key and remedy, and gives either all values,
//! checked and with their defaults, or all mistakes. A value that exists is valid, so nothing after it checks again.
//! The module is pure: it opens no file, reads no variable and no clock; whoever runs the program lends a
//! [`Resolver`].

pub mod alias;
pub mod check;
mod connection;
mod document;
pub mod draw;
mod keep;
pub mod keys;
mod keys_file;
mod level;
pub mod lookup;
mod net;
pub mod origin;
pub mod prices;
mod problem;
mod quota;
pub mod redact;
pub mod scores;
mod secret;
mod server;
mod tenant;
#[cfg(test)]
mod tests;
mod thinkers;
mod timeouts;
mod units;
mod value;
pub mod write;
pub mod zero;

pub use alias::Alias;
pub use connection::{Breaker, Connection, Http2, Latency};
pub use keep::{Alerts, Backend, Ledger, Price, Store};
pub use lookup::{Location, Places, locate};
pub use problem::{Place, Problem};
pub use quota::{Limits, Quota};
pub use secret::Secret;
pub use server::{Admin, Server, Tls};
pub use tenant::{Key, Tenant};
pub use zero::from_environment;

use crate::routing::{Level, Timeouts};
use crate::turn::resume::Anchor;
use crate::words::redact::Redactor;
use document::{Document, Section};
use std::sync::Arc;
use toml::de::DeTable;

/// Everything that can be configured, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The clients' side.
    pub server: Server,
    /// The operators' side.
    pub admin: Admin,
    /// The providers, in the order of the file.
    pub connections: Vec<Connection>,
    /// The clocks of levels that set none of their own.
    pub timeouts: Timeouts,
    /// The levels, in the order of the file.
    pub levels: Vec<Arc<Level>>,
    /// Who may ask; `None`: everyone.
    pub tenants: Option<Vec<Tenant>>,
    /// Other names for levels, for everyone.
    pub aliases: Vec<Alias>,
    /// The gateway's own limits.
    pub limits: Limits,
    /// Conversations and resumable turns.
    pub store: Store,
    /// The account of every attempt.
    pub ledger: Ledger,
    /// Who is told of trouble.
    pub alerts: Alerts,
    /// Takes every secret that this configuration refers to out of foreign words.
    pub secrets: Redactor,
}

/// A configuration, and what is worth saying about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    /// The configuration.
    pub config: Config,
    /// In the order of the file.
    pub warnings: Vec<Problem>,
}

/// Whoever knows the environment and the files.
pub trait Resolver {
    /// The value of an environment variable.
    fn env(&self, name: &str) -> Option<String>;

    /// The text of a file.
    ///
    /// # Errors
    /// Why it cannot be read, in a few words.
    fn file(&self, path: &str) -> Result<String, String>;
}

/// Knows neither: for a configuration that holds all it needs, as tests and benchmarks write them.
#[derive(Clone, Copy, Debug)]
pub struct Nothing;

impl Resolver for Nothing {
    fn env(&self, _: &str) -> Option<String> {
        None
    }

    fn file(&self, _: &str) -> Result<String, String> {
        Err("there are no files".to_owned())
    }
}

/// Reads a configuration; `path` is its name in messages.
///
/// # Errors
/// Everything that is wrong with it, in the order of the file.
pub fn load(text: &str, path: &str, env: &dyn Resolver) -> Result<Loaded, Vec<Problem>> {
    let doc = Document::new(text, path, env);
    let (table, mistakes) = DeTable::parse_recoverable(text);
    for mistake in &mistakes {
        let at = mistake.span().map_or(text.len(), |span| span.start);
        doc.error(at, "", format!("this is no TOML: {}", mistake.message()), "");
    }
    // What follows a syntax error may have been read amiss, and would be blamed for it.
    let config = if doc.is_sound() { read(&Section::top(&doc, table.get_ref())) } else { None };
    let (errors, warnings) = doc.into_problems();
    match config {
        Some(config) if errors.is_empty() => Ok(Loaded { config, warnings }),
        _ => Err(errors),
    }
}

/// `None` only where errors were noted.
fn read(top: &Section<'_>) -> Option<Config> {
    let sections = (top.section("server"), top.section("admin"));
    let server = sections.0.as_ref().map(Server::read).unwrap_or_default();
    let admin = sections.1.as_ref().map(Admin::read).unwrap_or_default();
    let clocks = timeouts::of(top, Timeouts::default());
    let seam_window = top.section("seam").map_or(SEAM_WINDOW, |s| seam_window(&s));
    let limits = top.section("limits").map(|s| Limits::read(&s)).unwrap_or_default();
    let store = top.section("store").map(|s| Store::read(&s)).unwrap_or_default();
    let alerts = top.section("alerts").map(|s| Alerts::read(&s)).unwrap_or_default();

    let entries = top.names("connections");
    let names: Vec<&str> = entries.iter().map(|e| e.name).collect();
    let bring = connections_with_tenants_keys(top);
    let connections: Vec<Connection> =
        entries.iter().filter_map(|e| Connection::read(e, bring.contains(&e.name))).collect();
    let ledger = top.section("ledger").map(|s| Ledger::read(&s, &names)).unwrap_or_default();

    let around = level::Around {
        names: &names,
        connections: &connections,
        timeouts: clocks,
        seam_window,
        thinkers: thinkers::Thinkers::new(),
    };
    let rows = top.names("levels");
    let level_names: Vec<&str> = rows.iter().map(|e| e.name).collect();
    let levels: Vec<Arc<Level>> = rows.iter().filter_map(|e| level::read(e, &around)).collect();

    let around = tenant::Around {
        connection_names: &names,
        level_names: &level_names,
        connections: &connections,
        levels: &levels,
    };
    let tenants = top.get("tenants").map(|v| tenant::read_all(&v, &around));

    let aliases = alias::read(top, &level_names, ("this gateway", "name a level, or add it under `[levels]`"));
    judge_default(sections.0.as_ref(), &server, &level_names);

    judge_emptiness(top, &names, &level_names);
    if let Some(section) = &sections.0 {
        judge_openness(section, &server, tenants.is_some());
    }
    if server.listen == admin.listen && server.listen.port() != 0 {
        let listen = sections.1.iter().chain(&sections.0).find_map(|s| s.get("listen"));
        if let Some(value) = listen {
            value.error(
                format!("{} is both the clients' and the admin address", admin.listen),
                "give each its own port",
            );
        }
    }
    Some(Config {
        server,
        admin,
        connections,
        timeouts: clocks,
        levels,
        tenants,
        aliases,
        limits,
        store,
        ledger,
        alerts,
        secrets: top.doc.redactor(),
    })
}

/// A default must be there.
fn judge_default(section: Option<&Section<'_>>, server: &Server, levels: &[&str]) {
    let Some(value) = section.and_then(|s| s.get("default_level")) else { return };
    if let Some(name) = &server.default_level
        && !levels.contains(&&**name)
    {
        let remedy = problem::did_you_mean(name, levels.iter().copied(), &format!("add `[levels.{name}]`"));
        value.error(format!("there is no level `{name}`"), remedy);
    }
}

fn seam_window(section: &Section<'_>) -> usize {
    let range = Anchor::CHARS as u64..=MAX_SEAM_WINDOW;
    usize::try_from(section.whole("window", range, SEAM_WINDOW as u64)).unwrap_or(SEAM_WINDOW)
}

/// Connections for which some tenant has a credential of its own.
fn connections_with_tenants_keys<'a>(top: &Section<'a>) -> Vec<&'a str> {
    use toml::de::DeValue;
    let Some(tenants) = top.get("tenants") else { return Vec::new() };
    let DeValue::Table(tenants) = tenants.value else { return Vec::new() };
    let credentials =
        tenants.iter().filter_map(|(_, tenant)| tenant.get_ref().get("credentials")?.get_ref().as_table());
    credentials.flat_map(|table| table.iter().map(|(name, _)| name.get_ref().as_ref())).collect()
}

fn judge_emptiness(top: &Section<'_>, connections: &[&str], levels: &[&str]) {
    let empty = |key: &str, names: &[&str]| {
        names.is_empty() && !top.misspells(key) && top.get(key).is_none_or(|v| v.value.is_table())
    };
    let start = |key: &str| top.get(key).map_or_else(|| top.start(), |v| v.at.start);
    if empty("connections", connections) {
        top.doc.error(
            start("connections"),
            "connections",
            "there is none: no provider can be asked",
            "add `[connections.openai]` with `dialect = \"chat\"` and `api_key = { env = \"OPENAI_API_KEY\" }`",
        );
    }
    if empty("levels", levels) {
        top.doc.error(
            start("levels"),
            "levels",
            "there is none: nothing can be served",
            "add `[levels.normal]` with `chain = [{ connection = \"openai\", model = \"…\" }]`",
        );
    }
}

/// A gateway that everyone can reach must know who asks.
fn judge_openness(section: &Section<'_>, server: &Server, tenants: bool) {
    if !tenants
        && !server.listen.ip().is_loopback()
        && !server.allow_anonymous
        && let Some(value) = section.get("listen")
    {
        value.error(
            format!("without tenants everyone who reaches {} could spend your credit", server.listen),
            "add `[tenants.NAME]` with keys, listen at \"127.0.0.1:8080\", or set `server.allow_anonymous = true`",
        );
    }
    if !tenants
        && server.cors.iter().any(|origin| origin == "*")
        && let Some(value) = section.get("cors")
    {
        value.error(
            "without tenants every web page that somebody here opens could spend your credit",
            "list the origins of your own pages, or add `[tenants.NAME]` with keys",
        );
    }
    if tenants
        && server.allow_anonymous
        && let Some(value) = section.get("allow_anonymous")
    {
        value.warn("has no effect: with tenants, every request needs a key", "leave it out");
    }
}

/// How many characters of a continuation are held, unless told otherwise.
const SEAM_WINDOW: usize = 240;

/// Holding more would be felt as a pause.
const MAX_SEAM_WINDOW: u64 = 4096;
