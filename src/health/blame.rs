//! Whether what a provider said in words alone may count against a target.
//!
//! Providers repeat in their refusals what they were asked. So words may be the request's own, and whoever writes requests
//! could have a target found out of credit, overloaded, or unable to do something, for everybody. Where no status, type
//! or code bears a failure out, it is a *charge*, and charges count only together: against everybody once two tenants
//! bring the same one, against a tenant once several of its own requests do. Where there are no tenants, several
//! different requests must agree. Any success of the target clears it.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The charges that stand against one target.
#[derive(Clone, Debug, Default)]
pub struct Blame(VecDeque<Heard>);

/// What is said of the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Charge {
    /// It failed.
    Failed,
    /// It cannot be used until someone acts.
    Out,
    /// It wants to be left alone for a while.
    Limited,
    /// It lacks something that requests may ask for; which, the number tells.
    Lacks(u64),
}

/// Who is told apart from others without being kept: a tenant, a credential or a request, as a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Mark(pub u64);

/// Whose request met the refusal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Plaintiff {
    /// The tenant; `None`: there are none.
    pub tenant: Option<Mark>,
    /// The tenant's own credential, if that was used: it is another account.
    pub credential: Option<Mark>,
    /// The request, told from others by what it says.
    pub request: u64,
}

/// For whom a charge holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// Nobody: it is not borne out.
    Nobody,
    /// The tenant that brings it.
    Tenant,
    /// Everybody who uses the same credential.
    Everybody,
}

#[derive(Clone, Copy, Debug)]
struct Heard {
    charge: Charge,
    by: Plaintiff,
    at: Instant,
}

// === impl Blame ===

impl Blame {
    /// Hears a charge, and tells for whom it holds from now on.
    pub fn hear(&mut self, charge: Charge, by: Plaintiff, now: Instant) -> Scope {
        self.0.retain(|heard| now.saturating_duration_since(heard.at) < MEMORY);
        let alike = |heard: &&Heard| heard.charge == charge && heard.by.credential == by.credential;
        let own = |heard: &&Heard| alike(heard) && heard.by.tenant == by.tenant;
        let known = self.0.iter().filter(own).any(|heard| heard.by.request == by.request);
        if !known && self.0.iter().filter(own).count() < REQUESTS {
            // A tenant drives out its own charges, not those of others.
            let same = |heard: &Heard| heard.by.tenant == by.tenant;
            if SHARE <= self.0.iter().filter(|heard| same(heard)).count() {
                let oldest = self.0.iter().position(same);
                oldest.and_then(|oldest| self.0.remove(oldest));
            } else if self.0.len() == CHARGES {
                self.0.pop_front();
            }
            self.0.push_back(Heard { charge, by, at: now });
        }
        let tenants = self.0.iter().filter(alike).any(|heard| heard.by.tenant != by.tenant);
        let requests = REQUESTS <= self.0.iter().filter(own).count();
        match (by.tenant, requests, tenants) {
            (_, _, true) | (None, true, _) => Scope::Everybody,
            (Some(_), true, false) => Scope::Tenant,
            (_, false, false) => Scope::Nobody,
        }
    }

    /// The target served: whatever is said of the account that was used is not so.
    pub fn clear(&mut self, credential: Option<Mark>) {
        self.0.retain(|heard| heard.by.credential != credential || matches!(heard.charge, Charge::Lacks(_)));
    }
}

/// So many different requests of one tenant, or of a gateway without tenants, bear a charge out.
pub const REQUESTS: usize = 3;
/// A charge stands for so long.
const MEMORY: Duration = Duration::from_secs(60);
/// The most charges that stand against one target; past it the oldest is forgotten.
const CHARGES: usize = 64;
/// The most of them that one tenant has brought.
const SHARE: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    fn by(tenant: Option<u64>, request: u64) -> Plaintiff {
        Plaintiff { tenant: tenant.map(Mark), credential: None, request }
    }

    fn start() -> Instant {
        tokio::time::Instant::now().into_std()
    }

    #[test]
    fn one_tenant_is_believed_for_itself_two_for_everybody() {
        let (now, mut blame) = (start(), Blame::default());
        assert_eq!(blame.hear(Charge::Out, by(Some(1), 1), now), Scope::Nobody);
        assert_eq!(blame.hear(Charge::Out, by(Some(1), 1), now), Scope::Nobody, "the same request again");
        assert_eq!(blame.hear(Charge::Out, by(Some(1), 2), now), Scope::Nobody);
        for request in 3..1000 {
            assert_eq!(blame.hear(Charge::Out, by(Some(1), request), now), Scope::Tenant);
        }
        assert_eq!(blame.hear(Charge::Failed, by(Some(2), 1), now), Scope::Nobody, "another charge");
        assert_eq!(blame.hear(Charge::Out, by(Some(2), 1), now), Scope::Everybody);
    }

    #[test]
    fn without_tenants_several_different_requests_are_believed() {
        let (now, mut blame) = (start(), Blame::default());
        for request in [7, 7, 7, 8] {
            assert_eq!(blame.hear(Charge::Failed, by(None, request), now), Scope::Nobody);
        }
        assert_eq!(blame.hear(Charge::Failed, by(None, 9), now), Scope::Everybody);
    }

    #[test]
    fn a_success_and_time_clear_what_was_said() {
        let (now, mut blame) = (start(), Blame::default());
        let two = |blame: &mut Blame, at| [1, 2].map(|request| blame.hear(Charge::Out, by(None, request), at));
        two(&mut blame, now);
        blame.clear(None);
        assert_eq!(blame.hear(Charge::Out, by(None, 3), now), Scope::Nobody);
        two(&mut blame, now);
        assert_eq!(blame.hear(Charge::Out, by(None, 4), now + MEMORY), Scope::Nobody);
    }

    #[test]
    fn what_is_said_of_one_account_says_nothing_of_another() {
        let (now, mut blame) = (start(), Blame::default());
        let own = Plaintiff { tenant: Some(Mark(1)), credential: Some(Mark(5)), request: 1 };
        assert_eq!(blame.hear(Charge::Out, own, now), Scope::Nobody);
        assert_eq!(blame.hear(Charge::Out, by(Some(2), 1), now), Scope::Nobody);
        blame.clear(None);
        for request in [2, 3] {
            blame.hear(Charge::Out, Plaintiff { request, ..own }, now);
        }
        assert_eq!(blame.hear(Charge::Out, own, now), Scope::Tenant, "the shared key's success did not clear it");
    }

    #[test]
    fn a_flood_of_charges_is_bounded() {
        let (now, mut blame) = (start(), Blame::default());
        for n in 0..10_000 {
            blame.hear(Charge::Lacks(n), by(Some(n % 7), n), now);
        }
        assert!(blame.0.len() <= CHARGES);
    }
}
