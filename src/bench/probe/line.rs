//! What the requests of a target have in common: how its connection is reached, and when it is asked again.

use super::attempt::{Asker, Ended};
use super::way::Way;
use crate::chat::Request;
use crate::failure::{Disposition, Failure, Kind, RetryAt, Said};
use crate::words::escape::plain;
use std::time::{Duration, SystemTime};
use tokio_util::sync::CancellationToken;

/// What a target's requests have in common besides the request.
pub(in crate::bench) struct Line<'a> {
    pub(in crate::bench) way: &'a Way,
    /// The longest pause that is waited for.
    pub(in crate::bench) cap: Duration,
    pub(in crate::bench) stop: &'a CancellationToken,
    pub(in crate::bench) tick: &'a (dyn Fn(usize) + Sync),
}

// === impl Line ===

impl Line<'_> {
    /// Asks when the connection's limits allow it; `None`: it was stopped.
    pub(in crate::bench) async fn ask(&self, asker: &mut Asker, request: &Request) -> Option<Ended> {
        tokio::select! {
            biased;
            () = self.stop.cancelled() => None,
            ended = self.way.lane.pass(asker.ask(request)) => Some(ended),
        }
    }

    /// Waits as a provider asks, or by itself; `Some`: why it is not asked again.
    pub(in crate::bench) async fn rest(&self, asked: Option<RetryAt>, tries: u32) -> Option<String> {
        if tries > WAITS {
            return Some(format!("{WAITS} rate limits in a row"));
        }
        let wait = asked.map_or_else(|| PAUSE * 2_u32.pow(tries - 1), |at| at.after(SystemTime::now()));
        if wait > self.cap {
            return Some(format!(
                "it asks for a pause of {} s, longer than `limits.retry_after_cap`",
                wait.as_secs_f64().ceil()
            ));
        }
        tokio::select! {
            () = self.stop.cancelled() => {}
            () = tokio::time::sleep(wait.max(LEAST_WAIT)) => {}
        }
        None
    }

    /// What a provider said, fit to be shown: on one line, short, without what must not be seen.
    pub(in crate::bench) fn words(&self, failure: &Failure) -> String {
        words(&failure.said, failure.kind)
    }
}

// === helpers ===

/// Why a target that failed `in_a_row` times, lastly in this way, is not asked any more; `None`: it is.
pub(in crate::bench) fn given_up(in_a_row: usize, kind: Kind) -> Option<String> {
    let most = if is_hopeless(kind) { HOPELESS } else { IN_A_ROW };
    (in_a_row >= most).then(|| format!("{in_a_row} failures in a row"))
}

/// Whether another try will hardly do better.
fn is_hopeless(kind: Kind) -> bool {
    matches!(kind, Kind::Connect | Kind::Dns | Kind::Tls | Kind::FirstTokenTimeout | Kind::Stalled)
        || matches!(kind, Kind::Auth | Kind::QuotaExhausted)
        || matches!(kind.disposition(), Disposition::Tell | Disposition::Opinion | Disposition::Larger)
}

/// What a provider said, fit to be shown: on one line, short, without what rules a terminal.
fn words(said: &Said, kind: Kind) -> String {
    let first = [&said.message, &said.code, &said.r#type].into_iter().find(|text| !text.trim().is_empty());
    let Some(text) = first else { return kind.name().to_owned() };
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    plain(&line, MOST_WORDS).to_string()
}

// === consts ===

/// After so many failures in a row a target is not asked any more: what it does is known, and costs time.
const IN_A_ROW: usize = 10;

/// The same for failures that another try does not heal.
const HOPELESS: usize = 3;

/// The most rate limits in a row that are waited for.
const WAITS: u32 = 6;

/// The first wait where a provider names none; each further one is twice as long.
const PAUSE: Duration = Duration::from_secs(1);

/// Nobody is asked again sooner.
pub(in crate::bench) const LEAST_WAIT: Duration = Duration::from_millis(20);

/// The most characters of a provider's words.
const MOST_WORDS: usize = 160;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_providers_words_are_one_line_that_rules_no_terminal() {
        let said = Said { message: "Incorrect key\u{1b}[2J\n provided".to_owned(), ..Said::default() };
        assert_eq!(words(&said, Kind::Auth), "Incorrect key\\u{1b}[2J provided");
        assert_eq!(words(&Said::default(), Kind::Reset), "Reset");
        let long = Said { message: "x".repeat(1000), ..Said::default() };
        assert_eq!(words(&long, Kind::Auth).chars().count(), MOST_WORDS + 1);
    }
}
