//! What refers to kept answers, and what is said where they are not kept.
#![expect(clippy::unwrap_used, reason = "a test's panic is its report")]
use super::*;
use http::HeaderMap;

#[test]
fn what_is_referred_to_is_put_in_its_place() {
    let id = ids::item("msg", 7, 0);
    let body = json!({"model": "m", "input": [{"role": "user", "content": "a"}, {"type": "item_reference", "id": id}]});
    let mut request = client::parse(&HeaderMap::new(), body.to_string().as_bytes()).unwrap();
    assert_eq!(request.extensions.references, [ids::answer(7)]);
    let item =
        json!({"id": id, "type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "b"}]});
    let answer = json!({"id": ids::answer(7), "object": "response", "output": [item]});
    let known = HashMap::from([(ids::answer(7), answer.clone())]);
    let past = vec![json!({"role": "user", "content": "before"}), answer];
    Responses.recall(&mut request, past, &known).unwrap();
    let input = request.raw["input"].as_array().unwrap();
    assert_eq!(input.len(), 4);
    assert!(input.iter().all(|item| item.get("id").is_none()), "no provider knows our ids: {input:?}");
    assert_eq!(input[1], input[3]);
    assert_eq!(request.messages.len(), 4);
}

#[test]
fn what_is_not_kept_is_refused_in_words() {
    let body = json!({"model": "m", "input": [{"type": "item_reference", "id": "msg_abc"}]});
    let mut request = client::parse(&HeaderMap::new(), body.to_string().as_bytes()).unwrap();
    let refusal = Responses.recall(&mut request, Vec::new(), &HashMap::new()).unwrap_err();
    assert!(refusal.reason.status() == 404 && refusal.message.contains("msg_abc"), "{refusal:?}");
    let missing = Responses.missing("resp_1");
    assert_eq!((missing.reason.status(), &*missing.code), (400, "previous_response_not_found"));
}
