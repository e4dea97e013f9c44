//! Conversations that Segue's own answers made, before providers as strict as the real ones: whatever dies, is
//! interrupted or comes late, the next request is one that they accept.
#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "a test's panic is its report")]

use axum::Router;
use axum::body::Body;
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use segue::chat::DialectId;
use segue::config::{self, Resolver};
use segue::event::{Event, Finish, Identity, Signal, Step};
use segue::failure::{Failure, Kind, Stage};
use segue::gateway::Gateway;
use segue::server;
use segue::upstream::{Call, Upstream};
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tower::ServiceExt;

// === the dice ===

/// A small generator whose draws depend on nothing but its seed.
#[derive(Clone)]
struct Dice(u64);

impl Dice {
    fn draw(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % below
    }

    fn percent(&mut self, of_hundred: u64) -> bool {
        self.draw(100) < of_hundred
    }
}

// === the strict provider ===

/// Accepts what the real API accepts, and answers each question with the same text, calls and thinking; now and then it
/// dies or falls silent on the way.
struct Strict {
    dialect: DialectId,
    dice: Mutex<Dice>,
    refused: Arc<Mutex<Vec<String>>>,
}

impl Upstream for Strict {
    fn open(&self, call: Call) -> BoxStream<'static, Signal> {
        let body: Value = serde_json::from_slice(&call.wire.body).unwrap();
        let wrong = match self.dialect {
            DialectId::Anthropic => messages_refuses(&body),
            _ => chat_refuses(&body),
        };
        if let Some(wrong) = wrong {
            eprintln!("a strict provider refuses: {wrong}\n{body:#}");
            self.refused.lock().unwrap().push(wrong.clone());
            let failure = Failure::new(Kind::BadRequest, Stage::Refused).saying(wrong);
            return stream::iter([Signal::Sent, Signal::Failed(Box::new(failure))]).boxed();
        }
        let mut dice = self.dice.lock().unwrap();
        let mut signals = answer(self.dialect, &body);
        match dice.draw(10) {
            0..=2 => {
                let at = usize::try_from(dice.draw(signals.len() as u64)).unwrap();
                signals.truncate(at.max(1));
                signals.push(Signal::Failed(Box::new(Failure::new(Kind::Reset, Stage::Streaming))));
            }
            3 => {
                let at = usize::try_from(dice.draw(signals.len() as u64)).unwrap();
                signals.truncate(at.max(1));
                let silence = Signal::Failed(Box::new(Failure::new(Kind::Stalled, Stage::Streaming)));
                signals.push(silence);
            }
            _ => {}
        }
        let paced = stream::iter(signals).then(|signal| async move {
            tokio::time::sleep(Duration::from_millis(10)).await;
            signal
        });
        paced.boxed()
    }
}

/// What is answered to the last question: it says which it is, and everything follows from that.
fn answer(dialect: DialectId, body: &Value) -> Vec<Signal> {
    let all = body["messages"].to_string();
    let number: u64 = all.rfind("question ").map_or(0, |at| {
        let rest = &all[at + "question ".len()..];
        rest.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap()
    });
    // Results are a question too.
    let round = all.matches("found").count();
    let mut dice = Dice(number ^ ((round as u64) << 40));
    let mut events = vec![Event::Identity(Box::new(Identity { id: format!("id-{number}"), ..Identity::default() }))];
    if dialect == DialectId::Anthropic && dice.percent(40) {
        let text = if dice.percent(50) { String::new() } else { format!("thought {number}") };
        events.push(Event::Thinking(true));
        if !text.is_empty() {
            events.push(Event::Reasoning { choice: 0, text: text.clone() });
        }
        events.push(Event::Signature { choice: 0, data: format!("signed {text}"), redacted: false });
        events.push(Event::Thinking(false));
    }
    if dice.percent(10) {
        events.push(Event::Text { choice: 0, text: "\n\n".to_owned() });
    }
    let calls = if body.get("tools").is_some() { dice.draw(3) } else { 0 };
    if calls == 0 || dice.percent(50) {
        for word in 0..2 + dice.draw(12) {
            events.push(Event::Text { choice: 0, text: format!("word {number}-{word} ") });
        }
    }
    for call in 0..u32::try_from(calls).unwrap() {
        let id = format!("call_{number}_{round}_{call}");
        events.push(Event::ToolOpen { choice: 0, call, id, name: "look".to_owned() });
        events.push(Event::ToolArgs { choice: 0, call, args: "{\"q\":".to_owned() });
        // Some providers end a call that they cut as if it were whole.
        if !dice.percent(10) {
            events.push(Event::ToolArgs { choice: 0, call, args: format!("{number}}}") });
        }
        events.push(Event::ToolClose { choice: 0, call });
    }
    let reason = if calls > 0 { Finish::ToolCalls } else { Finish::Stop };
    events.push(Event::Finish { choice: 0, reason, stop_sequence: None });
    let steps = events.into_iter().map(|event| Signal::Step(Step::of(event)));
    [Signal::Sent, Signal::Opened].into_iter().chain(steps).chain([Signal::Ended]).collect()
}

/// Why Chat Completions would refuse the request.
fn chat_refuses(body: &Value) -> Option<String> {
    let messages = body["messages"].as_array().unwrap();
    let mut ids = HashSet::new();
    let mut owed: Vec<&str> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().unwrap();
        if role == "tool" {
            let id = message["tool_call_id"].as_str().unwrap();
            match owed.iter().position(|owed| *owed == id) {
                Some(found) => owed.remove(found),
                None => return Some(format!("messages.{at}: a result without a call before it")),
            };
            continue;
        }
        if !owed.is_empty() {
            return Some(format!("messages.{at}: calls without results before it: {owed:?}"));
        }
        let text = message["content"].as_str().map(str::trim);
        let calls = message["tool_calls"].as_array().map_or(&[][..], Vec::as_slice);
        if text == Some("") || (text.is_none() && !message["content"].is_array() && calls.is_empty()) {
            return Some(format!("messages.{at}: says nothing"));
        }
        for call in calls {
            let id = call["id"].as_str().unwrap();
            if !ids.insert(id) {
                return Some(format!("messages.{at}: the id {id} is taken"));
            }
            if serde_json::from_str::<Value>(call["function"]["arguments"].as_str().unwrap()).is_err() {
                return Some(format!("messages.{at}: arguments that are no JSON"));
            }
            owed.push(id);
        }
    }
    // An assistant at the end is taken by this API's providers; whether they go on from it is another question.
    (!owed.is_empty()).then(|| format!("calls without results at the end: {owed:?}"))
}

/// Why Messages would refuse the request.
fn messages_refuses(body: &Value) -> Option<String> {
    let messages = body["messages"].as_array().unwrap();
    if messages.first().is_none_or(|first| first["role"] != "user") {
        return Some("the user must begin".to_owned());
    }
    let mut ids: HashSet<String> = HashSet::new();
    let mut owed: HashSet<String> = HashSet::new();
    for (at, message) in messages.iter().enumerate() {
        let assistant = message["role"] == "assistant";
        let whole = json!([{"type": "text", "text": message["content"]}]);
        let blocks = message["content"].as_array().or(whole.as_array()).unwrap();
        let mut results: HashSet<String> = HashSet::new();
        let mut began = false;
        for block in blocks {
            match block["type"].as_str().unwrap() {
                "text" if block["text"].as_str().unwrap().trim().is_empty() => {
                    return Some(format!("messages.{at}: a blank text"));
                }
                "tool_result" if began => return Some(format!("messages.{at}: a result behind something else")),
                "tool_result" => {
                    let id = block["tool_use_id"].as_str().unwrap();
                    if !owed.contains(id) || !results.insert(id.to_owned()) {
                        return Some(format!("messages.{at}: a result without a call before it: {id}"));
                    }
                }
                "tool_use" => {
                    let id = block["id"].as_str().unwrap();
                    if !ids.insert(id.to_owned()) || !block["input"].is_object() {
                        return Some(format!("messages.{at}: the call {id} is none, or its id is taken"));
                    }
                }
                "thinking" => {
                    let (text, signature) = (block["thinking"].as_str().unwrap(), block["signature"].as_str());
                    if signature != Some(&format!("signed {text}")) || began {
                        return Some(format!("messages.{at}: thinking that nobody signed, or that was moved"));
                    }
                    continue;
                }
                _ => {}
            }
            began |= block["type"] != "tool_result";
        }
        if !assistant && results != owed {
            return Some(format!("messages.{at}: calls without results: {owed:?}, {results:?}"));
        }
        if assistant && (!began || !owed.is_empty()) {
            return Some(format!("messages.{at}: nothing but thinking, or results are missing before it"));
        }
        owed.clear();
        if assistant {
            let calls = blocks.iter().filter(|block| block["type"] == "tool_use");
            owed.extend(calls.map(|block| block["id"].as_str().unwrap().to_owned()));
        }
    }
    let open = messages.last().is_some_and(|last| last["role"] == "assistant");
    open.then(|| "the conversation ends with the assistant".to_owned())
}

// === the client ===

/// Reads no secrets.
struct Nothing;

impl Resolver for Nothing {
    fn env(&self, _: &str) -> Option<String> {
        Some("key".to_owned())
    }

    fn file(&self, path: &str) -> Result<String, String> {
        Err(path.to_owned())
    }
}

/// A gateway before two strict providers, of these dialects.
fn gateway(dialects: [DialectId; 2], seed: u64, refused: &Arc<Mutex<Vec<String>>>) -> Router {
    let mut text = String::new();
    let mut upstreams: HashMap<Arc<str>, Arc<dyn Upstream>> = HashMap::new();
    for (name, dialect) in ["a", "b"].into_iter().zip(dialects) {
        text.push_str(&format!(
            "[connections.{name}]\ndialect = \"{}\"\nbase_url = \"http://127.0.0.1:1/v1\"\n\
             api_key = {{ env = \"K\" }}\nbreaker = {{ consecutive = 1000000, min_samples = 1000000 }}\n",
            dialect.name()
        ));
        let dice = Mutex::new(Dice(seed ^ u64::from(name == "b")));
        upstreams.insert(name.into(), Arc::new(Strict { dialect, dice, refused: Arc::clone(refused) }));
    }
    text.push_str(
        "[levels.main]\nchain = [{ connection = \"a\", model = \"m\" }, { connection = \"b\", model = \"m\" }]\n\
         conversation = \"queue\"\n",
    );
    let config = config::load(&text, "segue.toml", &Nothing).unwrap().config;
    server::routes(Gateway::with_upstreams(config, upstreams))
}

/// One conversation of a client of `dialect` that sends only what is new.
async fn converse(router: &Router, dialect: DialectId, seed: u64) {
    let mut dice = Dice(seed);
    let mut pending: Vec<String> = Vec::new();
    for turn in 0..2 + dice.draw(5) {
        let question = format!("question {}", seed.wrapping_mul(64).wrapping_add(turn) % 1_000_000_007);
        // Results come at once, in any order and with or without words; or late, or of some calls only.
        let mut results = Vec::new();
        if !pending.is_empty() && dice.percent(70) {
            let all = dice.percent(80);
            let keep = if all { 0 } else { pending.len() / 2 };
            results = pending.split_off(keep);
            if dice.percent(50) {
                results.reverse();
            }
        }
        let speaks = results.is_empty() || dice.percent(40);
        let messages = said(dialect, &results, speaks.then_some(question.as_str()));
        let leaves = dice.percent(30).then(|| dice.draw(12));
        pending.extend(ask(router, dialect, seed, messages, leaves).await);
    }
}

fn said(dialect: DialectId, results: &[String], question: Option<&str>) -> Value {
    if dialect == DialectId::Anthropic {
        let mut blocks: Vec<Value> =
            results.iter().map(|id| json!({"type": "tool_result", "tool_use_id": id, "content": "found"})).collect();
        blocks.extend(question.map(|text| json!({"type": "text", "text": text})));
        return json!([{"role": "user", "content": blocks}]);
    }
    let mut messages: Vec<Value> =
        results.iter().map(|id| json!({"role": "tool", "tool_call_id": id, "content": "found"})).collect();
    messages.extend(question.map(|text| json!({"role": "user", "content": text})));
    Value::Array(messages)
}

/// Asks, and gives the ids of the calls that were told whole; `leaves`: after so many frames the client is gone.
async fn ask(router: &Router, dialect: DialectId, seed: u64, messages: Value, leaves: Option<u64>) -> Vec<String> {
    let parameters = json!({"type": "object", "properties": {"q": {"type": "integer"}}});
    let (path, tools) = match dialect {
        DialectId::Anthropic => ("/v1/messages", json!([{"name": "look", "input_schema": parameters}])),
        _ => (
            "/v1/chat/completions",
            json!([{"type": "function", "function": {"name": "look", "parameters": parameters}}]),
        ),
    };
    let body = json!({"model": "main", "stream": true, "max_tokens": 4096, "messages": messages, "tools": tools,
        "conversation_id": format!("c{seed}")});
    let request = http::Request::post(path)
        .header("host", "127.0.0.1")
        .header("content-type", "application/json")
        .header("x-segue-history", "append")
        .body(Body::from(body.to_string()))
        .unwrap();
    let response = router.clone().oneshot(request).await.unwrap();
    let refused = response.status() == 400;
    let mut frames = response.into_body().into_data_stream();
    let mut text = String::new();
    let mut heard = 0;
    while let Some(frame) = frames.next().await {
        text.push_str(std::str::from_utf8(&frame.unwrap()).unwrap());
        heard += 1;
        if leaves.is_some_and(|leaves| heard > leaves) {
            return Vec::new();
        }
    }
    assert!(!refused, "refused: {text}\n{body:#}");
    let events = text.lines().filter_map(|line| serde_json::from_str::<Value>(line.strip_prefix("data: ")?).ok());
    let events: Vec<Value> = events.collect();
    if events.iter().any(|event| event.get("error").is_some()) {
        return Vec::new();
    }
    let chat = |event: &Value| {
        let calls = event["choices"][0]["delta"]["tool_calls"].as_array().cloned().unwrap_or_default();
        calls.iter().filter_map(|call| call["id"].as_str().map(str::to_owned)).collect::<Vec<_>>()
    };
    let claude = |event: &Value| {
        let block = &event["content_block"];
        block["id"].as_str().filter(|_| block["type"] == "tool_use").map(str::to_owned).into_iter().collect::<Vec<_>>()
    };
    events.iter().flat_map(|event| if dialect == DialectId::Anthropic { claude(event) } else { chat(event) }).collect()
}

/// How many conversations are tried: `SEGUE_CONVERSATIONS`, or a few.
fn conversations() -> u64 {
    std::env::var("SEGUE_CONVERSATIONS").ok().and_then(|n| n.parse().ok()).unwrap_or(300)
}

#[tokio::test(start_paused = true)]
async fn a_history_that_an_answer_made_is_never_refused() {
    use DialectId::{Anthropic, Chat};
    for (group, (client, chain)) in [
        (Chat, [Chat, Chat]),
        (Chat, [Chat, Anthropic]),
        (Chat, [Anthropic, Chat]),
        (Anthropic, [Anthropic, Chat]),
        (Anthropic, [Chat, Anthropic]),
    ]
    .into_iter()
    .enumerate()
    {
        let refused = Arc::new(Mutex::new(Vec::new()));
        let router = gateway(chain, group as u64, &refused);
        for number in 0..conversations().div_ceil(5) {
            converse(&router, client, number * 5 + group as u64).await;
            let refused = std::mem::take(&mut *refused.lock().unwrap());
            assert!(refused.is_empty(), "{client:?} over {chain:?}, conversation {number}: {}", refused.join("\n"));
        }
    }
}
