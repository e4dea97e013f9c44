//! Conversations that are kept, given back and mended.
#![expect(clippy::unwrap_used, reason = "a test's panic is its report")]
use super::*;
use http::HeaderMap;

fn request(input: &Value) -> Request {
    let body = json!({"model": "m", "input": input, "instructions": "Be kind."}).to_string();
    super::super::client::parse(&HeaderMap::new(), body.as_bytes()).unwrap()
}

#[test]
fn a_conversation_is_kept_and_put_back() {
    let items = json!([
        {"role": "user", "content": "hi"},
        {"type": "reasoning", "summary": []},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hello."}]},
        {"role": "user", "content": "bye"},
    ]);
    let mut request = request(&items);
    let before = (request.system.clone(), request.messages.clone());
    let spoken = Responses.spoken(&request);
    assert_eq!(spoken.messages.len(), 3, "an answer is one message: {:?}", spoken.messages);
    assert!(Responses.is_answer(&spoken.messages[1]) && !Responses.is_answer(&spoken.messages[2]));
    Responses.put(&mut request, spoken).unwrap();
    assert_eq!(request.raw["input"], items);
    assert_eq!((request.system, request.messages), before);
}

#[test]
fn what_others_led_is_written_in_the_words_of_this_api() {
    let assistant = Message {
        role: Role::Assistant,
        parts: vec![
            Part::Reasoning { text: "Hm.".into(), signature: None, issuer: DialectId::Chat, redacted: false },
            Part::text("Let me see."),
            Part::ToolCall { id: "c".into(), name: "f".into(), args: String::new() },
        ],
    };
    let result = Part::ToolResult { id: "c".into(), parts: vec![Part::text("sun")], failed: false };
    let messages = [assistant, Message { role: Role::Tool, parts: vec![result] }];
    let spoken = Responses.write(&[Part::text("a"), Part::text("b")], &messages);
    assert_eq!(spoken.system, Some(json!("a\n\nb")));
    let kinds: Vec<&str> = items::output(&spoken.messages[0]).unwrap().iter().map(items::kind).collect();
    assert_eq!(kinds, ["reasoning", "message", "function_call"]);
    assert_eq!(spoken.messages[1], json!({"type": "function_call_output", "call_id": "c", "output": "sun"}));
    let (system, again) = Responses.read(&spoken).unwrap();
    assert_eq!((system.len(), again.len(), again[0].parts.len()), (1, 2, 3));
}

#[test]
fn what_is_cut_off_is_taken_out() {
    let call = |id: &str| json!({"type": "function_call", "call_id": id, "name": "f", "arguments": "{}"});
    let output = |id: &str| json!({"type": "function_call_output", "call_id": id, "output": "1"});
    let mut messages = vec![
        json!({"role": "user", "content": "a"}),
        answer(vec![json!({"type": "reasoning", "summary": []}), call("lost")]),
        answer(vec![call("kept"), call("lost too")]),
        output("kept"),
        output("of nothing"),
        output("new"),
    ];
    Responses.mend(&mut messages, 5);
    assert_eq!(messages.len(), 4, "{messages:?}");
    assert_eq!(messages[1], answer(vec![call("kept")]));
    assert_eq!(messages[3], output("new"), "what the client asks now is its own");
}
