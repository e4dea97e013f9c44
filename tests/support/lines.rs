//! A dialect for tests of the transport: an event is a line of text.
//!
//! `text …` says something, `error …` fails, `finish` finishes, `nothing` says nothing, `[DONE]` ends.

use http::{HeaderMap, HeaderName, header};
use segue::chat::Request;
use segue::dialect::{Credential, Decode, Expect, Flow, Framing, Provider, WireRequest};
use segue::event::{Event, Finish, Step};
use segue::failure::{Failure, Kind, Said, Stage};
use segue::routing::Target;
use segue::sse;
use segue::turn::resume::{Carry, How};
use std::time::SystemTime;

pub(crate) struct Lines;

#[derive(Default)]
struct Reader {
    started: bool,
    finished: bool,
}

impl Provider for Lines {
    fn encode(&self, _: &Request, _: &Target, _: &Carry) -> Result<WireRequest, Failure> {
        unimplemented!("these tests bring their requests")
    }

    fn sign(&self, request: &mut WireRequest, credential: &Credential<'_>, _: SystemTime) {
        let key = credential.key.map(|key| (header::AUTHORIZATION, format!("Bearer {key}").parse().unwrap()));
        let version = credential.version.map(|v| (HeaderName::from_static("x-version"), v.parse().unwrap()));
        request.headers.extend(key.into_iter().chain(version));
    }

    fn classify(&self, status: u16, _: &HeaderMap, body: &[u8]) -> Failure {
        let kind = match status {
            429 => Kind::RateLimited,
            500.. => Kind::ServerError,
            _ => Kind::BadRequest,
        };
        Failure::new(kind, Stage::Refused).saying(format!("{} bytes: {}", body.len(), String::from_utf8_lossy(body)))
    }

    fn framing(&self) -> Framing {
        Framing::Sse
    }

    fn decoder(&self, _: Expect) -> Box<dyn Decode> {
        Box::new(Reader::default())
    }

    fn whole(&self, body: &[u8], _: Expect) -> Result<Vec<Step>, Failure> {
        let value: serde_json::Value = serde_json::from_slice(body)
            .map_err(|error| Failure::new(Kind::Framing, Stage::Streaming).saying(error.to_string()))?;
        match value["text"].as_str() {
            Some(said) => Ok(vec![Step::of(text(said)), Step::of(finish())]),
            None => Err(Failure::new(Kind::ServerError, Stage::Refused).saying(value["error"].to_string())),
        }
    }

    fn how(&self, _: &str) -> How {
        How::Instruct
    }

    fn echoes(&self, _: &str) -> bool {
        false
    }

    fn default_base_url(&self) -> &'static str {
        "https://lines.invalid"
    }

    fn version_segment(&self) -> &'static str {
        "/v1"
    }
}

impl Decode for Reader {
    fn event(&mut self, event: &sse::Event, step: &mut Step) -> Result<Flow, Failure> {
        self.started = true;
        let line = std::str::from_utf8(&event.data).unwrap();
        match line.split_once(' ').unwrap_or((line, "")) {
            ("text", said) => step.events.push(text(said)),
            ("finish", _) => {
                self.finished = true;
                step.events.push(finish());
            }
            ("nothing", _) => {}
            ("[DONE]", _) => return Ok(Flow::Done),
            ("error", said) => return Err(Failure::new(Kind::Overloaded, Stage::Streaming).saying(said)),
            _ => return Err(Failure::new(Kind::Malformed, Stage::Streaming).saying(Said::clip(line.to_owned()))),
        }
        Ok(Flow::More)
    }

    fn end(&mut self, rest: Option<&sse::Event>, step: &mut Step) -> Result<(), Failure> {
        if let Some(b"finish") = rest.map(|event| &event.data[..]) {
            step.events.push(finish());
            return Ok(());
        }
        if self.finished || rest.is_some_and(|event| &event.data[..] == b"[DONE]") {
            return Ok(());
        }
        Err(Failure::new(if self.started { Kind::Truncated } else { Kind::EmptyTurn }, Stage::Streaming))
    }
}

fn text(said: &str) -> Event {
    Event::Text { choice: 0, text: said.to_owned() }
}

fn finish() -> Event {
    Event::Finish { choice: 0, reason: Finish::Stop, stop_sequence: None }
}
