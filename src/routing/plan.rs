//! Who is asked next: the seats of one turn, and what each has been through.
//!
//! A plan owns the order and the allowances of a turn (retries, the number of attempts). It does not know why an
//! attempt failed beyond what changes the order.

use super::{Target, Timeouts};
use crate::turn::form::Form;
use crate::turn::resume::How;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A target as this turn may use it; the state of its health is already in it.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// Whom.
    pub target: Arc<Target>,
    /// The clocks that hold there.
    pub timeouts: Timeouts,
    /// How it continues a turn.
    pub how: How,
    /// The other way, for once more if what it said so was no continuation and nobody else is left; `None`: there is
    /// none.
    pub other: Option<How>,
    /// It repeats a prefilled text before it goes on.
    pub echoes: bool,
    /// The form in which it takes requests, as far as that is known of earlier ones.
    pub form: Form,
    /// It thinks before it speaks, by itself or because the request asks for it.
    pub reasons: bool,
    /// How long after the send a challenger starts, if it has made no progress; `None`: none does.
    pub hedge_after: Option<Duration>,
    /// Gaps up to this long are normal for it and no ground for suspicion.
    pub normal_gap: Duration,
}

/// The seats of a turn and its allowances.
#[derive(Clone, Debug)]
pub struct Plan {
    seats: Vec<Seat>,
    retries: u32,
    opens: u32,
    /// Waits for what waiting heals which are left.
    waits: u32,
    /// A rest was waited for while somebody else could have served.
    pub rested: bool,
    /// When the turn first sent a request, or first waited.
    first_asked: Option<Instant>,
}

/// A candidate and what it has been through in this turn.
#[derive(Clone, Debug)]
pub struct Seat {
    /// The candidate.
    pub candidate: Candidate,
    /// What it has been through.
    pub state: State,
    /// When it was first sent a request in this turn: `first_token` runs from there, through retries and waits.
    pub first_sent: Option<Instant>,
    /// When what it failed of may have healed; `None`: waiting is of no use.
    pub heals: Option<Heal>,
    /// How often it was opened.
    pub tries: u32,
    /// It was asked once more for the rest after it broke.
    pub rescued: bool,
    /// A retry was taken for the attempt that comes next, or that is open.
    pub paid: bool,
    /// A failure of it was counted against its health; a turn counts once per target.
    pub counted: bool,
    /// The form in which it takes the request, with what it refused in this turn.
    pub form: Form,
    /// How often it was asked again in another form.
    pub repairs: u32,
    /// How it continues, whatever the candidate says.
    pub instead: Option<How>,
    /// It was asked once more in the other way.
    pub turned: bool,
}

/// When a target may be asked again with some hope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heal {
    /// From then on.
    pub at: Instant,
    /// The provider named the time; otherwise it is a guess of ours.
    pub named: bool,
}

/// What a seat has been through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Not asked yet.
    Fresh,
    /// An attempt is open.
    Open,
    /// It failed, or cannot serve this turn.
    Failed,
    /// It lost a race; it may be asked again when nobody else is left.
    Superseded,
}

// === impl Plan ===

impl Plan {
    /// A plan over `candidates`, first choice first, with `retries` further tries at the same target.
    pub fn new(candidates: Vec<Candidate>, retries: u32) -> Self {
        let seats: Vec<Seat> = candidates.into_iter().map(Seat::new).collect();
        let opens = u32::try_from(2 * seats.len()).unwrap_or(u32::MAX).saturating_add(retries);
        Self { seats, retries, opens, waits: WAITS, rested: false, first_asked: None }
    }

    /// The seats, in chain order.
    pub fn seats(&self) -> &[Seat] {
        &self.seats
    }

    /// One seat.
    pub fn seat(&self, index: usize) -> &Seat {
        &self.seats[index]
    }

    /// One seat, to change.
    pub fn seat_mut(&mut self, index: usize) -> &mut Seat {
        &mut self.seats[index]
    }

    /// The seat to ask next: those not asked yet, by (shares a domain with one that failed or is open, quality,
    /// chain); then those that lost a race. `None` if nobody is left or the turn has opened its share of attempts.
    pub fn next(&self) -> Option<usize> {
        self.next_where(|_| true)
    }

    /// [`Self::next`] among the seats that `fits`.
    pub fn next_where(&self, fits: impl Fn(&Target) -> bool) -> Option<usize> {
        if self.opens == 0 {
            return None;
        }
        let troubled = |s: &&Seat| matches!(s.state, State::Failed | State::Open);
        let anyone_troubled = self.seats.iter().any(|s| matches!(s.state, State::Failed | State::Open));
        let rank = |index: &usize| {
            let seat = &self.seats[*index];
            let target = &seat.candidate.target;
            let shares = self.seats.iter().filter(troubled).any(|s| s.candidate.target.shares_domain(target));
            let quality = if anyone_troubled { target.quality } else { 0 };
            (seat.state == State::Superseded, shares, quality, *index)
        };
        (0..self.seats.len())
            .filter(|&i| matches!(self.seats[i].state, State::Fresh | State::Superseded))
            .filter(|&i| fits(&self.seats[i].candidate.target))
            .min_by_key(rank)
    }

    /// Takes one of the turn's retries for `index`; `false` if none is left.
    pub fn take_retry(&mut self, index: usize) -> bool {
        let left = self.has_retry();
        if left {
            self.retries -= 1;
            self.seats[index].paid = true;
        }
        left
    }

    /// Whether a retry is left.
    pub fn has_retry(&self) -> bool {
        self.retries > 0 && self.opens > 0
    }

    /// Takes one of the waits for `index`; `false` if none is left. What comes after it is a retry only if something was
    /// sent to it before, but a turn without retries does not wait.
    pub fn take_wait(&mut self, index: usize, now: Instant) -> bool {
        let left = self.waits > 0 && self.has_retry() && (self.seats[index].tries == 0 || self.take_retry(index));
        if left {
            self.waits -= 1;
            self.rested = true;
            self.first_asked.get_or_insert(now);
        }
        left
    }

    /// A request was sent to `index`; gives when the first one was in this turn, for whose sake `first_token` runs.
    pub fn sent(&mut self, index: usize, now: Instant) -> Instant {
        self.first_asked.get_or_insert(now);
        *self.seats[index].first_sent.get_or_insert(now)
    }

    /// For how long a rest of `index` may be waited for while somebody else could serve: what is left of its `first_token`,
    /// counted from the turn's first request, or first wait, through all that came since.
    pub fn left_for_rests(&self, index: usize, now: Instant) -> Duration {
        let limit = self.seats[index].candidate.timeouts.first_token;
        self.first_asked.map_or(limit, |first| limit.saturating_sub(now.saturating_duration_since(first)))
    }

    /// For how long an attempt at `index` may queue.
    pub fn patience(&self, index: usize, now: Instant) -> Duration {
        let patience = self.seats[index].patience(now);
        // After a rest, the queue behind it is a part of the same wait.
        let rested = self.rested && self.next().is_some();
        if rested { patience.min(self.left_for_rests(index, now)) } else { patience }
    }

    /// The seat among those that `fits` which will have healed first, of those that failed.
    pub fn soonest_healed(&self, fits: impl Fn(&Target) -> bool) -> Option<(usize, Heal)> {
        let heals = |(index, seat): (usize, &Seat)| Some((index, seat.heals?));
        let failed = self.seats.iter().enumerate().filter(|(_, seat)| seat.state == State::Failed);
        failed.filter(|(_, seat)| fits(&seat.candidate.target)).filter_map(heals).min_by_key(|(_, heal)| heal.at)
    }

    /// Notes that an attempt at `index` is opened.
    pub fn open(&mut self, index: usize) {
        self.opens = self.opens.saturating_sub(1);
        let seat = &mut self.seats[index];
        seat.state = State::Open;
        seat.tries += 1;
        seat.heals = None;
    }

    /// Whether an attempt may be opened without taking it from a seat that may be needed later.
    pub fn has_spare(&self) -> bool {
        let needed = self.seats.iter().filter(|s| matches!(s.state, State::Fresh | State::Superseded)).count();
        self.opens as usize > needed
    }

    /// Takes back that an attempt at `index` was opened: it could not be, so it was no try and no retry.
    pub fn give_back(&mut self, index: usize) {
        self.opens += 1;
        self.refund(index);
        let seat = &mut self.seats[index];
        seat.tries = seat.tries.saturating_sub(1);
    }

    /// Takes back a retry that was taken for the next attempt at `index`, which will not be made.
    pub fn refund(&mut self, index: usize) {
        self.retries += u32::from(std::mem::take(&mut self.seats[index].paid));
    }

    /// Takes back that an attempt at `index` was opened: it was refused for its form, and is made again in another. A
    /// seat does so `REPAIRS` times at most. `false`: no more.
    pub fn repair(&mut self, index: usize) -> bool {
        let seat = &mut self.seats[index];
        let may = seat.repairs < REPAIRS;
        if may {
            seat.repairs += 1;
            self.opens += 1;
            seat.tries = seat.tries.saturating_sub(1);
        }
        may
    }

    /// Whether another attempt may be opened at all.
    pub fn may_open(&self) -> bool {
        self.opens > 0
    }
}

// === impl Seat ===

impl Seat {
    fn new(candidate: Candidate) -> Self {
        Self {
            form: candidate.form.clone(),
            candidate,
            state: State::Fresh,
            first_sent: None,
            heals: None,
            tries: 0,
            rescued: false,
            paid: false,
            counted: false,
            repairs: 0,
            instead: None,
            turned: false,
        }
    }

    /// How it continues a turn, after what it refused.
    pub fn how(&self) -> How {
        self.instead.unwrap_or(self.candidate.how)
    }

    /// What is left of its `first_token` at `now`; all of it before the first send.
    pub fn patience(&self, now: Instant) -> Duration {
        let limit = self.candidate.timeouts.first_token;
        self.first_sent.map_or(limit, |sent| limit.saturating_sub(now.saturating_duration_since(sent)))
    }
}

// === impl Candidate ===

impl Candidate {
    /// A candidate about which nothing is known but its target and clocks.
    pub fn new(target: Arc<Target>, timeouts: Timeouts) -> Self {
        Self {
            reasons: target.reasons,
            target,
            timeouts,
            how: How::Instruct,
            other: None,
            echoes: false,
            form: Form::default(),
            hedge_after: None,
            normal_gap: Duration::ZERO,
        }
    }
}

/// So often a target is asked again in another form within a turn: some servers name one unknown field at a time.
const REPAIRS: u32 = 12;
/// So often a turn waits for what waiting heals, if each wait costs no retry because the target rests.
const WAITS: u32 = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::DialectId;

    fn candidate(name: &str, domains: &[&str], quality: u32) -> Candidate {
        let mut target = Target::new(name, "m", DialectId::Chat);
        target.domains = domains.iter().map(|d| (*d).to_owned()).collect();
        target.quality = quality;
        Candidate::new(Arc::new(target), Timeouts::default())
    }

    #[test]
    fn the_first_choice_is_the_head_of_the_chain_whatever_its_quality() {
        let plan = Plan::new(vec![candidate("a", &[], 2), candidate("b", &[], 1)], 0);
        assert_eq!(plan.next(), Some(0));
    }

    #[test]
    fn after_a_failure_one_that_shares_no_domain_comes_first_then_quality() {
        let mut plan = Plan::new(
            vec![
                candidate("a", &["cloud:x"], 1),
                candidate("b", &["cloud:x"], 1),
                candidate("c", &["cloud:y"], 3),
                candidate("d", &["cloud:y"], 2),
            ],
            0,
        );
        plan.open(0);
        plan.seat_mut(0).state = State::Failed;
        assert_eq!(plan.next(), Some(3));
        plan.open(3);
        plan.seat_mut(3).state = State::Failed;
        assert_eq!(plan.next(), Some(1));
    }

    #[test]
    fn a_superseded_target_is_asked_again_only_when_nobody_else_is_left() {
        let mut plan = Plan::new(vec![candidate("a", &[], 1), candidate("b", &[], 1)], 0);
        plan.open(0);
        plan.seat_mut(0).state = State::Superseded;
        assert_eq!(plan.next(), Some(1));
        plan.open(1);
        plan.seat_mut(1).state = State::Failed;
        assert_eq!(plan.next(), Some(0));
    }

    #[test]
    fn a_turn_opens_a_bounded_number_of_attempts() {
        let mut plan = Plan::new(vec![candidate("a", &[], 1)], 1);
        let mut opened = 0;
        while let Some(index) = plan.next() {
            plan.open(index);
            plan.seat_mut(index).state = State::Superseded;
            opened += 1;
        }
        assert_eq!(opened, 3);
    }
}
