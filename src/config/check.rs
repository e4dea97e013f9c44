//! What is legal in a configuration and still unwise: fallbacks that fall with what they stand in for, clocks that
//! cannot be kept, places that can never serve.

mod evaluated;
mod promises;

pub use evaluated::evaluations;

use super::units::show;
use super::{Config, net};
use crate::routing::{After, Continuation, Delivery, Entry, Level, Timeouts};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Worth knowing.
    Note,
    /// Probably not what is wanted.
    Warning,
}

/// One thing about a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How much it matters.
    pub severity: Severity,
    /// What it is about, such as `levels.voice`.
    pub subject: String,
    /// What was found.
    pub message: String,
    /// What to do; may be empty.
    pub remedy: String,
}

/// Everything that was found, level by level.
pub fn findings(config: &Config) -> Vec<Finding> {
    let mut out = Findings(Vec::new());
    for level in &config.levels {
        let mut of = out.about(format!("levels.{}", level.name));
        shared_fates(config, level, &mut of);
        clocks(level, &mut of);
        races(level, &mut of);
        capabilities(level, &mut of);
        promises::judge(config, level, &mut of);
    }
    unused_connections(config, &mut out);
    unversioned(config, &mut out);
    unnamed(config, &mut out);
    blind_circuits(config, &mut out);
    tenants(config, &mut out);
    bounds(config, &mut out);
    out.0
}

// === impl Finding ===

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Note => "note",
            Severity::Warning => "warning",
        };
        write!(f, "{severity}: {}: {}", self.subject, self.message)?;
        if !self.remedy.is_empty() {
            write!(f, "\n  help: {}", self.remedy)?;
        }
        Ok(())
    }
}

/// The findings so far.
struct Findings(Vec<Finding>);

/// The same, about one subject.
struct About<'a> {
    findings: &'a mut Findings,
    subject: String,
}

impl Findings {
    fn about(&mut self, subject: String) -> About<'_> {
        About { findings: self, subject }
    }
}

impl About<'_> {
    fn warn(&mut self, message: impl Into<String>, remedy: &str) {
        self.add(Severity::Warning, message.into(), remedy);
    }

    fn note(&mut self, message: impl Into<String>, remedy: &str) {
        self.add(Severity::Note, message.into(), remedy);
    }

    fn add(&mut self, severity: Severity, message: String, remedy: &str) {
        let subject = self.subject.clone();
        self.findings.0.push(Finding { severity, subject, message, remedy: remedy.to_owned() });
    }
}

// === levels ===

/// Single events that take out two or more rows of a chain, or a row together with Segue or its store.
fn shared_fates(config: &Config, level: &Level, out: &mut About<'_>) {
    let chain = &level.chain;
    if let [only] = chain.as_slice() {
        out.warn(
            format!("{} has no fallback: when it is down, the level is down", name(only)),
            "add a target that shares no failure domain with it",
        );
    }
    let mut causes: Vec<(String, Vec<String>)> = Vec::new();
    let mut add = |cause: String, row: &Entry| match causes.iter_mut().find(|(known, _)| *known == cause) {
        Some((_, rows)) => rows.push(name(row)),
        None => causes.push((cause, vec![name(row)])),
    };
    for row in chain {
        add(format!("the connection `{}` failing", row.target.connection), row);
        for domain in &row.target.domains {
            add(format!("an outage of `{domain}`"), row);
        }
    }
    for (cause, rows) in causes {
        if rows.len() == chain.len() && rows.len() > 1 {
            out.warn(format!("{cause} takes out the whole chain"), "add a target that does not share it");
        } else if rows.len() > 1 {
            out.warn(
                format!("{cause} takes out {}", list(&rows)),
                "replace one of them by a target that does not share it",
            );
        }
    }
    same_hosts(config, chain, out);
    for (what, domains) in [("Segue", &config.server.domains), ("the store", &config.store.domains)] {
        for row in chain {
            for shared in row.target.domains.iter().filter(|d| domains.contains(d)) {
                out.warn(
                    format!("an outage of `{shared}` takes out {} together with {what}", name(row)),
                    "run a replica elsewhere, or count on this target less",
                );
            }
        }
    }
    for row in chain.iter().filter(|r| r.target.domains.is_empty()).take(if chain.len() > 1 { chain.len() } else { 0 })
    {
        out.note(
            format!("nothing is known of what {} shares its fate with", name(row)),
            "give its connection `domains = [\"vendor:…\", \"cloud:…\", \"region:…\"]`",
        );
    }
}

/// Two connections to one host fail together, whatever their domains say.
fn same_hosts(config: &Config, chain: &[Entry], out: &mut About<'_>) {
    let connection = |row: &Entry| config.connections.iter().find(|c| c.name == row.target.connection);
    let host = |row: &Entry| net::host(connection(row)?.base_url.as_deref()?);
    for (index, row) in chain.iter().enumerate() {
        for other in &chain[..index] {
            if let Some(shared) = host(row).filter(|h| Some(h) == host(other).as_ref())
                && !row.target.shares_domain(&other.target)
                && !LOCAL_HOSTS.contains(&shared.as_str())
            {
                out.warn(
                    format!("{} and {} are both at `{shared}`, but share no domain", name(other), name(row)),
                    "give both connections the domains that they share",
                );
            }
        }
    }
}

fn clocks(level: &Level, out: &mut About<'_>) {
    let Timeouts { turn, client_write, .. } = level.timeouts;
    let sum: Duration = level.chain.iter().map(first_limit).sum();
    if level.chain.len() > 1 && sum > turn {
        out.warn(
            format!(
                "the targets may take {} to their first tokens together, but the turn ends after {}: the last may never \
                 be asked",
                show(sum),
                show(turn)
            ),
            "lower `first_token`, raise `turn`, or shorten the chain",
        );
    }
    if let Some(queue) = level.queue.filter(|queue| *queue >= turn) {
        out.warn(
            format!(
                "a turn may wait {} for its place, but ends after {}: it would never be asked",
                show(queue),
                show(turn)
            ),
            "lower `queue`, or raise `turn`",
        );
    }
    if client_write > turn {
        out.note(
            format!(
                "`client_write` ({}) is longer than the turn ({}) and never counts",
                show(client_write),
                show(turn)
            ),
            "",
        );
    }
    for row in &level.chain {
        let clocks = row.timeouts;
        let mut order = |first: (&str, Duration), second: (&str, Duration), what: &str| {
            if first.1 >= second.1 {
                let (a, b) = (show(first.1), show(second.1));
                out.warn(
                    format!("{}: `{}` ({a}) is not shorter than `{}` ({b}): {what}", name(row), first.0, second.0),
                    &format!("lower `{}`, or raise `{}`", first.0, second.0),
                );
            }
        };
        order(
            ("connect", clocks.connect),
            ("first_token", clocks.first_token),
            "a host that does not answer uses up all the time",
        );
        if let Some(suspect) = clocks.suspect {
            order(
                ("suspect", suspect),
                ("stall", clocks.stall),
                "no challenger ever starts before the leader is given up",
            );
        }
        if clocks.stall > clocks.idle {
            order(("stall", clocks.stall), ("idle", clocks.idle), "a silent target is given up by `idle` first");
        }
        order(("first_token", clocks.first_token), ("turn", turn), "the turn ends before a target is given up");
        order(("stall", clocks.stall), ("turn", turn), "the turn ends before a silent target is given up");
        if row.target.reasons && clocks.thinking > turn {
            order(("thinking", clocks.thinking), ("turn", turn), "a turn may end while the model still thinks");
        }
        if clocks.thinking < clocks.first_token && row.target.reasons {
            order(
                ("first_token", clocks.first_token),
                ("thinking", clocks.thinking),
                "a thinking model gets less time than others",
            );
        }
    }
}

/// How long a target may take to its first token.
fn first_limit(row: &Entry) -> Duration {
    if row.target.reasons { row.timeouts.thinking } else { row.timeouts.first_token }
}

/// Challengers that can never start, or never win.
fn races(level: &Level, out: &mut About<'_>) {
    let alone = level.chain.len() == 1;
    let soft = level.chain.iter().any(|row| row.timeouts.suspect.is_some() || row.timeouts.pace.is_some());
    if alone && (level.hedge.is_some() || soft) {
        out.warn(
            "`hedge`, `suspect` and `pace` start challengers, but there is no second target",
            "add one, or leave them out",
        );
    }
    let Some(hedge) = level.hedge else { return };
    let latest = match hedge.after {
        After::Time(time) => time,
        After::Percentile(_) => hedge.max,
    };
    for row in level.chain.iter().filter(|row| latest >= row.timeouts.first_token) {
        out.warn(
            format!(
                "{}: a hedge may start after {}, when `first_token` ({}) has given the target up",
                name(row),
                show(latest),
                show(row.timeouts.first_token)
            ),
            "lower `hedge.after` or `hedge.max`",
        );
    }
    if hedge.budget == 0.0 {
        out.warn("`hedge.budget` is 0: no hedge ever starts", "raise it, or leave `hedge` out");
    }
}

/// Fallbacks that can do less than what they stand in for.
fn capabilities(level: &Level, out: &mut About<'_>) {
    if let Some(min) = level.min_quality {
        for row in level.chain.iter().filter(|row| row.target.quality > min) {
            out.warn(
                format!("{} is of quality {} and never serves: `min_quality` is {min}", name(row), row.target.quality),
                "remove it, or raise `min_quality`",
            );
        }
    }
    if level.chain.iter().all(|row| row.target.continuation == Continuation::Restart) {
        out.warn(
            "no target continues a turn of which something was delivered",
            "leave `continuation` at \"auto\" somewhere",
        );
    }
    let unknown = level.chain.iter().filter(|row| row.target.thinks.is_none());
    let unknown: Vec<String> =
        unknown.filter(|row| row.timeouts.first_token < row.timeouts.thinking).map(name).collect();
    if !unknown.is_empty() {
        out.note(
            format!(
                "whether {} thinks before it speaks is not known: until it was seen to, `first_token` is its limit",
                unknown.join(", ")
            ),
            "say `reasons = true` or `reasons = false` in its place of the chain",
        );
    }
    if level.chain.len() > 1 && level.structured == Delivery::Hold {
        out.note(
            "structured output is held until it is whole and checked, because there is a fallback",
            "`structured = \"stream\"` gives it at once",
        );
    }
}

// === the rest ===

fn unused_connections(config: &Config, out: &mut Findings) {
    let used = |name: &Arc<str>| config.levels.iter().flat_map(|l| &l.chain).any(|row| row.target.connection == *name);
    let direct = config.tenants.iter().flatten().any(|t| t.direct);
    for connection in config.connections.iter().filter(|c| !used(&c.name) && !direct) {
        let mut of = out.about(format!("connections.{}", connection.name));
        of.warn("no chain uses it", "add it to a chain, or remove it");
    }
}

/// Base URLs of services that have no version in their paths, where one would be added.
fn unversioned(config: &Config, out: &mut Findings) {
    for connection in config.connections.iter().filter(|c| c.versioned) {
        let Some(url) = &connection.base_url else { continue };
        if let Some(service) = net::unversioned(url) {
            let mut of = out.about(format!("connections.{}", connection.name));
            of.warn(
                format!("looks like {service}, whose paths have no version, and `/v1` is added to its `base_url`"),
                "set `versioned = false`",
            );
        }
    }
}

/// A gateway for everyone that clients may know by a name, which it would refuse.
fn unnamed(config: &Config, out: &mut Findings) {
    let server = &config.server;
    if config.tenants.is_none() && !server.listen.ip().is_loopback() && server.hosts.is_empty() {
        out.about("server.hosts".to_owned()).note(
            "without tenants, requests for a name with a dot in it are refused: a stranger's page could have made it resolve here",
            "if clients reach the gateway by such a name, list it: `hosts = [\"llm.example.com\"]`",
        );
    }
}

/// Circuits that never have enough samples to judge by, even at the full rate.
fn blind_circuits(config: &Config, out: &mut Findings) {
    for connection in &config.connections {
        let breaker = &connection.breaker;
        let Some(rpm) = connection.limits.rpm else { continue };
        let most = rpm as f64 * breaker.window.as_secs_f64() / 60.0;
        if most < f64::from(breaker.min_samples) && breaker.error_rate < 1.0 {
            let mut of = out.about(format!("connections.{}", connection.name));
            of.note(
                format!(
                    "{rpm} requests a minute are {most:.0} in the breaker's window ({}), below `min_samples` ({}): only \
                     failures in a row ever open its circuit",
                    show(breaker.window),
                    breaker.min_samples
                ),
                "lower `breaker.min_samples`, or lengthen `breaker.window`",
            );
        }
    }
}

fn tenants(config: &Config, out: &mut Findings) {
    for tenant in config.tenants.iter().flatten() {
        let mut of = out.about(format!("tenants.{}", tenant.name));
        for (asked, served_by) in &tenant.levels {
            let Some(level) = config.levels.iter().find(|l| l.name == *served_by) else { continue };
            let left: Vec<_> = level.chain.iter().filter(|row| tenant.admits(&row.target.domains)).collect();
            if let ([only], true) = (left.as_slice(), level.chain.len() > 1) {
                of.warn(
                    format!("`only` leaves {} alone to serve `{asked}`: there is no fallback", name(only)),
                    "add another target in these domains",
                );
            }
        }
        let over = |own: Option<u64>, global: u64| own.is_some_and(|own| own > global);
        let (own, all) = (tenant.limits, &config.limits);
        if over(own.rpm, all.rpm) || over(own.tpm, all.tpm) || over(own.in_flight, all.in_flight) {
            of.warn("its limits are above those of the gateway, which hold first", "raise `limits`");
        }
        for key in &tenant.keys {
            let above = |key: Option<u64>, tenant: Option<u64>| key.zip(tenant).is_some_and(|(k, t)| k > t);
            let limits = key.limits;
            if above(limits.rpm, own.rpm) || above(limits.tpm, own.tpm) || above(limits.in_flight, own.in_flight) {
                of.warn("a key's limits are above the tenant's, which hold first", "lower them, or leave them out");
            }
        }
    }
}

fn bounds(config: &Config, out: &mut Findings) {
    let turns = config.server.max_turns as u64;
    if config.limits.in_flight > turns {
        let mut of = out.about("limits.in_flight".to_owned());
        of.note(format!("{} is more than `server.max_turns` ({turns}) lets in", config.limits.in_flight), "");
    }
    if config.limits.max_event > config.limits.max_turn {
        let mut of = out.about("limits.max_event".to_owned());
        of.warn("one event may be larger than a whole turn", "lower it, or raise `max_turn`");
    }
}

// === helpers ===

fn name(row: &Entry) -> String {
    format!("{}/{}", row.target.connection, row.target.model)
}

fn list(names: &[String]) -> String {
    match names.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => names.concat(),
    }
}

/// Hosts where several servers are usually several processes.
const LOCAL_HOSTS: [&str; 3] = ["127.0.0.1", "::1", "localhost"];
