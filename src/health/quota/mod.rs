//! How much may be sent: requests and tokens a minute, by the generic cell rate algorithm (ITU-T I.371).
//!
//! It keeps one time, the one at which all that was taken is paid back. Taking puts it off; something is allowed when it
//! lies no further ahead than the burst. There is no timer and no window whose edge lets two bursts through.
//! Tokens are reserved by estimate and settled by usage, since the true number is known only when the turn is over.

use std::time::{Duration, Instant};

/// The limits of one key, tenant, connection or gateway on requests and tokens.
#[derive(Clone, Debug, Default)]
pub struct Quota {
    requests: Option<Rate>,
    tokens: Option<Rate>,
    /// Reservations that were neither settled nor released.
    outstanding: usize,
}

/// A rate with a burst.
#[derive(Clone, Debug)]
pub struct Rate {
    /// Units a minute; at least one.
    per_minute: u64,
    /// The most units at once; at least one.
    burst: u64,
    /// How long a minute is taken to be.
    minute: Duration,
    /// When all that was taken is paid back; `None` before anything was.
    paid_at: Option<Instant>,
}

/// What was taken and is not settled yet.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a reservation is settled by usage, or released when nothing was sent"]
pub struct Reservation {
    tokens: u64,
}

// === impl Quota ===

impl Quota {
    /// A quota of `rpm` requests and `tpm` tokens a minute; `None`: unlimited. The burst is what the rate gives in
    /// [`BURST`].
    pub fn per_minute(rpm: Option<u64>, tpm: Option<u64>) -> Self {
        let rate = |per_minute: u64| Rate::new(per_minute, per_minute * BURST.as_secs() / 60);
        Self { requests: rpm.map(rate), tokens: tpm.map(rate), outstanding: 0 }
    }

    /// The same for a provider that counts what arrives, when requests arrive up to `late` later than they were taken. Below
    /// ten a minute there is no tenth to spare, and two that come closer together than they were taken are one too many:
    /// so the minute is taken to be longer by that.
    pub fn counted_elsewhere(rpm: Option<u64>, tpm: Option<u64>, late: Duration) -> Self {
        let mut quota = Self::per_minute(rpm, tpm);
        if let Some(rate) = quota.requests.as_mut().filter(|rate| rate.per_minute * BURST.as_secs() < 60) {
            rate.minute += late;
        }
        quota
    }

    /// A quota of these rates.
    pub fn new(requests: Option<Rate>, tokens: Option<Rate>) -> Self {
        Self { requests, tokens, outstanding: 0 }
    }

    /// When a request of about `estimate` tokens is allowed: `now` or later. Others may be faster.
    pub fn ready_at(&self, estimate: u64, now: Instant) -> Instant {
        let requests = self.requests.as_ref().map_or(now, |rate| rate.ready_at(1, now));
        let tokens = self.tokens.as_ref().map_or(now, |rate| rate.ready_at(estimate, now));
        requests.max(tokens)
    }

    /// Takes a request and `estimate` tokens.
    ///
    /// # Errors
    /// When it is allowed, if it is not now; then nothing was taken.
    pub fn reserve(&mut self, estimate: u64, now: Instant) -> Result<Reservation, Instant> {
        let ready = self.ready_at(estimate, now);
        if now < ready {
            return Err(ready);
        }
        let tokens = self.tokens.as_ref().map_or(estimate, |rate| estimate.min(rate.burst));
        if let Some(rate) = &mut self.requests {
            rate.take(1, now);
        }
        if let Some(rate) = &mut self.tokens {
            rate.take(tokens, now);
        }
        self.outstanding += 1;
        Ok(Reservation { tokens })
    }

    /// The request is over and used `used` tokens: the difference to what was reserved is given back or taken, even
    /// past the burst, so that who underestimates pays later.
    #[expect(clippy::needless_pass_by_value, reason = "a reservation is used up")]
    pub fn settle(&mut self, reservation: Reservation, used: u64, now: Instant) {
        let Reservation { tokens } = reservation;
        self.outstanding = self.outstanding.saturating_sub(1);
        if let Some(rate) = &mut self.tokens {
            if used < tokens {
                rate.give(tokens - used);
            } else {
                rate.take(used - tokens, now);
            }
        }
    }

    /// Nothing was sent: everything is given back.
    #[expect(clippy::needless_pass_by_value, reason = "a reservation is used up")]
    pub fn release(&mut self, reservation: Reservation) {
        let Reservation { tokens } = reservation;
        self.outstanding = self.outstanding.saturating_sub(1);
        if let Some(rate) = &mut self.requests {
            rate.give(1);
        }
        if let Some(rate) = &mut self.tokens {
            rate.give(tokens);
        }
    }

    /// How many reservations were neither settled nor released.
    pub fn outstanding(&self) -> usize {
        self.outstanding
    }

    /// Whether a request of about `estimate` tokens would wait for tokens longer than for its turn.
    pub fn is_short_of_tokens(&self, estimate: u64, now: Instant) -> bool {
        let requests = self.requests.as_ref().map_or(now, |rate| rate.ready_at(1, now));
        self.tokens.as_ref().is_some_and(|rate| requests < rate.ready_at(estimate, now))
    }

    /// The time between two requests at the full rate; zero where requests are not limited.
    pub fn interval(&self) -> Duration {
        self.requests.as_ref().map_or(Duration::ZERO, |rate| rate.cost(1))
    }
}

// === impl Reservation ===

impl Reservation {
    /// How many tokens were taken.
    pub fn tokens(&self) -> u64 {
        self.tokens
    }
}

// === impl Rate ===

impl Rate {
    /// `per_minute` units a minute, `burst` at once; both at least one.
    pub fn new(per_minute: u64, burst: u64) -> Self {
        Self { per_minute: per_minute.max(1), burst: burst.max(1), minute: Duration::from_secs(60), paid_at: None }
    }

    /// When `units` are allowed. More than the burst are allowed when the whole burst is.
    fn ready_at(&self, units: u64, now: Instant) -> Instant {
        let Some(paid_at) = self.paid_at else { return now };
        let slack = self.cost(self.burst) - self.cost(units.min(self.burst));
        paid_at.checked_sub(slack).map_or(now, |at| at.max(now))
    }

    fn take(&mut self, units: u64, now: Instant) {
        let from = self.paid_at.map_or(now, |paid_at| paid_at.max(now));
        self.paid_at = from.checked_add(self.cost(units)).or(self.paid_at);
    }

    /// A time in the past is as good as none: giving back never makes more than a burst.
    fn give(&mut self, units: u64) {
        self.paid_at = self.paid_at.and_then(|paid_at| paid_at.checked_sub(self.cost(units)));
    }

    /// How long the rate takes to give `units`, rounded up.
    fn cost(&self, units: u64) -> Duration {
        let nanos = (u128::from(units) * self.minute.as_nanos()).div_ceil(u128::from(self.per_minute));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

/// What is taken of a provider's count of tokens `said` where our own estimate is `estimate`: at most [`FACTOR`] times
/// it, or `slack` over it if that is more. A limit that believed any number could be used up for hours by one report.
pub fn believed(said: u64, estimate: u64, slack: u64) -> u64 {
    said.min(estimate.saturating_mul(FACTOR).max(estimate.saturating_add(slack)))
}

/// A provider's count may be so many times our estimate, which is made for English text.
pub const FACTOR: u64 = 8;

/// How much of a rate may be taken at once: a tenth of a minute's worth. So no minute sees more than the rate and a tenth
/// of it, wherever the provider's own minute begins.
pub const BURST: Duration = Duration::from_secs(6);

#[cfg(test)]
mod tests;
