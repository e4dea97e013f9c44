//! A hundred turns fail over at once onto a provider that allows fifteen requests a minute: with retries on a schedule of
//! their own it never recovers; with the gateway every turn is served or answered, and the provider never sees a storm.
//! In paused time, with a provider inside the process that counts its minute and refuses what is over.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test's panic is its report; figures are printed"
)]

use bytes::Bytes;
use futures::stream::{BoxStream, StreamExt};
use http::HeaderMap;
use segue::chat::DialectId;
use segue::config;
use segue::dialect::{self, Refusal};
use segue::event::Signal;
use segue::failure::{Failure, Kind, RetryAt, Stage};
use segue::gateway::Gateway;
use segue::gateway::caller::Caller;
use segue::gateway::drive::Start;
use segue::rig::inside::Inside;
use segue::rig::origin::Scripts;
use segue::rig::script::{Reject, Script};
use segue::upstream::{Call, Upstream};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

/// Takes fifteen requests in any minute, and counts the refused ones too, as strict providers do: so whoever keeps asking
/// keeps being refused.
#[derive(Clone)]
struct Strict {
    asked: Arc<Mutex<Asked>>,
    serves: Inside,
    /// It says when to come again.
    tells: bool,
}

#[derive(Default)]
struct Asked {
    all: Vec<Instant>,
    served: usize,
    minute: VecDeque<Instant>,
}

const LIMIT: usize = 15;
const MINUTE: Duration = Duration::from_secs(60);
const TURNS: usize = 100;

impl Strict {
    fn new(tells: bool) -> Self {
        let script = Script::telling("Here I am.").paced(Duration::from_millis(200), Duration::from_millis(50));
        Self { asked: Arc::default(), serves: Inside::new(Scripts::fixed(script), 1), tells }
    }

    /// Counts a request; whether it is within the limit.
    fn admits(&self) -> bool {
        let now = Instant::now();
        let mut asked = self.asked.lock().unwrap();
        asked.all.push(now);
        while asked.minute.front().is_some_and(|at| MINUTE <= now - *at) {
            asked.minute.pop_front();
        }
        asked.minute.push_back(now);
        let admits = asked.minute.len() <= LIMIT + LIMIT / 10;
        asked.served += usize::from(admits);
        admits
    }

    /// The most requests in any minute.
    fn most(&self) -> usize {
        let all = self.asked.lock().unwrap().all.clone();
        let from = |n: usize| all.partition_point(|at| MINUTE <= all[n].saturating_duration_since(*at));
        (0..all.len()).map(|n| n + 1 - from(n)).max().unwrap_or(0)
    }

    fn served(&self) -> usize {
        self.asked.lock().unwrap().served
    }
}

impl Upstream for Strict {
    fn open(&self, call: Call) -> BoxStream<'static, Signal> {
        let this = self.clone();
        futures::stream::once(async move {
            if this.admits() {
                return this.serves.open(call);
            }
            // Whoever comes in the same moment has not heard of it.
            sleep(Duration::from_millis(30)).await;
            let mut failure = Failure::new(Kind::RateLimited, Stage::Refused);
            failure.status = Some(429);
            failure.retry_at = this.tells.then_some(RetryAt::In(Duration::from_secs(8)));
            futures::stream::iter([Signal::Sent, Signal::Failed(Box::new(failure))]).boxed()
        })
        .flatten()
        .boxed()
    }
}

/// A dead provider, and behind it the strict one, which the gateway knows to take `limits`.
fn gateway(strict: &Strict, limits: &str, level: &str) -> Gateway {
    let text = format!(
        "[timeouts]\nturn = \"12m\"\n[connections.a]\ndialect = \"chat\"\nbase_url = \"http://127.0.0.1:1/v1\"\n\
         [connections.b]\ndialect = \"chat\"\nbase_url = \"http://127.0.0.1:1/v1\"\n{limits}\n\
         [levels.main]\nchain = [{{ connection = \"a\", model = \"m\" }}, {{ connection = \"b\", model = \"m\" }}]\n{level}\n"
    );
    let config = config::load(&text, "storm.toml", &config::Nothing).unwrap().config;
    let headers = BTreeMap::new();
    let dead = Script::default().rejecting(Reject::Error { status: 503, headers, wrong: None });
    let dead: Arc<dyn Upstream> = Arc::new(Inside::new(Scripts::fixed(dead), 0));
    let upstreams: HashMap<Arc<str>, Arc<dyn Upstream>> =
        [("a".into(), dead), ("b".into(), Arc::new(strict.clone()) as Arc<dyn Upstream>)].into();
    Gateway::with_upstreams(config, upstreams)
}

/// How a turn ended: its text, or the refusal's code.
async fn turn(gateway: Gateway) -> Result<String, (u16, String, Option<Duration>)> {
    let body = r#"{"model":"main","stream":true,"messages":[{"role":"user","content":"go"}]}"#;
    let request =
        dialect::client(DialectId::Chat).unwrap().parse(&HeaderMap::new(), &Bytes::from_static(body.as_bytes()));
    let told = |r: &Refusal| (r.reason.status(), r.code.clone(), r.retry_after);
    let mut drive = gateway.begin(&Caller::default(), request.unwrap()).await.map_err(|r| told(&r))?;
    if let Start::Refused(refusal) = drive.start(None).await {
        return Err(told(&refusal));
    }
    let mut all = Vec::new();
    while let Some(bytes) = poll_fn(|cx| drive.poll_frame(cx)).await {
        all.extend_from_slice(&bytes);
    }
    Ok(String::from_utf8(all).unwrap())
}

async fn storm(gateway: &Gateway) -> Vec<Result<String, (u16, String, Option<Duration>)>> {
    let mut turns = JoinSet::new();
    (0..TURNS).for_each(|_| drop(turns.spawn(turn(gateway.clone()))));
    turns.join_all().await
}

#[tokio::test(start_paused = true)]
async fn fixed_retries_never_let_it_recover() {
    let strict = Strict::new(false);
    let start = Instant::now();
    let mut turns = JoinSet::new();
    for _ in 0..TURNS {
        let strict = strict.clone();
        turns.spawn(async move {
            while Instant::now() - start < 10 * MINUTE {
                if strict.admits() {
                    return true;
                }
                sleep(Duration::from_secs(2)).await;
            }
            false
        });
    }
    let served = turns.join_all().await.into_iter().filter(|served| *served).count();
    assert!(served <= LIMIT + LIMIT / 10, "{served} in the first moment, and nobody in ten minutes after it");
    assert!(2000 < strict.most(), "{}", strict.most());
}

#[tokio::test(start_paused = true)]
async fn with_its_limit_known_all_are_served_and_it_never_sees_more() {
    let strict = Strict::new(true);
    let gateway = gateway(&strict, "limits = { rpm = 15 }", "timeouts = { first_token = \"11m\" }");
    let ends = storm(&gateway).await;
    for end in &ends {
        let told = end.as_ref().unwrap_or_else(|refusal| panic!("{refusal:?}"));
        assert!(told.contains("Here") && told.ends_with("[DONE]\n\n"), "{told}");
    }
    let all = strict.asked.lock().unwrap().all.clone();
    assert_eq!((all.len(), strict.served()), (TURNS, TURNS), "no request in vain");
    assert!(strict.most() <= LIMIT + LIMIT / 10, "{} in a minute", strict.most());
    assert!(all.windows(2).all(|pair| pair[0] < pair[1]), "no two in the same instant");
    assert!(strict.serves.peak() <= 2, "{} were open at once", strict.serves.peak());
    assert_eq!(gateway.open_turns(), 0);
}

#[tokio::test(start_paused = true)]
async fn those_who_cannot_wait_so_long_are_told_when_to_come() {
    let strict = Strict::new(true);
    let gateway = gateway(&strict, "limits = { rpm = 15 }", "");
    let ends = storm(&gateway).await;
    let (served, refused): (Vec<_>, Vec<_>) = ends.into_iter().partition(Result::is_ok);
    assert!(!served.is_empty());
    for refusal in refused.into_iter().filter_map(Result::err) {
        assert!(refusal.0 == 503 && refusal.2.is_some(), "{refusal:?}");
    }
    assert!(strict.most() <= LIMIT + LIMIT / 10, "{} in a minute", strict.most());
}

/// What became of a storm onto a provider whose limit nobody knows.
struct Storm {
    served: usize,
    /// How many requests it refused.
    in_vain: usize,
    /// When each request came, in seconds since the first.
    at: Vec<f64>,
}

impl Storm {
    /// How many requests came later than `from`, at most, in any minute.
    fn most(&self, from: f64) -> usize {
        let later: Vec<f64> = self.at.iter().copied().filter(|at| from < *at).collect();
        (0..later.len()).map(|n| later[n..].iter().take_while(|at| **at < later[n] + 60.0).count()).max().unwrap_or(0)
    }
}

async fn unknown_limit(tells: bool, level: &str) -> Storm {
    let strict = Strict::new(tells);
    let gateway = gateway(&strict, "", level);
    let ends = storm(&gateway).await;
    let served = ends.iter().filter(|end| end.is_ok()).count();
    for end in &ends {
        match end {
            Ok(told) => assert!(told.contains("Here") && told.ends_with("[DONE]\n\n"), "{told}"),
            Err((status, _, wait)) => {
                assert!([429, 503].contains(status) && (wait.is_some() || !tells), "{end:?}");
            }
        }
    }
    assert_eq!(gateway.open_turns(), 0);
    let asked = strict.asked.lock().unwrap();
    let at: Vec<f64> = asked.all.iter().map(|at| (*at - asked.all[0]).as_secs_f64()).collect();
    let mut minutes = vec![0; 1 + (at.last().unwrap() / 60.0) as usize];
    at.iter().for_each(|at| minutes[(at / 60.0) as usize] += 1);
    let storm = Storm { served, in_vain: at.len() - asked.served, at };
    println!(
        "told: {tells}, {level:?}: {served} served, {} requests in vain, by the minute {minutes:?}",
        storm.in_vain
    );
    storm
}

#[tokio::test(start_paused = true)]
async fn with_its_limit_unknown_its_word_spreads_them_out() {
    let storm = unknown_limit(true, "rate_limited = \"wait\"\nretries = 1\ntimeouts = { first_token = \"5m\" }").await;
    // Nobody knew before its first word; after it, it sees its limit and one refusal a rest of eight seconds.
    assert_eq!(storm.at.iter().filter(|at| **at < 1.0).count(), TURNS);
    assert!(storm.most(1.0) <= LIMIT + LIMIT / 10 + 8, "{} in a minute", storm.most(1.0));
    let later: Vec<f64> = storm.at.iter().copied().filter(|at| 1.0 < *at).collect();
    assert!(8.0 <= later[0], "nobody before the time it named: {}", later[0]);
    // One tries, and then twice as many each round trip of 30 ms or more.
    let at_once = |n: usize| later[n..].iter().take_while(|at| **at < later[n] + 0.03).count();
    let most = (0..later.len()).map(at_once).max();
    assert!(most <= Some(LIMIT), "{most:?} at once");
    assert_eq!(at_once(0), 1, "one tries alone");
    assert!(storm.at.len() <= 2 * TURNS, "each turn asks twice at most: {}", storm.at.len());
    assert!(TURNS * 2 / 5 < storm.served, "{} were served in five minutes", storm.served);
}

#[tokio::test(start_paused = true)]
async fn by_itself_it_waits_only_as_long_as_its_turn_may_take() {
    let storm = unknown_limit(true, "retries = 1\ntimeouts = { first_token = \"60s\" }").await;
    assert!(storm.at.last().unwrap() < &310.0, "{:?}", storm.at.last());
    assert!(storm.most(1.0) <= LIMIT + LIMIT / 10 + 8, "{} in a minute", storm.most(1.0));
    let storm = unknown_limit(true, "retries = 0").await;
    assert_eq!((storm.at.len(), storm.served), (TURNS, LIMIT + LIMIT / 10), "who may not retry is told at once");
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_tells_nothing_is_asked_again_by_a_tenth_of_the_turns() {
    for (retries, tries) in [(0, 1), (1, 2), (3, 4)] {
        let level = format!("retries = {retries}\ntimeouts = {{ first_token = \"60s\" }}");
        let storm = unknown_limit(false, &level).await;
        assert_eq!(storm.at.iter().filter(|at| **at < 1.0).count(), TURNS, "nobody knew");
        // The backoff's first pause is one to two seconds, and the level's budget pays for a burst of ten.
        let later: Vec<f64> = storm.at.iter().copied().filter(|at| 1.0 <= *at).collect();
        assert!(later.len() <= 20.min((tries - 1) * TURNS), "{retries} retries: {later:?}");
        assert_eq!(later.is_empty(), retries == 0);
        assert!(later.first() < later.last() || retries == 0, "spread by the jitter: {later:?}");
    }
}
