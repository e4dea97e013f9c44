//! The continuity benchmark: what of a conversation is left after its provider failed.
//!
//! After ContinuityBench: a fact is told in the first message of a conversation, unrelated turns follow, a provider fails
//! as a manifest says, and at the end the fact is asked for. Beyond it this measures streams: failures in the middle of an
//! answer, several in a row, and whether the text that the listener got is one text.
//!
//! [`suite`] holds the conversations, [`manifest`] what fails when, [`record`] what was heard; everything that is reported
//! is computed from records: [`judge`] says whether the fact was kept, [`score`] makes numbers of it, [`report`] words,
//! data and plots.
//!
//! To get records: [`recall`] has the built-in providers, who say what [`answer`] gives; [`systems`] are gateways before
//! them, a [`player`] is the client, with the [`listener`] as its ear, and [`run`] plays all conversations. What was heard
//! is held against what was said in [`integrity`]; what reached providers is in [`account`]. [`inject`] plays the failures on real providers.

pub mod account;
pub mod answer;
pub mod inject;
pub mod integrity;
pub mod judge;
pub mod listener;
pub mod manifest;
pub mod player;
pub mod recall;
pub mod record;
pub mod report;
pub mod run;
pub mod score;
pub mod suite;
pub mod systems;
