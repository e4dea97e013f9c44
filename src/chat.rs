//! A chat request in the form that every dialect can be read into and written from.
//!
//! It is the *pristine* request: parsed once, shared by every attempt, never changed. A dialect that encodes for its
//! own kind edits [`Request::raw`], so that fields nobody here knows survive; any other dialect writes from the
//! common form and names what it had to leave out.

use serde_json::{Map, Value};

pub mod modality;

/// The APIs that Segue speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DialectId {
    /// OpenAI Chat Completions and the many that speak it.
    Chat,
    /// OpenAI Responses.
    Responses,
    /// Anthropic Messages.
    Anthropic,
    /// Google Gemini.
    Gemini,
    /// AWS Bedrock Converse.
    Bedrock,
}

/// What a client asks for.
#[derive(Clone, Debug)]
pub struct Request {
    /// The dialect that it was asked in.
    pub origin: DialectId,
    /// The body as the client sent it, without Segue's own fields.
    pub raw: Map<String, Value>,
    /// Client headers that change what the body means (`anthropic-beta`), for targets of the same dialect only.
    pub passed: Vec<(String, String)>,
    /// The level, alias or `connection/model` that the client names.
    pub model: String,
    /// Instructions that stand before the conversation, in order.
    pub system: Vec<Part>,
    /// The conversation.
    pub messages: Vec<Message>,
    /// Functions that the model may call.
    pub tools: Vec<Tool>,
    /// Tools that the provider runs itself (web search and the like), as the client wrote them.
    pub server_tools: Vec<Value>,
    /// Whether and what it must call.
    pub tool_choice: Option<ToolChoice>,
    /// Whether several calls at once are welcome.
    pub parallel_tool_calls: Option<bool>,
    /// The form of the answer.
    pub format: Format,
    /// Where to stop.
    pub stop: Vec<String>,
    /// The most tokens to generate.
    pub max_tokens: Option<u64>,
    /// Sampling temperature on the scale of 0 to 2.
    pub temperature: Option<f64>,
    /// Nucleus sampling.
    pub top_p: Option<f64>,
    /// How much the model should think.
    pub effort: Option<Effort>,
    /// How many answers; 1 unless asked otherwise.
    pub choices: u32,
    /// The user's id for abuse detection.
    pub user: Option<String>,
    /// The answer is to be streamed.
    pub stream: bool,
    /// The client wants to see usage in the stream.
    pub include_usage: bool,
    /// The answer has parts that cannot be joined (audio).
    pub audio: bool,
    /// The provider is asked to keep the answer, so it must not be asked twice at the same time.
    pub stored: bool,
    /// Segue's own fields, taken off the body and the headers.
    pub extensions: Extensions,
    /// What an answer is called if its provider gives it no name; the server fills it in.
    pub minted: Minted,
}

/// Chance and time for an answer's id, drawn where the request came in: encoders are pure and draw none themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Minted {
    /// 128 random bits.
    pub id: u128,
    /// Unix time in seconds.
    pub unix: u64,
}

/// What a client asks of Segue itself. None of it goes upstream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extensions {
    /// Which conversation the turn belongs to.
    pub conversation: Option<String>,
    /// The client's count of the turn.
    pub turn_index: Option<u64>,
    /// The gateway prepends the stored history.
    pub append_history: bool,
    /// A deadline shorter than the configured one, in milliseconds.
    pub deadline_ms: Option<u64>,
    /// The stream may be resumed after the connection is lost.
    pub resumable: bool,
    /// No path may switch the target behind the caller's back.
    pub failover_off: bool,
    /// No races.
    pub hedge_off: bool,
    /// The caller's order of the chain's connections.
    pub order: Vec<String>,
    /// Skip targets that would need something dropped.
    pub strict: bool,
    /// The id of the answer that this one follows.
    pub previous: Option<String>,
    /// The ids of the answers that the request refers to parts of, each once.
    pub references: Vec<String>,
    /// The answer is kept under its id.
    pub keep: bool,
}

/// One message.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// Whose.
    pub role: Role,
    /// What it holds, in order.
    pub parts: Vec<Part>,
}

/// Whose message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Instructions in the middle of a conversation.
    System,
    /// The person.
    User,
    /// The model.
    Assistant,
    /// The results of tool calls.
    Tool,
}

/// A part of a message.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// Text.
    Text {
        /// The text.
        text: String,
        /// Ends a prefix worth caching, as the client wrote it (`cache_control`).
        cache: Option<Value>,
    },
    /// An image.
    Image(Media),
    /// A document.
    Document(Media),
    /// A tool call of the assistant.
    ToolCall {
        /// The call's id.
        id: String,
        /// The function.
        name: String,
        /// JSON text; may be empty or broken where a client replays a bad turn.
        args: String,
    },
    /// The result of a tool call.
    ToolResult {
        /// The call's id.
        id: String,
        /// Texts and images.
        parts: Vec<Self>,
        /// The call failed.
        failed: bool,
    },
    /// The assistant's reasoning of an earlier turn.
    Reasoning {
        /// Readable text; may be empty.
        text: String,
        /// Signature or opaque data, which only `issuer` can read.
        signature: Option<String>,
        /// The dialect that signed it.
        issuer: DialectId,
        /// `signature` is all there is.
        redacted: bool,
    },
    /// The assistant's refusal of an earlier turn.
    Refusal(String),
    /// Something of one dialect that has no common form.
    Other(DialectId, Value),
}

/// An image or a document.
#[derive(Clone, Debug, PartialEq)]
pub enum Media {
    /// At an address.
    Url(String),
    /// Inline, base64.
    Data {
        /// Media type, such as `image/png`.
        kind: String,
        /// Base64 text.
        data: String,
    },
}

/// A function that the model may call.
#[derive(Clone, Debug, PartialEq)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: Option<String>,
    /// JSON schema of its arguments.
    pub parameters: Option<Value>,
    /// Arguments must meet the schema exactly.
    pub strict: Option<bool>,
    /// Ends a prefix worth caching (`cache_control`).
    pub cache: Option<Value>,
}

/// Whether and what the model must call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolChoice {
    /// As it likes.
    Auto,
    /// Nothing.
    None,
    /// Something.
    Required,
    /// This function.
    Function(String),
}

/// The form of the answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Format {
    /// Text.
    #[default]
    Text,
    /// Any JSON object.
    Json,
    /// JSON that meets a schema.
    Schema {
        /// Its name.
        name: String,
        /// The schema.
        schema: Value,
        /// It must be met exactly.
        strict: Option<bool>,
    },
}

/// How much the model should think.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effort {
    /// Not at all.
    None,
    /// The least.
    Minimal,
    /// Little.
    Low,
    /// Some.
    Medium,
    /// Much.
    High,
    /// Very much.
    XHigh,
    /// As much as it can.
    Max,
}

// === impl DialectId ===

impl DialectId {
    /// The name in configuration, metrics and docs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Responses => "responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Bedrock => "bedrock",
        }
    }
}

// === impl Part ===

impl Part {
    /// Text without a cache mark.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into(), cache: None }
    }
}

// === impl Media ===

impl Media {
    /// What stands behind an address, which may hold the data itself: `data:image/png;base64,…`, with parameters or
    /// without. `image/jpg`, which is no media type, is `image/jpeg`.
    pub fn of_url(url: &str) -> Self {
        let inline = url.get(..5).filter(|scheme| scheme.eq_ignore_ascii_case("data:")).and_then(|_| {
            let (head, data) = url[5..].split_once(',')?;
            let mut parameters = head.split(';').map(str::trim);
            let kind = parameters.next().unwrap_or_default();
            parameters
                .any(|parameter| parameter.eq_ignore_ascii_case("base64"))
                .then(|| Self::Data { kind: media_type(kind), data: data.to_owned() })
        });
        inline.unwrap_or_else(|| Self::Url(url.to_owned()))
    }
}

/// A media type under its own name.
pub fn media_type(kind: &str) -> String {
    match kind.to_ascii_lowercase().as_str() {
        "image/jpg" | "image/pjpeg" => "image/jpeg".to_owned(),
        "image/x-png" => "image/png".to_owned(),
        "" => "text/plain".to_owned(),
        other => other.to_owned(),
    }
}

// === impl Request ===

impl Request {
    /// An estimate of the prompt's tokens from the length of its texts: ASCII characters / 4, others 1 each, and a
    /// thousand for an image. It errs by some 20 %, enough to leave out a target that is far too small.
    pub fn estimated_prompt(&self) -> u64 {
        let parts = self.system.iter().chain(self.messages.iter().flat_map(|m| &m.parts));
        let text: u64 = parts.map(part_tokens).sum();
        let tools: u64 = self
            .tools
            .iter()
            .map(|t| {
                8 + t.parameters.as_ref().map_or(0, |p| tokens(&p.to_string()))
                    + tokens(t.description.as_deref().unwrap_or_default())
            })
            .sum();
        text + tools + 4 * self.messages.len() as u64
    }
}

// === helpers ===

/// An estimate of how many tokens a text is: ASCII characters / 4, all others 1 each, at least 1 unless empty.
pub fn tokens(text: &str) -> u64 {
    let (mut ascii, mut wide) = (0_u64, 0_u64);
    for c in text.chars() {
        if c.is_ascii() { ascii += 1 } else { wide += 1 }
    }
    ascii.div_ceil(4) + wide
}

fn part_tokens(part: &Part) -> u64 {
    match part {
        Part::Text { text, .. } | Part::Reasoning { text, .. } | Part::Refusal(text) => tokens(text),
        Part::Image(_) | Part::Document(_) => 1000,
        Part::ToolCall { name, args, .. } => tokens(name) + tokens(args),
        Part::ToolResult { parts, .. } => parts.iter().map(part_tokens).sum(),
        Part::Other(_, value) => tokens(&value.to_string()),
    }
}
