//! Conversations over real sockets: what a second turn is told of the first, however that ended, and who may see it.
#![expect(clippy::unwrap_used, reason = "a test's panic is its report")]

mod support;

use futures::future::BoxFuture;
use futures::{StreamExt, stream};
use http::{HeaderMap, Method};
use segue::gateway::Gateway;
use segue::rig::origin::{Fate, Origin, Scripts};
use segue::rig::script::{Break, Reject, Script, ToolCall};
use segue::store::{Answer, Conversation, Key, Question, Store, Unavailable};
use segue::upstream::Upstream;
use segue::upstream::client::Client;
use segue::upstream::http::{Http, Settings};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::sync::Arc;
use support::house::House;
use support::talk::{
    SOON, admin, append, ask, ask_and_leave, asked, body, headers, kept, ms, roles, slow, user, words,
};

// === what the next turn is told ===

#[tokio::test]
async fn who_barges_in_finds_what_was_said() {
    let scripts = Scripts::sequence(vec![slow(&words(200)), Script::telling("Noon.")]);
    let house = House::of(vec![("chat", scripts)], "", "").await;
    ask_and_leave(&house, append(), &body("c", "go"), 6).await;
    let second = ask(&house, "c", "stop, what time is it?").await;
    second.assert_whole("second");
    assert_eq!(second.text, "Noon.");
    let messages = asked(&house.origins[0], 1);
    assert_eq!(roles(&messages), ["user", "assistant", "user"]);
    let partial = messages[1]["content"].as_str().unwrap();
    assert!(partial.starts_with("w0 w1 w2") && partial.len() < 200, "{partial}");
    let kept = kept(&house.gateway, None, "c").await;
    assert_eq!(
        kept,
        [
            "user:go".to_owned(),
            format!("assistant:interrupted:{partial}"),
            "user:stop, what time is it?".to_owned(),
            "assistant:complete:Noon.".to_owned()
        ]
    );
    let origin = house.origins[0].records();
    assert!(origin.until(SOON, |all| all[0].fate == Fate::Cancelled).await, "the first call is closed");
}

#[tokio::test]
async fn a_turn_that_broke_in_a_call_is_told_without_it() {
    let mut broken = Script::telling("Let me see");
    let args = vec!["{\"city\":".to_owned(), "\"Ulm\"}".to_owned()];
    broken.content.tools = vec![ToolCall { id: "call_1".into(), name: "weather".into(), args }];
    let broken = broken.breaking(5, Break::Fin);
    let scripts = Scripts::sequence(vec![broken, Script::telling("Hi.")]);
    let house = House::of(vec![("chat", scripts)], "", "retries = 0").await;
    let first = ask(&house, "c", "go").await;
    assert_eq!((first.status, first.errors.len(), first.done, first.calls.len()), (200, 1, 0, 1), "{first:?}");
    ask(&house, "c", "again").await.assert_whole("second");
    let messages = asked(&house.origins[0], 1);
    assert_eq!(messages, [user("go"), json!({"role": "assistant", "content": "Let me see"}), user("again")]);
    let (status, view) = admin(&house.gateway, Method::GET, "/api/conversations/c").await;
    assert_eq!((status, &view["conversation"], &view["tenant"]), (200, &json!("c"), &Value::Null));
    let answer = &view["turns"][1];
    assert_eq!(
        (&answer["state"], &answer["text"], &answer["tool_calls"]),
        (&json!("incomplete"), &json!("Let me see"), &json!([]))
    );
    assert_eq!(answer["served_by"], json!("a/m-a"));
}

#[tokio::test]
async fn a_call_that_was_made_goes_with_its_result() {
    let mut calling = Script::telling("");
    calling.content.text = Vec::new();
    let args = vec!["{\"city\":\"Ulm\"}".to_owned()];
    calling.content.tools = vec![ToolCall { id: "call_1".into(), name: "weather".into(), args }];
    let scripts = Scripts::sequence(vec![calling, Script::telling("Sunny."), Script::telling("Bye.")]);
    let house = House::of(vec![("chat", scripts)], "", "").await;
    assert_eq!(ask(&house, "c", "weather?").await.calls.len(), 1);
    let mut result = body("c", "");
    result["messages"] = json!([{"role": "tool", "tool_call_id": "call_1", "content": "sun"}]);
    house.post("/v1/chat/completions", append(), result.to_string().into()).await.assert_whole("result");
    let messages = asked(&house.origins[0], 1);
    assert_eq!(roles(&messages), ["user", "assistant", "tool"]);
    assert_eq!(messages[1]["tool_calls"][0]["id"], json!("call_1"));
    assert_eq!(messages[1]["tool_calls"][0]["function"]["arguments"], json!("{\"city\":\"Ulm\"}"));
    ask(&house, "c", "bye").await.assert_whole("bye");
    assert_eq!(roles(&asked(&house.origins[0], 2)), ["user", "assistant", "tool", "assistant", "user"]);
}

#[tokio::test]
async fn messages_clients_append_too_and_signed_thinking_is_told_again() {
    let mut first = Script::telling("Hello there.");
    first.content.reasoning = vec!["Be ".into(), "kind.".into()];
    let scripts = Scripts::sequence(vec![first, Script::telling("Bye."), Script::telling("Again.")]);
    let house = House::of(vec![("anthropic", scripts)], "", "").await;
    let body = |text: &str, system: Option<&str>| {
        let mut body = json!({"model": "main", "max_tokens": 100, "conversation_id": "c", "messages": [user(text)]});
        if let Some(system) = system {
            body["system"] = json!([{"type": "text", "text": system, "cache_control": {"type": "ephemeral"}}]);
        }
        body.to_string()
    };
    let first = house.post("/v1/messages", append(), body("hi", Some("Be brief.")).into()).await;
    assert_eq!(first.status, 200, "{}", first.body);
    let second = house.post("/v1/messages", append(), body("bye", None).into()).await;
    assert_eq!(second.body["content"][0]["text"], json!("Bye."));
    let sent = house.origins[0].records().get(1).unwrap().body;
    assert_eq!(sent["system"], json!([{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]));
    let messages = sent["messages"].as_array().unwrap();
    assert_eq!(roles(messages), ["user", "assistant", "user"]);
    assert_eq!(messages[0], user("hi"));
    // What the client was told, block for block.
    let told = &first.body["content"];
    let again = &messages[1]["content"];
    assert!(told[0]["signature"].as_str().is_some_and(|s| !s.is_empty()), "{told}");
    assert_eq!(again, told);
    // And what was said before is the same bytes in the next turn.
    house.post("/v1/messages", append(), body("more", None).into()).await;
    let later = asked(&house.origins[0], 2);
    assert_eq!(serde_json::to_string(&later[..3]).unwrap(), serde_json::to_string(&messages[..3]).unwrap());
}

#[tokio::test]
async fn a_conversation_goes_on_in_the_other_dialect() {
    let house = House::of(vec![("anthropic", Scripts::fixed(Script::telling("Yes.")))], "", "").await;
    ask(&house, "c", "one").await.assert_whole("chat");
    let next = json!({"model": "main", "max_tokens": 100, "conversation_id": "c", "messages": [user("two")]});
    assert_eq!(house.post("/v1/messages", append(), next.to_string().into()).await.status, 200);
    ask(&house, "c", "three").await.assert_whole("chat again");
    let texts = |messages: &[Value]| -> Vec<String> {
        messages.iter().map(|m| m["content"].as_str().unwrap_or("?").to_owned()).collect()
    };
    assert_eq!(texts(&asked(&house.origins[0], 1)), ["one", "Yes.", "two"]);
    assert_eq!(texts(&asked(&house.origins[0], 2)), ["one", "Yes.", "two", "Yes.", "three"]);
}

#[tokio::test]
async fn a_client_that_sends_everything_is_right() {
    let house = House::of(vec![("chat", Scripts::fixed(Script::telling("Yes.")))], "", "").await;
    ask(&house, "c", "one").await.assert_whole("first");
    let mut all = body("c", "");
    all["messages"] = json!([user("uno"), {"role": "assistant", "content": "Si."}, user("two")]);
    house.post("/v1/chat/completions", HeaderMap::new(), all.to_string().into()).await.assert_whole("full");
    assert_eq!(asked(&house.origins[0], 1), all["messages"].as_array().unwrap().clone());
    assert_eq!(
        kept(&house.gateway, None, "c").await,
        ["user:uno", "assistant:complete:Si.", "user:two", "assistant:complete:Yes."]
    );
    // Without a conversation nothing is kept, and nothing can be appended to.
    let mut none = body("c", "x");
    none.as_object_mut().unwrap().remove("conversation_id");
    let refused = house.post("/v1/chat/completions", append(), none.to_string().into()).await;
    assert_eq!((refused.status, &refused.body["error"]["code"]), (400, &json!("no_conversation")));
    // Nothing of Segue's own goes upstream.
    let sent = house.origins[0].records().get(1).unwrap().body;
    assert!(sent.get("conversation_id").is_none() && sent.get("turn_index").is_none());
}

#[tokio::test]
async fn the_clients_count_takes_a_conversation_back() {
    let house = House::of(vec![("chat", Scripts::fixed(Script::telling("Yes.")))], "", "").await;
    let at = |index: u64, text: &str| {
        let mut body = body("c", text);
        body["turn_index"] = index.into();
        house.post("/v1/chat/completions", append(), body.to_string().into())
    };
    for (index, text) in [(0, "one"), (1, "two"), (2, "three"), (1, "other")] {
        at(index, text).await.assert_whole(text);
    }
    assert_eq!(asked(&house.origins[0], 3).len(), 3);
    assert_eq!(
        kept(&house.gateway, None, "c").await,
        ["user:one", "assistant:complete:Yes.", "user:other", "assistant:complete:Yes."]
    );
    let gap = at(7, "x").await;
    assert_eq!((gap.status, &gap.body["error"]["code"]), (409, &json!("history_missing")));
    assert_eq!(house.origins[0].records().total(), 4);
}

#[tokio::test]
async fn a_turn_that_failed_never_happened_for_the_next() {
    let failing = Script::default().rejecting(Reject::Error { status: 500, headers: Default::default(), wrong: None });
    let house =
        House::of(vec![("chat", Scripts::sequence(vec![failing, Script::telling("Yes.")]))], "", "retries = 0").await;
    assert_eq!(ask(&house, "c", "one").await.status, 502);
    assert_eq!(kept(&house.gateway, None, "c").await, ["user:one", "assistant:failed:"]);
    ask(&house, "c", "one").await.assert_whole("again");
    assert_eq!(asked(&house.origins[0], 1), [user("one")]);
    assert_eq!(kept(&house.gateway, None, "c").await, ["user:one", "assistant:complete:Yes."]);
}

#[tokio::test]
async fn of_a_whole_answer_that_was_not_waited_for_nothing_is_kept() {
    let scripts = Scripts::sequence(vec![slow(&words(200)), Script::telling("Yes.")]);
    let house = House::of(vec![("chat", scripts)], "", "").await;
    let mut first = body("c", "go");
    first["stream"] = false.into();
    let leaves = house.post("/v1/chat/completions", append(), first.to_string().into());
    assert!(tokio::time::timeout(ms(300), leaves).await.is_err());
    ask(&house, "c", "and now?").await.assert_whole("second");
    assert_eq!(asked(&house.origins[0], 1), [user("go"), user("and now?")]);
    assert_eq!(kept(&house.gateway, None, "c").await[1], "assistant:interrupted:");
}

// === who it stays with ===

#[tokio::test]
async fn a_conversation_stays_with_its_fallback_until_the_primary_has_been_quiet() {
    let breaks = Script::telling(&words(20)).breaking(8, Break::Reset);
    let primary = || Scripts::sequence(vec![breaks.clone(), Script::telling("From a.")]);
    let fallback = || Scripts::sequence(vec![Script::telling(&words(20)), Script::telling("From b.")]);
    for (affinity, second, third) in [("400ms", "From b.", "From a."), ("0s", "From a.", "From a.")] {
        let level = format!("affinity = \"{affinity}\"");
        let house = House::of(vec![("chat", primary()), ("chat", fallback())], "", &level).await;
        let first = ask(&house, "c", "one").await;
        first.assert_whole("first");
        assert_eq!(first.text, words(20), "spliced");
        assert_eq!(ask(&house, "c", "two").await.text, second, "{affinity}");
        assert_eq!(ask(&house, "other", "two").await.text, "From a.", "other conversations begin at the primary");
        let mut alone = body("c", "three");
        alone["conversation_id"] = json!("c");
        let pinned = headers(&[("x-segue-order", "a,b"), ("x-segue-history", "append")]);
        let pinned = house.post("/v1/chat/completions", pinned, alone.to_string().into()).await;
        assert_eq!(pinned.text, "From a.", "the caller's order holds");
        // It went back to the primary, so it stays there; one that did not goes back when it has been quiet.
        let house = House::of(vec![("chat", primary()), ("chat", fallback())], "", &level).await;
        ask(&house, "c", "one").await.assert_whole("first");
        tokio::time::sleep(ms(450)).await;
        assert_eq!(ask(&house, "c", "two").await.text, third, "{affinity}");
    }
}

// === how long, how much, whose ===

#[tokio::test]
async fn a_conversation_is_let_go_after_its_time_and_for_want_of_room() {
    let scripts = || Scripts::fixed(Script::telling("Yes."));
    let house = House::of(vec![("chat", scripts())], "[store]\nttl = \"300ms\"", "").await;
    ask(&house, "c", "one").await.assert_whole("first");
    assert_eq!(kept(&house.gateway, None, "c").await.len(), 2);
    tokio::time::sleep(ms(350)).await;
    assert_eq!(admin(&house.gateway, Method::GET, "/api/conversations/c").await.0, 404);
    ask(&house, "c", "two").await.assert_whole("second");
    assert_eq!(asked(&house.origins[0], 1), [user("two")]);

    let house = House::of(vec![("chat", scripts())], "[store]\nmax_bytes = \"64KiB\"", "").await;
    for n in 0..5 {
        ask(&house, &format!("c{n}"), &"x".repeat(15_000)).await.assert_whole("one of many");
    }
    assert_eq!(kept(&house.gateway, None, "c0").await.len(), 0);
    assert_eq!(kept(&house.gateway, None, "c4").await.len(), 2);
}

#[tokio::test]
async fn what_was_deleted_is_gone_and_the_turn_that_was_open_goes_on() {
    let house = House::of(vec![("chat", Scripts::fixed(slow(&words(15))))], "", "").await;
    let delete = async {
        tokio::time::sleep(ms(300)).await;
        admin(&house.gateway, Method::DELETE, "/api/conversations/c").await
    };
    let (turn, deleted) = tokio::join!(ask(&house, "c", "one"), delete);
    turn.assert_whole("open while it was deleted");
    assert_eq!(deleted, (200, json!({"deleted": true})));
    assert_eq!(admin(&house.gateway, Method::GET, "/api/conversations/c").await.0, 404);
    assert_eq!(admin(&house.gateway, Method::DELETE, "/api/conversations/c").await.0, 404);
}

fn tenants(count: usize) -> String {
    let tenant = |n: usize| {
        let digest: String = Sha256::digest(format!("key-{n}")).iter().map(|b| format!("{b:02x}")).collect();
        format!("[tenants.t{n}]\nkeys = [{{ sha256 = \"{digest}\" }}]\nlevels = {{ main = \"main\" }}\n")
    };
    (0..count).map(tenant).collect()
}

/// Every conversation of every tenant has a mark of its own in all that it says, and the provider says it back. No mark
/// ever turns up where it does not belong, however the turns interleave.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_fragment_of_one_conversation_is_in_another() {
    const TENANTS: usize = 10;
    const CONVERSATIONS: usize = 100;
    const TURNS: usize = 3;
    let scripts = Scripts::with(|inquiry| {
        let last = inquiry.body["messages"].as_array().and_then(|m| m.last()).map(|m| m["content"].clone());
        Ok(Arc::new(Script::telling(&format!("heard {}", last.as_ref().and_then(Value::as_str).unwrap_or("?")))))
    });
    let house = House::of(vec![("chat", scripts)], &tenants(TENANTS), "").await;
    let client = Client::new().unwrap();
    let url = format!("http://{}/v1/chat/completions", house.addr);
    let turns =
        (0..TURNS).flat_map(|turn| (0..CONVERSATIONS).flat_map(move |c| (0..TENANTS).map(move |t| (turn, c, t))));
    let ask = |(turn, c, t): (usize, usize, usize)| {
        let (client, url) = (client.clone(), url.clone());
        async move {
            let text = format!("<{t}.{c}> {turn}");
            let bearer = format!("Bearer key-{t}");
            let headers = headers(&[("authorization", &bearer), ("x-segue-history", "append")]);
            let mut body = body(&format!("c{c}"), &text);
            body["stream"] = false.into();
            let answer = client.post(&url, headers, body.to_string()).await.unwrap();
            assert_eq!(answer.status, 200);
            let answer: Value = serde_json::from_slice(&answer.bytes(1 << 20).await.unwrap()).unwrap();
            assert_eq!(answer["choices"][0]["message"]["content"], json!(format!("heard {text}")));
        }
    };
    // A conversation's turns are a thousand apart, so they never meet; those of others do.
    stream::iter(turns.map(ask)).buffer_unordered(48).collect::<Vec<()>>().await;
    for record in house.origins[0].records().all() {
        let messages = record.body["messages"].as_array().unwrap();
        let mark = messages.last().unwrap()["content"].as_str().unwrap().split(' ').next().unwrap().to_owned();
        for message in messages {
            assert!(message["content"].as_str().unwrap().contains(&mark), "{mark}: {messages:?}");
        }
    }
    for (t, c) in [(0, 0), (3, 17), (9, 99)] {
        let kept = kept(&house.gateway, Some(&format!("t{t}")), &format!("c{c}")).await;
        let expected: Vec<String> = (0..TURNS)
            .flat_map(|n| [format!("user:<{t}.{c}> {n}"), format!("assistant:complete:heard <{t}.{c}> {n}")])
            .collect();
        assert_eq!(kept, expected);
        assert_eq!(kept.len(), 2 * TURNS);
    }
    // What operators see has an owner too.
    assert_eq!(admin(&house.gateway, Method::GET, "/api/conversations/c17").await.0, 404);
    assert_eq!(admin(&house.gateway, Method::GET, "/api/conversations/c17?tenant=nobody").await.0, 404);
    let (status, view) = admin(&house.gateway, Method::GET, "/api/conversations/c17?tenant=t3").await;
    assert_eq!((status, &view["tenant"], &view["turns"][0]["text"]), (200, &json!("t3"), &json!("<3.17> 0")));
    assert_eq!(admin(&house.gateway, Method::DELETE, "/api/conversations/c17?tenant=t3").await.0, 200);
    assert_eq!(admin(&house.gateway, Method::GET, "/api/conversations/c17?tenant=t4").await.0, 200);
}

// === a store that fails ===

/// A store that is down, or does not answer.
struct Broken {
    hangs: bool,
}

impl Broken {
    fn fail<'a, T: Send + 'a>(&self) -> BoxFuture<'a, Result<T, Unavailable>> {
        if self.hangs {
            return Box::pin(std::future::pending());
        }
        Box::pin(std::future::ready(Err(Unavailable("it is down".to_owned()))))
    }
}

impl Store for Broken {
    fn load<'a>(&'a self, _: &'a Key) -> BoxFuture<'a, Result<Option<Conversation>, Unavailable>> {
        self.fail()
    }

    fn ask<'a>(&'a self, _: &'a Key, _: Question) -> BoxFuture<'a, Result<(), Unavailable>> {
        self.fail()
    }

    fn answer<'a>(&'a self, _: &'a Key, _: &'a str, _: Answer) -> BoxFuture<'a, Result<(), Unavailable>> {
        self.fail()
    }

    fn forget<'a>(&'a self, _: &'a Key) -> BoxFuture<'a, Result<bool, Unavailable>> {
        self.fail()
    }
}

#[tokio::test]
async fn a_store_that_fails_fails_no_turn() {
    for hangs in [false, true] {
        let origin = Origin::local(Scripts::fixed(Script::telling("Yes."))).await.unwrap();
        let text = format!(
            "[connections.a]\ndialect = \"chat\"\nbase_url = \"{}\"\napi_key = {{ env = \"KEY_a\" }}\n\
             [levels.main]\nchain = [{{ connection = \"a\", model = \"m\" }}]",
            origin.base_url()
        );
        let loaded = segue::config::load(&text, "test.toml", &support::house::Nowhere).unwrap();
        let settings = Settings { base_url: Some(origin.base_url()), ..Settings::new("a") };
        let upstream: Arc<dyn Upstream> = Arc::new(Http::new(settings).unwrap());
        let upstreams = HashMap::from([(Arc::from("a"), upstream)]);
        let gateway = Gateway::with_store(loaded.config, upstreams, Arc::new(Broken { hangs }));
        let dialect = segue::dialect::client(segue::chat::DialectId::Chat).unwrap();
        let caller = gateway.authorize(None).unwrap();
        for turn in 1..=2 {
            let mut asked = body("c", "one");
            asked["stream"] = false.into();
            let request = dialect.parse(&append(), asked.to_string().as_bytes()).unwrap();
            let mut drive = gateway.begin(&caller, request).await.unwrap();
            drive.start(None).await;
            let bytes = std::future::poll_fn(|cx| drive.poll_frame(cx)).await.unwrap();
            let answer: Value = serde_json::from_slice(&bytes).unwrap();
            assert_eq!(answer["choices"][0]["message"]["content"], json!("Yes."));
            assert_eq!(gateway.store_failures(), turn);
        }
        assert!(gateway.conversation(&Key::new(None, "c")).await.is_err(), "operators are told");
    }
}
