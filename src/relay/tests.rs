//! relay tests
