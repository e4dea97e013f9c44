//! What only its issuer can read (`encrypted_content`), marked with who that is.
//!
//! A client sends it back as it got it. What another dialect's provider signed bears a mark, so that it goes back to
//! providers of that dialect and to no other.

use crate::chat::DialectId;

/// The opaque text for a client. `redacted`: it is all there is of the reasoning.
pub(super) fn seal(data: &str, issuer: DialectId, redacted: bool) -> String {
    match issuer {
        DialectId::Responses => data.to_owned(),
        _ => format!("{MARK}{}:{}:{data}", issuer.name(), if redacted { "redacted" } else { "signed" }),
    }
}

/// Who issued an opaque text, the text, and whether it is all there is of the reasoning; `None` where the text is marked
/// and nobody known issued it.
pub(super) fn open(text: &str) -> Option<(DialectId, &str, bool)> {
    let Some(marked) = text.strip_prefix(MARK) else { return Some((DialectId::Responses, text, false)) };
    let (issuer, rest) = marked.split_once(':')?;
    let (how, data) = rest.split_once(':')?;
    let all = [DialectId::Chat, DialectId::Anthropic, DialectId::Gemini, DialectId::Bedrock];
    let issuer = all.into_iter().find(|id| id.name() == issuer)?;
    Some((issuer, data, how == "redacted"))
}

const MARK: &str = "segue:";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sealed_is_opened_again() {
        for (issuer, redacted) in
            [(DialectId::Anthropic, true), (DialectId::Gemini, false), (DialectId::Responses, false)]
        {
            let sealed = seal("a:b==", issuer, redacted);
            assert_eq!(open(&sealed), Some((issuer, "a:b==", redacted)));
        }
        assert_eq!(open("segue:who:signed:x"), None);
        assert_eq!(open("segue:"), None);
    }
}
