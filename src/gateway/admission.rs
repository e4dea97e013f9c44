//! Who may begin a turn: the limits of a key, of a tenant and of the gateway itself.
//!
//! Each has turns at once, requests a minute and tokens a minute. A turn takes its part of all three before anything else
//! happens, or of none, and is refused with the name of the one that is used up: these limits are the operator's word, so
//! no other target is tried. Tokens are taken by estimate and settled by what the turn really used, when it ends. What a
//! turn holds is a value; however the turn ends, the value is dropped, and everything goes back.

use super::caller::Caller;
use super::lock;
use crate::config::{Config, Quota};
use crate::dialect::{Reason, Refusal};
use crate::health::quota::{self, Rate, Reservation};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// All limits of a configuration, and what is used of them.
pub(super) struct Admission {
    keys: HashMap<[u8; 32], Arc<Meter>>,
    tenants: HashMap<Arc<str>, Arc<Meter>>,
    global: Arc<Meter>,
}

/// What a turn holds of the limits. Dropped unsettled, it gives back its tokens and its request too: nothing was sent.
#[derive(Default)]
pub(super) struct Permits(SmallVec<[Permit; 3]>);

struct Permit {
    meter: Arc<Meter>,
    reservation: Option<Reservation>,
}

/// One owner's limits.
struct Meter(Mutex<Used>);

struct Used {
    limits: Quota,
    rates: quota::Quota,
    in_flight: u64,
}

/// Whose limit.
#[derive(Clone, Copy)]
enum Scope {
    Key,
    Tenant,
    Global,
}

/// Which limit is used up, and when to ask again.
struct Over {
    what: String,
    wait: Duration,
}

// === impl Admission ===

impl Admission {
    /// The limits of `config`. What is used of those that were there before stays used.
    pub(super) fn new(config: &Config, before: Option<&Self>) -> Self {
        let tenants = || config.tenants.iter().flatten();
        let limited = |quota: &Quota| *quota != Quota::default();
        let keys = tenants()
            .flat_map(|t| &t.keys)
            .filter(|k| limited(&k.limits))
            .map(|key| (key.sha256, Meter::new(key.limits, before.and_then(|b| b.keys.get(&key.sha256)))));
        let by_name = tenants().filter(|t| limited(&t.limits)).map(|tenant| {
            (Arc::clone(&tenant.name), Meter::new(tenant.limits, before.and_then(|b| b.tenants.get(&tenant.name))))
        });
        let limits = &config.limits;
        let global = Quota { in_flight: Some(limits.in_flight), rpm: Some(limits.rpm), tpm: Some(limits.tpm) };
        Self { keys: keys.collect(), tenants: by_name.collect(), global: Meter::new(global, before.map(|b| &b.global)) }
    }

    /// Takes a turn of about `estimate` tokens out of the limits of `caller` and of the gateway.
    ///
    /// # Errors
    /// 429 with the name of the limit that is used up; then nothing was taken.
    pub(super) fn admit(&self, caller: &Caller, estimate: u64, now: Instant) -> Result<Permits, Refusal> {
        let key = caller.key.as_ref().and_then(|key| self.keys.get(key)).map(|meter| (Scope::Key, meter));
        let tenant = caller.tenant.as_ref().and_then(|t| self.tenants.get(&t.name)).map(|meter| (Scope::Tenant, meter));
        let mut permits = Permits::default();
        for (scope, meter) in key.into_iter().chain(tenant).chain([(Scope::Global, &self.global)]) {
            permits.0.push(Meter::take(meter, estimate, now).map_err(|over| scope.refuse(&over))?);
        }
        Ok(permits)
    }
}

// === impl Permits ===

impl Permits {
    /// The turn is over and used `tokens`; everything goes back but these and the request.
    pub(super) fn settle(&mut self, tokens: u64, now: Instant) {
        for permit in &mut self.0 {
            if let Some(reservation) = permit.reservation.take() {
                lock(&permit.meter.0).rates.settle(reservation, tokens, now);
            }
        }
        self.0.clear();
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut used = lock(&self.meter.0);
        used.in_flight = used.in_flight.saturating_sub(1);
        if let Some(reservation) = self.reservation.take() {
            used.rates.release(reservation);
        }
    }
}

// === impl Meter ===

impl Meter {
    /// A meter for `limits`; the one from before goes on, so that turns which are open stay counted.
    fn new(limits: Quota, before: Option<&Arc<Self>>) -> Arc<Self> {
        let Some(before) = before else {
            return Arc::new(Self(Mutex::new(Used { limits, rates: rates(&limits), in_flight: 0 })));
        };
        let mut used = lock(&before.0);
        if used.limits != limits {
            used.limits = limits;
            used.rates = rates(&limits);
        }
        drop(used);
        Arc::clone(before)
    }

    fn take(this: &Arc<Self>, estimate: u64, now: Instant) -> Result<Permit, Over> {
        let mut used = lock(&this.0);
        if let Some(limit) = used.limits.in_flight.filter(|limit| *limit <= used.in_flight) {
            return Err(Over { what: format!("{limit} turns at once (in_flight)"), wait: IN_FLIGHT_RETRY });
        }
        let by_tokens = used.rates.is_short_of_tokens(estimate, now);
        let reservation = match used.rates.reserve(estimate, now) {
            Ok(reservation) => reservation,
            Err(at) => {
                let what = match (used.limits.rpm, used.limits.tpm) {
                    (_, Some(tpm)) if by_tokens => format!("{tpm} tokens a minute (tpm)"),
                    (rpm, _) => format!("{} requests a minute (rpm)", rpm.unwrap_or_default()),
                };
                return Err(Over { what, wait: at.saturating_duration_since(now) });
            }
        };
        used.in_flight += 1;
        drop(used);
        Ok(Permit { meter: Arc::clone(this), reservation: Some(reservation) })
    }
}

// === impl Scope ===

impl Scope {
    fn refuse(self, over: &Over) -> Refusal {
        let (code, whose, remedy) = match self {
            Self::Key => ("rate_limit_key", "this API key", "spread the requests, or raise the limits of the key"),
            Self::Tenant => ("rate_limit_tenant", "this tenant", "spread the requests, or raise the tenant's limits"),
            Self::Global => ("rate_limit_global", "the whole gateway", "ask again later, or raise [limits]"),
        };
        let message = format!("{whose} may use at most {}; {remedy}", over.what);
        let mut refusal = Refusal::new(Reason::Limited, code, message);
        refusal.retry_after = Some(over.wait);
        refusal
    }
}

// === helpers ===

/// The rates of a client's limits. A small one lets a few requests come at once, as those of one page do; the pause
/// after them is longer for it.
fn rates(limits: &Quota) -> quota::Quota {
    let requests = limits.rpm.map(|rpm| Rate::new(rpm, (rpm / 6).max(rpm.min(LEAST_BURST))));
    // A prompt alone may be as large as a small limit.
    let tokens = limits.tpm.map(|tpm| Rate::new(tpm, tpm));
    quota::Quota::new(requests, tokens)
}

/// When to ask again for a place, of which nobody knows when it will be free.
const IN_FLIGHT_RETRY: Duration = Duration::from_secs(1);
/// So many requests may come at once, if the limit allows so many in a minute.
const LEAST_BURST: u64 = 5;

#[cfg(test)]
#[path = "tests/admission.rs"]
mod tests;
