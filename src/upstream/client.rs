//! Where Segue is somebody's client: it posts a request and reads the events of the answer.
//!
//! For the demo, the benchmark and the examples, which look at a gateway from outside, as an application would. So it
//! shares no code with the path that it looks at: events are read by the `eventsource-stream` crate, as they come, each
//! with the time at which it did.

use super::names::Names;
use super::{cause, http};
use ::http::{HeaderMap, HeaderValue, header};
use bytes::{Bytes, BytesMut};
use eventsource_stream::{EventStreamError, Eventsource};
use futures::{Stream, StreamExt};
use std::fmt;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Posts JSON and reads event streams. Cheap to clone; clones share their connections.
#[derive(Clone, Debug)]
pub struct Client {
    plain: reqwest::Client,
    tls: OnceLock<reqwest::Client>,
}

/// An answer whose body is yet to be read. To drop it, or what it is turned into, is to hang up.
#[derive(Debug)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// HTTP headers.
    pub headers: HeaderMap,
    /// When the headers were there.
    pub at: Instant,
    response: reqwest::Response,
}

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Its type; `message` where none was given.
    pub name: String,
    /// Its data.
    pub data: String,
    /// Its id, or that of the last event that had one.
    pub id: String,
    /// When it was there.
    pub at: Instant,
}

/// Why there is no answer, or no more of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Broken {
    /// The URL is none, or a client could not be built for it.
    Unusable(String),
    /// No connection.
    Connect(String),
    /// The connection broke.
    Reset(String),
    /// The body is no event stream, or over the limit.
    Garbled(String),
}

// === impl Client ===

impl Client {
    /// A client without connections. Trust anchors are read at the first `https` URL.
    ///
    /// # Errors
    /// Where the system lets no client be built.
    pub fn new() -> Result<Self, Broken> {
        Ok(Self { plain: build(false)?, tls: OnceLock::new() })
    }

    /// Posts `body` as JSON to `url` and waits for the headers of the answer, whatever its status.
    ///
    /// # Errors
    /// Where there is no answer.
    pub async fn post(&self, url: &str, headers: HeaderMap, body: impl Into<Bytes>) -> Result<Answer, Broken> {
        let mut request = self.of(url)?.post(url).headers(headers).body(body.into());
        request = request.header(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        self.answer(request).await
    }

    /// Gets `url`; for what is beside a turn, such as health, metrics and reports.
    ///
    /// # Errors
    /// Where there is no answer.
    pub async fn get(&self, url: &str, headers: HeaderMap) -> Result<Answer, Broken> {
        self.answer(self.of(url)?.get(url).headers(headers)).await
    }

    async fn answer(&self, request: reqwest::RequestBuilder) -> Result<Answer, Broken> {
        let response = request.send().await.map_err(|error| Broken::of(&error))?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Ok(Answer { status, headers, at: now(), response })
    }

    fn of(&self, url: &str) -> Result<&reqwest::Client, Broken> {
        if !url.starts_with("https:") {
            return Ok(&self.plain);
        }
        if let Some(client) = self.tls.get() {
            return Ok(client);
        }
        let client = build(true)?;
        Ok(self.tls.get_or_init(|| client))
    }
}

// === impl Answer ===

impl Answer {
    /// The body as events. The stream ends with the body, or with the first error.
    pub fn events(self) -> impl Stream<Item = Result<Arrival, Broken>> + Send + Unpin + 'static {
        let mut opening = Some(BytesMut::new());
        let pieces = self.response.bytes_stream().map(move |piece| piece.map(|piece| unmarked(&mut opening, piece)));
        let events = pieces.eventsource();
        let arrivals = events.map(|event| match event {
            Ok(event) => Ok(Arrival { name: event.event, data: event.data, id: event.id, at: now() }),
            Err(EventStreamError::Transport(error)) => Err(Broken::of(&error)),
            Err(error) => Err(Broken::Garbled(error.to_string())),
        });
        arrivals.scan(false, |over, arrival| {
            let before = std::mem::replace(over, arrival.is_err());
            std::future::ready((!before).then_some(arrival))
        })
    }

    /// The body, whole, up to `limit` bytes.
    ///
    /// # Errors
    /// Where the connection breaks, or the body is longer.
    pub async fn bytes(mut self, limit: usize) -> Result<Vec<u8>, Broken> {
        let mut body = Vec::new();
        while let Some(piece) = self.response.chunk().await.map_err(|error| Broken::of(&error))? {
            if body.len() + piece.len() > limit {
                return Err(Broken::Garbled(format!("the body is over {limit} bytes")));
            }
            body.extend_from_slice(&piece);
        }
        Ok(body)
    }
}

// === impl Broken ===

impl Broken {
    fn of(error: &reqwest::Error) -> Self {
        let words = cause::words(error);
        if error.is_builder() {
            Self::Unusable(words)
        } else if error.is_connect() {
            Self::Connect(words)
        } else {
            Self::Reset(words)
        }
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unusable(why) => write!(f, "cannot ask: {why}"),
            Self::Connect(why) => write!(f, "no connection: {why}"),
            Self::Reset(why) => write!(f, "the connection broke: {why}"),
            Self::Garbled(why) => write!(f, "unreadable: {why}"),
        }
    }
}

impl std::error::Error for Broken {}

// === helpers ===

fn build(tls: bool) -> Result<reqwest::Client, Broken> {
    let client = http::builder(tls).gzip(false).connect_timeout(CONNECT).dns_resolver(Names::of_system()).build();
    client.map_err(|error| Broken::Unusable(cause::words(&error)))
}

fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

/// Bound on connecting. Nothing else is bounded here: how long an answer may take is the caller's business.
const CONNECT: Duration = Duration::from_secs(10);

// === helpers ===

/// `piece` without the byte order mark that may open a body; the crate that reads events takes a mark for one byte, and
/// panics. `opening` holds what of a mark has come so far, until it is known whether it is one.
fn unmarked(opening: &mut Option<BytesMut>, piece: Bytes) -> Bytes {
    let Some(mut start) = opening.take() else { return piece };
    start.extend_from_slice(&piece);
    if start.len() < MARK.len() && MARK.starts_with(&start) {
        *opening = Some(start);
        return Bytes::new();
    }
    let start = start.freeze();
    if start.starts_with(MARK) { start.slice(MARK.len()..) } else { start }
}

/// The UTF-8 byte order mark.
const MARK: &[u8] = b"\xef\xbb\xbf";
