//! How many tokens a request has: as a target of its level counts them, or by estimate.

use super::caller::{self, Caller};
use super::{Gateway, Inner, drive, plan};
use crate::chat::{DialectId, Request};
use crate::dialect::{self, Reason, Refusal, anthropic};
use crate::fleet::Availability;
use crate::routing::Level;
use crate::turn::resume::Carry;
use crate::upstream::Call;
use http::HeaderMap;
use std::sync::Arc;
use tokio::time::timeout;

/// The tokens of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// How many.
    pub tokens: u64,
    /// Nobody counted them.
    pub estimated: bool,
}

impl Gateway {
    /// Counts the tokens of a Messages request: the first target of its level that can say it is asked; where there is none,
    /// or it does not answer, they are estimated.
    ///
    /// # Errors
    /// As [`Gateway::begin`], for the request and for who asks.
    pub async fn count_tokens(&self, caller: &Caller, headers: &HeaderMap, body: &[u8]) -> Result<Count, Refusal> {
        let inner = &self.0;
        let setup = inner.setup();
        let dialect = dialect::client(DialectId::Anthropic)
            .ok_or_else(|| Refusal::new(Reason::NotFound, "unknown_route", "this dialect is not built in"))?;
        let request = dialect.parse(headers, &anthropic::count::whole(body)?)?;
        let route = caller::route(caller, &request.model, &setup.levels, &setup.config)?;
        // It is a request like others, of no tokens.
        let mut permits = setup.admission.admit(caller, 0, drive::now())?;
        let counted = inner.ask_for_count(caller, &route.level, &request).await;
        permits.settle(0, drive::now());
        Ok(match counted {
            Some(tokens) => Count { tokens, estimated: false },
            None => Count { tokens: request.estimated_prompt(), estimated: true },
        })
    }
}

impl Inner {
    async fn ask_for_count(&self, caller: &Caller, level: &Arc<Level>, request: &Request) -> Option<u64> {
        let setup = self.setup();
        let entries = plan::entries(&setup, level, request, caller).ok()?;
        let entry = entries.into_iter().find(|entry| entry.target.dialect == DialectId::Anthropic)?;
        let (target, timeouts) = (&entry.target, &entry.timeouts);
        let credential = caller.credential(&target.connection);
        let who = caller.who(credential.as_deref());
        if setup.fleet.availability(target, who, drive::now()) != Availability::Ready {
            return None;
        }
        let provider = dialect::provider(target.dialect)?;
        let wire = anthropic::count::question(provider.encode(request, target, &Carry::fresh()).ok()?)?;
        let upstream = setup.fleet.upstream(&target.connection)?;
        let answer = upstream.ask(Call {
            provider,
            wire,
            expect: dialect::Expect::of(1),
            connect: timeouts.connect,
            error_body: timeouts.error_body,
            max_event: setup.config.limits.max_event,
            credential,
            secrets: setup.config.secrets.clone(),
        });
        // What goes wrong is nobody's failure: no turn depends on it.
        let answer = timeout(timeouts.first_token, answer).await.ok()?.ok()?;
        anthropic::count::tokens(&answer)
    }
}
