//! What the tests over real sockets share.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's panic is its report")]
#![expect(dead_code, reason = "every test takes what it needs of it")]

pub(crate) mod attacks;
pub(crate) mod attempt;
pub(crate) mod h2;
pub(crate) mod house;
pub(crate) mod lines;
pub(crate) mod program;
pub(crate) mod races;
pub(crate) mod raw;
pub(crate) mod talk;
