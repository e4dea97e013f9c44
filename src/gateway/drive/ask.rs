//! What the drive asks of others: attempts of the fleet, checks of the pool.

use super::Engine;
use crate::dialect;
use crate::event::Signal;
use crate::failure::Declined;
use crate::fleet;
use crate::gateway::structured;
use crate::relay::{AttemptId, Checked, Open};
use crate::upstream::Call;
use smallvec::SmallVec;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

/// The checks of structured answers that are under way; an attempt has one at most.
#[derive(Default)]
pub(super) struct Checks(SmallVec<[(AttemptId, Check); 1]>);

type Check = Pin<Box<dyn Future<Output = Checked> + Send>>;

// === impl Engine ===

impl Engine {
    pub(super) fn ask(&mut self, open: &Open) -> Result<fleet::Ask, Signal> {
        let declined = |why| Err(Signal::Declined(Box::new(why)));
        if !self.live.setup.pay(&self.live.level, open.cause) {
            return declined(Declined::Budget);
        }
        let target = &open.target;
        let Some(provider) = dialect::provider(target.dialect) else {
            return declined(Declined::Unfit(format!("the dialect {} is not built in", target.dialect.name())));
        };
        let Some(request) = self.request.as_deref() else {
            return declined(Declined::Unfit("the turn is over".to_owned()));
        };
        let wire =
            provider.encode(request, target, &open.carry).map_err(|failure| Signal::Failed(Box::new(failure)))?;
        if request.extensions.strict && !wire.dropped.is_empty() {
            return declined(Declined::Unfit(format!("x-segue-strict: it lacks {}", wire.dropped.join(", "))));
        }
        for field in &wire.dropped {
            if !self.dropped.contains(field) {
                self.dropped.push(field.clone());
            }
        }
        let timeouts = &self.candidates[open.seat].timeouts;
        Ok(fleet::Ask {
            target: Arc::clone(target),
            call: Call {
                provider,
                wire,
                expect: dialect::Expect {
                    choices: request.choices,
                    bounds: self.live.setup.config.limits.bounds,
                    max_turn: self.live.setup.config.limits.max_turn,
                },
                connect: timeouts.connect,
                error_body: timeouts.error_body,
                max_event: self.live.setup.config.limits.max_event,
                credential: self.live.credential(&target.connection),
                secrets: self.live.setup.config.secrets.clone(),
            },
            tenant: self.live.tenant.as_ref().map(|tenant| Arc::clone(&tenant.name)),
            form: open.carry.form.clone(),
            delivered: open.delivered,
            others: open.others,
            last_resort: self.last_resort,
            patience: open.patience,
            estimate: self.live.estimate,
            answer: target.max_output.map_or(self.live.answer, |most| self.live.answer.min(most)),
        })
    }

    /// Has a structured answer checked.
    pub(super) fn check(&mut self, id: AttemptId, answer: &Arc<String>) {
        let Some(request) = self.request.clone() else { return };
        let within = self.live.setup.config.limits.check;
        let check = structured::check(&self.gateway.checkers, &request, answer, within);
        self.checks.0.push((id, Box::pin(check)));
    }

    /// Hands every check that is made to the relay; gives whether there was one.
    pub(super) fn poll_checks(&mut self, cx: &mut Context<'_>, at: Instant) -> bool {
        let made = self.checks.0.iter_mut().enumerate().find_map(|(index, (_, check))| match check.as_mut().poll(cx) {
            Poll::Ready(checked) => Some((index, checked)),
            Poll::Pending => None,
        });
        let Some((index, checked)) = made else { return false };
        let (id, _) = self.checks.0.remove(index);
        self.relay.handle_checked(id, checked, at);
        true
    }
}
