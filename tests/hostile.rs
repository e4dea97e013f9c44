//! What one request or one answer may cost everybody else: hostile schemas, requests that are small as text and large as
//! values, answers that grow without an end. Each is refused, told unchecked or ended, and other turns are exact.
#![expect(clippy::unwrap_used, reason = "a test's panic is its report")]

mod support;

use futures::stream::{BoxStream, StreamExt};
use segue::chat::DialectId;
use segue::config;
use segue::dialect;
use segue::event::{Event, Finish, Signal, Step};
use segue::gateway::Gateway;
use segue::gateway::caller::Caller;
use segue::gateway::drive::Start;
use segue::upstream::{Call, Upstream};
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use support::house::House;
use tokio::time::Instant;

/// Answers with `text`, whatever it is asked.
struct Says(&'static str);

impl Upstream for Says {
    fn open(&self, _: Call) -> BoxStream<'static, Signal> {
        let text = Step::of(Event::Text { choice: 0, text: self.0.to_owned() });
        let finish = Step::of(Event::Finish { choice: 0, reason: Finish::Stop, stop_sequence: None });
        let said = [Signal::Sent, Signal::Opened, Signal::Step(text), Signal::Step(finish), Signal::Ended];
        futures::stream::iter(said).boxed()
    }
}

/// Calls a tool whose arguments have no end.
struct Grows;

impl Upstream for Grows {
    fn open(&self, _: Call) -> BoxStream<'static, Signal> {
        let open = Event::ToolOpen { choice: 0, call: 0, id: "c".into(), name: "f".into() };
        let begun = futures::stream::iter([Signal::Sent, Signal::Opened, Signal::Step(Step::of(open))]);
        let more = futures::stream::repeat(()).then(|()| async {
            tokio::time::sleep(Duration::from_millis(1)).await;
            Signal::Step(Step::of(Event::ToolArgs { choice: 0, call: 0, args: "x".repeat(64 << 10) }))
        });
        begun.chain(more).boxed()
    }
}

/// A gateway before two equal providers under `main`, and another one under `other`.
async fn house(settings: &str, provider: impl Upstream + 'static, other: Says) -> House {
    let connection =
        |name: &str| format!("[connections.{name}]\ndialect = \"chat\"\nbase_url = \"http://127.0.0.1:1/v1\"\n");
    let row = |name: &str| format!("{{ connection = \"{name}\", model = \"m\" }}");
    let text = format!(
        "{settings}\n{}{}{}[levels.main]\nchain = [{}, {}]\nretries = 0\n[levels.other]\nchain = [{}]\n",
        connection("a"),
        connection("b"),
        connection("c"),
        row("a"),
        row("b"),
        row("c")
    );
    let config = config::load(&text, "hostile.toml", &config::Nothing).unwrap().config;
    let provider: Arc<dyn Upstream> = Arc::new(provider);
    let upstreams = HashMap::from([
        ("a".into(), Arc::clone(&provider)),
        ("b".into(), provider),
        ("c".into(), Arc::new(other) as Arc<dyn Upstream>),
    ]);
    House::before(Gateway::with_upstreams(config, upstreams), Vec::new()).await
}

/// Tells text without an end, as quickly as it is taken.
struct Gushes;

impl Upstream for Gushes {
    fn open(&self, _: Call) -> BoxStream<'static, Signal> {
        let text = || Signal::Step(Step::of(Event::Text { choice: 0, text: "x".repeat(1 << 10) }));
        futures::stream::iter([Signal::Sent, Signal::Opened]).chain(futures::stream::repeat_with(text)).boxed()
    }
}

#[tokio::test]
async fn a_client_that_takes_nothing_is_counted_with_all_that_is_read_for_it() {
    let house = house("", Gushes, Says("well")).await;
    let body = br#"{"model": "main", "stream": true, "messages": [{"role": "user", "content": "x"}]}"#;
    let request = dialect::client(DialectId::Chat).unwrap().parse(&http::HeaderMap::new(), body).unwrap();
    let mut drive = house.gateway.begin(&Caller::default(), request).await.unwrap();
    assert!(matches!(drive.start(None).await, Start::Going));
    let before = house.gateway.held();
    let frame = std::future::poll_fn(|cx| drive.poll_frame(cx)).await.unwrap();
    assert!(60 << 10 < frame.len(), "a batch of {} bytes", frame.len());
    assert!(before + (400 << 10) < house.gateway.held(), "{before}, then {}", house.gateway.held());
    drop(drive);
    assert_eq!(house.gateway.held(), 0);
}

fn asking(schema: &Value) -> Value {
    json!({"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}})
}

/// Definitions that refer to each other, one after another.
fn chain(steps: usize, step: impl Fn(&str) -> Value) -> Value {
    let mut definitions: Map<_, _> =
        (0..steps).map(|n| (format!("a{n}"), step(&format!("#/$defs/a{}", n + 1)))).collect();
    definitions.insert(format!("a{steps}"), json!({"type": "object"}));
    json!({"$defs": definitions, "$ref": "#/$defs/a0"})
}

#[tokio::test]
async fn a_schema_decides_who_answers_and_a_hostile_one_stops_nobody() {
    let house = house("", Says("{\"n\":1}"), Says("well")).await;
    let wrong = house.chat(&asking(&json!({"required": ["m"]}))).await;
    assert_eq!((wrong.text.as_str(), wrong.done, wrong.errors.len()), ("{\"n\":1}", 0, 1), "{wrong:?}");
    let failures =
        || house.gateway.recent(1)[0].attempts.iter().map(|a| a.failure.map(|kind| kind.name())).collect::<Vec<_>>();
    assert_eq!(failures(), [Some("Malformed"), Some("Malformed")]);
    let right = house.chat(&asking(&json!({"required": ["n"]}))).await;
    right.assert_whole("an answer that fits");
    assert_eq!(failures(), [None]);
    let hostile = [
        chain(20_000, |next| json!({"allOf": [{"$ref": next}, {"type": "object"}]})),
        chain(60, |next| json!({"allOf": [{"$ref": next}, {"$ref": next}]})),
        chain(20_000, |next| json!({"$ref": next})),
    ];
    for schema in hostile {
        let begun = Instant::now();
        let body = asking(&schema);
        let (heard, other) = tokio::join!(house.chat(&body), async {
            house.chat(&json!({"model": "other"})).await.assert_whole("a turn beside it");
            begun.elapsed()
        });
        heard.assert_whole("an answer that nobody could check");
        assert_eq!(heard.text, "{\"n\":1}");
        assert!(other < Duration::from_secs(5), "another turn took {other:?}");
    }
}

#[tokio::test]
async fn a_request_is_measured_by_what_it_takes_and_not_by_its_bytes() {
    let house =
        house("[server]\nbuffer = \"32MiB\"\n[limits]\nmax_values = 200000\n", Says("well"), Says("well")).await;
    let many = |count: usize| json!({"x": Value::from(vec![json!([[]]); count])});
    let heard = house.chat(&many(120_000)).await;
    assert_eq!((heard.status, &heard.body["error"]["code"]), (400, &json!("too_much")), "{heard:?}");
    assert!(heard.body["error"]["message"].as_str().unwrap().contains("max_values"));
    let heard = house.chat(&many(45_000)).await;
    assert_eq!((heard.status, &heard.body["error"]["code"]), (413, &json!("request_too_large")), "{heard:?}");
    house.chat(&many(10_000)).await.assert_whole("a request that fits");
    house
        .chat(&json!({"messages": [{"role": "user", "content": "x".repeat(1 << 20)}]}))
        .await
        .assert_whole("long text");
    assert_eq!(house.gateway.held(), 0, "all is given back");
}

#[tokio::test]
async fn where_turns_grow_past_what_there_is_the_largest_is_ended_and_others_are_not() {
    let house = house("[server]\nbuffer = \"16MiB\"\nmax_body = \"8MiB\"\n", Grows, Says("well")).await;
    let body = json!({});
    let growing = house.chat(&body);
    let others = async {
        for _ in 0..50 {
            house.chat(&json!({"model": "other"})).await.assert_whole("a turn beside it");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let (heard, ()) = tokio::join!(growing, others);
    assert_eq!((heard.status, &heard.body["error"]["code"]), (503, &json!("buffer_full")), "{heard:?}");
    assert!(heard.body["error"]["message"].as_str().unwrap().contains("server.buffer"));
    house.chat(&json!({"model": "other"})).await.assert_whole("a turn after it");
    assert_eq!(house.gateway.held(), 0, "all is given back");
}
