//! The rig against itself: bytes over a real socket, read by a client and a reader that share nothing with it.

mod agree;
mod breaks;
mod client;
mod heard;
mod rejects;
mod seams;
mod serving;
mod shapes;
