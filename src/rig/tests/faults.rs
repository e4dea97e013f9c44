//! Planned failures around a provider inside the process.

#![expect(clippy::expect_used, reason = "a test's panic is its report")]

use super::*;
use crate::dialect::{self, Expect, WireRequest};
use crate::rig::inside::Inside;
use crate::rig::origin::Scripts;
use crate::rig::script::Script;
use std::time::Duration;

fn call(content: &str) -> Call {
    let body = serde_json::json!({"model": "m", "stream": true, "messages": [{"role": "user", "content": content}]});
    Call {
        provider: dialect::provider(crate::chat::DialectId::Chat).expect("a dialect"),
        wire: WireRequest {
            path: "/chat/completions".to_owned(),
            headers: Vec::new(),
            body: body.to_string().into(),
            dropped: Vec::new(),
        },
        expect: Expect::of(1),
        connect: Duration::from_secs(1),
        error_body: Duration::from_secs(1),
        max_event: 1 << 20,
        credential: None,
        secrets: Default::default(),
    }
}

/// What was told, and how it ended; `None`: it did not.
async fn attempt(faults: &Arc<Faults>, content: &str) -> (String, Option<String>) {
    let provider = Inside::new(Scripts::fixed(Script::telling("One two three four")), 0);
    let mut signals = faults.around(&"a".into(), Arc::new(provider.clone())).open(call(content));
    let mut text = String::new();
    let end = tokio::time::timeout(Duration::from_secs(600), async {
        while let Some(signal) = signals.next().await {
            match signal {
                Signal::Step(step) => step.events.iter().for_each(|event| {
                    if let Event::Text { text: piece, .. } = event {
                        text.push_str(piece);
                    }
                }),
                Signal::Failed(failure) => return failure.kind.name().to_owned(),
                Signal::Ended => return "ended".to_owned(),
                Signal::Queued | Signal::Sent | Signal::Left(_) | Signal::Opened | Signal::Declined(_) => {}
            }
        }
        "nothing".to_owned()
    });
    let end = end.await.ok();
    drop(signals);
    assert_eq!(provider.open_now(), 0);
    (text, end)
}

fn always(hit: Hit) -> Arc<Faults> {
    Faults::noting(
        Box::new(move |mark, connection| (mark.turn == 2 && connection == "a").then_some(hit)),
        Box::new(|_, _| true),
    )
}

#[tokio::test(start_paused = true)]
async fn what_is_planned_happens_and_is_noted() {
    let rows = [
        (Hit::Silent, "", None),
        (Hit::Error, "", Some(Kind::ServerError.name())),
        (Hit::Limited, "", Some(Kind::RateLimited.name())),
        (Hit::Stall(2), "One two", None),
        (Hit::Reset(0), "", Some(Kind::Reset.name())),
        (Hit::End(3), "One two three", Some("ended")),
        (Hit::ErrorEvent(1), "One", Some(Kind::ServerError.name())),
        // An answer that is shorter breaks in place of its finish.
        (Hit::Reset(50), "One two three four", Some(Kind::Reset.name())),
    ];
    for (hit, text, end) in rows {
        let faults = always(hit);
        let heard = attempt(&faults, "What? [c1/2/0]").await;
        assert_eq!((heard.0.as_str(), heard.1.as_deref()), (text, end), "{hit:?}");
        let mark = Mark { conversation: "c1".to_owned(), turn: 2, run: 0 };
        let seen = faults.take(&mark);
        assert_eq!(seen.len(), 1);
        assert!(seen[0].struck && seen[0].knows && seen[0].to.is_some(), "{seen:?}");
        assert_eq!(seen[0].told as usize, text.split_whitespace().count());
        assert!(faults.take(&mark).is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn who_is_not_to_be_struck_is_not_touched() {
    let faults = always(Hit::Silent);
    for content in ["What? [c1/4/0]", "What?"] {
        assert_eq!(attempt(&faults, content).await, ("One two three four".to_owned(), Some("ended".to_owned())));
    }
    let seen = faults.take(&Mark { conversation: "c1".to_owned(), turn: 4, run: 0 });
    assert!(seen.len() == 1 && !seen[0].struck && seen[0].told == 4, "{seen:?}");
}
