//! Connections: how a provider is reached, and when it counts as down.

use super::document::{Document, Named, Section, Value};
use super::problem::{did_you_mean, nearest};
use super::quota::Quota;
use super::secret::Secret;
use super::value::Zero;
use super::{keys, net};
use crate::chat::DialectId;
use std::sync::Arc;
use std::time::Duration;

/// One provider's API, with one credential.
#[derive(Clone, Debug, PartialEq)]
pub struct Connection {
    /// Its name.
    pub name: Arc<str>,
    /// What it speaks.
    pub dialect: DialectId,
    /// It is the built-in scripted provider, not a real one.
    pub mock: bool,
    /// Where, without a slash at the end; `None`: the vendor's own.
    pub base_url: Option<String>,
    /// The credential; `None` where none is needed.
    pub api_key: Option<Secret>,
    /// Sent with every request. Values are secret: some vendors take their keys here.
    pub headers: Vec<(String, Secret)>,
    /// Added to every request's query. Values are secret likewise.
    pub query: Vec<(String, Secret)>,
    /// A version segment is added to a `base_url` that has none.
    pub versioned: bool,
    /// The protocol version that is asked for; `None`: the dialect's own.
    pub version: Option<String>,
    /// Which HTTP.
    pub http2: Http2,
    /// Idle connections kept ready to a fallback.
    pub warm: u32,
    /// What it shares its fate with.
    pub domains: Vec<String>,
    /// What the provider allows.
    pub limits: Quota,
    /// When it counts as down.
    pub breaker: Breaker,
}

/// Whether a connection uses HTTP/2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Http2 {
    /// As the TLS handshake settles it.
    #[default]
    Auto,
    /// Always, without asking.
    PriorKnowledge,
    /// Never.
    Off,
}

/// When a circuit opens, and for how long.
#[derive(Clone, Debug, PartialEq)]
pub struct Breaker {
    /// Failures in a row.
    pub consecutive: u32,
    /// Share of failures in the window, above 0 to 1.
    pub error_rate: f64,
    /// The window.
    pub window: Duration,
    /// Samples below which the rate says nothing.
    pub min_samples: u32,
    /// Slowness that counts as being down; `None`: none does.
    pub latency: Option<Latency>,
    /// The first pause.
    pub cooldown: Duration,
    /// The longest after failures in a row.
    pub max_cooldown: Duration,
    /// The longest after a rate or slowness.
    pub max_cooldown_degraded: Duration,
}

/// Bounds on the first-token time's p95 over the window; at least one is set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Latency {
    /// In itself.
    pub p95: Option<Duration>,
    /// As a multiple of the baseline, above 1.
    pub over_baseline: Option<f64>,
}

// === impl Connection ===

impl Connection {
    /// `tenants_bring_keys`: some tenant has a credential of its own for it.
    pub(super) fn read(entry: &Named<'_>, tenants_bring_keys: bool) -> Option<Self> {
        check_name(entry, "connection");
        let section = entry.value.section()?;
        let whose = |what: &str| format!("{what} of the connection `{}`", entry.name);
        let dialect = section.need("dialect", "\"chat\"").and_then(|v| dialect(&v));
        let base_url = section.get("base_url").and_then(|v| net::base_url(&v));
        let api_key = section.get("api_key").and_then(|v| v.secret(&whose("the API key")));
        let headers = pairs(&section, "headers", &whose("a header"), check_header);
        let connection = Self {
            name: entry.name.into(),
            dialect: dialect.map_or(DialectId::Chat, |(d, _)| d),
            mock: dialect.is_some_and(|(_, mock)| mock),
            base_url,
            api_key,
            headers,
            query: pairs(&section, "query", &whose("a query parameter"), |_| true),
            versioned: section.flag("versioned", true),
            version: section.get("version").and_then(|v| version(&v, dialect?.0)),
            http2: section.choice(
                "http2",
                &[("auto", Http2::Auto), ("prior_knowledge", Http2::PriorKnowledge), ("off", Http2::Off)],
                Http2::Auto,
            ),
            warm: u32::try_from(section.whole("warm", 0..=MAX_WARM, 1)).unwrap_or(1),
            domains: section.domains("domains"),
            limits: Quota::of(&section),
            breaker: section.section("breaker").map(|s| Breaker::read(&s)).unwrap_or_default(),
        };
        connection.judge_key(&section, tenants_bring_keys);
        dialect.map(|_| connection)
    }

    /// A provider on the internet wants a key, and the key wants encryption.
    fn judge_key(&self, section: &Section<'_>, tenants_bring_keys: bool) {
        let near = self.mock || self.base_url.as_deref().is_some_and(net::is_near);
        let in_header = self.headers.iter().any(|(name, _)| is_credential(name));
        let has_key = section.get("api_key").is_some() || section.misspells("api_key") || in_header;
        if !near && !has_key {
            if tenants_bring_keys {
                section.warn("has no `api_key`: it serves only tenants that bring their own", "");
            } else {
                let variable = self.name.to_uppercase().replace(['-', '.'], "_");
                section.doc.error(
                    section.start(),
                    &format!("{}.api_key", section.key),
                    "is missing",
                    format!("add `api_key = {{ env = \"{variable}_API_KEY\" }}`"),
                );
            }
        }
        let plain = self.base_url.as_deref().is_some_and(|url| url.starts_with("http://"));
        if !near
            && has_key
            && plain
            && let Some(url) = section.get("base_url")
        {
            url.warn("sends the API key unencrypted", "use https://");
        }
    }

    /// What keeps its dialect from being used, if anything does.
    pub(super) fn unusable(&self) -> Option<&'static str> {
        if self.mock { None } else { keys::not_yet("connections.*.dialect", Some(self.dialect.name())) }
    }

    /// Who signs reasoning that comes over it.
    pub(super) fn issuer(&self) -> Arc<str> {
        let vendor = self.domains.iter().find_map(|d| d.strip_prefix("vendor:"));
        vendor.map_or_else(|| Arc::clone(&self.name), Arc::from)
    }
}

// === impl Breaker ===

impl Default for Breaker {
    fn default() -> Self {
        Self {
            consecutive: 5,
            error_rate: 0.05,
            window: Duration::from_secs(60),
            min_samples: 100,
            latency: None,
            cooldown: Duration::from_secs(5),
            max_cooldown: Duration::from_secs(20),
            max_cooldown_degraded: Duration::from_secs(300),
        }
    }
}

impl Breaker {
    fn read(section: &Section<'_>) -> Self {
        let default = Self::default();
        let count = |key, default: u32| {
            let value = section.whole(key, 1..=u64::from(u32::MAX), u64::from(default));
            u32::try_from(value).unwrap_or(default)
        };
        let cooldown = section.duration("cooldown", Zero::Refused, default.cooldown);
        let longest = |key: &str, floor: Duration, default: Duration| {
            let Some(value) = section.get(key) else { return default.max(floor) };
            let longest = value.duration(Zero::Refused).unwrap_or_else(|| default.max(floor));
            if longest < floor {
                value.error("is shorter than `cooldown`", "raise it, or lower `cooldown`");
            }
            longest
        };
        Self {
            consecutive: count("consecutive", default.consecutive),
            error_rate: section.share("error_rate", Zero::Refused, default.error_rate),
            window: section.duration("window", Zero::Refused, default.window),
            min_samples: count("min_samples", default.min_samples),
            latency: section.section("latency").and_then(|s| Latency::read(&s)),
            cooldown,
            max_cooldown: longest("max_cooldown", cooldown, default.max_cooldown),
            max_cooldown_degraded: longest("max_cooldown_degraded", cooldown, default.max_cooldown_degraded),
        }
    }
}

// === impl Latency ===

impl Latency {
    fn read(section: &Section<'_>) -> Option<Self> {
        let p95 = section.get("p95");
        let over = section.get("over_baseline");
        if p95.is_none() && over.is_none() {
            section.error("sets no bound", "add `p95 = \"8s\"` or `over_baseline = 2.0`");
            return None;
        }
        let over_baseline = over.and_then(|value| {
            let factor = value.decimal("2.0")?;
            if factor <= 1.0 {
                value.error(format!("must be above 1, not {factor}"), value.example("2.0"));
            }
            Some(factor)
        });
        Some(Self { p95: p95.and_then(|v| v.duration(Zero::Refused)), over_baseline })
    }
}

// === helpers ===

/// Complains about a name that could not be addressed as `connection/model` or in a URL.
pub(super) fn check_name(entry: &Named<'_>, what: &str) {
    let fits = |c: char| !c.is_control() && !c.is_whitespace() && !"/\"'?#%".contains(c);
    let length = entry.name.chars().count();
    if length == 0 || length > MAX_NAME || !entry.name.chars().all(fits) {
        entry.value.doc.error(
            entry.at.start,
            &entry.value.key,
            format!(
                "no good name for a {what}: 1 to {MAX_NAME} characters without space, slash, quote, `?`, `#` and `%`"
            ),
            format!("write for example `[{what}s.{what}-1]`"),
        );
    }
}

fn dialect(value: &Value<'_>) -> Option<(DialectId, bool)> {
    const NAMES: [&str; 6] = ["chat", "responses", "anthropic", "gemini", "bedrock", "mock"];
    let text = value.text("\"chat\"")?;
    Some(match text {
        "chat" => (DialectId::Chat, false),
        "responses" => (DialectId::Responses, false),
        "anthropic" => (DialectId::Anthropic, false),
        "gemini" => (DialectId::Gemini, false),
        "bedrock" => (DialectId::Bedrock, false),
        // The built-in provider takes what every client can be asked in.
        "mock" => (DialectId::Chat, true),
        _ => {
            let vendor = VENDORS.iter().find(|(vendor, _)| *vendor == text.to_ascii_lowercase()).map(|(_, name)| *name);
            let remedy = match (nearest(text, NAMES), vendor) {
                (_, Some(name)) => format!("{text} speaks `{name}`: write `dialect = \"{name}\"`"),
                _ => did_you_mean(text, NAMES, "most providers speak `chat`: write `dialect = \"chat\"`"),
            };
            let known = super::problem::one_of(NAMES);
            value.error(format!("must be {known}, not {text:?}"), remedy);
            return None;
        }
    })
}

fn version(value: &Value<'_>, dialect: DialectId) -> Option<String> {
    let text = value.text("\"2023-06-01\"")?;
    if dialect != DialectId::Anthropic {
        value.error(
            format!("the dialect `{}` has no protocol version", dialect.name()),
            "leave it out; for Azure write `query = { api-version = \"…\" }`",
        );
        return None;
    }
    if !text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '.') {
        value.error(format!("{text:?} is no version"), value.example("\"2023-06-01\""));
    }
    Some(text.to_owned())
}

/// Names and values, each a string or a reference to a secret.
fn pairs(section: &Section<'_>, key: &str, whose: &str, fits: impl Fn(&Named<'_>) -> bool) -> Vec<(String, Secret)> {
    let mut pairs = Vec::new();
    for entry in section.names(key) {
        if !fits(&entry) {
            continue;
        }
        let value = if entry.value.value.is_table() {
            entry.value.secret(whose)
        } else if is_credential(entry.name) {
            entry.value.error(
                "a secret must not stand in the file",
                format!("write `{} = {{ env = \"NAME\" }}`, or use `api_key`", entry.name),
            );
            None
        } else {
            entry.value.text("\"value\"").map(Secret::new)
        };
        pairs.extend(value.map(|v| (entry.name.to_owned(), v)));
    }
    pairs
}

/// Complains about a header that is none, or that only Segue may set.
fn check_header(entry: &Named<'_>) -> bool {
    let doc: &Document<'_> = entry.value.doc;
    let lower = entry.name.to_ascii_lowercase();
    if http::HeaderName::from_bytes(lower.as_bytes()).is_err() {
        let message = format!("{:?} is no name of a header", entry.name);
        doc.error(entry.at.start, &entry.value.key, message, "write for example { \"x-project\" = \"segue\" }");
        return false;
    }
    if RESERVED.contains(&lower.as_str()) {
        doc.error(entry.at.start, &entry.value.key, "this header is set by Segue itself", "leave it out");
        return false;
    }
    let carried = |text: &str| http::HeaderValue::from_str(text).is_ok();
    if entry.value.value.as_str().is_some_and(|text| !carried(text)) {
        entry.value.error("holds characters that no HTTP header can carry", "leave line breaks and the like out");
        return false;
    }
    true
}

fn is_credential(header: &str) -> bool {
    let lower = header.to_ascii_lowercase();
    CREDENTIALS.contains(&lower.as_str())
}

/// Headers and query parameters that carry keys.
const CREDENTIALS: [&str; 8] = [
    "authorization",
    "api-key",
    "x-api-key",
    "x-goog-api-key",
    "proxy-authorization",
    "cookie",
    "key",
    "ocp-apim-subscription-key",
];

/// Headers of the message itself.
const RESERVED: [&str; 11] = [
    "accept",
    "accept-encoding",
    "connection",
    "content-length",
    "content-type",
    "expect",
    "host",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// What vendors speak, for people who name the vendor.
const VENDORS: [(&str, &str); 16] = [
    ("openai", "chat"),
    ("azure", "chat"),
    ("mistral", "chat"),
    ("deepseek", "chat"),
    ("groq", "chat"),
    ("openrouter", "chat"),
    ("ollama", "chat"),
    ("vllm", "chat"),
    ("sglang", "chat"),
    ("together", "chat"),
    ("xai", "chat"),
    ("messages", "anthropic"),
    ("claude", "anthropic"),
    ("google", "gemini"),
    ("vertex", "gemini"),
    ("aws", "bedrock"),
];

/// More is no readiness but load.
const MAX_WARM: u64 = 64;

/// Names go into metrics, logs and headers.
const MAX_NAME: usize = 64;
