//! What one turn holds, whatever its providers send and for as long as they send it.

use super::measure::cost;
use bytes::BytesMut;
use segue::chat::DialectId;
use segue::chat::modality::Modalities;
use segue::dialect;
use segue::event::{Event, Extra, Finish, Identity, Place, Signal, Step};
use segue::relay::{Action, AttemptId, Policy, Relay};
use segue::routing::plan::Candidate;
use segue::routing::{Level, Pace, Target, Timeouts};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The bound on a turn here, in bytes.
const MAX_TURN: usize = 16 << 10;

/// What a turn may hold besides, of its own and for its attempts.
const OVERHEAD: u64 = 512 << 10;

/// So many events are more than any of them needs to run into the bound.
const EVENTS: u32 = 60_000;

/// What a provider says, event by event.
type Says = fn(u32) -> Event;

#[test]
fn a_turn_holds_no_more_than_its_bound_whatever_is_said_in_it() {
    let shapes: [(&str, Says); 12] = [
        ("letters", |_| text("a")),
        ("blanks", |_| text(" ")),
        ("one-byte fragments of a call", |at| match at {
            0 => open(0),
            _ => args(0),
        }),
        ("one-byte fragments of two calls in turn", |at| match at {
            0 | 1 => open(at),
            _ => args(at % 2),
        }),
        ("calls", |at| open(at % 512)),
        ("calls that are opened and closed", |at| match at % 2 {
            0 => open(at / 2 % 512),
            _ => Event::ToolClose { choice: 0, call: at / 2 % 512 },
        }),
        ("reasoning and signatures", |at| match at % 2 {
            0 => Event::Reasoning { choice: 0, text: "a".to_owned() },
            _ => Event::Signature { choice: 0, data: "s".to_owned(), redacted: false },
        }),
        ("fields of no common form", |_| extra()),
        ("new names", |at| {
            Event::Identity(Box::new(Identity { id: at.to_string(), model: "m".to_owned(), created: 1 }))
        }),
        ("signs of life", |_| Event::Alive),
        ("refusals", |_| Event::Refusal { choice: 0, text: "a".to_owned() }),
        ("calls between texts", |at| match at % 3 {
            0 => open(at % 512),
            1 => args((at - 1) % 512),
            _ => text("a"),
        }),
    ];
    for (shape, says) in shapes {
        for whole in [false, true] {
            for stands in [Stand::Alone, Stand::Leads, Stand::Contends, Stand::Slow] {
                let cost = cost(|| play(says, whole, stands));
                let most = 8 * MAX_TURN as u64 + OVERHEAD;
                assert!(cost.peak <= most, "{shape}, {stands:?}, whole: {whole}: {} bytes at once", cost.peak);
            }
        }
    }
}

/// Where the provider stands that says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stand {
    /// Nobody else could be asked.
    Alone,
    /// Somebody else could be asked, so that what cannot be joined is held.
    Leads,
    /// It goes on with a turn whose leader fell silent.
    Contends,
    /// It leads and is being overtaken, so that all it says is held.
    Slow,
}

fn play(says: Says, whole: bool, stands: Stand) {
    let seconds = Duration::from_secs;
    let hour = seconds(3600);
    let suspect = (stands == Stand::Contends).then(|| seconds(1));
    let pace = (stands == Stand::Slow).then(|| Pace { chars: 1e9, window: seconds(1) });
    let timeouts = Timeouts { first_token: hour, stall: hour, idle: hour, suspect, pace, ..Timeouts::default() };
    let names: &[&str] = if stands == Stand::Alone { &["a"] } else { &["a", "b"] };
    let candidate = |name: &&str| Candidate::new(Arc::new(Target::new(*name, "m", DialectId::Chat)), timeouts);
    let policy = Policy {
        level: Arc::new(Level::new("test", Vec::new())),
        choices: 1,
        max_tokens: None,
        prompt_estimate: 10,
        asked_in: Modalities::NONE,
        continuable: true,
        structured: false,
        races: true,
        max_turn: MAX_TURN,
        whole,
        retry_after_cap: seconds(60),
        deadline: 24 * hour,
        seed: 7,
    };
    #[expect(clippy::disallowed_methods, reason = "a start for a clock that is moved by hand")]
    let mut now = Instant::now();
    let mut relay = Relay::new(policy, names.iter().map(candidate).collect(), now);
    let mut client = Client::new(whole);
    relay.handle_signal(AttemptId(0), Signal::Sent, now);
    let mut speaker = 0;
    if matches!(stands, Stand::Contends | Stand::Slow) {
        say(&mut relay, 0, text("The answer begins, and then there is nothing more of it"), now);
        now += seconds(2);
        relay.handle_timeout(now);
        client.listen(&mut relay);
        relay.handle_signal(AttemptId(1), Signal::Sent, now);
        speaker = u32::from(stands == Stand::Contends);
    }
    for at in 0..EVENTS {
        say(&mut relay, speaker, says(at), now);
        if client.listen(&mut relay) {
            return;
        }
    }
    say(&mut relay, speaker, Event::Finish { choice: 0, reason: Finish::Stop, stop_sequence: None }, now);
    client.listen(&mut relay);
}

/// Takes what it is told and keeps what a client's encoder keeps.
struct Client {
    encoder: Box<dyn dialect::Encode>,
    out: BytesMut,
}

impl Client {
    fn new(whole: bool) -> Self {
        let body = format!(r#"{{"model":"m","stream":{},"messages":[{{"role":"user","content":"hi"}}]}}"#, !whole);
        let client = dialect::client(DialectId::Chat).unwrap();
        let request = client.parse(&http::HeaderMap::new(), body.as_bytes()).unwrap();
        Self { encoder: client.encoder(&request), out: BytesMut::new() }
    }

    /// Takes what there is; whether the turn is over.
    fn listen(&mut self, relay: &mut Relay) -> bool {
        let mut over = false;
        while let Some(action) = relay.poll_action() {
            match action {
                Action::Emit(step) => self.encoder.step(&step, &mut self.out),
                Action::Close(_) => over = true,
                _ => {}
            }
            // It has read that.
            self.out.clear();
        }
        over
    }
}

fn say(relay: &mut Relay, id: u32, event: Event, now: Instant) {
    relay.handle_signal(AttemptId(id), Signal::Step(Step::of(event)), now);
}

fn text(text: &str) -> Event {
    Event::Text { choice: 0, text: text.to_owned() }
}

fn open(call: u32) -> Event {
    Event::ToolOpen { choice: 0, call, id: format!("c{call}"), name: "f".to_owned() }
}

fn args(call: u32) -> Event {
    Event::ToolArgs { choice: 0, call, args: "1".to_owned() }
}

fn extra() -> Event {
    let fields =
        serde_json::Map::from_iter([("logprobs".to_owned(), serde_json::json!({ "content": [{ "token": "a" }] }))]);
    Event::Extra(Box::new(Extra { dialect: DialectId::Chat, place: Place::Choice(0), fields, bound: false }))
}
