//! A manifest's failures, played on real providers inside a gateway.

use super::account::{Account, Span, Witness};
use super::manifest::{Manifest, Mode};
use super::recall;
use super::suite::Conversation;
use crate::rig::faults::{Faults, Hit};
use crate::rig::mark::Mark;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

/// The failures of whatever manifest is played at the moment, and the account of what reached the providers.
#[derive(Debug)]
pub struct Injected {
    /// To put around a gateway's upstreams.
    pub faults: Arc<Faults>,
    present: Arc<RwLock<Option<Arc<Manifest>>>>,
}

/// The failures of `manifest`, for a gateway that serves others.
pub fn faults(manifest: Manifest) -> Arc<Faults> {
    Faults::new(Box::new(move |mark, connection| hit(&manifest, mark, connection)))
}

// === impl Injected ===

impl Injected {
    /// Nothing fails yet.
    pub fn new(suite: &[Conversation]) -> Self {
        let present: Arc<RwLock<Option<Arc<Manifest>>>> = Arc::default();
        let now = Arc::clone(&present);
        let suite: HashMap<String, Conversation> = suite.iter().map(|c| (c.id.clone(), c.clone())).collect();
        let faults = Faults::noting(
            Box::new(move |mark, connection| {
                let manifest = now.read().unwrap_or_else(PoisonError::into_inner).clone();
                hit(manifest.as_deref()?, mark, connection)
            }),
            Box::new(move |mark, body| suite.get(&mark.conversation).is_some_and(|c| recall::was_told(c, body))),
        );
        Self { faults, present }
    }

    /// What fails from now on; `None`: nothing.
    pub fn play(&self, manifest: Option<Arc<Manifest>>) {
        *self.present.write().unwrap_or_else(PoisonError::into_inner) = manifest;
    }
}

impl Witness for Injected {
    fn account(&self, mark: &Mark) -> Account {
        let now = super::listener::now();
        let mut account = Account::default();
        for seen in self.faults.take(mark) {
            let span = Span { from: seen.from, to: seen.to.unwrap_or(now) };
            account.add(&seen.connection, seen.struck, Some(span), [seen.sent as u64 / 4, seen.told]);
            if 0 < seen.told {
                account.history_arrived = Some(seen.knows);
            }
        }
        account
    }
}

// === helpers ===

fn hit(manifest: &Manifest, mark: &Mark, connection: &str) -> Option<Hit> {
    let failures = &manifest.plan(&mark.conversation)?.failures;
    let failure = failures.iter().find(|f| (f.turn..=f.until).contains(&mark.turn))?;
    failure.providers.iter().any(|name| name == connection).then_some(())?;
    let after = failure.token.unwrap_or_default();
    Some(match failure.mode {
        Mode::Timeout => Hit::Silent,
        Mode::ApiError => Hit::Error,
        Mode::RateLimit => Hit::Limited,
        Mode::Stall => Hit::Stall(after),
        Mode::Reset => Hit::Reset(after),
        Mode::Truncation => Hit::End(after),
        Mode::ErrorEvent => Hit::ErrorEvent(after),
    })
}
