//! One folder per API, both ways: what Segue's clients speak and what its providers speak.
//!
//! A dialect holds ALL knowledge of its API, quirks included, as data where it can be. It is pure: bytes and values
//! in, bytes and values out. Dialects do not see each other; they meet in `chat` and `event`. A provider that speaks
//! a known dialect is configuration only; a new dialect is a folder here and a line in [`of`].

use crate::bounds::{Bounds, Excess};
use crate::chat::modality::Modalities;
use crate::chat::{DialectId, Request};
use crate::event::{Finish, Step, Usage};
use crate::failure::{Failure, Kind, Stage};
use crate::routing::Target;
use crate::sse;
use crate::turn::resume::{Carry, How};
use bytes::{Bytes, BytesMut};
pub use field::Field;
use history::{Answers, History};
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use std::fmt;
use std::time::{Duration, SystemTime};

pub mod anthropic;
pub mod chat;
pub mod extensions;
mod field;
mod finishes;
pub mod history;
mod ids;
mod json;
mod openai;
mod refusals;
mod repair;
pub mod responses;
mod surrogates;

/// One API: the side that a provider speaks and, where clients of Segue speak it too, theirs.
pub trait Dialect: Send + Sync + 'static {
    /// Which.
    fn id(&self) -> DialectId;

    /// Towards the provider.
    fn provider(&self) -> &'static dyn Provider;

    /// Towards the client; `None` for a dialect that no client speaks to Segue.
    fn client(&self) -> Option<&'static dyn Client>;
}

/// What a provider of this API is sent, and what is read of it. All methods are pure functions of their arguments.
pub trait Provider: Send + Sync + 'static {
    /// Builds the HTTP request for one attempt from the pristine request: same history bytes in every leg, credentials
    /// not included.
    ///
    /// # Errors
    /// `BadRequest` where the request cannot be expressed for this target at all.
    fn encode(&self, request: &Request, target: &Target, carry: &Carry) -> Result<WireRequest, Failure>;

    /// Puts the credential and the protocol version into the request's headers, in the place of any that stand there.
    /// It is the last thing that is done to a request: a signature covers path, headers and body. `now` is the time of
    /// day that such a signature names.
    fn sign(&self, request: &mut WireRequest, credential: &Credential<'_>, now: SystemTime);

    /// Reads a response that is not a success, or a success whose body is no stream but an error.
    fn classify(&self, status: u16, headers: &HeaderMap, body: &[u8]) -> Failure;

    /// How a streamed answer is cut into events before [`Decode`] reads them.
    fn framing(&self) -> Framing;

    /// A decoder for one response.
    fn decoder(&self, expect: Expect) -> Box<dyn Decode>;

    /// Reads a whole answer that came where a stream was asked for, as the steps of a stream.
    ///
    /// # Errors
    /// What the body says went wrong, or `Framing` if it is no answer of this API.
    fn whole(&self, body: &[u8], expect: Expect) -> Result<Vec<Step>, Failure>;

    /// The kinds of content that its requests can hold besides text.
    fn inputs(&self) -> Modalities {
        Modalities::ALL
    }

    /// How `model` continues a turn, by what its vendor documents.
    fn how(&self, model: &str) -> How;

    /// Whether `model` is known to repeat a prefilled text before it goes on.
    fn echoes(&self, model: &str) -> bool;

    /// The vendor's base URL, for connections that give none.
    fn default_base_url(&self) -> &'static str;

    /// The version segment of the API's paths (`/v1`), added to base URLs that do not end in one.
    fn version_segment(&self) -> &'static str;
}

/// What a client of this API sends, and what it is answered. All methods are pure functions of their arguments.
pub trait Client: Send + Sync + 'static {
    /// Reads a client's request. Takes Segue's own fields off the body and the headers.
    ///
    /// # Errors
    /// A refusal that names the place and the remedy.
    fn parse(&self, headers: &HeaderMap, body: &[u8]) -> Result<Request, Refusal>;

    /// An encoder for one answer, streamed or whole as the request asks.
    fn encoder(&self, request: &Request) -> Box<dyn Encode>;

    /// Words an error as a whole response.
    fn refuse(&self, refusal: &Refusal) -> Reply;

    /// What this API calls a field of the common form.
    fn word(&self, field: Field) -> &'static str;

    /// The fields of a request in this API that the common form does not hold, but for those that say what is so anyway;
    /// the first of them where there are many.
    fn uncommon<'r>(&self, request: &'r Request) -> Vec<&'r str>;

    /// How it writes conversations.
    fn history(&self) -> &'static dyn History;

    /// Its answers that clients refer to by their ids; `None` where clients cannot.
    fn answers(&self) -> Option<&'static dyn Answers> {
        None
    }
}

/// How a streamed answer is cut into events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// Server-sent events.
    Sse,
    /// AWS's binary event stream; nothing here reads it yet.
    EventStream,
    /// One JSON text; nothing is streamed.
    Json,
}

/// What a request is signed with.
#[derive(Clone, Copy, Default)]
pub struct Credential<'a> {
    /// The key; `None`: the provider wants none.
    pub key: Option<&'a str>,
    /// The protocol version that the connection is configured for; `None`: the dialect's own.
    pub version: Option<&'a str>,
}

/// Reads one upstream's events.
pub trait Decode: Send {
    /// Reads one event into `step`: its events, and `raw` if it could be passed on as it is.
    ///
    /// # Errors
    /// The failure that the event reports, or `Malformed`.
    fn event(&mut self, event: &sse::Event, step: &mut Step) -> Result<Flow, Failure>;

    /// The body has ended. `rest` is an event that was not terminated; it counts only if it is a whole terminal one.
    ///
    /// # Errors
    /// `Truncated` or `EmptyTurn`, unless the answer is whole.
    fn end(&mut self, rest: Option<&sse::Event>, step: &mut Step) -> Result<(), Failure>;
}

/// Whether more is to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Yes.
    More,
    /// No: the terminator was read, whatever the socket does.
    Done,
}

/// What a decoder must know of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expect {
    /// How many choices must finish.
    pub choices: u32,
    /// What the answer may consist of.
    pub bounds: Bounds,
    /// The most bytes that a decoder may keep of one answer.
    pub max_turn: usize,
}

/// Writes one client's answer: the only owner of its id, role, indexes, usage and terminator.
pub trait Encode: Send {
    /// Writes what `step` says (a whole answer: remembers it). `raw` is written as it is where that is legal here.
    fn step(&mut self, step: &Step, out: &mut BytesMut);

    /// Ends the answer: the terminator or the whole body, or the error in the client's dialect. Called once.
    fn close(&mut self, end: End<'_>, out: &mut BytesMut);

    /// Writes a sign of life that no client takes for an event.
    fn keep_alive(&mut self, out: &mut BytesMut);

    /// Writes a comment that no client takes for an event, where the dialect has such; `text` is one line.
    fn comment(&mut self, text: &str, out: &mut BytesMut);

    /// Says who speaks from here on: what it signs, only providers of its dialect can read.
    fn speaker(&mut self, _dialect: DialectId) {}

    /// The answer as its client may ask for it again, as far as it got; `None` where clients cannot, or nothing was told.
    /// Called once, when it has ended.
    fn record(&mut self) -> Option<Value> {
        None
    }
}

/// How an answer ends.
#[derive(Clone, Copy, Debug)]
pub enum End<'a> {
    /// Every choice has finished; the usage of the turn as one.
    Complete(&'a Usage),
    /// With an error, after something was delivered.
    Failed(&'a Refusal),
}

/// A request on its way to a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WireRequest {
    /// Path and query below the base URL (after its version segment), such as `/chat/completions`.
    pub path: String,
    /// Headers besides `content-type` and `accept`; credentials among them once it is signed.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The body.
    pub body: Bytes,
    /// Fields that were asked for and left out, in the client's names, for `x-segue-dropped`.
    pub dropped: Vec<String>,
}

/// A response to a client, whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// HTTP status.
    pub status: u16,
    /// Headers, `content-type` included.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The body.
    pub body: Bytes,
}

/// An error for a client, in no dialect yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What kind; it decides the status and each dialect's type.
    pub reason: Reason,
    /// The provider's own error type, which goes before the dialect's where the dialects agree on it.
    pub r#type: Option<String>,
    /// A stable word for programs.
    pub code: String,
    /// What is wrong, where, and what to do.
    pub message: String,
    /// The request field that it is about.
    pub param: Option<String>,
    /// When to ask again.
    pub retry_after: Option<Duration>,
    /// What was tried, a line an attempt, at most eight.
    pub attempts: Vec<String>,
}

/// Why a client gets an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// 400: the request.
    Request,
    /// 401: the key.
    Key,
    /// 403: not for this key.
    Forbidden,
    /// 404: no such model, turn or route.
    NotFound,
    /// 409: the conversation has an open turn.
    Busy,
    /// 413: the body is over the limit.
    TooLarge,
    /// 429: a limit; `code` names it.
    Limited,
    /// 500: Segue's own fault.
    Internal,
    /// 502: every target failed.
    Upstream,
    /// 503: draining, full, or all circuits open.
    Unavailable,
    /// 504: every target was too slow.
    Timeout,
}

// === impl Expect ===

impl Expect {
    /// An answer of that many choices, within the bounds that hold where none are configured.
    pub fn of(choices: u32) -> Self {
        Self { choices, bounds: Bounds::default(), max_turn: 32 << 20 }
    }
}

// === impl Reason ===

impl Reason {
    /// The HTTP status.
    pub fn status(self) -> u16 {
        match self {
            Self::Request => 400,
            Self::Key => 401,
            Self::Forbidden => 403,
            Self::NotFound => 404,
            Self::Busy => 409,
            Self::TooLarge => 413,
            Self::Limited => 429,
            Self::Internal => 500,
            Self::Upstream => 502,
            Self::Unavailable => 503,
            Self::Timeout => 504,
        }
    }
}

// === impl Refusal ===

impl Refusal {
    /// A refusal with a code and a message.
    pub fn new(reason: Reason, code: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            reason,
            r#type: None,
            code: code.into(),
            message: message.into(),
            param: None,
            retry_after: None,
            attempts: Vec::new(),
        }
    }

    /// The same about one field of the request.
    #[must_use]
    pub fn about(mut self, param: impl Into<String>) -> Self {
        self.param = Some(param.into());
        self
    }
}

// === impl Credential ===

impl fmt::Debug for Credential<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = self.key.map(|_| "[key]");
        f.debug_struct("Credential").field("key", &key).field("version", &self.version).finish()
    }
}

// === impl WireRequest ===

impl WireRequest {
    /// Sets a header in the place of any of that name.
    fn set_header(&mut self, name: HeaderName, value: HeaderValue) {
        self.headers.retain(|(known, _)| *known != name);
        self.headers.push((name, value));
    }
}

// === helpers ===

/// The dialect by its id; `None` for one that is not built yet.
pub fn of(id: DialectId) -> Option<&'static dyn Dialect> {
    match id {
        DialectId::Chat => Some(&chat::Chat),
        DialectId::Anthropic => Some(&anthropic::Anthropic),
        DialectId::Responses => Some(&responses::Responses),
        DialectId::Gemini | DialectId::Bedrock => None,
    }
}

/// The provider's side of a dialect; `None` for one that is not built yet.
pub fn provider(id: DialectId) -> Option<&'static dyn Provider> {
    of(id).map(Dialect::provider)
}

/// The client's side of a dialect; `None` for one that no client speaks, or that is not built yet.
pub fn client(id: DialectId) -> Option<&'static dyn Client> {
    of(id).and_then(Dialect::client)
}

/// Reads a client's request within `bounds`: what is too much is refused before it costs anything, and in words that
/// name the bound.
///
/// # Errors
/// A refusal that names the place and the remedy.
pub fn read(client: &dyn Client, headers: &HeaderMap, body: &[u8], bounds: &Bounds) -> Result<Request, Refusal> {
    bounds.body(body).map_err(too_much)?;
    let request = client.parse(headers, body)?;
    bounds.request(&request).map_err(too_much)?;
    Ok(request)
}

fn too_much(excess: Excess) -> Refusal {
    let message = format!("the request holds {excess}; send less, or raise the limit");
    let refusal = Refusal::new(Reason::Request, "too_much", message);
    match excess.field {
        Some(field) => refusal.about(field),
        None => refusal,
    }
}

/// The finish that a client is told, which must agree with what it was given: calls and `stop` are `tool_calls`,
/// `tool_calls` without a call is `stop`; a limit or a filter stays what it is.
pub fn reconcile(reason: Finish, calls: usize) -> Finish {
    match reason {
        Finish::Stop | Finish::Other(_) if calls > 0 => Finish::ToolCalls,
        Finish::ToolCalls if calls == 0 => Finish::Stop,
        other => other,
    }
}

/// Nothing of the question can be said in a target's dialect: another target may be able to.
fn unsayable() -> Failure {
    let what = "nothing of the question can be said in this target's API";
    Failure::new(Kind::Repairable, Stage::Connecting).ours().saying(what)
}

/// Adds `name` to the fields that are left out of a request, once. A client may ask for any number of things that a
/// target lacks, under names of any length: the first of them are told, cut where they are long.
fn note(dropped: &mut Vec<String>, name: &str) {
    let name = &name[..name.floor_char_boundary(NOTED_BYTES)];
    if dropped.len() < NOTED && !dropped.iter().any(|known| known == name) {
        dropped.push(name.to_owned());
    }
}

/// The most left-out fields that are named.
const NOTED: usize = 64;
/// The most bytes of each name.
const NOTED_BYTES: usize = 64;
