//! Prompt cancellation over real sockets. The bounds are generous, for machines that are busy with other tests; what a
//! quiet machine does is measured by `cargo bench --bench races`.

mod support;

use std::time::Duration;
use support::races::{Http, hangups, losers, percentile};

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
