//! What providers saw of one answer.

use crate::rig::mark::Mark;
use std::collections::BTreeSet;
use std::time::Instant;

/// Whoever stands where the providers are, and knows what reached them.
pub trait Witness: Send + Sync {
    /// What was seen of the answer, which is over; it is forgotten then.
    fn account(&self, mark: &Mark) -> Account;
}

/// What was seen.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Account {
    /// Requests that reached a provider.
    pub requests: u32,
    /// When they were at work, in any order.
    pub spans: Vec<Span>,
    /// Tokens that they were sent, and that they generated.
    pub tokens: [u64; 2],
    /// The providers that failed as planned.
    pub struck: BTreeSet<String>,
    /// Whether the fact was among what the one that answered was given; `None`: nobody answered.
    pub history_arrived: Option<bool>,
    /// The provider that was asked last.
    pub last: Option<String>,
}

/// A time at work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// When the request was there.
    pub from: Instant,
    /// When it was over.
    pub to: Instant,
}

/// Where nobody stands: nothing is known.
#[derive(Clone, Copy, Debug)]
pub struct Nobody;

// === impl Account ===

impl Account {
    /// One more request.
    pub fn add(&mut self, provider: &str, struck: bool, span: Option<Span>, tokens: [u64; 2]) {
        self.requests += 1;
        self.spans.extend(span);
        self.tokens = [self.tokens[0] + tokens[0], self.tokens[1] + tokens[1]];
        if struck {
            self.struck.insert(provider.to_owned());
        }
        self.last = Some(provider.to_owned());
    }

    /// Milliseconds in which a provider was at work; those in which several were count once.
    pub fn busy_ms(&self) -> f64 {
        let mut spans = self.spans.clone();
        spans.sort_by_key(|span| span.from);
        let mut busy = 0.0;
        let mut until: Option<Instant> = None;
        for span in spans {
            let from = until.map_or(span.from, |until| until.max(span.from));
            busy += span.to.saturating_duration_since(from).as_secs_f64() * 1e3;
            until = Some(until.map_or(span.to, |until| until.max(span.to)));
        }
        busy
    }
}

impl Witness for Nobody {
    fn account(&self, _: &Mark) -> Account {
        Account::default()
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "a start for spans that are moved by hand")]
    use super::*;
    use std::time::Duration;

    #[test]
    fn time_in_which_several_are_at_work_counts_once() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut account = Account::default();
        for (from, to) in [(50, 60), (0, 20), (10, 30), (12, 15)] {
            account.add("amber", true, Some(Span { from: at(from), to: at(to) }), [1, 2]);
        }
        assert!((account.busy_ms() - 40.0).abs() < 1e-6, "{}", account.busy_ms());
        assert_eq!((account.requests, account.tokens, account.struck.len()), (4, [4, 8], 1));
    }
}
