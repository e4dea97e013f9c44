//! cli

pub mod environment;
