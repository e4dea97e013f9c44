//! Base URLs.

use super::document::Value;
use http::Uri;
use std::net::IpAddr;

/// Reads a base URL and cuts the slash at its end.
pub(super) fn base_url(value: &Value<'_>) -> Option<String> {
    const EXAMPLE: &str = "\"https://api.openai.com/v1\"";
    let text = value.text(EXAMPLE)?.trim();
    let uri = text.parse::<Uri>().ok();
    let scheme = uri.as_ref().and_then(Uri::scheme_str);
    let Some(uri) = uri.as_ref().filter(|_| matches!(scheme, Some("http" | "https"))) else {
        value.error("is no URL that begins with https:// or http://", value.example(EXAMPLE));
        return None;
    };
    if uri.authority().is_some_and(|a| a.as_str().contains('@')) {
        value.error("must not hold a user or a password", "use `api_key = { env = \"NAME\" }`");
        return None;
    }
    if uri.host().is_none_or(str::is_empty) {
        value.error("names no host", value.example(EXAMPLE));
        return None;
    }
    if uri.query().is_some() || text.contains('#') {
        value.error("must end with the path", "put parameters into `query = { name = \"value\" }`");
        return None;
    }
    for tail in ["/chat/completions", "/messages", "/responses"] {
        if uri.path().trim_end_matches('/').ends_with(tail) {
            value.error(
                format!("names one route of the API (`{tail}`), not its base"),
                format!("cut it before `{tail}`, as the vendor's own SDK writes it"),
            );
            return None;
        }
    }
    Some(text.trim_end_matches('/').to_owned())
}

/// The host of a base URL that was read by [`base_url`], without brackets.
pub(super) fn host(url: &str) -> Option<String> {
    let uri = url.parse::<Uri>().ok()?;
    Some(uri.host()?.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase())
}

/// Whether a base URL is on this machine or in a private network, where servers often want no key.
pub(super) fn is_near(url: &str) -> bool {
    let Some(host) = host(url) else { return false };
    match host.parse::<IpAddr>() {
        Ok(IpAddr::V4(ip)) => ip.is_loopback() || ip.is_private() || ip.is_link_local() || ip.is_unspecified(),
        Ok(IpAddr::V6(ip)) => {
            ip.is_loopback() || ip.is_unique_local() || ip.is_unicast_link_local() || ip.is_unspecified()
        }
        Err(_) => !host.contains('.') || PRIVATE.iter().any(|suffix| host.ends_with(suffix)),
    }
}

/// Name endings that are never on the internet.
const PRIVATE: [&str; 5] = [".localhost", ".local", ".internal", ".svc", ".lan"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_is_this_machine_and_private_networks() {
        for url in [
            "http://127.0.0.1:8000/v1",
            "http://[::1]:8000",
            "http://localhost:11434/v1",
            "http://10.1.2.3/v1",
            "http://vllm:8000",
            "http://vllm.models.svc/v1",
            "http://gpu.internal",
        ] {
            assert!(is_near(url), "{url}");
        }
        for url in ["https://api.openai.com/v1", "http://8.8.8.8", "https://[2001:db8::1]/v1"] {
            assert!(!is_near(url), "{url}");
        }
    }
}
