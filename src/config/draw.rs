//! Chains as text: each level down to vendor, cloud and region.

use super::units::show;
use super::{Config, Connection};
use crate::routing::{After, Entry, Level};
use std::fmt::Write as _;

/// Draws every level.
pub fn draw(config: &Config) -> String {
    config.levels.iter().map(|level| one(config, level)).collect::<Vec<_>>().join("\n")
}

fn one(config: &Config, level: &Level) -> String {
    let mut text = format!("{}{}\n", level.name, policies(level));
    let width = level.chain.iter().map(|row| target(row).chars().count()).max().unwrap_or_default();
    let last = level.chain.len().saturating_sub(1);
    for (index, row) in level.chain.iter().enumerate() {
        let branch = if index == last { "└─" } else { "├─" };
        let trunk = if index == last { "  " } else { "│ " };
        let role = if index == 0 { "first" } else { "then " };
        let facts = facts(row);
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{branch} {role} {:width$}  {facts}", target(row));
        let connection = config.connections.iter().find(|c| c.name == row.target.connection);
        let _ = writeln!(text, "{trunk}       {}", places(row, connection));
    }
    text
}

fn target(row: &Entry) -> String {
    format!("{}/{}", row.target.connection, row.target.model)
}

fn policies(level: &Level) -> String {
    let mut words = vec![format!("turn {}", show(level.timeouts.turn))];
    if let Some(hedge) = level.hedge {
        words.push(match hedge.after {
            After::Time(time) => format!("hedge after {}", show(time)),
            After::Percentile(p) => format!("hedge after p{p} within {} to {}", show(hedge.min), show(hedge.max)),
        });
    }
    if level.retries > 0 {
        words.push(format!("retries {}", level.retries));
    }
    format!(" ({})", words.join(", "))
}

fn facts(row: &Entry) -> String {
    let clocks = &row.timeouts;
    let mut words = vec![format!("quality {}", row.target.quality)];
    if row.target.reasons {
        words.push(format!("thinks up to {}", show(clocks.thinking)));
    } else {
        words.push(format!("first token {}", show(clocks.first_token)));
    }
    words.extend(clocks.suspect.map(|s| format!("suspect {}", show(s))));
    words.push(format!("stall {}", show(clocks.stall)));
    words.extend(row.target.context_window.map(|tokens| format!("window {tokens}")));
    words.join(", ")
}

/// Vendor, cloud, region, whatever else is declared, and the host.
fn places(row: &Entry, connection: Option<&Connection>) -> String {
    let domains = &row.target.domains;
    let mut parts = Vec::new();
    for kind in KINDS {
        let found = domains.iter().find_map(|d| d.strip_prefix(kind)?.strip_prefix(':'));
        parts.push(format!("{kind} {}", found.unwrap_or("?")));
    }
    let other = domains.iter().filter(|d| !KINDS.iter().any(|k| d.split(':').next() == Some(k)));
    parts.extend(other.map(|d| d.replacen(':', " ", 1)));
    parts.push(match connection {
        Some(c) if c.mock => "built in".to_owned(),
        Some(Connection { base_url: Some(url), .. }) => super::net::host(url).unwrap_or_default(),
        _ => "the vendor's own address".to_owned(),
    });
    parts.join(" · ")
}

/// What is drawn of every target, known or not.
const KINDS: [&str; 3] = ["vendor", "cloud", "region"];
