//! What a provider can make of a secret, and that none of it is left.

use super::Redactor;
use proptest::prelude::*;

const KEY: &str = "sk+proj/Ab=cd%40 \"q\\z&0123456789";

fn percent(text: &str, upper: bool) -> String {
    text.bytes().map(|b| if upper { format!("%{b:02X}") } else { format!("%{b:02x}") }).collect()
}

fn json(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[test]
fn a_secret_is_found_in_every_encoding() {
    let redactor = Redactor::new([KEY]);
    let units: String = KEY.encode_utf16().map(|unit| format!("\\u{unit:04X}")).collect();
    let html: String = KEY.chars().map(|c| format!("&#{};", u32::from(c))).collect();
    let hexed: String = KEY.chars().map(|c| format!("&#x{:x};", u32::from(c))).collect();
    let named = KEY.replace('&', "&amp;").replace('"', "&quot;");
    for form in [
        KEY.to_owned(),
        KEY.to_uppercase(),
        percent(KEY, true),
        percent(KEY, false),
        percent(&percent(KEY, true), true),
        KEY.replace(' ', "+"),
        json(KEY),
        json(&json(KEY)),
        json(&percent(KEY, true)),
        units,
        html,
        hexed,
        named,
        KEY.replace('/', "\\/").replace('"', "\\\"").replace('\\', "\\\\"),
    ] {
        let text = format!("before {form} after, and again: {form}");
        let cleaned = redactor.clean(text.clone());
        assert_eq!(cleaned.matches(Redactor::MARK).count(), 2, "{text}\n{cleaned}");
        assert!(cleaned.starts_with("before ") && cleaned.contains(" after, and again: "), "{cleaned}");
        assert!(!cleaned.contains("0123456789"), "{cleaned}");
    }
}

#[test]
fn base64_is_found_wherever_it_began() {
    let redactor = Redactor::new(["user:pass-word-1234567"]);
    // `Basic`, and the same behind one, two and three other bytes.
    for (form, left) in [
        ("dXNlcjpwYXNzLXdvcmQtMTIzNDU2Nw==", "Nw=="),
        ("eHVzZXI6cGFzcy13b3JkLTEyMzQ1Njc=", ""),
        ("eHh1c2VyOnBhc3Mtd29yZC0xMjM0NTY3", ""),
        ("eHh4dXNlcjpwYXNzLXdvcmQtMTIzNDU2Nw", ""),
    ] {
        let cleaned = redactor.clean(format!("Basic {form}"));
        assert!(cleaned.contains(Redactor::MARK), "{cleaned}");
        assert!(left.is_empty() || cleaned.len() < "Basic [secret]".len() + 5, "{cleaned}");
    }
}

#[test]
fn what_is_a_secret_by_itself_is_found_by_itself() {
    let redactor = Redactor::new([
        "Bearer cf-secret-123456",
        "https://hooks.example.com/services/T0123456789ABCDEF/B1?key=kkkkkkkkkkkkkkkkkk",
        "redis://user:hunter2hunter2@store:6379/0",
    ]);
    for text in [
        "cf-secret-123456",
        "bearer CF-SECRET-123456",
        "POST /services/T0123456789ABCDEF/B1?key=kkkkkkkkkkkkkkkkkk",
        "team T0123456789ABCDEF",
        "hunter2hunter2",
    ] {
        let cleaned = redactor.clean(text.to_owned());
        assert!(cleaned.contains(Redactor::MARK), "{text}: {cleaned}");
    }
    assert_eq!(redactor.clean("hooks.example.com is down".to_owned()), "hooks.example.com is down");
}

#[test]
fn a_secret_that_was_cut_is_found_at_the_end() {
    let redactor = Redactor::new(["sk-operator-key-0123456789abcdef"]);
    assert_eq!(redactor.clean("wrong key: sk-operator-key-01".to_owned()), "wrong key: [secret]");
    assert_eq!(redactor.clean("wrong key: sk%2Doperator%2Dkey%2D01".to_owned()), "wrong key: [secret]");
    assert_eq!(redactor.clean("keys begin with sk-operat".to_owned()), "keys begin with sk-operat");
}

#[test]
fn words_without_secrets_stay_and_short_secrets_are_words() {
    let text = "100 % of \"tokens\" \\n used: https://example.com/a%20b?x=1&y=2 &amp; more é \\u00e9";
    assert_eq!(Redactor::new([KEY]).clean(text.to_owned()), text);
    assert_eq!(Redactor::new(["used", ""]).clean(text.to_owned()), text);
    assert_eq!(Redactor::default().clean(text.to_owned()), text);
    assert_eq!(Redactor::new([]), Redactor::default());
    assert!(!format!("{:?}", Redactor::new([KEY])).contains("0123"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn nothing_else_is_lost(before in "[a-zA-Z %&\\\\é漢]{0,40}", after in "[a-zA-Z %&\\\\é漢]{0,40}", layers in 0..3_u32) {
        let secret = "k3y-0123456789-of-all";
        let mut form = secret.to_owned();
        for layer in 0..layers {
            form = percent(&form, layer % 2 == 0);
        }
        // A percent sign right before could make another escape of it.
        let cleaned = Redactor::new([secret]).clean(format!("{before}|{form}|{after}"));
        prop_assert_eq!(cleaned, format!("{before}|{}|{after}", Redactor::MARK));
    }

    #[test]
    fn any_text_is_taken(text in "\\PC*", secret in "[ -~]{8,20}") {
        let cleaned = Redactor::new([&*secret]).clean(format!("{text}{secret}{text}"));
        prop_assert!(cleaned.contains(Redactor::MARK));
    }
}
