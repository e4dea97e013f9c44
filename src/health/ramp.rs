//! How a target takes its old rate back after a rest: one request first, then twice as many each round trip.
//!
//! When a provider's "not before" is over, nobody has said how many it takes. To send everybody who waited at once is the
//! storm that it asked to be spared. To send them at a fixed pace builds a queue that never drains where the rest was for
//! a trifle, since it fills as fast. So it goes as TCP's slow start does (RFC 5681): a window of requests that nobody has
//! answered yet starts at one and grows by one with each that is taken, so it doubles each round trip, up to the half of
//! what was too much last time and slowly from there. A provider that tells what is left of its quota is taken at its
//! word. One that is slow to answer is not one that refuses: refusals are quick, so who was not refused for a while
//! ([`PRESUMED`]) counts as taken.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The window after one rest.
#[derive(Clone, Debug)]
pub struct Ramp {
    /// So many may be unanswered at once.
    window: u32,
    /// From this window on it grows by one a window instead of one a request.
    threshold: u32,
    /// Taken since it grew last, past the threshold.
    taken: u32,
    /// Somebody was taken since the rest.
    confirmed: bool,
    /// Those that are not answered yet, oldest first, and when they were sent.
    asking: VecDeque<(u64, Instant)>,
    next: u64,
    /// It is over then, if it has begun to grow.
    ends: Instant,
}

/// The right to be one of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pass(u64);

// === impl Ramp ===

impl Ramp {
    /// After a rest that is released at `released`; `next` tells its passes from those of the ramp before.
    pub fn after(released: Instant, before: Option<&Self>) -> Self {
        Self {
            window: 1,
            threshold: before.map_or(u32::MAX, |ramp| ramp.threshold),
            taken: 0,
            confirmed: false,
            asking: VecDeque::new(),
            next: before.map_or(0, |ramp| ramp.next),
            ends: released + LASTS,
        }
    }

    /// After the refusal of somebody it had let through: what was too much is remembered.
    pub fn refused(released: Instant, before: &Self) -> Self {
        Self { threshold: (before.window / 2).max(1), ..Self::after(released, Some(before)) }
    }

    /// Lets a request through.
    ///
    /// # Errors
    /// When the window opens at the latest, if it is full; it may be sooner, when one is answered.
    pub fn ask(&mut self, now: Instant) -> Result<Pass, Instant> {
        if let Some(at) = self.full_until(now) {
            return Err(at);
        }
        let id = self.next;
        self.next += 1;
        self.asking.push_back((id, now));
        Ok(Pass(id))
    }

    /// Until when at the latest nobody is let through; `None`: somebody is.
    pub fn full_until(&mut self, now: Instant) -> Option<Instant> {
        while let Some((_, sent)) = self.asking.front().copied()
            && sent + self.patience() <= now
        {
            self.asking.pop_front();
            self.grow();
        }
        let (_, oldest) = self.asking.front()?;
        (self.window as usize <= self.asking.len()).then(|| *oldest + self.patience())
    }

    /// A request was taken. `left`: so many more the provider takes, by its own word.
    pub fn taken(&mut self, pass: Pass, left: Option<u64>) {
        let known = self.leave(pass);
        match left {
            Some(0) => self.confirmed = true,
            _ if known => self.grow(),
            _ => {}
        }
        if let Some(left) = left {
            self.window = self.window.max(u32::try_from(left).unwrap_or(FULL).min(FULL));
        }
    }

    /// A request ended and said nothing on whether more would be taken. Whether it was still waited for.
    pub fn leave(&mut self, pass: Pass) -> bool {
        let at = self.asking.iter().position(|(id, _)| Pass(*id) == pass);
        at.and_then(|at| self.asking.remove(at)).is_some()
    }

    /// Whether everybody may come again.
    pub fn is_over(&self, now: Instant) -> bool {
        self.confirmed && (FULL <= self.window || self.ends <= now)
    }

    /// Whether it is so long ago that nobody came that it says nothing any more.
    pub fn is_stale(&self, now: Instant) -> bool {
        self.ends + STALE <= now
    }

    /// How many may be unanswered at once.
    pub fn window(&self) -> u32 {
        self.window
    }

    fn grow(&mut self) {
        self.confirmed = true;
        self.taken += 1;
        if self.window < self.threshold || self.window <= self.taken {
            self.window = self.window.saturating_add(1).min(FULL);
            self.taken = 0;
        }
    }

    /// How long one is waited for before it counts as taken: for the very first longer.
    fn patience(&self) -> Duration {
        if self.confirmed { PRESUMED } else { PRESUMED_FIRST }
    }
}

/// Who was not refused for so long counts as taken …
pub const PRESUMED: Duration = Duration::from_millis(250);
/// … the one that tries after the rest only after so long.
pub const PRESUMED_FIRST: Duration = Duration::from_secs(1);
/// A window of so many holds up nobody any more.
const FULL: u32 = 256;
/// It is over so long after the rest.
const LASTS: Duration = Duration::from_secs(10);
/// Nobody has come for so long after that: whatever limit there was is forgotten.
const STALE: Duration = Duration::from_secs(600);

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test's panic is its report")]
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn start() -> Instant {
        tokio::time::Instant::now().into_std()
    }

    /// How many are let through in each of some round trips of `trip`.
    fn rounds(ramp: &mut Ramp, trip: Duration, count: usize, mut now: Instant) -> Vec<usize> {
        let mut let_through = Vec::new();
        for _ in 0..count {
            let passes: Vec<Pass> = std::iter::from_fn(|| ramp.ask(now).ok()).take(1000).collect();
            let_through.push(passes.len());
            now += trip;
            passes.into_iter().for_each(|pass| ramp.taken(pass, None));
        }
        let_through
    }

    #[test]
    fn one_first_and_twice_as_many_each_round_trip() {
        let now = start();
        assert_eq!(rounds(&mut Ramp::after(now, None), 50 * MS, 6, now), [1, 2, 4, 8, 16, 32]);
    }

    #[test]
    fn past_the_half_of_what_was_too_much_it_grows_slowly() {
        let now = start();
        let mut before = Ramp::after(now, None);
        assert_eq!(rounds(&mut before, 50 * MS, 3, now).last(), Some(&4));
        assert_eq!(rounds(&mut Ramp::refused(now, &before), 50 * MS, 6, now), [1, 2, 4, 5, 6, 7]);
    }

    #[test]
    fn a_provider_that_tells_what_is_left_is_taken_at_its_word() {
        let now = start();
        let mut ramp = Ramp::after(now, None);
        let trial = ramp.ask(now).unwrap();
        assert_eq!(ramp.ask(now), Err(now + PRESUMED_FIRST));
        ramp.taken(trial, Some(40));
        assert_eq!(std::iter::from_fn(|| ramp.ask(now).ok()).count(), 40);
        let mut ramp = Ramp::after(now, None);
        let trial = ramp.ask(now).unwrap();
        ramp.taken(trial, Some(0));
        assert_eq!(std::iter::from_fn(|| ramp.ask(now).ok()).count(), 1, "no more than one at a time");
    }

    #[test]
    fn a_slow_answer_is_no_refusal() {
        let now = start();
        let mut ramp = Ramp::after(now, None);
        let mut sent = 0;
        for ms in 0..3000 {
            while ramp.ask(now + ms * MS).is_ok() {
                sent += 1;
            }
        }
        assert!((200..2000).contains(&sent), "{sent} in three seconds though nobody has answered");
    }

    #[test]
    fn it_ends_once_somebody_was_taken_and_not_before() {
        let now = start();
        let mut ramp = Ramp::after(now, None);
        assert!(!ramp.is_over(now + 2 * LASTS));
        let pass = ramp.ask(now + 2 * LASTS).unwrap();
        assert!(ramp.leave(pass) && !ramp.leave(pass));
        assert!(!ramp.is_over(now + 2 * LASTS), "nobody was taken");
        let pass = ramp.ask(now + 2 * LASTS).unwrap();
        ramp.taken(pass, None);
        assert!(ramp.is_over(now + 2 * LASTS));
    }
}
