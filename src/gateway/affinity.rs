//! Which conversations stay with a fallback: so that a voice does not change with every turn of a shaky primary.
//!
//! A conversation that a fallback served stays with it until the primary has been without trouble for the level's
//! `affinity`. Trouble is an attempt that failed, whatever conversation it belonged to, and a primary that cannot be asked
//! now. It is kept by this replica alone, as circuits are.

use super::caller::Caller;
use super::lock;
use super::setup::Setup;
use crate::chat::Extensions;
use crate::failure::{Disposition, Kind};
use crate::fleet::Availability;
use crate::relay::journal::{End, Journal};
use crate::routing::{Entry, Level, Target};
use crate::store::ServedBy;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// When targets last had trouble.
#[derive(Default)]
pub(super) struct Troubles(Mutex<HashMap<ServedBy, Instant>>);

// === impl Troubles ===

impl Troubles {
    /// Learns from a turn that ended. `own`: whether its tenant brings its own key for a connection; what is wrong with that
    /// key is no trouble of the target, and neither is what is known by words alone.
    pub(super) fn learn(&self, journal: &Journal, own: impl Fn(&str) -> bool, now: Instant) {
        for attempt in &journal.attempts {
            let Some(End::Failed(kind)) = attempt.end else { continue };
            let keys = matches!(kind, Kind::Auth | Kind::QuotaExhausted | Kind::RateLimited);
            let by_words = attempt.failure.as_ref().is_some_and(|failure| failure.by_words);
            let excused = attempt.forgiven || by_words || (keys && own(&attempt.target.connection));
            if is_trouble(kind) && !excused {
                self.note(&attempt.target, now);
            }
        }
    }

    fn note(&self, target: &Target, now: Instant) {
        let mut last = lock(&self.0);
        if last.len() >= TARGETS {
            last.retain(|_, at| now.saturating_duration_since(*at) < FORGOTTEN);
        }
        if last.len() < TARGETS {
            last.insert(name(target), now);
        }
    }

    /// For how long `target` has been without trouble; `None`: as long as anybody remembers.
    fn quiet(&self, target: &Target, now: Instant) -> Option<Duration> {
        lock(&self.0).get(&name(target)).map(|at| now.saturating_duration_since(*at))
    }
}

/// Puts the target that served the conversation before first, as long as the primary is not to be trusted. An order or a
/// single target that the caller asks for stays.
pub(super) fn stay(
    (setup, troubles): (&Setup, &Troubles),
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
    if setup.fleet.availability(primary, caller.who(credential.as_deref()), now) != Availability::Ready {
        troubles.note(primary, now);
    }
    if troubles.quiet(primary, now).is_some_and(|quiet| quiet < level.affinity) {
        entries[..=at].rotate_right(1);
    }
}

// === helpers ===

/// Whether a failure says that its target is shaky, rather than something about the request.
fn is_trouble(kind: Kind) -> bool {
    let elsewhere = matches!(kind.disposition(), Disposition::Next | Disposition::Again | Disposition::WaitOrSwitch);
    elsewhere && kind != Kind::SeamRejected
}

fn name(target: &Target) -> ServedBy {
    ServedBy { connection: Arc::clone(&target.connection), model: Arc::clone(&target.model) }
}

/// The most targets whose trouble is remembered: `connection/model` lets clients name any model.
const TARGETS: usize = 4096;

/// Trouble this old may be forgotten to make room.
const FORGOTTEN: Duration = Duration::from_secs(3600);
