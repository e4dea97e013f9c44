//! Items of an input as messages.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's panic is its report")]
use super::*;

fn read(items: &Value) -> Vec<Message> {
    conversation(items.as_array().unwrap()).unwrap().1
}

fn shape(messages: &[Message]) -> Vec<(Role, usize)> {
    messages.iter().map(|message| (message.role, message.parts.len())).collect()
}

#[test]
fn what_the_model_said_in_a_row_is_one_message() {
    let messages = read(&json!([
        {"role": "user", "content": "weather?"},
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm."}], "encrypted_content": "x"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Let me see."}]},
        {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"},
        {"type": "custom_tool_call", "call_id": "b", "name": "g", "input": "text"},
        {"type": "function_call_output", "call_id": "a", "output": "1"},
        {"type": "custom_tool_call_output", "call_id": "b", "output": [{"type": "input_text", "text": "2"}]},
        {"role": "user", "content": [{"type": "input_text", "text": "and?"}, {"type": "input_image", "image_url": "https://x/y"}]},
    ]));
    let expected = [(Role::User, 1), (Role::Assistant, 4), (Role::Tool, 1), (Role::Tool, 1), (Role::User, 2)];
    assert_eq!(shape(&messages), expected);
    let Part::Reasoning { text, signature, issuer, .. } = &messages[1].parts[0] else { panic!("{messages:?}") };
    assert_eq!((&**text, signature.as_deref(), *issuer), ("Hm.", Some("x"), DialectId::Responses));
    let Part::ToolCall { args, .. } = &messages[1].parts[3] else { panic!("{messages:?}") };
    assert_eq!(args, r#"{"input":"text"}"#);
}

#[test]
fn a_result_that_comes_late_stands_behind_its_call() {
    let messages = read(&json!([
        {"role": "user", "content": "a"},
        {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"},
        {"type": "function_call", "call_id": "2", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "2", "output": "two"},
        {"role": "user", "content": "b"},
        {"type": "function_call_output", "call_id": "1", "output": "one"},
        {"role": "assistant", "content": "c"},
    ]));
    let roles: Vec<Role> = messages.iter().map(|message| message.role).collect();
    assert_eq!(roles, [Role::User, Role::Assistant, Role::Tool, Role::Tool, Role::User, Role::Assistant]);
}

#[test]
fn instructions_stand_before_the_conversation_or_in_it() {
    let (system, messages) = conversation(
        json!([
            {"role": "developer", "content": "one"}, {"role": "user", "content": "hi"},
            {"role": "system", "content": "two"}, {"type": "item_reference", "id": "msg_1"}, {"id": "msg_2"},
        ])
        .as_array()
        .unwrap(),
    )
    .unwrap();
    assert_eq!(system, [Part::text("one")]);
    assert_eq!(shape(&messages), [(Role::User, 1), (Role::System, 1)]);
}

#[test]
fn what_another_api_signed_goes_back_to_it() {
    let sealed = signed::seal("sig", DialectId::Anthropic, false);
    let messages = read(&json!([{"type": "reasoning", "summary": [], "encrypted_content": sealed}]));
    let Part::Reasoning { signature, issuer, .. } = &messages[0].parts[0] else { panic!("{messages:?}") };
    assert_eq!((signature.as_deref(), *issuer), (Some("sig"), DialectId::Anthropic));
}
