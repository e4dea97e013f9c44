//! A dialect for tests of the transport: an event is a line of text.
//!
//! `text …` says something, `error …` fails, `finish` finishes, `nothing` says nothing, `[DONE]` ends.

use http::{HeaderMap, HeaderName, HeaderValue, header};
use segue::chat::{DialectId, Request};
use segue::dialect::{Decode, Dialect, Encode, Expect, Flow, Refusal, Reply, WireRequest};
use segue::event::{Event, Finish, Step};
use segue::failure::{Failure, Kind, Said, Stage};
use segue::routing::Target;
use segue::sse;
use segue::turn::resume::{Carry, How};

pub(crate) struct Lines;

#[derive(Default)]
struct Reader {
    started: bool,
    finished: bool,
}

impl Dialect for Lines {
    fn id(&self) -> DialectId {
        DialectId::Chat
    }

    fn encode(&self, _: &Request, _: &Target, _: &Carry) -> Result<WireRequest, Failure> {
        unimplemented!("these tests bring their requests")
    }

    fn authorize(&self, key: Option<&str>, version: Option<&str>) -> Vec<(HeaderName, HeaderValue)> {
        let key = key.map(|key| (header::AUTHORIZATION, format!("Bearer {key}").parse().unwrap()));
        let version = version.map(|version| (HeaderName::from_static("x-version"), version.parse().unwrap()));
        key.into_iter().chain(version).collect()
    }

    fn classify(&self, status: u16, _: &HeaderMap, body: &[u8]) -> Failure {
        let kind = match status {
            429 => Kind::RateLimited,
            500.. => Kind::ServerError,
            _ => Kind::BadRequest,
        };
        Failure::new(kind, Stage::Refused).saying(format!("{} bytes: {}", body.len(), String::from_utf8_lossy(body)))
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

    fn parse(&self, _: &HeaderMap, _: &[u8]) -> Result<Request, Refusal> {
        unimplemented!("no client speaks it")
    }

    fn encoder(&self, _: &Request) -> Box<dyn Encode> {
        unimplemented!("no client speaks it")
    }

    fn refuse(&self, _: &Refusal) -> Reply {
        unimplemented!("no client speaks it")
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
