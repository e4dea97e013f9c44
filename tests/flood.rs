//! A provider that never stops sending what says nothing: its turn is given up by its clocks, and others go on meanwhile.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's panic is its report")]

use futures::stream::{BoxStream, StreamExt};
use http::HeaderMap;
use segue::chat::DialectId;
use segue::config;
use segue::dialect;
use segue::event::{Event, Signal, Step};
use segue::gateway::Gateway;
use segue::gateway::caller::Caller;
use segue::gateway::drive::Start;
use segue::upstream::{Call, Upstream};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// Has a sign of life ready whenever it is asked, for three seconds.
struct Flood;

impl Upstream for Flood {
    fn open(&self, _: Call) -> BoxStream<'static, Signal> {
        let begun = Instant::now();
        let pings = std::iter::repeat_with(|| Signal::Step(Step::of(Event::Alive)));
        let pings = pings.take_while(move |_| begun.elapsed() < Duration::from_secs(3));
        futures::stream::iter([Signal::Sent, Signal::Opened].into_iter().chain(pings)).boxed()
    }
}

#[tokio::test]
async fn a_provider_that_is_never_silent_holds_up_neither_the_clocks_nor_other_turns() {
    let text = "[connections.a]\ndialect = \"chat\"\nbase_url = \"http://127.0.0.1:1/v1\"\n\
                [levels.main]\nchain = [{ connection = \"a\", model = \"m\" }]\nretries = 0\n\
                timeouts = { first_token = \"300ms\" }\n";
    let config = config::load(text, "t.toml", &config::Nothing).unwrap().config;
    let flood: Arc<dyn Upstream> = Arc::new(Flood);
    let gateway = Gateway::with_upstreams(config, HashMap::from([("a".into(), flood)]));
    let body = br#"{"model": "main", "stream": true, "messages": [{"role": "user", "content": "x"}]}"#;
    let request = dialect::client(DialectId::Chat).unwrap().parse(&HeaderMap::new(), body).unwrap();
    let turns = Arc::new(AtomicU64::new(0));
    let others = Arc::clone(&turns);
    let other = tokio::spawn(async move {
        loop {
            others.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
        }
    });
    let mut drive = gateway.begin(&Caller::default(), request).await.unwrap();
    let Start::Refused(refusal) = drive.start(None).await else { panic!("nothing was said") };
    assert_eq!(&*refusal.code, "upstream_timeout", "{refusal:?}");
    assert!(100 < turns.load(Ordering::Relaxed), "another task had its turn only {turns:?} times");
    other.abort();
}
