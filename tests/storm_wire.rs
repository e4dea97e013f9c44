//! A storm over loopback sockets: a hundred turns fail over at once onto a provider whose limit the gateway knows. In any
//! stretch of time it sees no more than its burst and its rate, and no more sockets than were allowed.
//!
//! The limit is 600 a minute, for a test is no place to wait for fifteen; `cargo bench --bench storm` does that.
#![expect(clippy::unwrap_used, reason = "a test's panic is its report")]

mod support;

use futures::future::join_all;
use segue::fleet::Held;
use segue::rig::origin::{Origin, Scripts};
use segue::rig::script::{Reject, Script};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use support::house::House;
use tokio::time::Instant;

const TURNS: usize = 100;
/// A minute; a tenth of them at once.
const LIMIT: usize = 600;
const IN_FLIGHT: usize = 12;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storm_over_sockets_keeps_to_burst_rate_and_sockets() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let script = Script::telling("Here I am.").paced(Duration::from_millis(20), Duration::from_millis(5));
    let notes = Arc::clone(&seen);
    let busy = Origin::local(Scripts::with(move |_| {
        notes.lock().unwrap().push(Instant::now());
        Ok(Arc::new(script.clone()))
    }));
    let dead = Script::default().rejecting(Reject::Error { status: 503, headers: BTreeMap::new(), wrong: None });
    let (dead, busy) = (Origin::local(Scripts::fixed(dead)).await.unwrap(), busy.await.unwrap());
    let text = format!(
        "[connections.a]\ndialect = \"chat\"\nbase_url = \"{}\"\n\
         [connections.b]\ndialect = \"chat\"\nbase_url = \"{}\"\n\
         limits = {{ rpm = {LIMIT}, in_flight = {IN_FLIGHT} }}\n\
         [levels.main]\nchain = [{{ connection = \"a\", model = \"m\" }}, {{ connection = \"b\", model = \"m\" }}]\n\
         timeouts = {{ first_token = \"30s\" }}\n",
        dead.base_url(),
        busy.base_url()
    );
    let house = House::with(&text, vec![dead, busy]).await;
    let nothing = json!({});
    for (number, heard) in join_all((0..TURNS).map(|_| house.chat(&nothing))).await.iter().enumerate() {
        heard.assert_whole(&format!("turn {number}"));
        assert_eq!(heard.text, "Here I am.");
    }
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), TURNS, "no request in vain");
    for (n, from) in seen.iter().enumerate() {
        for (m, to) in seen[n..].iter().enumerate() {
            // What was sent may arrive a little closer together than it was sent: half a second of it.
            let time = (*to - *from).as_secs_f64() + 0.5;
            let most = LIMIT as f64 / 10.0 + LIMIT as f64 / 60.0 * time;
            assert!((m + 1) as f64 <= most, "{} requests in {time:.2} s", m + 1);
        }
    }
    // A slot is free when its connection is closed or idle; the provider may take a moment to notice.
    let sockets = house.origins[1].most_connections();
    assert!(sockets <= 2 * IN_FLIGHT, "{sockets} sockets for {IN_FLIGHT} attempts in flight");
    assert_eq!(house.gateway.fleet().held(), Held::default());
}
