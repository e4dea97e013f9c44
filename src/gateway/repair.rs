//! Whether what a refusal suggests is about the request at all.

use crate::chat::Request;
use crate::failure::Remedy;
use crate::routing::Target;

/// Whether `remedy` would change the request that `target` was sent. A refusal may name what the request does not hold:
/// another client's words, or a word of its sentence.
pub(super) fn is_apt(remedy: &Remedy, request: &Request, target: &Target) -> bool {
    match remedy {
        // What is written for a target of another dialect is Segue's own choice of fields.
        Remedy::Drop { fields, .. } if request.origin == target.dialect => fields.iter().any(|field| {
            let head = field.split('.').next().unwrap_or_default();
            request.raw.contains_key(head) || OURS.contains(&head)
        }),
        Remedy::Lacks(modality) => request.holds().has(*modality),
        _ => true,
    }
}

/// Fields that Segue itself adds to a request of the same dialect.
const OURS: [&str; 6] =
    ["stream_options", "thinking", "continue_final_message", "add_generation_prompt", "max_tokens", "output_config"];

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test's panic is its report")]
    use super::*;
    use crate::chat::DialectId;
    use crate::chat::modality::Modality;
    use crate::dialect;
    use http::HeaderMap;

    #[test]
    fn only_what_the_request_holds_can_be_left_out() {
        let body = br#"{"model":"m","messages":[{"role":"user","content":"go"}],"seed":1}"#;
        let chat = dialect::of(DialectId::Chat).and_then(|dialect| dialect.client()).unwrap();
        let request = chat.parse(&HeaderMap::new(), body).unwrap();
        let drop = |field: &str| Remedy::Drop { fields: vec![field.to_owned()], lasting: true };
        let (own, other) = (Target::new("a", "m", DialectId::Chat), Target::new("b", "m", DialectId::Anthropic));
        assert!(is_apt(&drop("seed"), &request, &own) && is_apt(&drop("stream_options.x"), &request, &own));
        assert!(!is_apt(&drop("qwen3"), &request, &own));
        assert!(is_apt(&drop("temperature"), &request, &other));
        assert!(!is_apt(&Remedy::Lacks(Modality::Image), &request, &own));
        assert!(is_apt(&Remedy::StripReasoning, &request, &own));
    }
}
