//! What the tests over real sockets share.

pub(crate) mod lines;
pub(crate) mod raw;
