//! What may be spent on extra attempts: challengers, or retries, as a share of turns.
//!
//! Every turn deposits its share, every challenger withdraws a whole one. So when a provider slows down for everybody,
//! the extra load on the others stays a fixed share of the traffic instead of doubling it.

/// A token bucket of challengers, filled by turns.
#[derive(Clone, Debug)]
pub struct Budget {
    /// What one turn deposits, in millionths of a challenger.
    share: u64,
    /// What there is, in millionths; at most [`BURST`] challengers.
    balance: u64,
}

// === impl Budget ===

impl Budget {
    /// A budget of `share` challengers a turn (clamped to 0 to 1; a share that is no number is none). It starts full,
    /// unless the share is zero.
    pub fn new(share: f64) -> Self {
        let share = (share.clamp(0.0, 1.0) * WHOLE as f64) as u64;
        Self { share, balance: if share == 0 { 0 } else { BURST * WHOLE } }
    }

    /// A turn began.
    pub fn deposit(&mut self) {
        self.balance = (self.balance + self.share).min(BURST * WHOLE);
    }

    /// Whether there is enough for one challenger.
    pub fn suffices(&self) -> bool {
        WHOLE <= self.balance
    }

    /// Pays for one challenger; `false` if there is too little left, and then nothing is taken.
    #[must_use]
    pub fn withdraw(&mut self) -> bool {
        let Some(rest) = self.balance.checked_sub(WHOLE) else { return false };
        self.balance = rest;
        true
    }
}

/// The most challengers that can be saved up.
pub const BURST: u64 = 10;

/// One challenger, in the unit of the account.
const WHOLE: u64 = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challengers_are_at_most_the_share_and_the_burst() {
        let mut budget = Budget::new(0.1);
        let mut spent = 0;
        for turn in 1..=10_000_u64 {
            budget.deposit();
            while budget.withdraw() {
                spent += 1;
            }
            assert!(spent <= BURST + turn / 10, "{spent} after {turn}");
        }
        assert!((1000..=1010).contains(&spent), "{spent}");
    }

    #[test]
    fn quiet_hours_save_up_a_burst_and_no_more() {
        let mut budget = Budget::new(0.5);
        for _ in 0..100_000 {
            budget.deposit();
        }
        let burst = std::iter::from_fn(|| budget.withdraw().then_some(())).count();
        assert_eq!(burst as u64, BURST);
    }

    #[test]
    fn no_share_is_no_challenger() {
        for share in [0.0, -1.0, f64::NAN] {
            let mut budget = Budget::new(share);
            budget.deposit();
            assert!(!budget.withdraw(), "{share}");
        }
    }

    #[test]
    fn a_whole_share_pays_for_every_turn() {
        let mut budget = Budget::new(1.0);
        for _ in 0..1000 {
            budget.deposit();
            assert!(budget.withdraw());
        }
    }
}
