//! One conversation, one turn at a time, over real sockets: a second turn is rejected, waits, or takes the first one's place.
#![expect(clippy::unwrap_used, reason = "a test's panic is its report")]

mod support;

use http::HeaderMap;
use segue::rig::origin::{Fate, Scripts};
use segue::rig::script::Script;
use segue::upstream::client::Client;
use serde_json::json;
use support::house::House;
use support::talk::{SOON, append, ask, asked, body, headers, kept, ms, roles, slow, words};
use tokio::time::Instant;

#[tokio::test]
async fn a_second_turn_is_rejected_and_the_first_is_not_touched() {
    let scripts = Scripts::sequence(vec![slow(&words(25)), Script::telling("Yes.")]);
    let house = House::of(vec![("chat", scripts)], "", "conversation = \"reject\"").await;
    let second = async {
        tokio::time::sleep(ms(150)).await;
        let start = Instant::now();
        (ask(&house, "c", "two").await, start.elapsed())
    };
    let other = async {
        tokio::time::sleep(ms(150)).await;
        ask(&house, "d", "of another conversation").await
    };
    let (first, (second, waited), other) = tokio::join!(ask(&house, "c", "one"), second, other);
    first.assert_whole("first");
    assert_eq!(first.text, words(25));
    assert_eq!((second.status, &second.body["error"]["code"]), (409, &json!("conversation_busy")));
    assert!(ms(240) <= waited && waited < ms(900), "{waited:?}");
    other.assert_whole("other");
    assert_eq!(house.origins[0].records().total(), 2);
    assert_eq!(kept(&house.gateway, None, "c").await.len(), 2, "what was rejected is not kept");
}

#[tokio::test]
async fn a_second_turn_waits_its_turn_and_no_longer_than_its_deadline() {
    let scripts = Scripts::sequence(vec![slow(&words(20)), Script::telling("Yes.")]);
    let house = House::of(vec![("chat", scripts)], "", "conversation = \"queue\"").await;
    let after = |wait: u64, more: HeaderMap, text: &'static str| {
        let house = &house;
        async move {
            tokio::time::sleep(ms(wait)).await;
            let mut headers = append();
            headers.extend(more);
            house.post("/v1/chat/completions", headers, body("c", text).to_string().into()).await
        }
    };
    let impatient = headers(&[("x-segue-deadline-ms", "100")]);
    let (first, second, third, gone) = tokio::join!(
        after(0, HeaderMap::new(), "one"),
        after(100, HeaderMap::new(), "two"),
        after(200, HeaderMap::new(), "three"),
        after(150, impatient, "four")
    );
    first.assert_whole("first");
    second.assert_whole("second");
    third.assert_whole("third");
    assert_eq!((gone.status, &gone.body["error"]["code"]), (409, &json!("conversation_busy")));
    assert_eq!(roles(&asked(&house.origins[0], 2)), ["user", "assistant", "user", "assistant", "user"]);
    let kept = kept(&house.gateway, None, "c").await;
    let questions: Vec<&str> = kept.iter().filter_map(|line| line.strip_prefix("user:")).collect();
    assert_eq!(questions, ["one", "two", "three"]);
    assert_eq!(house.gateway.open_turns(), 0);
}

#[tokio::test]
async fn a_newer_turn_takes_the_place_of_the_older() {
    let scripts = Scripts::sequence(vec![slow(&words(200)), Script::telling("Yes.")]);
    let house = House::of(vec![("chat", scripts)], "", "conversation = \"supersede\"").await;
    let second = async {
        tokio::time::sleep(ms(300)).await;
        let start = Instant::now();
        (ask(&house, "c", "two").await, start.elapsed())
    };
    let (first, (second, took)) = tokio::join!(ask(&house, "c", "one"), second);
    assert_eq!((first.errors.len(), first.done), (1, 0), "the old client is told");
    assert_eq!(first.errors[0]["code"], json!("superseded"));
    second.assert_whole("second");
    assert!(took < ms(500), "{took:?}");
    let messages = asked(&house.origins[0], 1);
    assert_eq!(roles(&messages), ["user", "assistant", "user"]);
    assert_eq!(messages[1]["content"], json!(first.text), "what the client was told, to the character");
    assert_eq!(kept(&house.gateway, None, "c").await[1], format!("assistant:interrupted:{}", first.text));
    let origin = house.origins[0].records();
    assert!(origin.until(SOON, |all| all[0].fate == Fate::Cancelled).await);
}

#[tokio::test]
async fn a_turn_whose_client_stopped_reading_is_superseded_all_the_same() {
    let endless = Script::of_pieces((0..20_000).map(|n| format!("{n:01000} ")).collect());
    let scripts = Scripts::sequence(vec![endless, Script::telling("Yes.")]);
    let house = House::of(vec![("chat", scripts)], "", "conversation = \"supersede\"").await;
    let url = format!("http://{}/v1/chat/completions", house.addr);
    let unread = Client::new().unwrap().post(&url, append(), body("c", "one").to_string()).await.unwrap();
    tokio::time::sleep(ms(700)).await;
    let start = Instant::now();
    ask(&house, "c", "two").await.assert_whole("second");
    assert!(start.elapsed() < ms(1500), "{:?}", start.elapsed());
    let origin = house.origins[0].records();
    assert!(origin.until(ms(1000), |all| all[0].fate == Fate::Cancelled).await, "the provider is let go at once");
    assert_eq!(roles(&asked(&house.origins[0], 1)), ["user", "assistant", "user"]);
    drop(unread);
}
