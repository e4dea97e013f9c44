//! Where browser clients come from: origins, and the names under which a gateway is reached.

use super::document::Value;
use std::net::IpAddr;

/// Origins of web pages that may ask: each as a browser writes it in `Origin`, or `"*"`.
pub(super) fn origins(value: &Value<'_>) -> Vec<String> {
    const EXAMPLE: &str = "\"https://app.example.com\"";
    let mut origins = Vec::new();
    for entry in value.list(&format!("[{EXAMPLE}]")).unwrap_or_default() {
        let Some(text) = entry.text(EXAMPLE) else { continue };
        match origin(text.trim()) {
            Ok(origin) if origins.contains(&origin) => {}
            Ok(origin) => origins.push(origin),
            Err(why) => entry.error(format!("{text:?} {why}"), entry.example(EXAMPLE)),
        }
    }
    origins
}

/// Names under which clients reach the gateway, without ports.
pub(super) fn hosts(value: &Value<'_>) -> Vec<String> {
    const EXAMPLE: &str = "\"llm.example.com\"";
    let mut hosts = Vec::new();
    for entry in value.list(&format!("[{EXAMPLE}]")).unwrap_or_default() {
        let Some(text) = entry.text(EXAMPLE) else { continue };
        let name = text.trim().trim_end_matches('.').to_ascii_lowercase();
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
        if name.is_empty() || !name.chars().all(fits) {
            entry.error(
                format!("{text:?} is no name of a host"),
                format!("{}, without scheme, port and path; addresses need not be named", entry.example(EXAMPLE)),
            );
        } else if !hosts.contains(&name) {
            hosts.push(name);
        }
    }
    hosts
}

/// Whether a request to this host (a name or an address, without its port) can come from no page of a stranger: an
/// address, this machine, a name without a dot or with an ending that the public DNS does not have, or one of `known`.
/// Any other name could have been made to resolve to this machine by whoever owns it.
pub fn is_own(host: &str, known: &[String]) -> bool {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    is_address(&host)
        || !host.is_empty() && !host.contains('.')
        || PRIVATE.iter().any(|ending| host.ends_with(ending))
        || known.contains(&host)
}

/// Whether a host, without its port, is an address.
pub fn is_address(host: &str) -> bool {
    host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().is_ok()
}

/// The name of a `Host` without its port.
pub fn name_of(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) && !name.ends_with(':') => name,
        _ => host,
    }
}

// === helpers ===

fn origin(text: &str) -> Result<String, &'static str> {
    if text == "*" {
        return Ok(text.to_owned());
    }
    if text == "null" {
        return Err("is what every sandboxed page sends, whoever wrote it");
    }
    let Some((scheme, rest)) = text.split_once("://") else { return Err("is no origin: it has no scheme") };
    let scheme = scheme.to_ascii_lowercase();
    let rest = rest.trim_end_matches('/');
    let default = match &*scheme {
        "https" => ":443",
        "http" => ":80",
        _ => "",
    };
    let rest = rest.strip_suffix(default).unwrap_or(rest).to_ascii_lowercase();
    let scheme_fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    if scheme.is_empty() || !scheme.chars().all(scheme_fits) {
        return Err("is no origin: its scheme is none");
    }
    if rest.is_empty() {
        return Err("is no origin: it names no host");
    }
    if rest.contains('*') {
        return Err("is no origin: a browser sends no patterns; list each, or write \"*\" alone");
    }
    if rest.contains(['/', '?', '#', '@']) || !rest.chars().all(|c| c.is_ascii_graphic()) {
        return Err("is more than an origin: scheme, host and port are all that a browser sends");
    }
    Ok(format!("{scheme}://{rest}"))
}

/// Endings that no name of the public DNS has: nobody can own one and let it resolve to this machine.
const PRIVATE: [&str; 3] = [".localhost", ".internal", ".svc"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_kept_as_browsers_send_them() {
        for (given, kept) in [
            ("https://app.example.com", "https://app.example.com"),
            ("https://App.Example.com/", "https://app.example.com"),
            ("https://app.example.com:443", "https://app.example.com"),
            ("http://localhost:3000", "http://localhost:3000"),
            ("http://localhost:80", "http://localhost"),
            ("app://obsidian.md", "app://obsidian.md"),
            ("*", "*"),
        ] {
            assert_eq!(origin(given).as_deref(), Ok(kept), "{given}");
        }
        for wrong in ["example.com", "null", "https://", "https://a/b", "https://*.a.com", "://a", "https://u@a"] {
            assert!(origin(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_name_that_a_stranger_can_own_is_not_ours() {
        let known = ["llm.example.com".to_owned()];
        for own in
            ["127.0.0.1", "[::1]", "192.0.2.7", "localhost", "LOCALHOST.", "segue", "a.localhost", "llm.example.com"]
        {
            assert!(is_own(own, &known), "{own}");
        }
        for foreign in
            ["evil.example", "llm.example.com.evil.example", "127.0.0.1.nip.io", "localhost.evil.example", ""]
        {
            assert!(!is_own(foreign, &known), "{foreign}");
        }
    }

    #[test]
    fn a_port_is_no_part_of_a_name() {
        for (host, name) in
            [("a:1", "a"), ("a", "a"), ("[::1]:80", "[::1]"), ("[::1]", "[::1]"), ("::1", "::1"), ("a:b", "a:b")]
        {
            assert_eq!(name_of(host), name, "{host}");
        }
    }
}
