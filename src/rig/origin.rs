//! A provider on a socket: plays scripts over HTTP/1.1 and records what it was asked and who left when.
//!
//! The HTTP is written by hand, for no server library resets a connection, stops inside a chunk or forgets the last one
//! when asked to.

use super::play::{Act, Body, play};
use super::reading::Reading;
use super::script::{Close, Script};
use super::wire::Api;
use bytes::BytesMut;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

mod connection;
mod http;
mod records;
mod stream;

pub use records::{Fate, Record, Records};

use connection::Connection;
use http::{Head, Request};

/// A provider that listens. Dropping it stops it and breaks its connections.
#[derive(Debug)]
pub struct Origin {
    /// Where it listens.
    pub addr: SocketAddr,
    shared: Arc<Shared>,
    tasks: TaskTracker,
}

/// Which script answers which request.
#[derive(Clone)]
pub struct Scripts {
    choose: Arc<Chooser>,
    models: Vec<String>,
}

/// What a script may be chosen by.
#[derive(Clone, Copy, Debug)]
pub struct Inquiry<'a> {
    /// How many requests of this origin were answered by a script before it.
    pub number: u64,
    /// The path.
    pub path: &'a str,
    /// The API that it asks in.
    pub api: Api,
    /// The model that it names; empty if none.
    pub model: &'a str,
    /// Its headers, names in lower case.
    pub headers: &'a [(String, String)],
    /// Its body.
    pub body: &'a Value,
}

/// The model that was asked for is none; the text says which there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoModel(pub String);

type Chooser = dyn Fn(&Inquiry<'_>) -> Result<Arc<Script>, NoModel> + Send + Sync;

#[derive(Debug)]
struct Shared {
    scripts: Scripts,
    records: Arc<Records>,
    number: AtomicU64,
    seed: u64,
    places: Arc<Semaphore>,
    /// The most connections that were open at once.
    most: AtomicUsize,
    stop: CancellationToken,
}

// === impl Origin ===

impl Origin {
    /// Listens at `at` (port 0: any free one) and plays `scripts`.
    ///
    /// # Errors
    /// If it cannot listen there.
    pub async fn start(at: SocketAddr, scripts: Scripts) -> io::Result<Self> {
        Self::seeded(at, scripts, 0).await
    }

    /// The same with another seed: the request number `n` is played with `seed + n`.
    ///
    /// # Errors
    /// If it cannot listen there.
    pub async fn seeded(at: SocketAddr, scripts: Scripts, seed: u64) -> io::Result<Self> {
        let listener = TcpListener::bind(at).await?;
        let addr = listener.local_addr()?;
        let shared = Arc::new(Shared {
            scripts,
            records: Arc::new(Records::default()),
            number: AtomicU64::new(0),
            seed,
            places: Arc::new(Semaphore::new(MAX_CONNECTIONS)),
            most: AtomicUsize::new(0),
            stop: CancellationToken::new(),
        });
        let tasks = TaskTracker::new();
        tasks.spawn(accept(listener, Arc::clone(&shared), tasks.clone()));
        Ok(Self { addr, shared, tasks })
    }

    /// Listens on a free port of the loopback interface and plays `scripts`.
    ///
    /// # Errors
    /// If it cannot listen.
    pub async fn local(scripts: Scripts) -> io::Result<Self> {
        Self::start(SocketAddr::from(([127, 0, 0, 1], 0)), scripts).await
    }

    /// What clients are configured with: `http://ADDR/v1`.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.addr)
    }

    /// What it was asked.
    pub fn records(&self) -> &Records {
        &self.shared.records
    }

    /// How many connections were open at the same time, at most, the idle ones included.
    pub fn most_connections(&self) -> usize {
        self.shared.most.load(Ordering::Relaxed)
    }

    /// Stops: breaks every connection and waits until all are gone.
    pub async fn stop(self) {
        self.shared.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        self.shared.stop.cancel();
        self.tasks.close();
    }
}

// === impl Scripts ===

impl Scripts {
    /// The same for every request.
    pub fn fixed(script: Script) -> Self {
        let script = Arc::new(script);
        Self::with(move |_| Ok(Arc::clone(&script)))
    }

    /// One after the other; the last one repeats. An empty list tells an empty answer.
    pub fn sequence(scripts: Vec<Script>) -> Self {
        let scripts: Vec<Arc<Script>> = scripts.into_iter().map(Arc::new).collect();
        Self::with(move |inquiry| {
            let at = usize::try_from(inquiry.number).unwrap_or(usize::MAX);
            Ok(scripts.get(at).or_else(|| scripts.last()).cloned().unwrap_or_default())
        })
    }

    /// By the name of the model, else `default`; without one, an unknown model is a 404.
    pub fn by_model(models: BTreeMap<String, Script>, default: Option<Script>) -> Self {
        let names: Vec<String> = models.keys().cloned().collect();
        let known = names.join(", ");
        let models: BTreeMap<String, Arc<Script>> = models.into_iter().map(|(n, s)| (n, Arc::new(s))).collect();
        let default = default.map(Arc::new);
        let mut scripts = Self::with(move |inquiry| {
            let found = models.get(inquiry.model).or(default.as_ref());
            found.cloned().ok_or_else(|| NoModel(format!("There is no model `{}`; there are: {known}", inquiry.model)))
        });
        scripts.models = names;
        scripts
    }

    /// As `choose` says.
    pub fn with(choose: impl Fn(&Inquiry<'_>) -> Result<Arc<Script>, NoModel> + Send + Sync + 'static) -> Self {
        Self { choose: Arc::new(choose), models: vec!["rig".to_owned()] }
    }

    pub(super) fn choose(&self, inquiry: &Inquiry<'_>) -> Result<Arc<Script>, NoModel> {
        (self.choose)(inquiry)
    }

    /// The same, with these names in the list of models.
    #[must_use]
    pub fn listing(mut self, models: Vec<String>) -> Self {
        self.models = models;
        self
    }
}

impl fmt::Debug for Scripts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scripts").field("models", &self.models).finish_non_exhaustive()
    }
}

// === serving ===

async fn accept(listener: TcpListener, shared: Arc<Shared>, tasks: TaskTracker) {
    loop {
        let Ok(place) = Arc::clone(&shared.places).acquire_owned().await else { return };
        let accepted = tokio::select! {
            () = shared.stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                shared.most.fetch_max(MAX_CONNECTIONS - shared.places.available_permits(), Ordering::Relaxed);
                let shared = Arc::clone(&shared);
                tasks.spawn(async move {
                    let _place = place;
                    let stop = shared.stop.clone();
                    tokio::select! {
                        () = stop.cancelled() => {}
                        () = serve(stream, &shared) => {}
                    }
                });
            }
            // Out of descriptors, most likely: others will close theirs.
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

/// Answers the requests of one connection.
async fn serve(stream: TcpStream, shared: &Shared) {
    // Without it each event of a slow stream waits for the acknowledgement of the one before.
    let _ = stream.set_nodelay(true);
    let mut connection = Connection::new(stream);
    loop {
        match http::read(&mut connection).await {
            Ok(Some(request)) => {
                if !boxed(answer(&mut connection, request, shared)).await {
                    return;
                }
            }
            Ok(None) => return,
            Err(refused) => {
                let _ = connection.whole(refused.status, &[], "text/plain", refused.message.as_bytes(), false).await;
                return;
            }
        }
    }
}

/// A future on the heap: it holds a request and a timeline, which an idle connection need not.
fn boxed<'a, T>(future: impl Future<Output = T> + Send + 'a) -> std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>> {
    Box::pin(future)
}

/// Answers one request; `true` if the connection may be used again.
async fn answer(connection: &mut Connection, request: Request, shared: &Shared) -> bool {
    let Request { head, body } = request;
    let api = Api::of_path(&head.path);
    match (head.method.as_str(), api) {
        ("POST", Some(api)) => play_script(connection, head, &body, api, shared).await,
        ("GET", _) if head.path.split('?').next().is_some_and(|path| path.ends_with("/models")) => {
            let list = models(&shared.scripts.models);
            connection.whole(200, &[], "application/json", list.as_bytes(), head.keep_alive).await.is_ok()
        }
        ("GET", _) if head.path == "/health" => {
            connection.whole(200, &[], "text/plain", b"ok\n", head.keep_alive).await.is_ok()
        }
        (method, _) => {
            let message = format!(
                "{{\"error\":{{\"message\":\"There is no {method} {path} here; there are POST …/chat/completions, \
                 POST …/messages and GET …/models\",\"type\":\"invalid_request_error\",\"param\":null,\"code\":null}}}}",
                method = method.escape_default(),
                path = head.path.replace(['"', '\\'], "'")
            );
            connection.whole(404, &[], "application/json", message.as_bytes(), head.keep_alive).await.is_ok()
        }
    }
}

async fn play_script(connection: &mut Connection, head: Head, body: &BytesMut, api: Api, shared: &Shared) -> bool {
    let start = Instant::now();
    let keep_alive = head.keep_alive;
    let Ok(json) = serde_json::from_slice::<Value>(body) else {
        let (text, kind) = api.error(400, Body::Invalid("The body is no JSON."));
        return connection.whole(400, &[], kind, text.as_bytes(), keep_alive).await.is_ok();
    };
    let number = shared.number.fetch_add(1, Ordering::Relaxed);
    let model = json.get("model").and_then(Value::as_str).unwrap_or_default().to_owned();
    let inquiry = Inquiry { number, path: &head.path, api, model: &model, headers: &head.headers, body: &json };
    let chosen = shared.scripts.choose(&inquiry);
    let script = match &chosen {
        Ok(script) => Arc::clone(script),
        Err(_) => Arc::default(),
    };
    let text = script.text();
    let reading = match api {
        Api::Chat => Reading::of_chat(&json, &text),
        Api::Anthropic => Reading::of_anthropic(&json, &text),
        Api::Responses => Reading::of_responses(&json, &text),
    };
    drop(text);
    let names = api.names(number, &model, unix_seconds());
    let ticket = shared.records.open(Record::new(number, start, head, json, body.len(), reading.clone()));
    let ticket = records::Ticket::new(Arc::clone(&shared.records), ticket);
    let exchange = stream::Exchange { api, names, ticket, start, keep_alive };
    if let Err(NoModel(message)) = chosen {
        return exchange.no_model(connection, &message).await;
    }
    let acts = play(&script, &reading, shared.seed.wrapping_add(number));
    if reading.stream || acts.iter().any(|(_, act)| matches!(act, Act::Answer(_))) {
        exchange.stream(connection, &script, &reading, acts).await
    } else {
        exchange.whole(connection, acts).await
    }
}

// === helpers ===

fn models(names: &[String]) -> String {
    let list: Vec<Value> = names
        .iter()
        .map(|name| {
            serde_json::json!({"id": name, "object": "model", "type": "model", "display_name": name,
                               "created": 1_700_000_000, "owned_by": "rig"})
        })
        .collect();
    serde_json::json!({"object": "list", "data": list, "has_more": false}).to_string()
}

fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// What a close does to a connection that is to stay usable.
fn is_reusable(close: Close) -> bool {
    close == Close::End
}

// === consts ===

/// The most connections at once; more wait in the listener's queue.
pub const MAX_CONNECTIONS: usize = 16_384;

/// Before the next try after a failed accept.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);
