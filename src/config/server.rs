//! Where Segue listens, and what it holds at once.

use super::document::{Section, Value};
use super::origin;
use super::secret::Secret;
use super::value::Zero;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

/// The clients' side.
#[derive(Clone, Debug, PartialEq)]
pub struct Server {
    /// Where clients connect.
    pub listen: SocketAddr,
    /// The largest request body, in bytes.
    pub max_body: usize,
    /// How long a request body may take to come.
    pub receive: Duration,
    /// The most bytes of memory that all turns hold at once.
    pub buffer: usize,
    /// Turns open at once; past it the answer is 503.
    pub max_turns: usize,
    /// When the status goes out without progress; `None`: never before the first delta.
    pub headers_after: Option<Duration>,
    /// A sign of life after so much silence.
    pub keep_alive: Duration,
    /// After being told to stop, how long new turns are still taken while `/readyz` already says 503.
    pub drain_delay: Duration,
    /// How long open turns may go on once no new ones are taken.
    pub drain: Duration,
    /// Certificate and key; `None`: plain HTTP.
    pub tls: Option<Tls>,
    /// Where Segue itself runs.
    pub domains: Vec<String>,
    /// Without tenants, listen beyond loopback all the same.
    pub allow_anonymous: bool,
    /// Origins of web pages that may ask, as browsers write them; `*`: any.
    pub cors: Vec<String>,
    /// Names, without ports, under which clients reach the gateway, besides addresses and names that no stranger can own.
    pub hosts: Vec<String>,
    /// What serves a request that names no model; `None`: the only level, where there is but one.
    pub default_level: Option<String>,
    /// Connections of clients that are open at once; `None`: as many as the process has descriptors for.
    pub max_connections: Option<usize>,
}

/// Files of a server certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// Path of the certificate chain, PEM.
    pub cert: String,
    /// Path of the private key, PEM.
    pub key: String,
}

/// The operators' side.
#[derive(Clone, Debug, PartialEq)]
pub struct Admin {
    /// Where operators connect.
    pub listen: SocketAddr,
    /// What they must show; `None` on loopback only.
    pub token: Option<Secret>,
}

// === impl Server ===

impl Default for Server {
    fn default() -> Self {
        Self {
            listen: (Ipv4Addr::LOCALHOST, 8080).into(),
            max_body: 32 << 20,
            receive: Duration::from_secs(120),
            buffer: 1 << 30,
            max_turns: 20_000,
            headers_after: Some(Duration::from_secs(10)),
            keep_alive: Duration::from_secs(15),
            drain_delay: Duration::ZERO,
            drain: Duration::from_secs(30),
            tls: None,
            domains: Vec::new(),
            allow_anonymous: false,
            cors: Vec::new(),
            hosts: Vec::new(),
            default_level: None,
            max_connections: None,
        }
    }
}

impl Server {
    pub(super) fn read(section: &Section<'_>) -> Self {
        let default = Self::default();
        let server = Self {
            listen: section.get("listen").and_then(|v| address(&v, "127.0.0.1:8080")).unwrap_or(default.listen),
            max_body: section.size("max_body", default.max_body),
            receive: section.duration("receive", Zero::Refused, default.receive),
            buffer: section.size("buffer", default.buffer),
            max_turns: usize::try_from(section.whole("max_turns", 1..=MAX_TURNS, default.max_turns as u64))
                .unwrap_or(default.max_turns),
            headers_after: section
                .get("headers_after")
                .and_then(|v| v.duration_or_off())
                .unwrap_or(default.headers_after),
            keep_alive: section.duration("keep_alive", Zero::Refused, default.keep_alive),
            drain_delay: section.duration("drain_delay", Zero::Allowed, default.drain_delay),
            drain: section.duration("drain", Zero::Allowed, default.drain),
            tls: section.section("tls").and_then(|tls| Tls::read(&tls)),
            domains: section.domains("domains"),
            allow_anonymous: section.flag("allow_anonymous", default.allow_anonymous),
            cors: section.get("cors").map(|v| origin::origins(&v)).unwrap_or_default(),
            hosts: section.get("hosts").map(|v| origin::hosts(&v)).unwrap_or_default(),
            default_level: section.get("default_level").and_then(|v| v.text("\"normal\"")).map(str::to_owned),
            max_connections: section
                .get("max_connections")
                .and_then(|v| v.whole(1..=MAX_CONNECTIONS))
                .and_then(|n| usize::try_from(n).ok()),
        };
        if server.max_body > server.buffer {
            let at = section.get("max_body").or_else(|| section.get("buffer"));
            if let Some(value) = at {
                value.error(
                    "one request body may be larger than all buffers together",
                    "lower `max_body` or raise `buffer`",
                );
            }
        }
        server
    }
}

// === impl Tls ===

impl Tls {
    fn read(section: &Section<'_>) -> Option<Self> {
        let cert = section.need("cert", "\"/etc/segue/cert.pem\"").and_then(|v| v.text("\"/etc/segue/cert.pem\""));
        let key = section.need("key", "\"/etc/segue/key.pem\"").and_then(|v| v.text("\"/etc/segue/key.pem\""));
        Some(Self { cert: cert?.to_owned(), key: key?.to_owned() })
    }
}

// === impl Admin ===

impl Default for Admin {
    fn default() -> Self {
        Self { listen: (Ipv4Addr::LOCALHOST, 9090).into(), token: None }
    }
}

impl Admin {
    pub(super) fn read(section: &Section<'_>) -> Self {
        let default = Self::default();
        let listen = section.get("listen");
        let admin = Self {
            listen: listen.as_ref().and_then(|v| address(v, "127.0.0.1:9090")).unwrap_or(default.listen),
            token: section.get("token").and_then(|v| v.secret("the token of the admin interface")),
        };
        if let Some(listen) = listen
            && !admin.listen.ip().is_loopback()
            && section.get("token").is_none()
        {
            listen.error(
                format!("the admin interface would be open to everyone who reaches {}", admin.listen),
                "add `token = { env = \"SEGUE_ADMIN_TOKEN\" }`, or listen at \"127.0.0.1:9090\"",
            );
        }
        admin
    }
}

// === helpers ===

fn address(value: &Value<'_>, example: &str) -> Option<SocketAddr> {
    let example = format!("{example:?}");
    let text = value.text(&example)?;
    let numeric = text.strip_prefix("localhost:").map(|port| format!("127.0.0.1:{port}"));
    let parsed = numeric.as_deref().unwrap_or(text).parse().ok();
    if parsed.is_none() {
        value.error(format!("{text:?} is no address with a port"), value.example(&example));
    }
    parsed
}

/// More open turns than ports and memory of one machine can carry.
const MAX_TURNS: u64 = 10_000_000;
/// More descriptors than a process can have.
const MAX_CONNECTIONS: u64 = 10_000_000;
