//! Segue: a turn that survives its provider.
#![forbid(unsafe_code)]

pub mod admin;
pub mod bench;
pub mod chat;
pub mod cli;
pub mod config;
pub mod dialect;
pub mod event;
pub mod failure;
pub mod fleet;
pub mod gateway;
pub mod health;
pub mod relay;
pub mod retry_after;
pub mod rig;
pub mod routing;
pub mod server;
pub mod sse;
pub mod store;
pub mod turn;
pub mod upstream;
