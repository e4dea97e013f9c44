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

/// The service of a base URL without a version in its path, if it is known to have none.
pub(super) fn unversioned(url: &str) -> Option<&'static str> {
    let uri = url.parse::<Uri>().ok()?;
    let (host, path) = (host(url)?, uri.path().trim_end_matches('/').to_ascii_lowercase());
    let versioned = path
        .split('/')
        .any(|part| part.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit())));
    if versioned {
        return None;
    }
    let found = UNVERSIONED.iter().find(|(ending, part, _)| host.ends_with(ending) && path.contains(part));
    found.map(|(.., service)| *service)
}

/// Services without a version in their paths: how their host ends, what their path holds, what they are called.
const UNVERSIONED: [(&str, &str, &str); 5] = [
    ("", "/openai/deployments/", "a deployment of Azure OpenAI"),
    ("models.github.ai", "/inference", "GitHub Models"),
    (".models.ai.azure.com", "", "a model of Azure AI"),
    ("", "/serving-endpoints", "Databricks"),
    ("", "/api/openai", "a proxy of Open WebUI"),
];

/// Name endings that are never on the internet.
const PRIVATE: [&str; 5] = [".localhost", ".local", ".internal", ".svc", ".lan"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_without_a_version_are_known() {
        for (url, service) in [
            ("https://x.openai.azure.com/openai/deployments/gpt", Some("a deployment of Azure OpenAI")),
            ("https://x.openai.azure.com/openai/v1", None),
            ("https://models.github.ai/inference", Some("GitHub Models")),
            ("https://dbc-1.cloud.databricks.com/serving-endpoints", Some("Databricks")),
            ("https://api.openai.com/v1", None),
            ("https://api.openai.com", None),
        ] {
            assert_eq!(unversioned(url), service, "{url}");
        }
    }

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
