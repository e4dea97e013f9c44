//! Whatever becomes of turns (finished, failed, hung up at any moment, raced, queued, refused), everything that they
//! held comes back: places in line, slots, reservations of quotas, tickets of circuits, connections to providers. Counted, on a gateway with
//! scripted providers inside the process and a clock that is paused.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's panic is its report")]

use futures::StreamExt;
use http::HeaderMap;
use segue::chat::DialectId;
use segue::config;
use segue::dialect;
use segue::fleet::Held;
use segue::gateway::Gateway;
use segue::gateway::caller::Caller;
use segue::gateway::drive::Start;
use segue::rig::inside::Inside;
use segue::rig::origin::Scripts;
use segue::rig::random;
use segue::rig::script::Script;
use segue::rig::seed::Dice;
use segue::upstream::Upstream;
use serde_json::json;
use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

const CONFIG: &str = r#"
[server]
max_turns = 400
[connections.a]
dialect = "chat"
base_url = "http://127.0.0.1:1/v1"
limits = { in_flight = 12 }
breaker = { consecutive = 4, cooldown = "500ms", max_cooldown = "2s" }
[connections.b]
dialect = "anthropic"
base_url = "http://127.0.0.1:1"
limits = { in_flight = 20, rpm = 6000, tpm = 6000000 }
[connections.c]
dialect = "chat"
base_url = "http://127.0.0.1:1/v1"
[levels.main]
chain = [
  { connection = "a", model = "m" },
  { connection = "b", model = "m" },
  { connection = "c", model = "m" },
]
retries = 1
budget = 1.0
hedge = { after = "150ms", budget = 1.0 }
timeouts = { first_token = "2s", stall = "2s", suspect = "200ms", pace = "15 chars/s over 2s", turn = "20s" }
"#;

/// The three providers, all playing what `scripts` gives for the number of a request.
fn gateway(scripts: impl Fn(u64) -> Script + Clone + Send + Sync + 'static) -> (Gateway, Vec<Inside>) {
    let config = config::load(CONFIG, "leaks.toml", &config::Nothing).unwrap().config;
    let providers: Vec<Inside> = (0..3_u64)
        .map(|seat| {
            let scripts = scripts.clone();
            Inside::new(Scripts::with(move |inquiry| Ok(Arc::new(scripts(inquiry.number * 3 + seat)))), seat)
        })
        .collect();
    let upstreams: HashMap<Arc<str>, Arc<dyn Upstream>> = ["a", "b", "c"]
        .iter()
        .zip(&providers)
        .map(|(name, provider)| ((*name).into(), Arc::new(provider.clone()) as Arc<dyn Upstream>))
        .collect();
    (Gateway::with_upstreams(config, upstreams), providers)
}

/// One turn to its end; what it came to.
async fn turn(gateway: Gateway, stream: bool) -> &'static str {
    let body = json!({"model": "main", "stream": stream, "messages": [{"role": "user", "content": "go"}]});
    let client = dialect::client(DialectId::Chat).unwrap();
    let request = client.parse(&HeaderMap::new(), &bytes::Bytes::from(body.to_string())).unwrap();
    let Ok(mut drive) = gateway.begin(&Caller::default(), request).await else { return "refused" };
    if let Start::Refused(_) = drive.start(None).await {
        return "failed";
    }
    while poll_fn(|cx| drive.poll_frame(cx)).await.is_some() {}
    "told"
}

fn assert_nothing_is_held(gateway: &Gateway, providers: &[Inside], when: &str) {
    assert_eq!(gateway.fleet().held(), Held::default(), "{when}");
    assert_eq!(gateway.open_turns(), 0, "{when}");
    let open: Vec<u64> = providers.iter().map(Inside::open_now).collect();
    assert_eq!(open, [0, 0, 0], "{when}: connections to providers");
}

#[tokio::test(start_paused = true)]
async fn everything_comes_back_however_turns_end() {
    let mut ends: HashMap<&str, usize> = HashMap::new();
    for round in 0..20_u64 {
        let (gateway, providers) = gateway(move |number| random::script(number + (round << 32)));
        let mut dice = Dice::labelled(round, 7);
        let mut turns = JoinSet::new();
        for _ in 0..60 {
            let (gateway, stream) = (gateway.clone(), !dice.once_in(4));
            let begins = Duration::from_millis(dice.between(0, 3000) as u64);
            let patience = dice.once_in(2).then(|| Duration::from_millis(dice.between(0, 4000) as u64));
            turns.spawn(async move {
                sleep(begins).await;
                match patience {
                    // The future is dropped wherever it is: that is how a client hangs up.
                    Some(patience) => timeout(patience, turn(gateway, stream)).await.unwrap_or("hung up"),
                    None => turn(gateway, stream).await,
                }
            });
        }
        while let Some(end) = turns.join_next().await {
            *ends.entry(end.unwrap()).or_default() += 1;
        }
        assert_nothing_is_held(&gateway, &providers, &format!("round {round}"));
        assert!(providers[0].peak() <= 12, "round {round}: {} at once", providers[0].peak());
        assert!(providers[1].peak() <= 20, "round {round}");
    }
    for end in ["told", "failed", "hung up"] {
        assert!(ends.get(end).is_some_and(|count| *count > 20), "too few turns were {end}: {ends:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_was_hung_up_in_line_or_in_a_race_left_room_for_others() {
    // Nobody ever answers: every turn holds what it has until it is hung up.
    let silent = Script { reject: Some(segue::rig::script::Reject::NeverAnswers), ..Script::default() };
    let (gateway, providers) = gateway(move |_| silent.clone());
    for round in 0..5 {
        let mut turns: Vec<_> = (0..30).map(|_| Box::pin(turn(gateway.clone(), true))).collect();
        let mut all = futures::future::select_all(turns.iter_mut());
        assert!(timeout(Duration::from_millis(400), &mut all).await.is_err(), "nobody answers");
        let held = gateway.fleet().held();
        assert_eq!(providers[0].open_now(), 12, "round {round}: every slot is taken, and no more");
        assert!(held.places >= 18 && held.tickets >= 12 && held.flights >= 12, "round {round}: {held:?}");
        assert!(held.reservations >= held.tickets, "round {round}: {held:?}");
        drop(all);
        drop(turns);
        assert_nothing_is_held(&gateway, &providers, &format!("round {round}"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_finished_turn_holds_nothing_while_its_client_still_reads() {
    let (gateway, providers) = gateway(|_| Script::telling("One two three"));
    let body = json!({"model": "main", "stream": true, "messages": [{"role": "user", "content": "go"}]});
    let client = dialect::client(DialectId::Chat).unwrap();
    let request = client.parse(&HeaderMap::new(), &bytes::Bytes::from(body.to_string())).unwrap();
    let mut drive = gateway.begin(&Caller::default(), request).await.unwrap_or_else(|_| panic!("it begins"));
    assert!(matches!(drive.start(None).await, Start::Going));
    let frames = futures::stream::poll_fn(|cx| drive.poll_frame(cx)).count().await;
    assert!(frames > 0);
    assert_eq!(gateway.fleet().held(), Held::default());
    assert_eq!(providers[0].open_now(), 0);
}
