//! What is fed with inputs, and what must hold of it.

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use segue::bounds::Bounds;
use segue::chat::{DialectId, Request};
use segue::dialect::{self, Encode, End, Expect, Flow, Refusal};
use segue::event::{Step, Usage};
use segue::failure::{Failure, Said};
use segue::routing::Target as Model;
use segue::sse::{self, Item};
use segue::store::{Conversation, replay, told::Told};
use segue::turn::Turn;
use segue::turn::resume::{Anchor, Carry, Continue, How, Origin};
use serde_json::Value;
use std::sync::Arc;

/// One reader.
pub(crate) struct Target {
    pub(crate) name: &'static str,
    pub(crate) play: fn(&[u8]),
}

pub(crate) const REQUESTS: [Target; 3] = [
    Target { name: "responses request", play: |input| request(DialectId::Responses, input) },
    Target { name: "chat request", play: |input| request(DialectId::Chat, input) },
    Target { name: "messages request", play: |input| request(DialectId::Anthropic, input) },
];

pub(crate) const STREAMS: [Target; 3] = [
    Target { name: "responses stream", play: |input| stream(DialectId::Responses, input) },
    Target { name: "chat stream", play: |input| stream(DialectId::Chat, input) },
    Target { name: "messages stream", play: |input| stream(DialectId::Anthropic, input) },
];

pub(crate) const BODIES: [Target; 3] = [
    Target { name: "responses body", play: |input| body(DialectId::Responses, input) },
    Target { name: "chat body", play: |input| body(DialectId::Chat, input) },
    Target { name: "messages body", play: |input| body(DialectId::Anthropic, input) },
];

const PROVIDERS: [DialectId; 3] = [DialectId::Chat, DialectId::Anthropic, DialectId::Responses];
const CLIENTS: [DialectId; 3] = [DialectId::Chat, DialectId::Anthropic, DialectId::Responses];

/// A request that is read can be written for every kind of target, as JSON, and kept.
fn request(id: DialectId, input: &[u8]) {
    let client = dialect::client(id).unwrap();
    let request = match dialect::read(client, &HeaderMap::new(), input, &Bounds::default()) {
        Ok(request) => request,
        Err(refusal) => return refused(id, &refusal),
    };
    for target in PROVIDERS {
        for model in ["gpt-5", "claude-opus-4-1", "mistral-large"] {
            for carry in [Carry::fresh(), going_on(How::Instruct), going_on(How::Prefill)] {
                let wire = dialect::provider(target).unwrap().encode(&request, &Model::new("c", model, target), &carry);
                if let Ok(wire) = wire {
                    let body: Value = serde_json::from_slice(&wire.body).unwrap();
                    let list = if target == DialectId::Responses { "input" } else { "messages" };
                    assert!(body[list].is_array() && body["stream"].is_boolean());
                }
            }
        }
    }
    let history = client.history();
    let turn: Arc<str> = "turn".into();
    let mut kept = Conversation::default();
    kept.ask(replay::full(&kept, &request, history, &turn));
    if let Ok((_, spoken)) = replay::append(&kept, &request, history, &turn, None) {
        let _ = history.put(&mut request.clone(), spoken);
    }
}

fn refused(id: DialectId, refusal: &Refusal) {
    let reply = dialect::client(id).unwrap().refuse(refusal);
    assert!((400..600).contains(&reply.status));
    assert!(serde_json::from_slice::<Value>(&reply.body).is_ok_and(|body| body["error"].is_object()));
}

/// A stream says the same however it is cut, and can be told to every kind of client.
fn stream(id: DialectId, input: &[u8]) {
    let (steps, end) = read(id, input, usize::MAX);
    let cut = read(id, input, 1 + input.len() % 13);
    assert_eq!(cut.0, steps, "cut in pieces");
    assert_eq!(cut.1.map_err(|f| f.kind), end.map_err(|f| f.kind), "cut in pieces");
    tell(id, &steps);
}

fn read(id: DialectId, input: &[u8], size: usize) -> (Vec<Step>, Result<(), Failure>) {
    let mut frames = sse::Decoder::new(1 << 20);
    let mut decoder = dialect::provider(id).unwrap().decoder(Expect::of(2));
    let mut steps = Vec::new();
    for piece in input.chunks(size.min(input.len().max(1))) {
        frames.push(Bytes::copy_from_slice(piece));
        while let Some(item) = frames.next().unwrap() {
            let Item::Event(event) = item else { continue };
            let mut step = Step::default();
            let flow = decoder.event(&event, &mut step);
            steps.push(step);
            match flow {
                Ok(Flow::More) => {}
                Ok(Flow::Done) => return (steps, Ok(())),
                Err(failure) => return (steps, Err(failure)),
            }
        }
    }
    let mut step = Step::default();
    let end = decoder.end(frames.finish().as_ref(), &mut step);
    steps.push(step);
    (steps, end)
}

/// A whole answer or an error is read, as bounded words.
fn body(id: DialectId, input: &[u8]) {
    let provider = dialect::provider(id).unwrap();
    match provider.whole(input, Expect::of(2)) {
        Ok(steps) => tell(id, &steps),
        Err(failure) => bounded(&failure),
    }
    for status in [200, 302, 400, 403, 404, 413, 429, 500, 529] {
        bounded(&provider.classify(status, &HeaderMap::new(), input));
    }
}

fn bounded(failure: &Failure) {
    let said = &failure.said;
    for words in [&said.message, &said.code, &said.r#type, &said.param] {
        assert!(words.len() <= Said::HEARD, "{} bytes of words", words.len());
    }
}

/// Tells steps to every kind of client. What is told of a call comes after the call, and what is written is JSON.
fn tell(issuer: DialectId, steps: &[Step]) {
    let mut turn = Turn::new(1 << 20, false);
    let mut told = Told::default();
    for step in steps {
        turn.absorb(step).unwrap();
        told.note(step, issuer, |call| call.to_string());
    }
    std::hint::black_box(turn.tokens());
    let mut parts = Some(told);
    for id in CLIENTS {
        let client = dialect::client(id).unwrap();
        if let Some(told) = parts.take() {
            std::hint::black_box(replay::answer(told, client.history()));
        }
        for stream in [true, false] {
            let mut encoder = client.encoder(&asking(id, stream));
            let mut out = BytesMut::new();
            steps.iter().for_each(|step| encoder.step(step, &mut out));
            close(&mut *encoder, &mut out);
            if stream {
                frames(&out);
            } else {
                assert!(serde_json::from_slice::<Value>(&out).is_ok(), "a whole answer that is no JSON");
            }
        }
    }
}

fn close(encoder: &mut dyn Encode, out: &mut BytesMut) {
    encoder.close(End::Complete(&Usage::default()), out);
}

/// Every event that a client is given holds one JSON text, or the terminator.
fn frames(out: &[u8]) {
    let mut decoder = sse::Decoder::new(1 << 26);
    decoder.push(Bytes::copy_from_slice(out));
    while let Some(item) = decoder.next().unwrap() {
        let Item::Event(event) = item else { continue };
        let json = serde_json::from_slice::<Value>(&event.data).is_ok();
        assert!(json || &*event.data == b"[DONE]", "{:?}", String::from_utf8_lossy(&event.data));
    }
    assert_eq!(decoder.finish(), None, "an event that does not end");
}

fn asking(id: DialectId, stream: bool) -> Request {
    let body = format!(
        r#"{{"model":"m","n":2,"max_tokens":99,"stream":{stream},"messages":[{{"role":"user","content":"a"}}],"input":"a"}}"#
    );
    dialect::client(id).unwrap().parse(&HeaderMap::new(), body.as_bytes()).unwrap()
}

fn going_on(how: How) -> Carry {
    let delivered: Arc<str> = "The answer that was told so far ".into();
    let anchor = Anchor::of(&delivered);
    Carry { origin: Origin::Continue(Continue { delivered, anchor, how, tokens: 8 }), ..Carry::fresh() }
}
