//! Segue keeps a model's answer going when the provider behind it fails in mid-sentence.
//!
//! A client opens one stream; Segue keeps it alive, exact and moving whatever happens upstream. When a provider stalls
//! or dies in the middle of a turn, the history and the partial turn go to the next one, and its continuation is
//! spliced into the client's still-open connection.
//!
//! # Bird's eye
//!
//! A request comes in over [`server`], is read by its [`dialect`] into a [`chat::Request`], and begins a turn at the
//! [`gateway`]. The turn is a [`gateway::drive::Drive`]: the one loop that waits. It feeds what happens to a
//! [`relay::Relay`], a pure state machine that says what to do: open an attempt, drop one, tell the client something,
//! close. Attempts are opened at the [`fleet`], which knows the health of every target, and made by an
//! [`upstream::Upstream`]. What the client was told is a [`turn::Turn`]; what a continuation says goes through a
//! [`turn::seam::Seam`], which lets through only what is new.
//!
//! ```text
//! client ── server ── gateway::drive ── fleet ── upstream ── provider
//!                          │  ▲
//!                 signals  ▼  │ actions
//!                        relay ── turn, seam
//! ```
//!
//! # Floors
//!
//! A file imports its own folder and lower floors only; `tests/tidy` holds the crate to it.
//!
//! | floor | rooms |
//! | --- | --- |
//! | 9 | the program |
//! | 8 | [`cli`] |
//! | 7 | [`server`], [`admin`], [`mod@bench`] |
//! | 6 | [`gateway`] |
//! | 5 | [`fleet`], [`rig`] |
//! | 4 | [`upstream`], [`store`] |
//! | 3 | [`relay`], [`dialect`], [`config`] |
//! | 2 | [`turn`], [`routing`] |
//! | 1 | [`chat`], [`event`], [`failure`], [`retry_after`], [`sse`], [`health`] |
//!
//! # Invariants, named by what is absent
//!
//! - Floors 1 to 3 have no async, no clock, no randomness of their own, no lock and no I/O: `now` and seeds are arguments.
//! - [`relay`] knows no HTTP and no JSON, and no dialect knows another: they meet in [`chat`] and [`event`].
//! - Nothing below [`server`] and [`admin`] knows axum; nothing but [`upstream`] knows reqwest.
//! - [`turn::Turn`] holds nothing that was only received: it is the truth about the client.
//! - An attempt has no cancel but its drop, and no path that leaks its ticket, permit or place: values give them back.
//! - A turn that nobody can resume has no task and no channel: it lives in its response body.
//! - [`rig`] never writes bytes through [`dialect`], so two bugs cannot cancel out.
//! - Nothing counts but the journals: the relay's of a turn, the fleet's of circuits.
//!
//! # Embedding
//!
//! [`gateway::Gateway`] is the library's face: [`config::load`] a configuration, make a gateway, and either put
//! [`server::routes`] behind a listener or [`gateway::Gateway::begin`] turns yourself.

#![forbid(unsafe_code)]

pub mod chat;
pub mod event;
pub mod failure;
pub mod retry_after;
pub mod sse;

pub mod health;
pub mod turn;

pub mod routing;

pub mod config;
pub mod dialect;
pub mod relay;

pub mod store;
pub mod upstream;

pub mod fleet;
pub mod rig;

pub mod gateway;

pub mod admin;
pub mod bench;
pub mod server;

pub mod cli;
