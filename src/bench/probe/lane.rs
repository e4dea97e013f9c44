//! What a connection allows: so many requests at once, and so far apart.

use crate::config::Quota;
use std::time::Duration;
use tokio::sync::{Mutex, Semaphore};
use tokio::time::Instant;

/// A connection's limits, shared by its targets.
#[derive(Debug)]
pub(super) struct Lane {
    places: Semaphore,
    apart: Duration,
    /// When the next request may go.
    next: Mutex<Instant>,
}

// === impl Lane ===

impl Lane {
    /// `tokens`: the most that one request may cost.
    pub(super) fn new(limits: &Quota, tokens: u64) -> Self {
        let at_once = limits.in_flight.map_or(Semaphore::MAX_PERMITS, |n| usize::try_from(n).unwrap_or(usize::MAX));
        let minute = |count: f64| Duration::try_from_secs_f64(60.0 * count).unwrap_or(LONGEST).min(LONGEST);
        let by_requests = limits.rpm.map(|rpm| minute(1.0 / rpm as f64)).unwrap_or_default();
        let by_tokens = limits.tpm.map(|tpm| minute(tokens as f64 / tpm as f64)).unwrap_or_default();
        Self {
            places: Semaphore::new(at_once.clamp(1, Semaphore::MAX_PERMITS)),
            apart: by_requests.max(by_tokens),
            next: Mutex::new(Instant::now()),
        }
    }

    /// Does `request` when the limits allow it.
    pub(super) async fn pass<T>(&self, request: impl Future<Output = T>) -> T {
        // It is never closed.
        let _place = self.places.acquire().await;
        let at = {
            let mut next = self.next.lock().await;
            let at = Instant::now().max(*next);
            *next = at + self.apart;
            at
        };
        tokio::time::sleep_until(at).await;
        request.await
    }
}

/// A limit that allows less is a slip.
const LONGEST: Duration = Duration::from_secs(600);

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn requests_keep_the_distance_that_the_narrowest_limit_asks_for() {
        let limits = |rpm, tpm| Quota { in_flight: Some(1), rpm, tpm };
        for (limits, apart) in [(limits(Some(120), None), 500), (limits(Some(600), Some(6000)), 1000)] {
            let lane = Lane::new(&limits, 100);
            let start = Instant::now();
            for _ in 0..5 {
                lane.pass(async {}).await;
            }
            let waited = start.elapsed().as_millis();
            assert!((4 * apart..4 * apart + 50).contains(&waited), "{waited} ms, {limits:?}");
        }
    }
}
