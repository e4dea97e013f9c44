//! OpenAI Chat Completions, and the many that speak it.
//!
//! Towards providers: `upstream` writes requests (`translate` those of other dialects, `forms` the messages as a target
//! takes them), `decode` reads streams with
//! `wire`, `choice`, `surrogates` and `calls`, `answer` whole bodies, `classify` errors. Towards clients: `client` reads
//! requests, `stream` and `whole` write answers, `refuse` errors; `past` knows kept conversations. What single vendors do otherwise is data in
//! `quirks`.

mod answer;
mod calls;
mod choice;
mod classify;
mod client;
mod decode;
mod forms;
mod past;
mod quirks;
mod refuse;
mod stream;
mod surrogates;
mod translate;
mod upstream;
mod usage;
mod whole;
mod wire;

#[cfg(test)]
mod tests;

use super::history::History;
use super::{
    Client, Credential, Decode, Dialect, Encode, Expect, Field, Framing, Provider, Refusal, Reply, WireRequest,
};
use crate::chat::{DialectId, Request};
use crate::event::Step;
use crate::failure::Failure;
use crate::routing::Target;
use crate::turn::resume::{Carry, How};
use http::{HeaderMap, HeaderValue, header};
use std::time::SystemTime;

/// The dialect.
#[derive(Debug)]
pub struct Chat;

// === impl Chat ===

impl Dialect for Chat {
    fn id(&self) -> DialectId {
        DialectId::Chat
    }

    fn provider(&self) -> &'static dyn Provider {
        &Self
    }

    fn client(&self) -> Option<&'static dyn Client> {
        Some(&Self)
    }
}

impl Provider for Chat {
    fn encode(&self, request: &Request, target: &Target, carry: &Carry) -> Result<WireRequest, Failure> {
        upstream::encode(request, target, carry)
    }

    fn sign(&self, request: &mut WireRequest, credential: &Credential<'_>, _now: SystemTime) {
        let value = credential.key.and_then(|key| HeaderValue::try_from(format!("Bearer {key}")).ok());
        if let Some(mut value) = value {
            value.set_sensitive(true);
            request.set_header(header::AUTHORIZATION, value);
        }
    }

    /// A time to ask again is left out where the provider says `x-should-retry: false`.
    fn classify(&self, status: u16, headers: &HeaderMap, body: &[u8]) -> Failure {
        classify::response(status, headers, body)
    }

    fn framing(&self) -> Framing {
        Framing::Sse
    }

    fn decoder(&self, expect: Expect) -> Box<dyn Decode> {
        Box::new(decode::Decoder::new(expect))
    }

    fn whole(&self, body: &[u8], expect: Expect) -> Result<Vec<Step>, Failure> {
        answer::steps(body, expect)
    }

    fn how(&self, model: &str) -> How {
        quirks::how(model)
    }

    fn echoes(&self, model: &str) -> bool {
        quirks::echoes(model)
    }

    fn default_base_url(&self) -> &'static str {
        "https://api.openai.com/v1"
    }

    fn version_segment(&self) -> &'static str {
        "/v1"
    }
}

impl Client for Chat {
    fn parse(&self, headers: &HeaderMap, body: &[u8]) -> Result<Request, Refusal> {
        client::parse(headers, body)
    }

    fn encoder(&self, request: &Request) -> Box<dyn Encode> {
        if request.stream { Box::new(stream::Stream::new(request)) } else { Box::new(whole::Whole::new(request)) }
    }

    fn refuse(&self, refusal: &Refusal) -> Reply {
        refuse::reply(refusal)
    }

    fn word(&self, field: Field) -> &'static str {
        match field {
            Field::Limit => "max_tokens",
            Field::Stop => "stop",
            Field::Effort => "reasoning_effort",
            Field::Format => "response_format",
            Field::User => "user",
        }
    }

    fn uncommon<'r>(&self, request: &'r Request) -> Vec<&'r str> {
        client::uncommon(request)
    }

    fn history(&self) -> &'static dyn History {
        &Self
    }
}
