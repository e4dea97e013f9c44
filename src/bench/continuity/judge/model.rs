//! A model as judge.
