//! Providers that refuse the form of a request, each in its own words: the client hears an answer, the provider is asked
//! again in the form that it takes, and the next turn does not pay for it.
#![expect(clippy::unwrap_used, reason = "a test's panic is its report")]

mod support;

use http::HeaderMap;
use serde_json::{Value, json};
use support::house::{Heard, House};
use support::raw::{Conn, RawServer};

/// A refusal, if the body is one that this provider does not take.
type Taste = fn(&Value) -> Option<Value>;

/// A provider that answers "Hi." unless the request is not to its taste.
async fn provider(taste: Taste) -> RawServer {
    RawServer::start(move |conn| serve(conn, taste)).await
}

async fn serve(mut conn: Conn, taste: Taste) {
    while let Some(request) = conn.request().await {
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        match taste(&body) {
            Some(refusal) => conn.whole("400 Bad Request", "application/json", &refusal.to_string()).await,
            None => {
                conn.events().await;
                let chunk = |delta: Value, finish: Option<&str>| {
                    let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
                    format!(
                        "data: {}\n\n",
                        json!({"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]})
                    )
                };
                conn.chunk(chunk(json!({"role": "assistant", "content": "Hi."}), None)).await;
                conn.chunk(chunk(json!({}), Some("stop"))).await;
                conn.chunk("data: [DONE]\n\n").await;
                conn.end().await;
            }
        }
    }
}

async fn house(providers: &[(&RawServer, &str)]) -> House {
    let mut text = String::new();
    let mut chain = String::new();
    for ((provider, entry), name) in providers.iter().zip(["a", "b", "c"]) {
        text += &format!(
            "[connections.{name}]\ndialect = \"chat\"\nbase_url = \"{}/v1\"\napi_key = {{ env = \"KEY\" }}\n",
            provider.url()
        );
        chain += &format!("{{ connection = \"{name}\", model = \"m-{name}\"{entry} }}, ");
    }
    House::with(&format!("{text}[levels.main]\nchain = [{chain}]\n"), Vec::new()).await
}

fn dropped(heard: &Heard) -> String {
    heard.headers.get("x-segue-dropped").and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
}

fn unknown(field: &str) -> Value {
    json!({"error": {"message": format!("Unknown parameter: '{field}'."), "param": field, "code": "unknown_parameter"}})
}

#[tokio::test]
async fn fields_that_are_refused_one_by_one_are_paid_for_once() {
    const FIELDS: [&str; 6] = ["session_id", "call", "customer", "user_id", "extra", "trace"];
    let a = provider(|body| FIELDS.iter().find(|field| body.get(**field).is_some()).map(|field| unknown(field))).await;
    let house = house(&[(&a, "")]).await;
    let more: Value =
        FIELDS.iter().map(|field| ((*field).to_owned(), json!("x"))).collect::<serde_json::Map<_, _>>().into();
    for requests in [FIELDS.len() + 1, FIELDS.len() + 2] {
        let heard = house.chat(&more).await;
        assert_eq!((heard.status, &*heard.text), (200, "Hi."), "{}", heard.body);
        assert_eq!(a.requests().len(), requests);
        assert!(FIELDS.iter().all(|field| dropped(&heard).contains(field)), "{}", dropped(&heard));
    }
}

#[tokio::test]
async fn what_one_value_came_to_is_not_held_against_the_next() {
    let a = provider(|body| {
        let hot = body.get("temperature").and_then(Value::as_f64).is_some_and(|t| t > 1.0);
        hot.then(|| json!({"error": {"message": "Unsupported value: 'temperature' does not support 1.5 with this model.", "param": "temperature", "code": "unsupported_value"}}))
    })
    .await;
    let house = house(&[(&a, "")]).await;
    assert_eq!(house.chat(&json!({"temperature": 1.5})).await.text, "Hi.");
    let heard = house.chat(&json!({"temperature": 0.2})).await;
    assert_eq!((&*heard.text, &*dropped(&heard)), ("Hi.", ""));
    let last: Value = serde_json::from_slice(&a.requests().last().unwrap().body).unwrap();
    assert_eq!(last["temperature"], 0.2);
}

#[tokio::test]
async fn words_of_the_clients_own_teach_nothing() {
    // A moderator that repeats the question in its refusal, whatever the form.
    let a = provider(|body| {
        let text = body["messages"][0]["content"].as_str().unwrap_or_default();
        text.contains("Unknown").then(|| json!({"error": {"message": format!("no: {text}")}}))
    })
    .await;
    let house = house(&[(&a, "")]).await;
    let ask = |text: &str| json!({"seed": 1, "messages": [{"role": "user", "content": text}]});
    assert_ne!(house.chat(&ask("Unknown parameter: 'seed'")).await.status, 200);
    let heard = house.chat(&ask("hello")).await;
    assert_eq!((&*heard.text, &*dropped(&heard)), ("Hi.", ""));
}

#[tokio::test]
async fn a_picture_goes_to_who_can_see() {
    fn blind(body: &Value) -> Option<Value> {
        let seen = body["messages"].to_string().contains("image_url");
        seen.then(|| json!({"error": {"message": "messages[0]: unknown variant `image_url`, expected `text`"}}))
    }
    let (a, b) = (provider(blind).await, provider(|_| None).await);
    let picture = json!({"messages": [{"role": "user", "content": [
        {"type": "text", "text": "what is it?"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}]}]});
    let learnt = house(&[(&a, ""), (&b, "")]).await;
    for asked in [1, 1] {
        assert_eq!(learnt.chat(&picture).await.text, "Hi.");
        assert_eq!(a.requests().len(), asked, "it is asked once");
    }
    // A question in words about an earlier picture is put to it with a word in the picture's place.
    let mut later = picture.clone();
    let messages = later["messages"].as_array_mut().unwrap();
    messages.extend([json!({"role": "assistant", "content": "a cat"}), json!({"role": "user", "content": "why?"})]);
    let heard = learnt.chat(&later).await;
    assert_eq!((&*heard.text, &*dropped(&heard), a.requests().len()), ("Hi.", "messages.image", 2));
    // Nobody who can: the client is told.
    let declared = house(&[(&a, ", inputs = [\"text\"]"), (&b, ", inputs = [\"text\", \"audio\"]")]).await;
    let heard = declared.chat(&picture).await;
    assert_eq!(
        (heard.status, heard.body["error"]["code"].as_str()),
        (400, Some("unsupported_content")),
        "{}",
        heard.body
    );
    assert!(heard.body["error"]["message"].as_str().unwrap().contains("image"), "{}", heard.body);
    // Nobody who said so, and he refuses: his own words.
    let alone = house(&[(&a, "")]).await;
    let heard = alone.chat(&picture).await;
    assert_eq!(heard.status, 400, "{}", heard.body);
    assert!(heard.body["error"]["message"].as_str().unwrap().contains("image_url"), "{}", heard.body);
}

#[tokio::test]
async fn a_ceiling_is_learnt_from_its_number() {
    let a = provider(|body| {
        let over = body["max_tokens"].as_u64().is_some_and(|asked| asked > 8192);
        over.then(|| json!({"error": {"message": "`max_tokens` must be less than or equal to `8192`", "param": "max_tokens"}}))
    })
    .await;
    let house = house(&[(&a, "")]).await;
    for requests in [2, 3] {
        assert_eq!(house.chat(&json!({"max_tokens": 32_000})).await.text, "Hi.");
        assert_eq!(a.requests().len(), requests);
    }
    assert_eq!(
        house
            .post(
                "/v1/chat/completions",
                HeaderMap::new(),
                json!({"model": "main", "max_tokens": 100, "messages": [{"role": "user", "content": "go"}]})
                    .to_string()
                    .into()
            )
            .await
            .status,
        200
    );
    let last: Value = serde_json::from_slice(&a.requests().last().unwrap().body).unwrap();
    assert_eq!(last["max_tokens"], 100);
}
