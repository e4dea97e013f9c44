//! One refusal under a steady load, over loopback sockets: when the rest is over the provider is used as before, and
//! where another one is idle nobody waits in line for it.
#![expect(clippy::unwrap_used, reason = "a test's panic is its report")]

mod support;

use segue::fleet::Held;
use segue::rig::origin::{Origin, Scripts};
use segue::rig::script::{Reject, Script};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use support::house::{Heard, House};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

/// Turns a second.
const RATE: u32 = 30;
const LASTS: Duration = Duration::from_secs(7);
/// The request with this number is refused.
const REFUSED: usize = 30;

/// What came of a load: of each turn when it came, how long it took, and what was heard.
struct Came {
    turns: Vec<(Duration, Duration, Heard)>,
    asked: usize,
    /// How many may ask the first provider at once in the end; `None`: as many as come.
    window: Option<u32>,
}

/// A steady load at a provider that refuses one request with `status` and `retry-after: 1`; `two`: another stands by.
async fn load(status: u16, two: bool) -> Came {
    let asked = Arc::new(AtomicUsize::new(0));
    let script = Script::telling("Here I am.").paced(Duration::from_millis(20), Duration::from_millis(2));
    let (count, serves) = (Arc::clone(&asked), script.clone());
    let first = Origin::local(Scripts::with(move |_| {
        let refuses = count.fetch_add(1, Ordering::SeqCst) == REFUSED;
        let headers = BTreeMap::from([("retry-after".to_owned(), "1".to_owned())]);
        let script = serves.clone();
        Ok(Arc::new(if refuses { script.rejecting(Reject::Error { status, headers, wrong: None }) } else { script }))
    }));
    let (first, second) = (first.await.unwrap(), Origin::local(Scripts::fixed(script)).await.unwrap());
    let connection = |name: &str, origin: &Origin| {
        format!("[connections.{name}]\ndialect = \"chat\"\nbase_url = \"{}\"\n", origin.base_url())
    };
    let more = if two { ", { connection = \"b\", model = \"m\" }" } else { "" };
    let text = format!(
        "{}{}[levels.main]\nchain = [{{ connection = \"a\", model = \"m\" }}{more}]\n",
        connection("a", &first),
        if two { connection("b", &second) } else { String::new() }
    );
    let house = Arc::new(House::with(&text, vec![first, second]).await);
    let (start, mut turns) = (Instant::now(), JoinSet::new());
    for turn in 0..LASTS.as_secs() as u32 * RATE {
        let house = Arc::clone(&house);
        turns.spawn(async move {
            let came = Duration::from_secs(1) * turn / RATE;
            sleep_until(start + came).await;
            let heard = house.chat(&json!({})).await;
            (came, start.elapsed().saturating_sub(came), heard)
        });
    }
    let turns = turns.join_all().await;
    assert_eq!(house.gateway.fleet().held(), Held::default());
    let circuits = house.gateway.fleet().circuits(Instant::now().into_std());
    let window = circuits.iter().find(|circuit| &*circuit.connection == "a").and_then(|circuit| circuit.window);
    Came { turns, asked: asked.load(Ordering::SeqCst), window }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_one_refusal_everybody_is_served_as_before() {
    for status in [429, 503] {
        let Came { turns, asked, window } = load(status, false).await;
        let failed = turns.iter().filter(|(.., heard)| heard.status != 200).count();
        // One that is told to come back may wait for it; a 503 is told on, where nobody else is left.
        assert!(failed <= usize::from(status == 503), "{status}: {failed} were not served");
        assert!(asked <= turns.len() + 1, "{status}: requests in vain: {asked} for {} turns", turns.len());
        // How late they were says as much of the machine; that as many may ask as come says it all.
        assert!(window.is_none_or(|window| 2 * RATE < window), "{status}: held back by a window of {window:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_another_target_nobody_stands_in_line() {
    for status in [429, 503] {
        let Came { turns, .. } = load(status, true).await;
        for (came, took, heard) in &turns {
            heard.assert_whole(&format!("the turn at {came:?}"));
            assert!(*took < 7 * SECOND, "{status}: the turn at {came:?} took {took:?}");
        }
        let last = turns.iter().max_by_key(|(came, ..)| *came).unwrap();
        assert_eq!(last.2.headers["x-segue-served-by"], "a/m", "the first choice has its rate again");
    }
}

#[tokio::test]
async fn a_provider_that_reports_absurd_tokens_does_not_lock_everybody_out() {
    let mut script = Script::telling("Here I am.").paced(Duration::from_millis(1), Duration::from_millis(1));
    script.content.prompt_tokens = 99_999_999;
    let settings = "[limits]\ntpm = 100000\n";
    let house = House::of(vec![("chat", Scripts::fixed(script))], settings, "").await;
    for turn in 0..2 {
        let heard = house.chat(&json!({})).await;
        assert_eq!(heard.status, 200, "turn {turn}: {}", heard.body);
    }
}

const SECOND: Duration = Duration::from_secs(1);
