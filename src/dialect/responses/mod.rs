//! OpenAI Responses (`POST /v1/responses`), both ways.
//!
//! An answer is a list of *items* (messages, calls, reasoning) with ids of their own, and can be asked for again by its
//! id. Ids are always ours, whoever answers: an item's id holds its answer's, so that a client that refers to either
//! (`previous_response_id`, `item_reference`) is understood from what is kept here, and any provider can be asked.

mod answers;
mod classify;
mod client;
mod custom;
mod decode;
mod encoder;
mod forms;
mod frames;
mod ids;
mod items;
mod native;
mod open;
mod past;
mod signed;
mod translate;
mod upstream;

use super::history::{Answers, History};
use super::{
    Client, Credential, Decode, Dialect, Encode, Expect, Field, Framing, Provider, Refusal, Reply, WireRequest, openai,
};
use crate::chat::modality::{Modalities, Modality};
use crate::chat::{DialectId, Request};
use crate::event::Step;
use crate::failure::{Failure, Kind, Stage};
use crate::routing::Target;
use crate::turn::resume::{Carry, How};
use http::{HeaderMap, HeaderValue, header};
use serde_json::{Map, Value};
use std::time::SystemTime;

/// The dialect.
#[derive(Debug)]
pub struct Responses;

// === impl Responses ===

impl Dialect for Responses {
    fn id(&self) -> DialectId {
        DialectId::Responses
    }

    fn provider(&self) -> &'static dyn Provider {
        &Self
    }

    fn client(&self) -> Option<&'static dyn Client> {
        Some(&Self)
    }
}

impl Provider for Responses {
    fn encode(&self, request: &Request, target: &Target, carry: &Carry) -> Result<WireRequest, Failure> {
        upstream::encode(request, target, carry)
    }

    fn sign(&self, request: &mut WireRequest, credential: &Credential<'_>, _now: SystemTime) {
        let bearer = credential.key.map(|key| HeaderValue::try_from(format!("Bearer {key}")));
        if let Some(Ok(mut value)) = bearer {
            value.set_sensitive(true);
            request.set_header(header::AUTHORIZATION, value);
        }
    }

    fn classify(&self, status: u16, headers: &HeaderMap, body: &[u8]) -> Failure {
        classify::response(status, headers, body)
    }

    fn framing(&self) -> Framing {
        Framing::Sse
    }

    fn decoder(&self, expect: Expect) -> Box<dyn Decode> {
        // This API has one answer a request, whatever was asked.
        Box::new(decode::Decoder::new(expect))
    }

    fn whole(&self, body: &[u8], expect: Expect) -> Result<Vec<Step>, Failure> {
        if let Err(excess) = expect.bounds.event(body) {
            return Err(decode::malformed(&format!("the answer holds {excess}")));
        }
        match serde_json::from_slice::<Map<String, Value>>(body) {
            Ok(answer) if answer.get("output").is_some_and(Value::is_array) => {
                decode::Decoder::new(expect).whole(answer)
            }
            Ok(answer) if classify::is_error(&answer) => Err(classify::response(200, &HeaderMap::new(), body)),
            _ => Err(Failure::new(Kind::Framing, Stage::Streaming)
                .saying("the body is neither an event stream nor an answer of this API")),
        }
    }

    fn inputs(&self) -> Modalities {
        [Modality::Image, Modality::File].into_iter().collect()
    }

    fn how(&self, _: &str) -> How {
        How::Instruct
    }

    fn echoes(&self, _: &str) -> bool {
        false
    }

    fn default_base_url(&self) -> &'static str {
        "https://api.openai.com"
    }

    fn version_segment(&self) -> &'static str {
        "/v1"
    }
}

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
