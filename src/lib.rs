//! Segue: a turn that survives its provider.
//!
//! A streaming gateway for language-model APIs. A client opens one stream; when the provider behind it stalls or dies
//! in the middle of an answer, the next provider is handed the history and the partial answer, and what it says is
//! joined to what the client has: one stream, one id, one end, no character lost or told twice.
//!
//! This page is the map. `docs/architecture.md` in the repository explains the central mechanism at length.
//!
//! # Words
//!
//! A *turn* is the answer that a client is given, a *target* a connection and a model, an *attempt* one call to a
//! target. The *leader* is the attempt that the client hears, a *challenger* one that races it. The *seam* is the join
//! between what was told and what a continuation says. A *stall* is silence.
//!
//! # From above
//!
//! ```text
//!  client ──request──▶ server ──▶ gateway ──▶ drive ◀──signals── fleet ◀── upstream ◀──bytes── provider
//!         ◀──bytes────   body ◀── encoder ◀─┐  │ ▲                 health     decoder
//!                                           │  ▼ │
//!                                           └─ relay: plan · clocks · race · sieve(seam) · turn · journal
//! ```
//!
//! [`server`] reads a request in the words of its [`dialect`] and asks [`gateway::Gateway::begin`] for a turn. What it
//! gets is a [`gateway::drive::Drive`], the turn under way, and it is the response's body: it runs when the client takes
//! bytes, and to drop it is to hang up. The drive is the one loop that waits. It feeds a [`relay::Relay`], which is the
//! whole logic of a turn as a value: what happened and the time go in, what to do comes out. An attempt that the relay
//! wants is asked of the [`fleet`], which knows every target's health and queue, and is made by an
//! [`upstream::Upstream`]. What the relay emits is written by one encoder.
//!
//! # Floors
//!
//! A file imports its own folder and lower floors only.
//!
//! | floor | rooms | |
//! | --- | --- | --- |
//! | 8 | [`cli`] | commands |
//! | 7 | [`server`] [`admin`] [`mod@bench`] | what listens: clients here, operators there; what is measured |
//! | 6 | [`gateway`] | a gateway as a value; [`gateway::drive`] |
//! | 5 | [`fleet`] [`rig`] | targets and their health, the one place with locks; faults as data |
//! | 4 | [`upstream`] [`store`] [`record`] [`telemetry`] [`ledger`] | one attempt; conversations; what happened, and who is told; metrics; the ledger |
//! | 3 | [`relay`] [`dialect`] [`config`] | one turn; one folder per API; text in, checked values out |
//! | 2 | [`turn`] [`routing`] | what the client has been told, and the seam; levels and chains |
//! | 1 | [`chat`] [`event`] [`failure`] [`health`] [`json`] [`retry_after`] [`schema`] [`sse`] [`words`] | vocabulary and values |
//!
//! Floors 1 to 3 are pure. They have no async function and no runtime, they read no clock (`now` is an argument), draw
//! no random number (a seed is an argument), take no lock and open no file.
//!
//! # Where to begin
//!
//! - To embed a gateway: [`config::load`], then [`gateway::Gateway::new`], then [`server::routes`], or
//!   [`gateway::Gateway::begin`] without HTTP.
//! - To read the mechanism: [`relay`], then [`turn::seam`], then [`gateway::drive`].
//! - To add an API: [`dialect::Dialect`], and [`dialect::chat`] as the example.
//! - To break things: [`rig::script::Script`] is a provider's behaviour as data; [`rig::sim`] plays it in virtual time,
//!   [`rig::origin`] over a socket.
//! - The program itself: [`cli::main`].
//!
//! # What is not there
//!
//! - [`relay`] knows no HTTP, no JSON and no runtime; [`turn`] knows no provider.
//! - Dialects do not see each other; they meet in [`chat`] and [`event`]. No other room knows a field of an API, and
//!   only [`upstream`] sees the HTTP client, only [`server`] and [`admin`] the HTTP server.
//! - [`rig`] writes a provider's bytes from its own templates, never through [`dialect`], so that two bugs cannot cancel
//!   each other out.
//! - No task and no channel stands between a provider and its client. There is no cancel method either: to drop an
//!   attempt is to cancel it, and guards give back its slot, its ticket and its reservation.
//! - Nothing counts beside the journals of [`relay::journal`] and [`fleet`].
//! - No finish is invented. A stream ends with the model's own reason, or with an error.
//! - No second place retries: not the HTTP client, not the server, not the fleet.
//!
//! # What holds everywhere
//!
//! - *Delivered, not received*: every decision about going on asks [`turn::Turn`], which takes what was emitted.
//! - *Facts below, words at the edge*: a [`failure::Failure`] has a kind, a stage and a source; what a client reads is
//!   worded once, when the turn has failed.
//! - *Everything is bounded*, and every bound has a name: events, turns, bodies, queues, attempts, waits.
//! - *Parse once*: a configuration or a request that exists as a value is valid.
//! - *What came decides*, not what was asked for: status, content type, first byte.
//!
//! `tests/tidy` holds the tree to these rules.
#![forbid(unsafe_code)]

// The ground: vocabulary and values.
pub mod bounds;
pub mod chat;
pub mod event;
pub mod failure;
pub mod health;
pub mod json;
pub mod retry_after;
pub mod schema;
pub mod sse;
pub mod words;

// What was told, and where a turn may go.
pub mod routing;
pub mod turn;

// One turn; every API; the configuration.
pub mod config;
pub mod dialect;
pub mod relay;

// One attempt; conversations.
pub mod ledger;
pub mod record;
pub mod store;
pub mod telemetry;
pub mod upstream;

// All targets; and providers that are made to fail.
pub mod fleet;
pub mod rig;

// The gateway as a value.
pub mod gateway;

// What listens, and what is measured.
pub mod admin;
pub mod bench;
pub mod server;

// The program.
pub mod cli;
