//! The shapes of good answers in each API: order of events, fields, quirks, whole bodies.

#![expect(clippy::unwrap_used, reason = "a test's panic is its report")]

use super::client::{ask, question};
use super::heard;
use crate::rig::origin::{Origin, Scripts};
use crate::rig::script::{Ending, Finish, LineEnd, Odd, Quirks, Script, ToolCall};
use crate::rig::wire::Api;
use serde_json::{Value, json};
use std::time::Duration;

fn rich() -> Script {
    let mut script = Script::telling("Let me look.");
    script.content.reasoning = vec!["Hm".into(), ", Zürich".into()];
    let call = |n: u32| ToolCall {
        id: format!("call_{n}"),
        name: "weather".into(),
        args: vec!["{\"city\":".into(), "\"Zürich\"}".into()],
    };
    script.content.tools = vec![call(1), call(2)];
    script
}

async fn body(script: Script, api: Api, request: &Value) -> Vec<u8> {
    let origin = Origin::local(Scripts::fixed(script)).await.unwrap();
    ask(origin.addr, api, request).await.body
}

#[tokio::test]
async fn a_chat_stream_has_role_first_and_usage_last() {
    let bytes = body(rich(), Api::Chat, &question()).await;
    let (events, _) = heard::events(&bytes);
    let json = |at: usize| serde_json::from_str::<Value>(&events[at].1).unwrap();
    assert_eq!(json(0)["choices"][0]["delta"], json!({"role": "assistant", "content": "", "refusal": null}));
    assert_eq!(json(1)["choices"][0]["delta"], json!({"reasoning_content": "Hm"}));
    let count = events.len();
    assert_eq!(events[count - 1].1, "[DONE]");
    assert_eq!(json(count - 2)["choices"], json!([]));
    assert_eq!(json(count - 2)["usage"]["total_tokens"], 25 + 2 + 3 + 6);
    assert_eq!(json(count - 2)["usage"]["completion_tokens_details"]["reasoning_tokens"], 2);
    assert_eq!(json(count - 3)["choices"][0]["finish_reason"], "tool_calls");
    assert_eq!(json(3)["usage"], Value::Null);
    let heard = heard::read(Api::Chat, &bytes);
    assert_eq!(heard.tools[1], ("call_2".into(), "weather".into(), "{\"city\":\"Zürich\"}".into()));
    // Without include_usage there is no word of it.
    let mut request = question();
    request.as_object_mut().unwrap().remove("stream_options");
    assert!(!String::from_utf8_lossy(&body(rich(), Api::Chat, &request).await).contains("usage"));
}

#[tokio::test]
async fn an_anthropic_stream_opens_and_closes_each_block_in_order() {
    let bytes = body(rich(), Api::Anthropic, &question()).await;
    let (events, _) = heard::events(&bytes);
    let short: Vec<String> = events
        .iter()
        .map(|(name, data)| {
            let json: Value = serde_json::from_str(data).unwrap();
            match json.get("index") {
                Some(index) => format!("{}{index}", name.replace("content_block_", "")),
                None => name.clone(),
            }
        })
        .collect();
    let expected = "message_start ping start0 delta0 delta0 delta0 stop0 start1 delta1 delta1 delta1 stop1 \
                    start2 delta2 delta2 delta2 stop2 start3 delta3 delta3 delta3 stop3 message_delta message_stop";
    assert_eq!(short.join(" "), expected);
    let heard = heard::read(Api::Anthropic, &bytes);
    assert_eq!((heard.reasoning.as_str(), heard.texts[&0].as_str()), ("Hm, Zürich", "Let me look."));
    assert_eq!((heard.finishes[&0].as_str(), heard.usage), ("tool_calls", Some((25, 11))));
}

#[tokio::test]
async fn whole_answers_say_what_streams_say() {
    let mut request = question();
    request["stream"] = json!(false);
    let chat: Value = serde_json::from_slice(&body(rich(), Api::Chat, &request).await).unwrap();
    let message = &chat["choices"][0]["message"];
    assert_eq!((chat["object"].as_str(), message["content"].as_str()), (Some("chat.completion"), Some("Let me look.")));
    assert_eq!(message["reasoning_content"], "Hm, Zürich");
    assert_eq!(message["tool_calls"][1]["function"]["arguments"], "{\"city\":\"Zürich\"}");
    assert_eq!(
        (&chat["choices"][0]["finish_reason"], &chat["usage"]["total_tokens"]),
        (&json!("tool_calls"), &json!(36))
    );

    let messages: Value = serde_json::from_slice(&body(rich(), Api::Anthropic, &request).await).unwrap();
    let types: Vec<&str> =
        messages["content"].as_array().unwrap().iter().map(|b| b["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["thinking", "text", "tool_use", "tool_use"]);
    assert_eq!(messages["content"][2]["input"], json!({"city": "Zürich"}));
    assert_eq!((&messages["stop_reason"], &messages["usage"]["output_tokens"]), (&json!("tool_use"), &json!(11)));
}

#[tokio::test]
async fn several_choices_come_interleaved() {
    let mut script = Script::telling("a b");
    script.content.others = vec![vec!["x".into(), "y".into(), "z".into()]];
    let mut request = question();
    request["n"] = json!(3);
    let heard = heard::read(Api::Chat, &body(script.clone(), Api::Chat, &request).await);
    let texts: Vec<&str> = heard.texts.values().map(String::as_str).collect();
    assert_eq!((texts, heard.finishes.len()), (vec!["a b", "xyz", "a b"], 3));
    request["stream"] = json!(false);
    let whole: Value = serde_json::from_slice(&body(script, Api::Chat, &request).await).unwrap();
    assert_eq!(whole["choices"][1]["message"]["content"], "xyz");
}

#[tokio::test]
async fn quirks_change_the_bytes_and_not_what_they_say() {
    for api in Api::ALL {
        let plain = heard::read(api, &body(rich(), api, &question()).await);
        for (lines, end) in [(LineEnd::Lf, "\n\n"), (LineEnd::CrLf, "\r\n\r\n"), (LineEnd::Cr, "\r\r")] {
            let mut script = rich();
            script.quirks = Quirks { lines, bom: true, no_space: true, cut: 7, short_reasoning: true, odd: Vec::new() };
            let origin = Origin::local(Scripts::fixed(script)).await.unwrap();
            let got = ask(origin.addr, api, &question()).await;
            let text = String::from_utf8(got.body.clone()).unwrap();
            assert!(text.starts_with('\u{feff}') && text.ends_with(end) && text.contains("data:{"), "{text}");
            assert!(got.chunks > text.len() / 8, "pieces of seven bytes");
            assert_eq!(heard::read(api, &got.body), plain);
        }
    }
}

#[tokio::test]
async fn chat_providers_may_be_odd() {
    let odd = async |odd: Odd| {
        let mut script = rich();
        script.quirks.odd = vec![odd];
        let (events, _) = heard::events(&body(script, Api::Chat, &question()).await);
        let jsons = events.iter().filter_map(|(_, data)| serde_json::from_str(data).ok()).collect::<Vec<Value>>();
        let dones = events.iter().filter(|(_, data)| data == "[DONE]").count();
        (jsons, dones)
    };
    let roles = |jsons: &[Value]| jsons.iter().filter(|j| j["choices"][0]["delta"]["role"] == "assistant").count();
    let calls = |jsons: &[Value]| -> Vec<Value> {
        jsons.iter().map(|j| j["choices"][0]["delta"]["tool_calls"][0].clone()).filter(Value::is_object).collect()
    };
    let (plain, _) = odd(Odd::DoneTwice).await;
    assert_eq!((roles(&plain), calls(&plain).len()), (1, 6));
    assert_eq!(roles(&odd(Odd::RepeatedRole).await.0), plain.len() - 2, "all but finish and usage");
    let mut ids: Vec<String> = odd(Odd::ChangingId).await.0.iter().map(|j| j["id"].to_string()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), plain.len());
    let first = &odd(Odd::FilterPreamble).await.0[0];
    assert_eq!((&first["choices"], &first["id"]), (&json!([]), &json!("")));
    assert!(calls(&odd(Odd::NoToolIndex).await.0).iter().all(|call| call.get("index").is_none()));
    assert!(calls(&odd(Odd::ZeroToolIndex).await.0).iter().all(|call| call["index"] == 0));
    let (jsons, dones) = odd(Odd::UnknownEvent).await;
    assert_eq!((jsons.len(), dones), (plain.len() + 1, 1));
    assert_eq!(odd(Odd::DoneTwice).await.1, 2);
}

#[tokio::test]
async fn endings() {
    for api in Api::ALL {
        for (ending, finished, done) in
            [(Ending::Whole, true, true), (Ending::NoTerminator, true, false), (Ending::NoFinish, false, true)]
        {
            let mut script = Script::telling("a b");
            script.ending = ending;
            let heard = heard::read(api, &body(script, api, &question()).await);
            assert_eq!((!heard.finishes.is_empty(), heard.done), (finished, done), "{api:?} {ending:?}");
        }
    }
}

#[tokio::test]
async fn limits_finishes_and_signs_of_life() {
    let mut script = Script::telling("a b c d");
    script.limited = true;
    let mut request = question();
    request["max_tokens"] = json!(3);
    for api in Api::ALL {
        let heard = heard::read(api, &body(script.clone(), api, &request).await);
        assert_eq!((heard.texts[&0].as_str(), heard.finishes[&0].as_str()), ("a b c", "length"));
    }
    let mut script = Script::telling("a b").paced(Duration::from_millis(50), Duration::ZERO);
    script.content.finish = Finish::ContentFilter;
    script.pace.keep_alive = Some(Duration::from_millis(10));
    let chat = body(script.clone(), Api::Chat, &question()).await;
    assert_eq!(String::from_utf8_lossy(&chat).matches(": keep-alive\n\n").count(), 4);
    assert_eq!(heard::read(Api::Chat, &chat).finishes[&0], "content_filter");
    let anthropic = body(script, Api::Anthropic, &question()).await;
    assert_eq!(String::from_utf8_lossy(&anthropic).matches("event: ping").count(), 5);
}

#[tokio::test]
async fn unseen_thinking_is_a_block_without_text() {
    let mut script = Script::telling("a");
    script.content.thinks = Some(Duration::from_millis(20));
    let (events, _) = heard::events(&body(script, Api::Anthropic, &question()).await);
    let datas: Vec<&str> = events.iter().map(|(_, data)| data.as_str()).collect();
    assert!(datas[2].contains("\"type\":\"thinking\"") && datas[3].contains("signature_delta"), "{datas:?}");
    assert!(datas[4].contains("content_block_stop") && datas[5].contains("\"type\":\"text\""));
}
