//! From a request and a level to the candidates and rules of one turn.

use super::affinity::{self, Troubles};
use super::caller::{Caller, Route};
use super::setup::Setup;
use super::structured;
use crate::chat::modality::Modalities;
use crate::chat::{Effort, Minted, Request};
use crate::dialect::{self, Reason, Refusal};
use crate::fleet::{self, Availability};
use crate::relay::Policy;
use crate::routing::plan::Candidate;
use crate::routing::{After, Continuation, Entry, Hedge, Level, Target};
use crate::store::ServedBy;
use crate::turn::resume::How;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// A turn, ready to begin.
pub(super) struct Prepared {
    pub(super) candidates: Vec<Candidate>,
    pub(super) policy: Policy,
    /// No target of the chain is free to be asked: one attempt at a time is let through even so.
    pub(super) last_resort: bool,
}

/// `served_by`: who gave the conversation's last answer.
pub(super) fn prepare(
    (setup, troubles): (&Setup, &Troubles),
    route: &Route,
    request: &Request,
    caller: &Caller,
    served_by: Option<&ServedBy>,
) -> Result<Prepared, Refusal> {
    let level = &route.level;
    let now = super::drive::now();
    let mut entries = entries(setup, level, request, caller)?;
    affinity::stay((&setup.fleet, troubles), level, &mut entries, served_by, &request.extensions, caller);
    if served_by.is_none() {
        affinity::pass_over((&*setup.config, troubles), &mut entries, &request.extensions);
    }
    let races = !(request.extensions.hedge_off
        || request.extensions.failover_off
        || request.choices > 1
        || request.stored
        || !request.server_tools.is_empty());
    let hedge = level.hedge.filter(|_| races);
    let candidates: Vec<Candidate> = entries.into_iter().map(|e| candidate(setup, e, hedge, request, caller)).collect();
    let last_resort = !candidates.iter().any(|c| {
        let credential = caller.credential(&c.target.connection);
        setup.fleet.availability(&c.target, caller.who(credential.as_deref()), now) == Availability::Ready
    });
    let policy = Policy {
        level: Arc::clone(level),
        choices: request.choices,
        max_tokens: request.max_tokens,
        prompt_estimate: request.estimated_prompt(),
        asked_in: request.asked_in(),
        continuable: request.choices == 1 && !request.audio,
        structured: structured::is_checked(&request.format),
        races,
        max_turn: setup.config.limits.max_turn,
        whole: !request.stream,
        retry_after_cap: setup.config.limits.retry_after_cap,
        deadline: deadline(level, request),
        seed: rand::random(),
    };
    Ok(Prepared { candidates, policy, last_resort })
}

/// How long the turn may take, waiting included.
pub(super) fn deadline(level: &Level, request: &Request) -> Duration {
    let asked = request.extensions.deadline_ms.map(Duration::from_millis);
    asked.map_or(level.timeouts.turn, |asked| asked.min(level.timeouts.turn))
}

/// The places of the chain that may serve this request, in the order in which they are to be asked.
pub(super) fn entries<'a>(
    setup: &Setup,
    level: &'a Level,
    request: &Request,
    caller: &Caller,
) -> Result<Vec<&'a Entry>, Refusal> {
    let allowed = |e: &&Entry| {
        caller.tenant.as_ref().is_none_or(|t| t.admits(&e.target.domains))
            && level.min_quality.is_none_or(|min| e.target.quality <= min)
    };
    let mut entries: Vec<&Entry> = level.chain.iter().filter(allowed).collect();
    if entries.is_empty() {
        let message = format!("no target of the level `{}` may serve this key", level.name);
        return Err(Refusal::new(Reason::Forbidden, "no_target_allowed", message).about("model"));
    }
    let order = &request.extensions.order;
    if let Some(unknown) = order.iter().find(|name| !entries.iter().any(|e| *e.target.connection == ***name)) {
        let message = format!("x-segue-order: `{unknown}` is no connection of this level's chain");
        return Err(Refusal::new(Reason::Request, "unknown_connection", message).about("x-segue-order"));
    }
    if !order.is_empty() {
        let place = |e: &&Entry| order.iter().position(|name| **name == *e.target.connection).unwrap_or(usize::MAX);
        entries.sort_by_key(place);
    }
    let prompt = request.estimated_prompt();
    let fits = |e: &&Entry| e.target.context_window.is_none_or(|window| prompt + Target::LEAST_ANSWER <= window);
    let fitting: Vec<&Entry> = entries.iter().copied().filter(fits).collect();
    if fitting.is_empty() {
        let message =
            format!("the prompt (about {prompt} tokens) fits no target of the level `{}`; shorten it", level.name);
        return Err(Refusal::new(Reason::Request, "context_length_exceeded", message).about("messages"));
    }
    let able = able(setup, fitting, level, request, caller)?;
    let count = if request.extensions.failover_off { 1 } else { able.len() };
    Ok(able.into_iter().take(count).collect())
}

/// What of the request the target was seen to refuse.
fn lacking(setup: &Setup, target: &Target, request: &Request, caller: &Caller) -> Modalities {
    let tenant = caller.tenant.as_ref().map(|tenant| &*tenant.name);
    request.holds().iter().filter(|kind| setup.fleet.is_lacking(target, kind.name(), tenant)).collect()
}

/// Those of `entries` that can be asked what the question holds. A target that was only seen to refuse it comes last:
/// what is learnt from a refusal's words may be wrong.
fn able<'a>(
    setup: &Setup,
    entries: Vec<&'a Entry>,
    level: &Level,
    request: &Request,
    caller: &Caller,
) -> Result<Vec<&'a Entry>, Refusal> {
    let asked = request.asked_in();
    if asked.is_empty() {
        return Ok(entries);
    }
    let takes = |e: &&Entry| {
        let spoken = dialect::of(e.target.dialect).map_or(Modalities::ALL, |dialect| dialect.provider().inputs());
        // Within a dialect a part goes on as it came.
        let spoken = if e.target.dialect == request.origin { Modalities::ALL } else { spoken };
        asked.without(spoken).is_empty() && asked.shared(e.target.lacks()).is_empty()
    };
    let mut able: Vec<&Entry> = entries.into_iter().filter(takes).collect();
    if able.is_empty() {
        let kinds: Vec<&str> = asked.iter().map(|kind| kind.name()).collect();
        let message = format!(
            "no target of the level `{}` takes {} input; send text, or ask for a level with a model that takes it",
            level.name,
            kinds.join(" and ")
        );
        return Err(Refusal::new(Reason::Request, "unsupported_content", message).about("messages"));
    }
    let refused = |e: &&Entry| !asked.shared(lacking(setup, &e.target, request, caller)).is_empty();
    able.sort_by_key(refused);
    Ok(able)
}

fn candidate(setup: &Setup, entry: &Entry, hedge: Option<Hedge>, request: &Request, caller: &Caller) -> Candidate {
    let target = &entry.target;
    let provider = dialect::provider(target.dialect);
    let how = match target.continuation {
        _ if setup.fleet.is_lacking(target, fleet::PREFILL, caller.who(None).tenant) => How::Instruct,
        Continuation::Prefill => How::Prefill,
        Continuation::Instruct => How::Instruct,
        // Native resumption is not built for these dialects; one that restarts is never asked to continue.
        Continuation::Auto | Continuation::Native | Continuation::Restart => {
            provider.map_or(How::Instruct, |p| p.how(&target.model))
        }
    };
    let mut form = setup.fleet.form(target, super::drive::now());
    // What is asked is asked, or the target is not.
    form.lacks = lacking(setup, target, request, caller).without(request.asked_in());
    let thinks = request.effort.is_some_and(|e| e > Effort::Minimal);
    Candidate {
        how,
        echoes: provider.is_some_and(|p| p.echoes(&target.model)),
        reasons: target.reasons || thinks,
        hedge_after: hedge.filter(|_| setup.fleet.may_hedge(target)).and_then(|h| hedge_after(setup, entry, h)),
        normal_gap: setup.fleet.gap_percentile(target, NORMAL_GAP).unwrap_or_default(),
        form,
        target: Arc::clone(target),
        timeouts: entry.timeouts,
    }
}

fn hedge_after(setup: &Setup, entry: &Entry, hedge: Hedge) -> Option<Duration> {
    match hedge.after {
        After::Time(after) => Some(after),
        After::Percentile(p) => Some(setup.fleet.first_token_percentile(&entry.target, p)?.clamp(hedge.min, hedge.max)),
    }
}

/// Ids and time for an answer whose provider gives none.
pub(super) fn minted(now: SystemTime) -> Minted {
    let unix = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    Minted { id: rand::random(), unix }
}

/// Gaps up to this percentile of a target's own are normal for it.
pub(crate) const NORMAL_GAP: f64 = 99.0;
