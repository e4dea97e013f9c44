//! OpenAI Responses (`POST /v1/responses`).
//!
//! An answer is a list of *items* (messages, calls, reasoning) with ids of their own, and can be asked for again by its
//! id. Ids are always ours, whoever answers: an item's id holds its answer's, so that a client that refers to either
//! (`previous_response_id`, `item_reference`) is understood from what is kept here, and any provider can be asked.

mod answers;
mod client;
mod custom;
mod encoder;
mod frames;
mod ids;
mod items;
mod open;
mod past;
mod signed;

use super::history::{Answers, History};
use super::{Client, Encode, Field, Refusal, Reply, openai};
use crate::chat::Request;
use http::HeaderMap;

/// The dialect.
#[derive(Debug)]
pub struct Responses;

// === impl Responses ===

impl Client for Responses {
    fn parse(&self, headers: &HeaderMap, body: &[u8]) -> Result<Request, Refusal> {
        client::parse(headers, body)
    }

    fn encoder(&self, request: &Request) -> Box<dyn Encode> {
        Box::new(encoder::Encoder::new(request))
    }

    fn refuse(&self, refusal: &Refusal) -> Reply {
        openai::reply(refusal)
    }

    fn word(&self, field: Field) -> &'static str {
        match field {
            Field::Limit => "max_output_tokens",
            // This API has no stop sequences.
            Field::Stop => "stop",
            Field::Effort => "reasoning",
            Field::Format => "text",
            Field::User => "user",
        }
    }

    fn uncommon<'r>(&self, request: &'r Request) -> Vec<&'r str> {
        client::uncommon(request)
    }

    fn history(&self) -> &'static dyn History {
        &Self
    }

    fn answers(&self) -> Option<&'static dyn Answers> {
        Some(&Self)
    }
}
