//! Where a turn may go: levels, their chains, and the policies that hold along them. Plain values, built by
//! `config`; nothing here knows the state of a target.

pub mod plan;

use crate::chat::DialectId;
use crate::chat::modality::Modalities;
use std::sync::Arc;
use std::time::Duration;

/// A connection and a model, and what is known of the pair.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// The connection's name in the configuration.
    pub connection: Arc<str>,
    /// The model, as the provider names it.
    pub model: Arc<str>,
    /// What the connection speaks.
    pub dialect: DialectId,
    /// Who signs its reasoning: the `vendor:` domain, else the connection's name.
    pub issuer: Arc<str>,
    /// How it goes on with a turn that another began.
    pub continuation: Continuation,
    /// The most tokens of prompt and answer together, if known.
    pub context_window: Option<u64>,
    /// The most tokens of an answer, if known.
    pub max_output: Option<u64>,
    /// Request fields that it does not take, in its own dialect's names.
    pub drops: Vec<String>,
    /// The kinds of content that it takes besides text; `None`: nobody said.
    pub inputs: Option<Modalities>,
    /// It thinks before it speaks.
    pub reasons: bool,
    /// Whether it thinks unasked, as far as its model's name tells; `None`: nothing is known of it.
    pub thinks: Option<bool>,
    /// It answers alike when asked alike (for structured output in `stream` mode).
    pub deterministic: bool,
    /// 1 is best.
    pub quality: u32,
    /// What it shares its fate with: `vendor:…`, `cloud:…`, `region:…`.
    pub domains: Vec<String>,
}

/// The configured way of continuing; `Auto` leaves it to the dialect's table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Continuation {
    /// As the dialect's table says for the model; `Instruct` where it says nothing.
    #[default]
    Auto,
    /// A user message that quotes the end and asks to go on.
    Instruct,
    /// The partial answer as the last message, which the model continues.
    Prefill,
    /// The provider's own way to resume a stream.
    Native,
    /// The pristine request again; only where nothing visible was delivered.
    Restart,
}

/// One place in a chain.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Whom to ask.
    pub target: Arc<Target>,
    /// The clocks that hold there.
    pub timeouts: Timeouts,
}

/// How patient a turn is. Every clock is per attempt, save `turn`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timeouts {
    /// To a connection.
    pub connect: Duration,
    /// From a target's first send to its first progress, through its retries and rate-limit waits.
    pub first_token: Duration,
    /// What is added to `first_token` for each thousand tokens of the prompt; `None`: nothing.
    pub first_token_per_1k: Option<Duration>,
    /// From the request to the first thing that a client sees, over all targets; `None`: off.
    pub first_word: Option<Duration>,
    /// Replaces `first_token` and `stall` while the model thinks, makes a call or waits for its provider's tools.
    pub thinking: Duration,
    /// Mid-turn silence that starts a challenger; `None`: off.
    pub suspect: Option<Duration>,
    /// Mid-turn speed below which a challenger starts; `None`: off.
    pub pace: Option<Pace>,
    /// Mid-turn time without progress after which an attempt has failed.
    pub stall: Duration,
    /// Time without any byte after which an attempt has failed.
    pub idle: Duration,
    /// The whole turn: attempts, retries, waits and queues.
    pub turn: Duration,
    /// A client that takes nothing for so long is gone.
    pub client_write: Duration,
    /// Reading an upstream's error body.
    pub error_body: Duration,
}

/// `chars` a second, measured over `window`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    /// Characters a second.
    pub chars: f64,
    /// Over how long.
    pub window: Duration,
}

/// A chain and its policies.
#[derive(Clone, Debug, PartialEq)]
pub struct Level {
    /// Its name.
    pub name: Arc<str>,
    /// At most [`Level::MAX_CHAIN`] distinct targets, first choice first.
    pub chain: Vec<Entry>,
    /// Clocks of the turn as a whole.
    pub timeouts: Timeouts,
    /// A worse target than this never serves.
    pub min_quality: Option<u32>,
    /// Further tries at the same target, a turn.
    pub retries: u32,
    /// Pauses before them.
    pub backoff: Backoff,
    /// After a transport failure, the same target once before the next.
    pub same_first: bool,
    /// What fallbacks are given of the history.
    pub history: History,
    /// What a rate limit means.
    pub rate_limited: RateLimited,
    /// What an answer of nothing means.
    pub empty: Empty,
    /// When tool calls are told.
    pub tool_calls: Delivery,
    /// When structured output is told.
    pub structured: Delivery,
    /// Two turns of one conversation at once.
    pub conversation: Concurrency,
    /// How long a conversation stays with a fallback.
    pub affinity: Duration,
    /// Challengers on suspicion, as a share of turns.
    pub budget: f64,
    /// Hedged requests; `None`: off.
    pub hedge: Option<Hedge>,
    /// Share of `max_turns` above which the level is refused; `None`: never.
    pub shed_at: Option<f64>,
    /// How long a turn above it waits instead of being refused.
    pub queue: Option<Duration>,
    /// A comment in the stream tells of each splice.
    pub announce: bool,
    /// The longest stretch of a continuation that is held while an alignment is alive, in characters.
    pub seam_window: usize,
}

/// `min(cap, base·2^a + U(0, base))` before try `a`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Backoff {
    /// The first pause, and the width of the jitter.
    pub base: Duration,
    /// The longest pause.
    pub cap: Duration,
}

/// What a fallback is given of the conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum History {
    /// All of it.
    #[default]
    Full,
    /// The last user message: the baseline of the continuity benchmark.
    LastUserMessage,
}

/// What to do about an answer of nothing, or of reasoning only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Empty {
    /// It is an answer like any other.
    #[default]
    Tell,
    /// The next target is asked, if one is left.
    Next,
}

/// What to do about a rate limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RateLimited {
    /// Wait if the time is known and short, else switch.
    #[default]
    Auto,
    /// Wait.
    Wait,
    /// Switch.
    Switch,
}

/// When something that cannot be spliced is told to the client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Delivery {
    /// Once it is whole, while another target or try remains.
    #[default]
    Hold,
    /// As it comes.
    Stream,
}

/// What happens to a second turn of a conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Concurrency {
    /// It is refused.
    #[default]
    Reject,
    /// It waits.
    Queue,
    /// It hangs the first one up.
    Supersede,
}

/// Hedged requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hedge {
    /// When the challenger starts.
    pub after: After,
    /// Never sooner.
    pub min: Duration,
    /// Never later.
    pub max: Duration,
    /// Share of turns that may hedge.
    pub budget: f64,
}

/// When a hedge starts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum After {
    /// A fixed time.
    Time(Duration),
    /// A percentile (0 to 100) of the target's recent first-token times.
    Percentile(f64),
}

// === impl Timeouts ===

impl Timeouts {
    /// The same clocks for a prompt of about `tokens`: the longer it is, the later the first token may come.
    #[must_use]
    pub fn for_prompt(self, tokens: u64) -> Self {
        let Some(per_1k) = self.first_token_per_1k else { return self };
        // A prompt has no more tokens than that, and the factor is exact.
        let thousands = tokens.min(MOST_TOKENS) as f64 / 1000.0;
        Self { first_token: self.first_token + per_1k.mul_f64(thousands).min(self.turn), ..self }
    }
}

/// More tokens than any prompt has.
const MOST_TOKENS: u64 = 100_000_000;

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(2),
            first_token: Duration::from_secs(8),
            first_token_per_1k: None,
            first_word: None,
            thinking: Duration::from_secs(120),
            suspect: None,
            pace: None,
            stall: Duration::from_secs(5),
            idle: Duration::from_secs(30),
            turn: Duration::from_secs(300),
            client_write: Duration::from_secs(30),
            error_body: Duration::from_secs(2),
        }
    }
}

// === impl Level ===

impl Level {
    /// The most targets of a chain: one and three fallbacks. A longer chain multiplies cost and time without adding
    /// independence.
    pub const MAX_CHAIN: usize = 4;

    /// A level with the defaults of the configuration.
    pub fn new(name: impl Into<Arc<str>>, chain: Vec<Entry>) -> Self {
        Self {
            name: name.into(),
            chain,
            timeouts: Timeouts::default(),
            min_quality: None,
            retries: 1,
            backoff: Backoff { base: Duration::from_secs(1), cap: Duration::from_secs(30) },
            same_first: false,
            history: History::Full,
            rate_limited: RateLimited::Auto,
            empty: Empty::Tell,
            tool_calls: Delivery::Hold,
            structured: Delivery::Hold,
            conversation: Concurrency::Reject,
            affinity: Duration::from_secs(600),
            budget: 0.10,
            hedge: None,
            shed_at: None,
            queue: None,
            announce: false,
            seam_window: 240,
        }
    }
}

// === impl Target ===

impl Target {
    /// The fewest tokens of an answer that a target must have room for behind the prompt.
    pub const LEAST_ANSWER: u64 = 16;

    /// A target about which nothing is known but its names.
    pub fn new(connection: impl Into<Arc<str>>, model: impl Into<Arc<str>>, dialect: DialectId) -> Self {
        let connection = connection.into();
        Self {
            issuer: Arc::clone(&connection),
            connection,
            model: model.into(),
            dialect,
            continuation: Continuation::Auto,
            context_window: None,
            max_output: None,
            drops: Vec::new(),
            inputs: None,
            reasons: false,
            thinks: None,
            deterministic: false,
            quality: 1,
            domains: Vec::new(),
        }
    }

    /// The kinds of content that it is known not to take.
    pub fn lacks(&self) -> Modalities {
        self.inputs.map_or(Modalities::NONE, |inputs| Modalities::ALL.without(inputs))
    }

    /// Whether the two share a failure domain.
    pub fn shares_domain(&self, other: &Self) -> bool {
        self.connection == other.connection || self.domains.iter().any(|d| other.domains.contains(d))
    }
}
