//! Which conversations stay with a fallback: so that a voice does not change with every turn of a shaky primary.
//!
//! A conversation that a fallback served stays with it until the primary has been without trouble for the level's
//! `affinity`. Trouble is an attempt that failed, whatever conversation it belonged to, and a primary that cannot be asked
//! now. It is kept by this replica alone, as circuits are.
//!
//! To be overtaken in mid-turn, for silence or for a slow pace, is trouble too, though no failure: the conversation stays
//! with who overtook. A target that is overtaken again and again is passed over for its equals by turns that belong to no
//! conversation, until it has led a whole turn in the place of another, or its cooldown has passed.

use super::caller::Caller;
use super::lock;
use crate::chat::Extensions;
use crate::config::Config;
use crate::failure::{Disposition, Kind};
use crate::fleet::{Availability, Fleet};
use crate::relay::journal::{End, Journal};
use crate::routing::{Entry, Level, Target};
use crate::store::ServedBy;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// What trouble targets had of late.
#[derive(Default)]
pub(super) struct Troubles(Mutex<HashMap<ServedBy, Record>>);

/// What is remembered of one target.
#[derive(Clone, Copy, Default)]
struct Record {
    /// When it last had trouble.
    last: Option<Instant>,
    races: Races,
    /// When any of it last changed.
    changed: Option<Instant>,
}

/// In which of the last turns that a target led it was overtaken.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Races {
    /// One bit a turn, the last one lowest.
    overtaken: u16,
    /// Since when it goes behind its equals.
    behind: Option<Instant>,
}

// === impl Troubles ===

impl Troubles {
    /// Learns from a turn that ended. `own`: whether its tenant brings its own key for a connection; what is wrong with that
    /// key is no trouble of the target, and neither is what is known by words alone.
    pub(super) fn learn(&self, journal: &Journal, own: impl Fn(&str) -> bool, now: Instant) {
        for attempt in &journal.attempts {
            let overtaken = attempt.overtaken.is_some() || (attempt.has_told() && attempt.is_of(&[Kind::Stalled]));
            if attempt.end == Some(End::Ok) || overtaken {
                let whole = attempt.end == Some(End::Ok) && journal.splices == 0;
                self.change(&attempt.target, now, |record| record.races.note(overtaken, whole, now));
            }
            let failed = match attempt.end {
                Some(End::Failed(kind)) => {
                    let keys = matches!(kind, Kind::Auth | Kind::QuotaExhausted | Kind::RateLimited);
                    let by_words = attempt.failure.as_ref().is_some_and(|failure| failure.by_words);
                    let excused = attempt.forgiven || by_words || (keys && own(&attempt.target.connection));
                    is_trouble(kind) && !excused
                }
                _ => false,
            };
            if failed || overtaken {
                self.note(&attempt.target, now);
            }
        }
    }

    fn note(&self, target: &Target, now: Instant) {
        self.change(target, now, |record| record.last = Some(now));
    }

    fn change(&self, target: &Target, now: Instant, change: impl FnOnce(&mut Record)) {
        let mut all = lock(&self.0);
        let name = name(target);
        if all.len() >= TARGETS && !all.contains_key(&name) {
            let recent = |at: Instant| now.saturating_duration_since(at) < FORGOTTEN;
            all.retain(|_, record| record.changed.is_some_and(recent));
        }
        if all.len() < TARGETS || all.contains_key(&name) {
            let record = all.entry(name).or_default();
            change(record);
            record.changed = Some(now);
        }
    }

    /// For how long `target` has been without trouble; `None`: as long as anybody remembers.
    fn quiet(&self, target: &Target, now: Instant) -> Option<Duration> {
        let last = lock(&self.0).get(&name(target))?.last?;
        Some(now.saturating_duration_since(last))
    }

    /// Whether `target` goes behind its equals.
    fn is_behind(&self, target: &Target, cooldown: Duration, now: Instant) -> bool {
        lock(&self.0).get_mut(&name(target)).is_some_and(|record| record.races.is_behind(cooldown, now))
    }
}

// === impl Races ===

impl Races {
    /// A turn that the target led has ended. `whole`: it led it from the first word to the last.
    fn note(&mut self, overtaken: bool, whole: bool, now: Instant) {
        if self.behind.is_some() && whole {
            *self = Self::default();
            return;
        }
        self.overtaken = ((self.overtaken << 1) | u16::from(overtaken)) & LAST_TURNS;
        if overtaken && self.behind.is_none() && self.overtaken.count_ones() >= TOO_OFTEN {
            self.behind = Some(now);
        }
    }

    /// Whether it goes behind its equals; once `cooldown` has passed it begins anew.
    fn is_behind(&mut self, cooldown: Duration, now: Instant) -> bool {
        let Some(since) = self.behind else { return false };
        if cooldown <= now.saturating_duration_since(since) {
            *self = Self::default();
        }
        self.behind.is_some()
    }
}

/// Puts the target that served the conversation before first, as long as the primary is not to be trusted. An order or a
/// single target that the caller asks for stays.
pub(super) fn stay(
    (fleet, troubles): (&Fleet, &Troubles),
    level: &Level,
    entries: &mut [&Entry],
    served_by: Option<&ServedBy>,
    extensions: &Extensions,
    caller: &Caller,
) {
    if level.affinity.is_zero() || extensions.failover_off || !extensions.order.is_empty() {
        return;
    }
    let Some(served_by) = served_by else { return };
    let Some(at) = entries.iter().position(|e| name(&e.target) == *served_by).filter(|at| 0 < *at) else { return };
    let now = super::drive::now();
    let primary = &entries[0].target;
    let credential = caller.credential(&primary.connection);
    if fleet.availability(primary, caller.who(credential.as_deref()), now) != Availability::Ready {
        troubles.note(primary, now);
    }
    if troubles.quiet(primary, now).is_some_and(|quiet| quiet < level.affinity) {
        entries[..=at].rotate_right(1);
    }
}

/// Puts targets that were overtaken again and again behind those of the same quality. An order or a single target that
/// the caller asks for stays.
pub(super) fn pass_over((config, troubles): (&Config, &Troubles), entries: &mut [&Entry], extensions: &Extensions) {
    if extensions.failover_off || !extensions.order.is_empty() {
        return;
    }
    let now = super::drive::now();
    let cooldown = |target: &Target| {
        let connection = config.connections.iter().find(|c| c.name == target.connection);
        connection.map_or(Duration::ZERO, |c| c.breaker.cooldown)
    };
    let behind: Vec<bool> = entries.iter().map(|e| troubles.is_behind(&e.target, cooldown(&e.target), now)).collect();
    if behind.contains(&true) {
        let order = behind_equals(&entries.iter().map(|e| e.target.quality).collect::<Vec<_>>(), &behind);
        let before = entries.to_vec();
        for (entry, from) in entries.iter_mut().zip(order) {
            *entry = before[from];
        }
    }
}

// === helpers ===

/// The order in which those that are `behind` follow the others of their quality, in the places that these have.
fn behind_equals(qualities: &[u32], behind: &[bool]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..qualities.len()).collect();
    for quality in qualities {
        let places: Vec<usize> = (0..qualities.len()).filter(|&place| qualities[place] == *quality).collect();
        let (last, first): (Vec<usize>, Vec<usize>) = places.iter().partition(|&&place| behind[place]);
        for (place, from) in places.iter().zip(first.into_iter().chain(last)) {
            order[*place] = from;
        }
    }
    order
}

/// Whether a failure says that its target is shaky, rather than something about the request.
fn is_trouble(kind: Kind) -> bool {
    let elsewhere = matches!(kind.disposition(), Disposition::Next | Disposition::Again | Disposition::WaitOrSwitch);
    elsewhere && !matches!(kind, Kind::SeamRejected | Kind::Repairable)
}

fn name(target: &Target) -> ServedBy {
    ServedBy { connection: Arc::clone(&target.connection), model: Arc::clone(&target.model) }
}

/// The most targets whose trouble is remembered: `connection/model` lets clients name any model.
const TARGETS: usize = 4096;

/// Trouble this old may be forgotten to make room.
const FORGOTTEN: Duration = Duration::from_secs(3600);

/// The last ten turns.
const LAST_TURNS: u16 = (1 << 10) - 1;

/// Who was overtaken in so many of them goes behind its equals.
const TOO_OFTEN: u32 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    const COOLDOWN: Duration = Duration::from_secs(5);

    fn overtaken(races: &mut Races, turns: &str, now: Instant) {
        turns.chars().for_each(|turn| races.note(turn == 'x', false, now));
    }

    #[test]
    fn three_of_ten_turns_are_too_many() {
        let now = super::super::drive::now();
        for (turns, behind) in
            [("x", false), ("x.x", false), ("xxx", true), ("x....x...x", true), ("x....x....x", false)]
        {
            let mut races = Races::default();
            overtaken(&mut races, turns, now);
            assert_eq!(races.is_behind(COOLDOWN, now), behind, "{turns}");
        }
    }

    #[test]
    fn a_whole_turn_or_the_cooldown_makes_good_for_it() {
        let now = super::super::drive::now();
        let mut races = Races::default();
        overtaken(&mut races, "xxx", now);
        races.note(false, false, now);
        assert!(races.is_behind(COOLDOWN, now), "the rest of a turn is not a whole one");
        races.note(false, true, now);
        assert_eq!(races, Races::default());
        overtaken(&mut races, "xxx", now);
        assert!(races.is_behind(COOLDOWN, now + COOLDOWN - Duration::from_millis(1)));
        assert!(!races.is_behind(COOLDOWN, now + COOLDOWN));
        assert_eq!(races, Races::default(), "and it begins anew");
    }

    #[test]
    fn only_equals_pass() {
        assert_eq!(behind_equals(&[1, 1, 2], &[true, false, false]), [1, 0, 2]);
        assert_eq!(behind_equals(&[1, 2], &[true, false]), [0, 1]);
        assert_eq!(behind_equals(&[1, 2, 1], &[true, false, false]), [2, 1, 0]);
        assert_eq!(behind_equals(&[1, 1, 1], &[true, true, false]), [2, 0, 1]);
        assert_eq!(behind_equals(&[1, 1], &[true, true]), [0, 1]);
    }
}
