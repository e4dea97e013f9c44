//! Attempts over HTTP: one [`Http`] is one connection of the configuration, with its own pool.
//!
//! What leaves here is built from the target alone: the dialect's credentials, the connection's headers and what the
//! dialect encoded. Nothing that a client sent as a header is seen here. There is no total timeout, no redirect is
//! followed, no proxy is taken from the environment.
//!
//! A request that meets a connection which had been idle and was closed meanwhile is sent once more, on a connection
//! of its own, and that is no failure. (The pool itself sends again what was never written, and what an HTTP/2 server
//! refused before it processed anything: `REFUSED_STREAM`, `GOAWAY` with `NO_ERROR`.)

use super::answer::{Attempt, Head, Terms};
use super::dial::{self, Unresolved, Watch};
use super::habits::Habits;
use super::headers::{is_credential, is_reserved, parse_header};
use super::hush::hush;
use super::lanes::{Lanes, Seat};
use super::names::Names;
use super::{Call, Upstream, cause};
use crate::dialect::Credential;
use crate::event::Signal;
use crate::failure::{Failure, Kind, Stage};
use crate::words::redact::Redactor;
use bytes::{Bytes, BytesMut};
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt, Stream, StreamExt};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Version, header};
use reqwest::{Client, Request, Response, Url};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

/// What a connection of the configuration says.
#[derive(Clone)]
pub struct Settings {
    /// The connection's name, for messages.
    pub name: String,
    /// As the vendor's own SDK writes it; `None`: the dialect's default.
    pub base_url: Option<String>,
    /// The key; `None`: the provider wants none.
    pub api_key: Option<Arc<str>>,
    /// Sent with every request; they go before what the dialect sets.
    pub headers: Vec<(String, String)>,
    /// Added to every URL.
    pub query: Vec<(String, String)>,
    /// A version segment is added to a base URL that has none.
    pub versioned: bool,
    /// The protocol version that the dialect names in a header, where it has such.
    pub version: Option<String>,
    /// Which HTTP.
    pub http2: Http2,
    /// How long an unused connection is kept; it should be less than the provider's own limit.
    pub idle: Duration,
}

/// When HTTP/2 is spoken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Http2 {
    /// Where the TLS handshake agrees on it (ALPN).
    #[default]
    Auto,
    /// Always, also without TLS.
    PriorKnowledge,
    /// Never.
    Off,
}

/// Attempts at one connection. Cheap to clone; clones share the pool.
#[derive(Clone)]
pub struct Http(Arc<Inner>);

struct Inner {
    name: String,
    base: Option<Url>,
    api_key: Option<Arc<str>>,
    headers: Vec<(HeaderName, HeaderValue)>,
    query: Vec<(String, String)>,
    versioned: bool,
    version: Option<String>,
    /// Knows this connection's own credentials, for callers that know none.
    own: Redactor,
    build: Build,
    lanes: Lanes<Client>,
    /// Pools nothing: every request has a new connection.
    unpooled: OnceLock<Client>,
    habits: Arc<Habits>,
    /// It was told that the provider knows no such path.
    lost: AtomicBool,
}

/// What the clients of one connection have in common.
#[derive(Clone)]
struct Build {
    tls: bool,
    http2: Http2,
    idle: Duration,
    names: Names,
}

// === impl Settings ===

impl Settings {
    /// How long an unused connection is kept if nothing else is said.
    pub const IDLE: Duration = Duration::from_secs(30);

    /// A connection that has nothing but a name.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            base_url: None,
            api_key: None,
            headers: Vec::new(),
            query: Vec::new(),
            versioned: true,
            version: None,
            http2: Http2::Auto,
            idle: Self::IDLE,
        }
    }
}

// === impl Http ===

impl Http {
    /// A connection as `settings` say. Nothing is connected yet. Trust anchors are read only where TLS is spoken.
    ///
    /// # Errors
    /// A message that names the key of the configuration, what is wrong and what to write.
    pub fn new(settings: Settings) -> Result<Self, String> {
        let Settings { name, base_url, api_key, headers, query, versioned, version, http2, idle } = settings;
        let at = |key: &str| format!("connections.{name}.{key}");
        let base = base_url
            .map(|text| parse_base(&text).map_err(|wrong| format!("{}: {wrong}", at("base_url"))))
            .transpose()?;
        if api_key.as_deref().is_some_and(|key| key.is_empty() || !key.bytes().all(|b| b.is_ascii_graphic())) {
            return Err(format!(
                "{}: a key is printable ASCII without spaces; look for a line end or a quote in its source",
                at("api_key")
            ));
        }
        let headers = headers
            .into_iter()
            .map(|(key, value)| parse_header(&key, &value).map_err(|wrong| format!("{}.{key}: {wrong}", at("headers"))))
            .collect::<Result<Vec<_>, _>>()?;
        let sensitive = headers.iter().filter(|(_, value): &&(HeaderName, HeaderValue)| value.is_sensitive());
        let credentials = sensitive.filter_map(|(_, value)| value.to_str().ok());
        let own = Redactor::new(api_key.as_deref().into_iter().chain(credentials));
        let build = Build {
            tls: base.as_ref().is_none_or(|url| url.scheme() == "https"),
            http2,
            idle,
            names: Names::of_system(),
        };
        let first = build.client(true).map_err(|error| format!("connections.{name}: {error:?}"))?;
        let lanes = Lanes::new(first, http2 == Http2::PriorKnowledge);
        let unpooled = OnceLock::new();
        Ok(Self(Arc::new(Inner {
            name,
            base,
            api_key,
            headers,
            query,
            versioned,
            version,
            own,
            build,
            lanes,
            unpooled,
            habits: Arc::default(),
            lost: AtomicBool::new(false),
        })))
    }
}

impl Upstream for Http {
    fn open(&self, call: Call) -> BoxStream<'static, Signal> {
        let request = self.0.request(&call);
        let version = call.provider.version_segment();
        let Call { provider, expect, connect, error_body, max_event, credential, secrets, .. } = call;
        let (inner, outer) = (Arc::clone(&self.0), Arc::clone(&self.0));
        let habits = Arc::clone(&self.0.habits);
        let opening = async move {
            let (response, seat) = inner.send(request?, connect).await?;
            let (status, headers) = (response.status().as_u16(), response.headers().clone());
            inner.note_lost(&response, version);
            Ok(Head { status, headers, body: body(response), seat })
        };
        let attempt = Attempt::new(Terms { provider, expect, error_body, max_event, habits }, opening);
        let hush = move |signal| {
            // Only a failure has words, and a configuration knows its tenants' credentials already.
            let credential = credential.as_deref().filter(|_| matches!(signal, Signal::Failed(_)));
            hush(signal, &[&secrets, &outer.own, &Redactor::new(credential)])
        };
        attempt.map(hush).boxed()
    }

    fn ask(&self, call: Call) -> BoxFuture<'static, Result<Bytes, Failure>> {
        let inner = Arc::clone(&self.0);
        async move {
            let (response, _seat) = inner.send(inner.request(&call)?, call.connect).await?;
            let (status, headers) = (response.status().as_u16(), response.headers().clone());
            let mut pieces = body(response);
            let mut whole = BytesMut::new();
            while let Some(piece) = pieces.next().await {
                let piece = piece.map_err(|error| cause::broken(&error))?;
                if whole.len() + piece.len() > call.max_event {
                    return Err(Failure::new(Kind::Framing, Stage::Streaming).saying("the answer is over the limit"));
                }
                whole.extend_from_slice(&piece);
            }
            if (200..300).contains(&status) {
                return Ok(whole.freeze());
            }
            let mut failure = call.provider.classify(status, &headers, &whole);
            failure.said = failure.said.without(&[&call.secrets, &inner.own]);
            Err(failure)
        }
        .boxed()
    }
}

// === impl Inner ===

impl Inner {
    fn request(&self, call: &Call) -> Result<Request, Failure> {
        let refused = |message| Failure::new(Kind::BadRequest, Stage::Connecting).ours().saying(message);
        let base = match &self.base {
            Some(base) => base.clone(),
            None => parse_base(call.provider.default_base_url()).map_err(refused)?,
        };
        let segment = if self.versioned { call.provider.version_segment() } else { "" };
        let mut request = Request::new(Method::POST, address(base, segment, &call.wire.path, &self.query));
        *request.headers_mut() = self.headers(call);
        *request.body_mut() = Some(call.wire.body.clone().into());
        Ok(request)
    }

    /// Tells the log, once, that the provider knows no such path, and what to try where a version was put into it.
    fn note_lost(&self, response: &Response, segment: &str) {
        if !matches!(response.status().as_u16(), 404 | 405) || self.lost.swap(true, Ordering::Relaxed) {
            return;
        }
        let added = self.versioned && self.base.as_ref().is_some_and(|base| !has_version(base));
        let remedy = if added {
            format!("`{segment}` was added to its base_url: if it has no such segment, set `versioned = false`")
        } else {
            "check its base_url".to_owned()
        };
        // Without the query, which may hold a key.
        let url = response.url();
        tracing::warn!(
            connection = self.name,
            status = response.status().as_u16(),
            host = url.host_str(),
            path = url.path(),
            "the provider knows no such path or model; {remedy}"
        );
    }

    fn headers(&self, call: &Call) -> HeaderMap {
        let mut wire = call.wire.clone();
        wire.headers.retain(|(name, _)| !is_reserved(name) && !is_credential(name));
        let key = call.credential.as_deref().or(self.api_key.as_deref());
        let credential = Credential { key, version: self.version.as_deref() };
        call.provider.sign(&mut wire, &credential, SystemTime::now());
        let mut headers = HeaderMap::with_capacity(wire.headers.len() + self.headers.len() + 8);
        headers.insert(header::ACCEPT, HeaderValue::from_static("text/event-stream"));
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(header::USER_AGENT, HeaderValue::from_static(USER_AGENT));
        for (name, mut value) in wire.headers {
            value.set_sensitive(is_credential(&name));
            headers.append(name, value);
        }
        for (name, value) in &self.headers {
            headers.insert(name, value.clone());
        }
        headers
    }

    /// Sends, and once more if the connection had been used before and was gone before it gave any answer.
    async fn send(&self, request: Request, connect: Duration) -> Result<(Response, Seat), Failure> {
        let again = request.try_clone();
        let (client, seat) = self.lanes.take(|| self.build.client(true).ok());
        let before = seat.returned();
        let mut dialed = dial::dial(connect, client.execute(request)).await;
        // The pool gives out what comes free even when it has just connected; so a connection is surely new only if
        // none came free meanwhile.
        let used = !dialed.fresh || seat.returned() != before;
        if let (Err(error), Some(again)) = (&dialed.output, again)
            && used
            && !error.is_connect()
            && cause::is_gone(error)
        {
            tracing::debug!(error = %cause::words(error), "an idle connection was gone; sent again on a new one");
            let unpooled = self.unpooled.get_or_init(|| self.build.client(false).unwrap_or(client));
            dialed = dial::dial(connect, unpooled.execute(again)).await;
        }
        let response = dialed.output.map_err(|error| cause::unanswered(&error, error.is_connect()))?;
        if response.version() == Version::HTTP_2 {
            self.lanes.set_multiplexed();
        }
        Ok((response, seat))
    }
}

// === impl Build ===

impl Build {
    fn client(&self, pooled: bool) -> reqwest::Result<Client> {
        let mut client = builder(self.tls)
            .gzip(true)
            .pool_idle_timeout(self.idle)
            .http2_initial_stream_window_size(STREAM_WINDOW)
            .http2_initial_connection_window_size(CONNECTION_WINDOW)
            .http2_adaptive_window(false)
            .http2_keep_alive_interval(KEEP_ALIVE)
            .http2_keep_alive_timeout(KEEP_ALIVE)
            .dns_resolver(self.names.clone())
            .connector_layer(Watch);
        if !pooled {
            client = client.pool_max_idle_per_host(0);
        }
        client = match self.http2 {
            Http2::Auto => client,
            Http2::PriorKnowledge => client.http2_prior_knowledge(),
            Http2::Off => client.http1_only(),
        };
        client.build()
    }
}

// === impl Names ===

impl reqwest::dns::Resolve for Names {
    fn resolve(&self, name: reqwest::dns::Name) -> reqwest::dns::Resolving {
        let names = self.clone();
        async move {
            let found = Self::resolve(&names, name.as_str()).await.map_err(Unresolved)?;
            let addresses: reqwest::dns::Addrs = Box::new(found.into_iter());
            Ok(addresses)
        }
        .boxed()
    }
}

// === helpers ===

/// What all of Segue's HTTP clients have in common. Without `tls` the client can speak plain HTTP only, and a start is
/// spared the reading of the system's trust anchors.
pub(super) fn builder(tls: bool) -> reqwest::ClientBuilder {
    let client = Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        .tcp_nodelay(true)
        .tcp_keepalive(KEEP_ALIVE)
        .tcp_keepalive_interval(KEEP_ALIVE);
    let provider = rustls::crypto::ring::default_provider();
    if tls {
        // It is an error only where a provider was installed before, and then that one serves.
        let _ = provider.install_default();
        return client;
    }
    match rustls::ClientConfig::builder_with_provider(Arc::new(provider)).with_safe_default_protocol_versions() {
        Ok(config) => client.tls_backend_preconfigured(
            config.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth(),
        ),
        Err(_) => client,
    }
}

fn body(response: Response) -> impl Stream<Item = reqwest::Result<Bytes>> + Unpin + Send + 'static {
    response.bytes_stream()
}

fn parse_base(text: &str) -> Result<Url, String> {
    let example = "write it as https://api.example.com/v1";
    let url = Url::parse(text).map_err(|error| format!("{text:?} is no URL ({error}); {example}"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("{:?} is not spoken; {example}", url.scheme()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("it holds credentials; put them into api_key or headers".to_owned());
    }
    Ok(url)
}

/// `base` with `segment`, unless a version stands in its path, and `path`, which may have a query of its own.
fn address(base: Url, segment: &str, path: &str, query: &[(String, String)]) -> Url {
    let mut url = base;
    let (path, own) = path.split_once('?').map_or((path, None), |(path, own)| (path, Some(own)));
    let root = url.path().trim_end_matches('/');
    let segment = if has_version(&url) { "" } else { segment };
    let full = format!("{root}{segment}{path}");
    let joined = [url.query(), own].into_iter().flatten().collect::<Vec<_>>().join("&");
    url.set_path(&full);
    url.set_query((!joined.is_empty()).then_some(joined.as_str()));
    url.set_fragment(None);
    if !query.is_empty() {
        url.query_pairs_mut().extend_pairs(query);
    }
    url
}

/// Whether a version stands in the path of a base URL.
fn has_version(base: &Url) -> bool {
    base.path().split('/').any(is_version)
}

/// `v1`, `v2`, `v1beta`, `v1beta1`, `v1alpha`.
fn is_version(segment: &str) -> bool {
    let Some(rest) = segment.strip_prefix('v') else { return false };
    let stage = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    let stage_ok = ["", "alpha", "beta"].contains(&stage.trim_end_matches(|c: char| c.is_ascii_digit()));
    stage.len() < rest.len() && stage_ok
}

const USER_AGENT: &str = concat!("segue/", env!("CARGO_PKG_VERSION"));
/// What one slow reader can keep from being read.
const STREAM_WINDOW: u32 = 256 * 1024;
/// The most that HTTP/2 allows: 8,191 full streams do not hold up the next one.
const CONNECTION_WINDOW: u32 = (1 << 31) - 1;
/// After so long without a byte a peer is asked whether it lives; without an answer for as long, it does not.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test's panic is its report")]
    use super::*;

    #[test]
    fn a_version_is_taken_where_it_stands_added_where_it_is_missing_never_doubled() {
        let none: [(String, String); 0] = [];
        for (base, segment, path, whole) in [
            ("https://a.example/v1", "/v1", "/chat/completions", "https://a.example/v1/chat/completions"),
            ("https://a.example/v1/", "/v1", "/chat/completions", "https://a.example/v1/chat/completions"),
            ("https://a.example", "/v1", "/messages", "https://a.example/v1/messages"),
            ("https://a.example/", "/v1", "/messages", "https://a.example/v1/messages"),
            ("https://a.example/anthropic", "/v1", "/messages", "https://a.example/anthropic/v1/messages"),
            ("https://a.example/openai/v1", "/v1", "/responses", "https://a.example/openai/v1/responses"),
            (
                "https://a.example/api/paas/v4",
                "/v1",
                "/chat/completions",
                "https://a.example/api/paas/v4/chat/completions",
            ),
            ("https://a.example/v1beta/openai/", "/v1", "/x", "https://a.example/v1beta/openai/x"),
            ("https://a.example/v1/projects/p/openapi", "/v1", "/x", "https://a.example/v1/projects/p/openapi/x"),
            ("https://a.example/vertex", "/v1beta", "/m:go?alt=sse", "https://a.example/vertex/v1beta/m:go?alt=sse"),
            ("http://[::1]:80/v2?a=b#c", "/v1", "/x?y=z", "http://[::1]/v2/x?a=b&y=z"),
        ] {
            let url = address(parse_base(base).unwrap(), segment, path, &none);
            assert_eq!(url.as_str(), whole, "{base}");
        }
        let query = [("api-version".to_owned(), "2024 10".to_owned())];
        let url = address(parse_base("https://a.example").unwrap(), "/v1", "/x?alt=sse", &query);
        assert_eq!(url.as_str(), "https://a.example/v1/x?alt=sse&api-version=2024+10");
    }

    #[test]
    fn a_wrong_setting_is_named_with_its_place_and_a_remedy() {
        let refuse = |change: fn(&mut Settings)| {
            let mut settings = Settings::new("acme");
            settings.base_url = Some("http://127.0.0.1:9/v1".to_owned());
            change(&mut settings);
            Http::new(settings).err().unwrap()
        };
        let message = refuse(|s| s.base_url = Some("api.example.com".to_owned()));
        assert!(message.starts_with("connections.acme.base_url: ") && message.contains("https://"), "{message}");
        let message = refuse(|s| s.base_url = Some("ftp://api.example.com".to_owned()));
        assert!(message.contains("\"ftp\" is not spoken"), "{message}");
        let message = refuse(|s| s.base_url = Some("https://me:secret@api.example.com".to_owned()));
        assert!(message.contains("api_key") && !message.contains("secret"), "{message}");
        let message = refuse(|s| s.api_key = Some("sk-secret\n".into()));
        assert!(message.starts_with("connections.acme.api_key: ") && !message.contains("secret"), "{message}");
        let message = refuse(|s| s.headers = vec![("Accept-Encoding".to_owned(), "br".to_owned())]);
        assert!(message.starts_with("connections.acme.headers.Accept-Encoding: "), "{message}");
        let message = refuse(|s| s.headers = vec![("x-a".to_owned(), "b\r\nc: d".to_owned())]);
        assert!(message.starts_with("connections.acme.headers.x-a: "), "{message}");
    }
}
