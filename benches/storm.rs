//! A hundred turns fail over at once onto a provider that allows fifteen requests a minute, over loopback sockets and by
//! the real clock: once asked every two seconds by a hundred clients that know no better, and once through the gateway,
//! which knows the limit. `cargo bench --bench storm`; both at the same time take two and a half minutes.
//!
//! Nobody waits longer than [`PATIENCE`], in which fifteen a minute serve 33 and no gateway can serve more; the others must
//! be told so at once, and when to come again. The bounds are asserted: a tenth over the limit in any minute, and as many
//! sockets as were allowed in flight.

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
use support::house::{Heard, House};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

/// What the provider saw, and how often it refused.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<(Vec<Instant>, usize)>>);

/// How a storm ended.
struct Came {
    served: usize,
    refused: usize,
    given_up: usize,
    requests: usize,
    in_vain: usize,
    most: usize,
    sockets: usize,
    last: Duration,
}

const TURNS: usize = 100;
const LIMIT: usize = 15;
const WINDOW: Duration = Duration::from_secs(60);
/// Nobody waits longer: a hundred turns at fifteen a minute need seven minutes, so that some must be refused in time.
const PATIENCE: Duration = Duration::from_secs(130);
/// Attempts that the gateway may have open at the provider, and so the bound on sockets, with one that is kept ready.
const IN_FLIGHT: usize = 4;

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    println!("{TURNS} turns at once onto {LIMIT} requests per {WINDOW:?}; {}\n", Machine::this());
    let (naive, gateway) = runtime.block_on(async { tokio::join!(naive(), through_the_gateway()) });
    let mut table = Table::new([
        "asked by",
        "served",
        "refused",
        "given up",
        "requests",
        "in vain",
        "most in 60 s",
        "sockets",
        "last answer",
    ]);
    table.row(naive.row("clients, every 2 s"));
    table.row(gateway.row("the gateway"));
    println!("{table}");
    println!("bounds: {} requests in any minute, {} sockets", LIMIT + LIMIT / 10, IN_FLIGHT + 1);
    assert!(gateway.most <= LIMIT + LIMIT / 10, "{} in a minute", gateway.most);
    assert!(gateway.sockets <= IN_FLIGHT + 1, "{} sockets", gateway.sockets);
    assert_eq!((gateway.given_up, gateway.in_vain), (0, 0), "given up, in vain");
}

/// A provider that counts every request of its window, the refused ones too.
async fn strict(seen: &Seen) -> Origin {
    let seen = seen.clone();
    let window = Mutex::new(VecDeque::new());
    Origin::local(Scripts::with(move |_| {
        let now = Instant::now();
        let mut window = window.lock().unwrap();
        while window.front().is_some_and(|at| WINDOW <= now - *at) {
            window.pop_front();
        }
        window.push_back(now);
        let over = window.len() > LIMIT + LIMIT / 10;
        let mut seen = seen.0.lock().unwrap();
        seen.0.push(now);
        seen.1 += usize::from(over);
        let script = Script::telling("Here I am.").paced(Duration::from_millis(100), Duration::from_millis(20));
        let headers = BTreeMap::from([("retry-after".to_owned(), "8".to_owned())]);
        let script = if over { script.rejecting(Reject::Error { status: 429, headers, wrong: None }) } else { script };
        Ok(Arc::new(script))
    }))
    .await
    .unwrap()
}

/// Every client asks again every two seconds, whatever it was told.
async fn naive() -> Came {
    let seen = Seen::default();
    let origin = Arc::new(strict(&seen).await);
    let start = Instant::now();
    let mut turns = JoinSet::new();
    for _ in 0..TURNS {
        let url = format!("{}/chat/completions", origin.base_url());
        turns.spawn(async move {
            let client = segue::upstream::client::Client::new().unwrap();
            let body =
                json!({"model": "m", "stream": true, "messages": [{"role": "user", "content": "go"}]}).to_string();
            while start.elapsed() < PATIENCE {
                let answer = client.post(&url, http::HeaderMap::new(), body.clone()).await;
                if answer.is_ok_and(|answer| answer.status == 200) {
                    return Some(start.elapsed());
                }
                sleep(Duration::from_secs(2)).await;
            }
            None
        });
    }
    let served: Vec<Duration> = turns.join_all().await.into_iter().flatten().collect();
    let last = served.iter().max().copied().unwrap_or_default();
    Came::of(&seen, (served.len(), 0), origin.most_connections(), last)
}

async fn through_the_gateway() -> Came {
    let seen = Seen::default();
    let dead = Script::default().rejecting(Reject::Error { status: 503, headers: BTreeMap::new(), wrong: None });
    let (dead, strict) = (Origin::local(Scripts::fixed(dead)).await.unwrap(), strict(&seen).await);
    let text = format!(
        "[connections.a]\ndialect = \"chat\"\nbase_url = \"{}\"\n\
         [connections.b]\ndialect = \"chat\"\nbase_url = \"{}\"\n\
         limits = {{ rpm = {LIMIT}, in_flight = {IN_FLIGHT} }}\n\
         [levels.main]\nchain = [{{ connection = \"a\", model = \"m\" }}, {{ connection = \"b\", model = \"m\" }}]\n\
         timeouts = {{ first_token = \"{}s\" }}\n",
        dead.base_url(),
        strict.base_url(),
        PATIENCE.as_secs()
    );
    let house = Arc::new(House::with(&text, vec![dead, strict]).await);
    let start = Instant::now();
    let mut turns = JoinSet::new();
    for _ in 0..TURNS {
        let house = Arc::clone(&house);
        turns.spawn(async move { (house.chat(&json!({})).await, start.elapsed()) });
    }
    let ends = turns.join_all().await;
    let served = ends.iter().filter(|(heard, _)| heard.text == "Here I am.").count();
    // Honest: a status that says so, and when to come again.
    let honest = |heard: &Heard| [429, 503].contains(&heard.status) && heard.headers.contains_key("retry-after");
    let refused = ends.iter().filter(|(heard, _)| honest(heard)).count();
    let last = ends.iter().map(|(_, at)| *at).max().unwrap_or_default();
    Came::of(&seen, (served, refused), house.origins[1].most_connections(), last)
}

impl Came {
    fn of(seen: &Seen, (served, refused): (usize, usize), sockets: usize, last: Duration) -> Self {
        let (all, in_vain) = &*seen.0.lock().unwrap();
        let within = |n: usize| all[n..].iter().take_while(|at| **at - all[n] < WINDOW).count();
        let most = (0..all.len()).map(within).max().unwrap_or_default();
        let given_up = TURNS - served - refused;
        Self { served, refused, given_up, requests: all.len(), in_vain: *in_vain, most, sockets, last }
    }

    fn row(&self, who: &str) -> [String; 9] {
        let Self { served, refused, given_up, requests, in_vain, most, sockets, last } = self;
        let [served, refused, given_up, requests, in_vain, most, sockets] =
            [served, refused, given_up, requests, in_vain, most, sockets].map(|n| n.to_string());
        let last = format!("{:.1} s", last.as_secs_f64());
        [who.to_owned(), served, refused, given_up, requests, in_vain, most, sockets, last]
    }
}
