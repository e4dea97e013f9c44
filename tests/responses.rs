//! The Responses API over sockets: answers that follow each other, are asked for again, and belong to one tenant.
#![expect(clippy::unwrap_used, reason = "a test's panic is its report")]

mod support;

use axum::body::Body;
use http::{HeaderMap, Method, Request};
use segue::rig::origin::Scripts;
use segue::rig::script::{Break, Script};
use segue::server;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use support::house::House;
use support::talk::{asked, headers, roles};
use tower::ServiceExt;

async fn ask(house: &House, headers: HeaderMap, body: Value) -> (u16, Value) {
    let heard = house.post("/v1/responses", headers, body.to_string().into()).await;
    (heard.status, heard.body)
}

async fn at(house: &House, method: Method, id: &str, key: &str) -> (u16, Value) {
    let request = Request::builder().method(method).uri(format!("/v1/responses/{id}"));
    let request = request.header("host", "localhost").header("authorization", format!("Bearer {key}"));
    let reply = server::routes(house.gateway.clone()).oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
    let status = reply.status().as_u16();
    let body = axum::body::to_bytes(reply.into_body(), 1 << 20).await.unwrap();
    (status, serde_json::from_slice(&body).unwrap())
}

fn said(answer: &Value) -> &str {
    answer["output"][0]["content"][0]["text"].as_str().unwrap_or_default()
}

#[tokio::test]
async fn an_answer_follows_another_whoever_gave_it() {
    let first = Scripts::sequence(vec![Script::telling("One."), Script::telling("Two").breaking(0, Break::Reset)]);
    let second = Scripts::sequence(vec![Script::telling("Two."), Script::telling("Three."), Script::telling("Other.")]);
    let house = House::of(vec![("chat", first), ("anthropic", second)], "", "retries = 0").await;
    let (status, one) = ask(&house, HeaderMap::new(), json!({"model": "main", "input": "1?"})).await;
    assert_eq!((status, said(&one)), (200, "One."), "{one}");
    let next = |id: &Value, text: &str| json!({"model": "main", "input": text, "previous_response_id": id});
    let (status, two) = ask(&house, HeaderMap::new(), next(&one["id"], "2?")).await;
    assert_eq!((status, said(&two)), (200, "Two."), "{two}");
    assert_eq!(two["previous_response_id"], one["id"]);
    let messages = asked(&house.origins[1], 0);
    assert_eq!(roles(&messages), ["user", "assistant", "user"], "the fallback is told what was said: {messages:?}");
    assert!(house.origins[1].records().get(0).unwrap().body.get("previous_response_id").is_none());
    // Two may follow the same answer.
    for id in [&two["id"], &one["id"]] {
        let (status, _) = ask(&house, headers(&[("x-segue-order", "b")]), next(id, "more")).await;
        assert_eq!(status, 200);
    }
    assert_eq!(asked(&house.origins[1], 1).len(), 5);
    assert_eq!(asked(&house.origins[1], 2).len(), 3);
}

#[tokio::test]
async fn an_item_is_referred_to_by_its_id() {
    let house = House::of(vec![("chat", Scripts::fixed(Script::telling("One.")))], "", "").await;
    let (_, one) = ask(&house, HeaderMap::new(), json!({"model": "main", "input": "1?"})).await;
    let input = json!([{"role": "user", "content": "1?"}, {"type": "item_reference", "id": one["output"][0]["id"]},
        {"role": "user", "content": "2?"}]);
    let (status, _) = ask(&house, HeaderMap::new(), json!({"model": "main", "input": input})).await;
    assert_eq!((status, roles(&asked(&house.origins[0], 1))), (200, vec!["user", "assistant", "user"]));
    let lost = json!({"model": "main", "input": [{"type": "item_reference", "id": "msg_x"}]});
    let (status, refused) = ask(&house, HeaderMap::new(), lost).await;
    assert_eq!((status, &refused["error"]["code"]), (404, &json!("item_not_found")));
}

#[tokio::test]
async fn an_answer_is_its_tenants_own_and_is_forgotten_when_they_say_so() {
    let digest =
        |key: &str| Sha256::digest(key.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let tenants: String = [("ann", "key-a"), ("bob", "key-b")]
        .map(|(name, key)| {
            format!("[tenants.{name}]\nkeys = [{{ sha256 = \"{}\" }}]\nlevels = {{ main = \"main\" }}\n", digest(key))
        })
        .concat();
    let house = House::of(vec![("chat", Scripts::fixed(Script::telling("One.")))], &tenants, "").await;
    let ann = || headers(&[("authorization", "Bearer key-a")]);
    let (_, one) = ask(&house, ann(), json!({"model": "main", "input": "1?"})).await;
    let id = one["id"].as_str().unwrap();
    let get = Method::GET;
    assert_eq!(at(&house, get.clone(), id, "key-a").await, (200, one.clone()));
    assert_eq!(at(&house, get.clone(), id, "key-b").await.0, 404);
    assert_eq!(at(&house, get.clone(), id, "key-c").await.0, 401);
    let follow = json!({"model": "main", "input": "2?", "previous_response_id": id});
    let (status, refused) = ask(&house, headers(&[("authorization", "Bearer key-b")]), follow.clone()).await;
    assert_eq!((status, &refused["error"]["code"]), (400, &json!("previous_response_not_found")));
    assert_eq!(at(&house, Method::DELETE, id, "key-b").await.0, 404);
    let (status, deleted) = at(&house, Method::DELETE, id, "key-a").await;
    assert_eq!((status, &deleted["deleted"]), (200, &json!(true)));
    assert_eq!(at(&house, get.clone(), id, "key-a").await.0, 404);
    assert_eq!(ask(&house, ann(), follow).await.0, 400);
    let unkept = json!({"model": "main", "input": "1?", "store": false});
    let (_, two) = ask(&house, ann(), unkept).await;
    assert_eq!(at(&house, get, two["id"].as_str().unwrap(), "key-a").await.0, 404);
}

#[tokio::test]
async fn a_conversation_goes_on_by_its_name() {
    let house = House::of(vec![("chat", Scripts::fixed(Script::telling("One.")))], "", "").await;
    for turn in 0..2 {
        let body = json!({"model": "main", "input": format!("{turn}?"), "conversation": "c1"});
        let (status, answer) = ask(&house, HeaderMap::new(), body).await;
        assert_eq!((status, &answer["conversation"]["id"]), (200, &json!("c1")));
    }
    assert_eq!(roles(&asked(&house.origins[0], 1)), ["user", "assistant", "user"]);
}
