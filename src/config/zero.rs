//! A configuration from nothing but the keys in the environment.
//!
//! It is written as a file would be and read like one, so that there is one way in: what holds for files holds here.

use super::{Loaded, Place, Problem, Resolver, keys_file, load};
use crate::routing::Level;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Vendors and their models, in the order of preference.
#[derive(Deserialize)]
struct Table {
    dated: toml::value::Datetime,
    vendors: Vec<Vendor>,
}

#[derive(Deserialize)]
struct Vendor {
    name: String,
    variable: String,
    dialect: String,
    base_url: Option<String>,
    /// The variable that the vendor's own SDKs read another base URL from.
    base_variable: Option<String>,
    /// Of the `vendor:` domain, if not the name.
    vendor: Option<String>,
    models: BTreeMap<String, String>,
    /// Levels whose model thinks before it speaks.
    #[serde(default)]
    reasons: Vec<String>,
}

/// Makes a configuration of the vendors whose variables are set: the first four are the chain of every level, the rest
/// are named in warnings. `None` if there is none.
pub fn from_environment(env: &dyn Resolver) -> Option<Result<Loaded, Vec<Problem>>> {
    let found = found(env);
    if found.is_empty() {
        return None;
    }
    let text = match keys_file::tenants(env) {
        Ok(tenants) => write(&found, env) + &tenants,
        Err(problem) => return Some(Err(vec![*problem])),
    };
    Some(load(&text, PATH, env).map(|loaded| Loaded {
        // Nobody wrote the text, so what it says of keys to come is nobody's concern.
        warnings: found.iter().skip(Level::MAX_CHAIN).map(unused).collect(),
        ..loaded
    }))
}

/// The variables that are looked at, in order.
pub fn variables() -> Vec<String> {
    table().map(|t| t.vendors.into_iter().map(|v| v.variable).collect()).unwrap_or_default()
}

/// The day of the table of models.
pub fn dated() -> Option<String> {
    table().map(|t| t.dated.to_string())
}

/// The configuration that is made of the environment, as a file to start one's own from.
pub fn text(env: &dyn Resolver) -> Option<String> {
    let found = found(env);
    (!found.is_empty()).then(|| write(&found, env) + &keys_file::tenants(env).unwrap_or_default())
}

// === helpers ===

fn table() -> Option<Table> {
    // A test reads it; a table that cannot be read would be the same as none.
    toml::from_str(MODELS).ok()
}

/// The vendors whose variables are set.
fn found(env: &dyn Resolver) -> Vec<Vendor> {
    let mut vendors = table().map(|t| t.vendors).unwrap_or_default();
    vendors.retain(|v| env.env(&v.variable).is_some_and(|value| !value.trim().is_empty()));
    vendors
}

fn write(found: &[Vendor], env: &dyn Resolver) -> String {
    use std::fmt::Write as _;
    let chained = &found[..found.len().min(Level::MAX_CHAIN)];
    let mut text = String::new();
    // Writing to a String cannot fail.
    for vendor in chained {
        let _ = writeln!(text, "[connections.{}]\ndialect = {:?}", vendor.name, vendor.dialect);
        match &vendor.base_url {
            Some(url) => {
                let url = &elsewhere(vendor, env).unwrap_or_else(|| url.clone());
                let _ = writeln!(text, "base_url = {url:?}\napi_key = {{ env = {:?} }}", vendor.variable);
            }
            None => {
                let url = server(&env.env(&vendor.variable).unwrap_or_default());
                let _ = writeln!(text, "base_url = {}", toml::Value::String(url));
            }
        }
        let domain = vendor.vendor.as_ref().unwrap_or(&vendor.name);
        let _ = writeln!(text, "domains = [\"vendor:{domain}\"]\n");
    }
    for (level, policy) in LEVELS {
        let _ = writeln!(text, "[levels.{level}]\nchain = [");
        for vendor in chained {
            if let Some(model) = vendor.models.get(level) {
                let reasons = if vendor.reasons.iter().any(|l| l == level) { ", reasons = true" } else { "" };
                let _ = writeln!(text, "  {{ connection = {:?}, model = {model:?}{reasons} }},", vendor.name);
            }
        }
        let _ = writeln!(text, "]\n{policy}");
    }
    if env.env(ADMIN_TOKEN).is_some_and(|token| !token.is_empty()) {
        let _ = writeln!(text, "[admin]\ntoken = {{ env = {ADMIN_TOKEN:?} }}\n");
    }
    text
}

/// The base URL that the vendor's own SDKs would use instead of its own.
fn elsewhere(vendor: &Vendor, env: &dyn Resolver) -> Option<String> {
    let url = env.env(vendor.base_variable.as_ref()?)?;
    Some(url.trim().trim_end_matches('/').to_owned()).filter(|url| !url.is_empty())
}

/// The base URL of a server that was named as Ollama names it: a host, a host and port, or a URL; `0.0.0.0` is what
/// the server listens at, and this machine for whoever calls it.
fn server(given: &str) -> String {
    let given = given.trim().trim_end_matches('/');
    let (scheme, rest) = given.split_once("://").unwrap_or(("http", given));
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let authority = authority.replace("0.0.0.0", "127.0.0.1").replace("[::]", "[::1]");
    let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let authority = match (has_port, given.contains("://"), authority.strip_prefix(':')) {
        (_, _, Some(port)) => format!("127.0.0.1:{port}"),
        (false, false, None) => format!("{authority}:{OLLAMA_PORT}"),
        _ => authority,
    };
    let path = path.trim_end_matches("v1").trim_end_matches('/');
    if path.is_empty() { format!("{scheme}://{authority}/v1") } else { format!("{scheme}://{authority}/{path}/v1") }
}

fn unused(vendor: &Vendor) -> Problem {
    Problem {
        place: Place { path: PATH.to_owned(), line: 1, column: 1 },
        key: vendor.variable.clone(),
        message: format!("is set but not used: a chain has at most {} targets", Level::MAX_CHAIN),
        remedy: format!("write a segue.toml to choose other targets than these, `{}` among them", vendor.name),
    }
}

pub(super) const MODELS: &str = include_str!("../../config/models.toml");

/// The variable of the operators' token.
const ADMIN_TOKEN: &str = "SEGUE_ADMIN_TOKEN";

/// Stands for the path of the file that there is not.
const PATH: &str = "(environment)";

/// Where Ollama listens unless told otherwise.
const OLLAMA_PORT: u16 = 11434;

/// The levels and what sets them apart besides their models.
const LEVELS: [(&str, &str); 4] = [
    ("normal", ""),
    ("high", "timeouts = { first_token = \"20s\", turn = \"10m\" }\n"),
    ("low", ""),
    (
        "voice",
        "timeouts = { connect = \"500ms\", first_token = \"1500ms\", suspect = \"400ms\", stall = \"1200ms\", turn = \"60s\" }\n\
         hedge = { after = \"p90\" }\nretries = 0\nconversation = \"supersede\"\n",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_found_however_it_is_named() {
        for (given, url) in [
            ("localhost", "http://localhost:11434/v1"),
            ("127.0.0.1:1234", "http://127.0.0.1:1234/v1"),
            ("0.0.0.0", "http://127.0.0.1:11434/v1"),
            ("0.0.0.0:9000", "http://127.0.0.1:9000/v1"),
            (":9000", "http://127.0.0.1:9000/v1"),
            ("http://gpu:11434/", "http://gpu:11434/v1"),
            ("http://gpu:11434/v1", "http://gpu:11434/v1"),
            ("https://ollama.example.com", "https://ollama.example.com/v1"),
            ("https://example.com/ollama/", "https://example.com/ollama/v1"),
            ("[::]:1234", "http://[::1]:1234/v1"),
        ] {
            assert_eq!(server(given), url, "{given}");
        }
    }

    #[test]
    fn the_table_of_models_is_whole() {
        let table = table().unwrap_or_else(|| Table {
            dated: toml::value::Datetime { date: None, time: None, offset: None },
            vendors: Vec::new(),
        });
        let names: Vec<_> = table.vendors.iter().map(|v| v.variable.as_str()).collect();
        assert_eq!(
            names,
            [
                "OPENAI_API_KEY",
                "ANTHROPIC_API_KEY",
                "GEMINI_API_KEY",
                "MISTRAL_API_KEY",
                "DEEPSEEK_API_KEY",
                "GROQ_API_KEY",
                "OPENROUTER_API_KEY",
                "OLLAMA_HOST"
            ]
        );
        for vendor in &table.vendors {
            for (level, _) in LEVELS {
                assert!(vendor.models.contains_key(level), "{} has no model for {level}", vendor.name);
            }
        }
        assert_eq!(dated().as_deref(), Some("2026-11-30"));
    }
}
