//! Anthropic Messages (`POST /v1/messages`), both ways.
//!
//! Versions: the API's version 2026-10-21 refuses sampling parameters that 2023-06-01 takes. The default stays with
//! the older one, which every model still answers; a connection that is configured for the newer one lists
//! `temperature`, `top_p` and `top_k` among its targets' `drops`. Models that refuse them under any version are in
//! `quirks`.

mod classify;
mod client;
pub mod count;
mod decode;
mod dropped;
mod encoder;
mod forms;
mod history;
mod native;
mod past;
mod quirks;
mod refuse;
mod sink;
mod stream;
mod thinking;
mod translate;
mod upstream;
mod whole;

use super::history::History;
use super::{
    Client, Credential, Decode, Dialect, Encode, Expect, Field, Framing, Provider, Refusal, Reply, WireRequest,
};
use crate::chat::modality::{Modalities, Modality};
use crate::chat::{DialectId, Request};
use crate::event::Step;
use crate::failure::{Failure, Kind, Stage};
use crate::routing::Target;
use crate::turn::resume::{Carry, How};
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Map, Value};
use std::time::SystemTime;

/// The dialect.
#[derive(Debug)]
pub struct Anthropic;

/// The version of the API where a connection names none.
const VERSION: &str = "2023-06-01";

// === impl Anthropic ===

impl Dialect for Anthropic {
    fn id(&self) -> DialectId {
        DialectId::Anthropic
    }

    fn provider(&self) -> &'static dyn Provider {
        &Self
    }

    fn client(&self) -> Option<&'static dyn Client> {
        Some(&Self)
    }
}

impl Provider for Anthropic {
    fn encode(&self, request: &Request, target: &Target, carry: &Carry) -> Result<WireRequest, Failure> {
        upstream::encode(request, target, carry)
    }

    fn sign(&self, request: &mut WireRequest, credential: &Credential<'_>, _now: SystemTime) {
        if let Some(Ok(mut key)) = credential.key.map(HeaderValue::from_str) {
            key.set_sensitive(true);
            request.set_header(HeaderName::from_static("x-api-key"), key);
        }
        if let Ok(version) = HeaderValue::from_str(credential.version.unwrap_or(VERSION)) {
            request.set_header(HeaderName::from_static("anthropic-version"), version);
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
            Ok(message) if classify::is_error(&message) => Err(classify::response(200, &HeaderMap::new(), body)),
            Ok(message) if message.get("content").is_some_and(Value::is_array) => {
                decode::Decoder::new(expect).whole(message)
            }
            _ => Err(Failure::new(Kind::Framing, Stage::Streaming)
                .saying("the body is neither an event stream nor a message of this API")),
        }
    }

    fn inputs(&self) -> Modalities {
        [Modality::Image, Modality::File].into_iter().collect()
    }

    fn how(&self, model: &str) -> How {
        if quirks::model(model).prefill { How::Prefill } else { How::Instruct }
    }

    fn echoes(&self, _: &str) -> bool {
        false
    }

    fn default_base_url(&self) -> &'static str {
        "https://api.anthropic.com"
    }

    fn version_segment(&self) -> &'static str {
        "/v1"
    }
}

impl Client for Anthropic {
    fn parse(&self, headers: &HeaderMap, body: &[u8]) -> Result<Request, Refusal> {
        client::parse(headers, body)
    }

    fn encoder(&self, request: &Request) -> Box<dyn Encode> {
        encoder::encoder(request)
    }

    fn refuse(&self, refusal: &Refusal) -> Reply {
        refuse::reply(refusal)
    }

    fn word(&self, field: Field) -> &'static str {
        match field {
            Field::Limit => "max_tokens",
            Field::Stop => "stop_sequences",
            Field::Effort => "thinking",
            Field::Format => "output_config",
            Field::User => "metadata",
        }
    }

    fn uncommon<'r>(&self, request: &'r Request) -> Vec<&'r str> {
        client::uncommon(request)
    }

    fn history(&self) -> &'static dyn History {
        &Self
    }
}
