//! The table, by what many vendors and servers say.
#![expect(clippy::unwrap_used, reason = "a test's panic is its report")]

use crate::chat::DialectId;
use crate::dialect;
use crate::failure::{Failure, Kind};
use http::{HeaderMap, HeaderName};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// A refusal and what it is.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Golden {
    who: String,
    status: u16,
    /// One of these, with `|` between them.
    kind: String,
    /// Words alone say so.
    #[serde(default)]
    by_words: bool,
    #[serde(default)]
    dialect: Option<String>,
    /// A part of what people are told.
    #[serde(default)]
    told: Option<String>,
    #[serde(default)]
    headers: Map<String, Value>,
    body: Value,
}

fn goldens() -> Vec<Golden> {
    serde_json::from_str(include_str!("../../../tests/golden/refusals/refusals.json")).unwrap()
}

fn classify(golden: &Golden) -> Failure {
    let id = if golden.dialect.as_deref() == Some("anthropic") { DialectId::Anthropic } else { DialectId::Chat };
    let mut headers = HeaderMap::new();
    for (name, value) in &golden.headers {
        headers.insert(HeaderName::from_bytes(name.as_bytes()).unwrap(), value.as_str().unwrap().parse().unwrap());
    }
    let body = golden.body.as_str().map_or_else(|| golden.body.to_string(), str::to_owned);
    let provider = dialect::provider(id).unwrap();
    if golden.status == 200 {
        let expect = dialect::Expect::of(1);
        return provider.whole(body.as_bytes(), expect).unwrap_err();
    }
    provider.classify(golden.status, &headers, body.as_bytes())
}

#[test]
fn each_refusal_is_what_its_vendor_means() {
    let mut wrong = Vec::new();
    for golden in goldens() {
        let failure = classify(&golden);
        let kinds: Vec<_> = golden.kind.split('|').collect();
        let words = kinds.len() > 1 || failure.kind == Kind::Repairable || failure.by_words == golden.by_words;
        let told = golden.told.as_ref().is_none_or(|told| failure.said.message.contains(told));
        if !kinds.contains(&failure.kind.name()) || !words || !told {
            let (kind, by_words, said) = (failure.kind, failure.by_words, &failure.said.message);
            wrong.push(format!(
                "{} {}: {kind:?} by_words={by_words}, not {} {}; told: {said}; {}",
                golden.who, golden.status, golden.kind, golden.by_words, golden.body
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_goldens_are_of_many() {
    let goldens = goldens();
    let who: BTreeSet<&str> = goldens.iter().map(|golden| &*golden.who).collect();
    assert!(goldens.len() >= 60 && who.len() >= 20, "{} of {}", goldens.len(), who.len());
}

#[test]
fn what_is_not_there_is_never_the_requests_mistake() {
    for status in [404, 405, 410, 421, 426, 451] {
        for body in ["", "<html>", "x", "{}", "[]", "{\"error\":\"bad request\"}", "{\"message\":\"invalid\"}"] {
            for id in [DialectId::Chat, DialectId::Anthropic] {
                let failure = dialect::provider(id).unwrap().classify(status, &HeaderMap::new(), body.as_bytes());
                assert!(failure.kind != Kind::BadRequest, "{status} {body}");
            }
        }
    }
}

#[test]
fn whatever_a_refusal_holds_costs_no_more_than_its_bytes() {
    let long = |part: &str| part.repeat(40_000 / part.len());
    for body in [
        long("token "),
        long("`"),
        long("'a"),
        long("{\"error\":"),
        long("["),
        format!("{{\"error\":{{\"message\":\"{}\"}}}}", long("context model key ")),
        format!("{{\"errors\":[{}1]}}", long("{\"message\":\"x\"},")),
    ] {
        let failure = dialect::provider(DialectId::Chat).unwrap().classify(400, &HeaderMap::new(), body.as_bytes());
        assert!(failure.said.message.len() <= crate::failure::Said::HEARD);
    }
}
