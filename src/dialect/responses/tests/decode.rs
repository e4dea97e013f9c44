//! Whole answers, and what there is too much of; streams are in `tests/golden`.
#![expect(clippy::unwrap_used, reason = "a test's panic is its report")]
use super::*;
use crate::dialect::Provider;
use crate::dialect::responses::Responses;
use crate::event::Finish;

#[test]
fn a_whole_answer_is_told_as_its_stream_would_be() {
    let body = json!({
        "id": "resp_1", "object": "response", "created_at": 7, "model": "m", "status": "completed",
        "output": [
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}], "encrypted_content": "x"},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hello."}]},
            {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{\"a\":1}"},
        ],
        "usage": {"input_tokens": 3, "output_tokens": 2},
    });
    let steps = Responses.whole(body.to_string().as_bytes(), Expect::of(1)).unwrap();
    let events: Vec<Event> = steps.into_iter().flat_map(|step| step.events).collect();
    let text = |event: &Event| match event {
        Event::Text { text, .. } => Some(text.clone()),
        _ => None,
    };
    assert_eq!(events.iter().find_map(text).as_deref(), Some("Hello."));
    assert!(events.iter().any(|e| matches!(e, Event::ToolArgs { args, .. } if args == "{\"a\":1}")), "{events:?}");
    assert!(matches!(events.last(), Some(Event::Finish { reason: Finish::ToolCalls, .. })), "{events:?}");
    for (body, kind) in [
        (json!({"output": [], "status": "in_progress"}), Kind::Truncated),
        (
            json!({"output": [], "status": "failed", "error": {"code": "server_error", "message": "x"}}),
            Kind::ServerError,
        ),
        (json!({"error": {"message": "x", "type": "overloaded_error"}}), Kind::Overloaded),
        (json!({"choices": []}), Kind::Framing),
    ] {
        let failure = Responses.whole(body.to_string().as_bytes(), Expect::of(1)).unwrap_err();
        assert_eq!(failure.kind, kind, "{body}");
    }
}

#[test]
fn what_there_is_too_much_of_is_refused() {
    let call = json!({"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"});
    let body = json!({"output": vec![call; 600], "status": "completed"}).to_string();
    let failure = Responses.whole(body.as_bytes(), Expect::of(1)).unwrap_err();
    assert!(failure.said.message.contains("max_calls"), "{}", failure.said.message);
}
