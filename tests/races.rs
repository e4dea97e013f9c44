//! Prompt cancellation over real sockets. The bounds are generous, for machines that are busy with other tests; what a
//! quiet machine does is measured by `cargo bench --bench races`.

mod support;

use axum::http::Method;
use segue::rig::origin::Scripts;
use segue::rig::script::Script;
use serde_json::json;
use std::time::Duration;
use support::house::House;
use support::races::{Http, hangups, losers, percentile};
use support::talk::admin;

/// A loser that is not closed runs for as long as its provider likes: minutes.
const MEDIAN: Duration = Duration::from_millis(50);
const ALMOST_ALL: Duration = Duration::from_millis(500);

fn assert_prompt(what: &str, mut times: Vec<Duration>) {
    let (half, most) = (percentile(&mut times, 50), percentile(&mut times, 95));
    assert!(half < MEDIAN && most < ALMOST_ALL, "{what}: p50 {half:?}, p95 {most:?}");
}

#[tokio::test]
async fn a_loser_is_closed_when_the_winner_speaks() {
    for http in [Http::One, Http::Two] {
        assert_prompt(&format!("{http:?}"), losers(http, 60).await);
    }
}

#[tokio::test]
async fn a_hang_up_reaches_the_provider() {
    for http in [Http::One, Http::Two] {
        assert_prompt(&format!("{http:?}"), hangups(http, 60).await);
    }
}

#[tokio::test]
async fn operators_see_what_races_bring_and_cost() {
    let tells = |first| Scripts::fixed(Script::telling("One two three.").paced(first, Duration::ZERO));
    let providers = vec![("chat", tells(Duration::from_secs(60))), ("chat", tells(Duration::ZERO))];
    let level = "hedge = { after = \"30ms\", budget = 1.0 }\nbudget = 1.0";
    let house = House::of(providers, "", level).await;
    for _ in 0..4 {
        assert_eq!(house.chat(&json!({})).await.text, "One two three.");
    }
    let (status, races) = admin(&house.gateway, Method::GET, "/api/races?level=main").await;
    assert_eq!((status, &races["turns"]), (200, &json!(4)), "{races}");
    assert_eq!((&races["hedge_rate"], &races["hedge_win_rate"]), (&json!(1.0), &json!(1.0)), "{races}");
    assert_eq!((&races["failover_rate"], &races["steady_state_overhead_ms"]), (&json!(1.0), &json!(null)), "{races}");
    assert!(races["incident_overhead_ms"].as_f64().is_some_and(|ms| ms < 1000.0), "{races}");
    assert_eq!(admin(&house.gateway, Method::GET, "/api/races?level=other").await.1["turns"], 0);
}
