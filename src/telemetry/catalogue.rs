//! Every metric there is. A new one gets a constant, a place in [`ALL`] and a row in `docs/metrics.md`.

/// A metric: a name, what it is, and by what it is told apart.
#[derive(Debug)]
pub struct Metric {
    /// Its name; the unit is in it.
    pub name: &'static str,
    /// What it is.
    pub kind: Kind,
    /// The names of its labels.
    pub labels: &'static [&'static str],
    /// What it means, in a sentence.
    pub help: &'static str,
}

/// What a metric is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// It only grows.
    Counter,
    /// It is true at the moment of asking.
    Gauge,
    /// It counts values up to these bounds each, in seconds.
    Histogram(&'static [f64]),
}

// === impl Kind ===

impl Kind {
    /// Its name in Prometheus' text format.
    pub fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram(_) => "histogram",
        }
    }
}

const fn counter(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Metric {
    Metric { name, kind: Kind::Counter, labels, help }
}

const fn gauge(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Metric {
    Metric { name, kind: Kind::Gauge, labels, help }
}

const fn seconds(
    name: &'static str,
    bounds: &'static [f64],
    labels: &'static [&'static str],
    help: &'static str,
) -> Metric {
    Metric { name, kind: Kind::Histogram(bounds), labels, help }
}

/// From a millisecond to minutes: what a provider takes.
const LONG: &[f64] =
    &[0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 8.0, 15.0, 30.0, 60.0, 120.0, 300.0];
/// From a tenth of a millisecond to seconds: what a gateway takes.
const SHORT: &[f64] =
    &[0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// Turns.
pub static TURNS: Metric = counter("segue_turns_total", &["level", "tenant", "outcome"], "Turns that have ended.");
/// Failovers.
pub static FAILOVERS: Metric = counter(
    "segue_failovers_total",
    &["level"],
    "Turns in which the client was told something by another attempt than the first.",
);
/// Splices.
pub static SPLICES: Metric =
    counter("segue_splices_total", &["level"], "Times that another attempt went on in the middle of an answer.");
/// Turn lengths.
pub static TURN_SECONDS: Metric = seconds("segue_turn_seconds", LONG, &["level"], "From the request to the end.");
/// First words.
pub static FIRST_TOLD_SECONDS: Metric = seconds(
    "segue_first_told_seconds",
    LONG,
    &["level"],
    "From the request to the first thing that the client was told.",
);
/// Silences.
pub static LONGEST_SILENCE_SECONDS: Metric = seconds(
    "segue_longest_silence_seconds",
    LONG,
    &["level"],
    "The longest silence in each turn after its first word.",
);
/// Gaps at splices.
pub static SPLICE_GAP_SECONDS: Metric = seconds(
    "segue_splice_gap_seconds",
    LONG,
    &["level"],
    "How long the client heard nothing while another attempt took over.",
);
/// What the gateway costs on a healthy day.
pub static STEADY_STATE_OVERHEAD: Metric = seconds(
    "segue_steady_state_overhead_seconds",
    SHORT,
    &["level"],
    "Between the first choice's own first token and the client's, in turns that it served alone.",
);
/// What failover costs.
pub static INCIDENT_OVERHEAD: Metric = seconds(
    "segue_incident_overhead_seconds",
    LONG,
    &["level"],
    "From the failure of the first choice to the first token of the attempt that the client heard next.",
);
/// Attempts.
pub static ATTEMPTS: Metric =
    counter("segue_attempts_total", &["connection", "model", "cause", "outcome"], "Attempts that have ended.");
/// Failures.
pub static FAILED_ATTEMPTS: Metric =
    counter("segue_attempt_failures_total", &["connection", "model", "failure"], "Attempts that failed, by kind.");
/// Seams.
pub static SEAMS: Metric =
    counter("segue_seams_total", &["connection", "model", "seam"], "Seams that were decided, by how.");
/// Challengers.
pub static CHALLENGERS: Metric = counter(
    "segue_challengers_total",
    &["level", "cause", "won"],
    "Attempts that were sent on suspicion (hedge, suspect, pace), and whether the client heard them.",
);
/// First tokens.
pub static FIRST_TOKEN_SECONDS: Metric = seconds(
    "segue_first_token_seconds",
    LONG,
    &["connection", "model"],
    "From an attempt's request to the model's first progress.",
);
/// Waits in line.
pub static QUEUE_WAIT_SECONDS: Metric = seconds(
    "segue_queue_wait_seconds",
    SHORT,
    &["connection"],
    "How long an attempt waited for its connection's quota before it was sent.",
);
/// Tokens.
pub static TOKENS: Metric = counter(
    "segue_tokens_total",
    &["connection", "model", "kind", "spent_as"],
    "Tokens of every attempt, heard or not, estimated where the provider never said.",
);
/// Tokens of tenants.
pub static TENANT_TOKENS: Metric =
    counter("segue_tenant_tokens_total", &["tenant", "kind"], "The same tokens, by tenant.");
/// Refusals.
pub static REFUSALS: Metric =
    counter("segue_refusals_total", &["code"], "Requests that were refused before a provider was asked.");
/// Changes of circuits.
pub static CIRCUIT_TRANSITIONS: Metric =
    counter("segue_circuit_transitions_total", &["connection", "model", "to", "cause"], "Changes of circuits.");
/// Time in states.
pub static CIRCUIT_STATE_SECONDS: Metric = counter(
    "segue_circuit_state_seconds_total",
    &["connection", "model", "state"],
    "Time that a circuit spent in each state, since its first change.",
);
/// Circuits.
pub static CIRCUIT_STATE: Metric =
    gauge("segue_circuit_state", &["connection", "model", "state"], "1 for the state that a circuit is in, else 0.");
/// Rests.
pub static REST_SECONDS: Metric = gauge(
    "segue_rest_remaining_seconds",
    &["connection", "model"],
    "How long a target still rests, after a rate limit or because its circuit is open.",
);
/// Attempts under way.
pub static IN_FLIGHT: Metric =
    gauge("segue_attempts_in_flight", &["connection", "model"], "Attempts that are open at a target.");
/// Attempts in line.
pub static QUEUED: Metric = gauge("segue_attempts_queued", &["connection"], "Attempts in line at a connection.");
/// Open turns.
pub static OPEN_TURNS: Metric = gauge("segue_open_turns", &[], "Turns that are open.");
/// Draining.
pub static DRAINING: Metric = gauge("segue_draining", &[], "1 while the gateway takes no new turns, else 0.");
/// Workers.
pub static WORKERS_ANSWERING: Metric =
    gauge("segue_workers_answering", &[], "1 while the threads that serve turns answer, else 0.");
/// Long polls.
pub static LONG_POLLS: Metric =
    gauge("segue_worker_long_polls", &[], "Times that one turn kept a thread busy for more than a tenth of a second.");
/// The store.
pub static STORE_FAILED: Metric = gauge(
    "segue_store_failures",
    &[],
    "Calls of the store that failed or were too slow; their turns went on without it.",
);
/// Dropped events.
pub static SINK_DROPPED: Metric =
    gauge("segue_sink_dropped_events", &["sink"], "Events that somebody who is told of turns could not keep up with.");
/// The build.
pub static BUILD_INFO: Metric = gauge("segue_build_info", &["version"], "1; its label is the version that runs.");

/// All of them, in the order in which they are told.
pub static ALL: &[&Metric] = &[
    &TURNS,
    &FAILOVERS,
    &SPLICES,
    &TURN_SECONDS,
    &FIRST_TOLD_SECONDS,
    &LONGEST_SILENCE_SECONDS,
    &SPLICE_GAP_SECONDS,
    &STEADY_STATE_OVERHEAD,
    &INCIDENT_OVERHEAD,
    &ATTEMPTS,
    &FAILED_ATTEMPTS,
    &SEAMS,
    &CHALLENGERS,
    &FIRST_TOKEN_SECONDS,
    &QUEUE_WAIT_SECONDS,
    &TOKENS,
    &TENANT_TOKENS,
    &REFUSALS,
    &CIRCUIT_TRANSITIONS,
    &CIRCUIT_STATE_SECONDS,
    &CIRCUIT_STATE,
    &REST_SECONDS,
    &IN_FLIGHT,
    &QUEUED,
    &OPEN_TURNS,
    &DRAINING,
    &WORKERS_ANSWERING,
    &LONG_POLLS,
    &STORE_FAILED,
    &SINK_DROPPED,
    &BUILD_INFO,
];
