//! A hundred turns fail over at once onto a provider that allows fifteen requests in ten seconds, over loopback sockets:
//! once asked every two seconds by a hundred clients that know no better, once through the gateway, which knows it as 90 a minute, a tenth of
//! them at once. `cargo bench --bench
//! storm`; it takes less than a minute.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a bench's panic is its report")]

#[path = "../tests/support/mod.rs"]
mod support;

use segue::bench::machine::Machine;
use segue::bench::table::Table;
use segue::rig::origin::{Origin, Scripts};
use segue::rig::script::{Reject, Script};
use serde_json::json;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use support::house::House;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

/// What the provider saw.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<Instant>>>);

const TURNS: usize = 100;
const LIMIT: usize = 15;
const WINDOW: Duration = Duration::from_secs(10);
/// Nobody waits longer: a hundred turns at 90 a minute need 66 s, so that some must be refused in time.
const PATIENCE: Duration = Duration::from_secs(20);

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    println!("{TURNS} turns at once onto {LIMIT} requests per {WINDOW:?}; {}\n", Machine::this());
    let mut table =
        Table::new(["asked by", "served", "refused", "given up", "requests", "most in 10 s", "last answer"]);
    let (naive, gateway) = runtime.block_on(async { (naive().await, through_the_gateway().await) });
    table.row(naive);
    table.row(gateway);
    println!("{table}");
}

/// A provider that counts every request of its window, the refused ones too.
async fn strict(seen: &Seen) -> Origin {
    let seen = seen.clone();
    let window = Mutex::new(VecDeque::new());
    Origin::local(Scripts::with(move |_| {
        let now = Instant::now();
        seen.0.lock().unwrap().push(now);
        let mut window = window.lock().unwrap();
        while window.front().is_some_and(|at| WINDOW <= now - *at) {
            window.pop_front();
        }
        window.push_back(now);
        let script = Script::telling("Here I am.").paced(Duration::from_millis(100), Duration::from_millis(20));
        let headers = BTreeMap::from([("retry-after".to_owned(), "8".to_owned())]);
        let over = window.len() > LIMIT + LIMIT / 10;
        let script = if over { script.rejecting(Reject::Error { status: 429, headers, wrong: None }) } else { script };
        Ok(Arc::new(script))
    }))
    .await
    .unwrap()
}

/// A house whose first provider is dead, with these lines for the second.
async fn house(first: &str, seen: &Seen, limits: &str, level: &str) -> House {
    let headers = BTreeMap::new();
    let dead = Script::default().rejecting(Reject::Error { status: 503, headers, wrong: None });
    let (dead, strict) = (Origin::local(Scripts::fixed(dead)).await.unwrap(), strict(seen).await);
    let text = format!(
        "[connections.a]\ndialect = \"chat\"\nbase_url = \"{}\"\napi_key = {{ env = \"KEY_a\" }}\n\
         [connections.b]\ndialect = \"chat\"\nbase_url = \"{}\"\napi_key = {{ env = \"KEY_b\" }}\n{limits}\n\
         [levels.main]\nchain = [{first}{{ connection = \"b\", model = \"m\" }}]\n{level}\n",
        dead.base_url(),
        strict.base_url()
    );
    House::with(&text, vec![dead, strict]).await
}

/// Every client asks again every two seconds, whatever it was told.
async fn naive() -> [String; 7] {
    let seen = Seen::default();
    let house = Arc::new(house("", &seen, "", "retries = 0\nrate_limited = \"switch\"").await);
    let start = Instant::now();
    let mut turns = JoinSet::new();
    for _ in 0..TURNS {
        let url = format!("{}/chat/completions", house.origins[1].base_url());
        turns.spawn(async move {
            let client = segue::upstream::client::Client::new().unwrap();
            let body =
                json!({"model": "m", "stream": true, "messages": [{"role": "user", "content": "go"}]}).to_string();
            while start.elapsed() < PATIENCE {
                let answer = client.post(&url, http::HeaderMap::new(), body.clone()).await;
                if answer.is_ok_and(|answer| answer.status == 200) {
                    return (true, start.elapsed());
                }
                sleep(Duration::from_secs(2)).await;
            }
            (false, Duration::ZERO)
        });
    }
    let ends = turns.join_all().await;
    let served = ends.iter().filter(|(served, _)| *served).count();
    let last = ends.iter().map(|(_, at)| *at).max().unwrap_or_default();
    row("clients, every 2 s", (served, 0, TURNS - served), &seen, last)
}

async fn through_the_gateway() -> [String; 7] {
    let seen = Seen::default();
    let first = "{ connection = \"a\", model = \"m\" }, ";
    let level = format!("timeouts = {{ first_token = \"{}s\" }}", PATIENCE.as_secs());
    let house = Arc::new(house(first, &seen, "limits = { rpm = 90 }", &level).await);
    let start = Instant::now();
    let mut turns = JoinSet::new();
    for _ in 0..TURNS {
        let house = Arc::clone(&house);
        turns.spawn(async move {
            let heard = timeout(2 * PATIENCE, house.chat(&json!({}))).await;
            (heard.map(|heard| heard.text == "Here I am."), start.elapsed())
        });
    }
    let ends = turns.join_all().await;
    let count =
        |what: fn(&Result<bool, tokio::time::error::Elapsed>) -> bool| ends.iter().filter(|(e, _)| what(e)).count();
    let (served, refused) = (count(|e| matches!(e, Ok(true))), count(|e| matches!(e, Ok(false))));
    let last = ends.iter().map(|(_, at)| *at).max().unwrap_or_default();
    row("the gateway", (served, refused, TURNS - served - refused), &seen, last)
}

fn row(who: &str, (served, refused, given_up): (usize, usize, usize), seen: &Seen, last: Duration) -> [String; 7] {
    let all = seen.0.lock().unwrap();
    let most =
        (0..all.len()).map(|n| all[..=n].iter().filter(|at| all[n].saturating_duration_since(**at) < WINDOW).count());
    let numbers = [served, refused, given_up, all.len(), most.max().unwrap_or_default()].map(|n| n.to_string());
    let [served, refused, given_up, requests, most] = numbers;
    [who.to_owned(), served, refused, given_up, requests, most, format!("{:.1} s", last.as_secs_f64())]
}
