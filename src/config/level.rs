//! Levels and their chains.

use super::connection::{Connection, check_name};
use super::document::{Named, Section, Value};
use super::problem::did_you_mean;
use super::thinkers::Thinkers;
use super::timeouts;
use super::units;
use super::value::Zero;
use crate::chat::modality::{Modalities, Modality};
use crate::routing::{
    After, Backoff, Concurrency, Continuation, Delivery, Empty, Entry, Hedge, History, Level, RateLimited, Target,
    Timeouts,
};
use std::sync::Arc;
use std::time::Duration;

/// What levels are read against.
pub(super) struct Around<'a> {
    /// Every name under `connections`, those with mistakes too.
    pub(super) names: &'a [&'a str],
    pub(super) connections: &'a [Connection],
    pub(super) timeouts: Timeouts,
    pub(super) seam_window: usize,
    pub(super) thinkers: Thinkers,
}

/// Reads one level.
pub(super) fn read(entry: &Named<'_>, around: &Around<'_>) -> Option<Arc<Level>> {
    check_name(entry, "level");
    let section = entry.value.section()?;
    let clocks = timeouts::of(&section, around.timeouts);
    let chain = chain(&section, around, clocks)?;
    let base = Level::new(entry.name, chain);
    let budget = section.share("budget", Zero::Allowed, base.budget);
    let shed_at = section.get("shed_at").and_then(|v| v.share(Zero::Refused));
    let queue = section.get("queue").and_then(|v| v.duration_or_off()).flatten();
    if queue.is_some() && shed_at.is_none() && section.get("shed_at").is_none() {
        section.doc.warn(
            section.get("queue").map_or_else(|| section.start(), |v| v.at.start),
            &format!("{}.queue", section.key),
            "has no effect without `shed_at`",
            "add `shed_at = 0.9`",
        );
    }
    let level = Level {
        timeouts: clocks,
        min_quality: section.get("min_quality").and_then(|v| v.whole(QUALITIES)).map(narrow),
        retries: narrow(section.whole("retries", 0..=MAX_RETRIES, u64::from(base.retries))),
        backoff: section.section("backoff").map_or(base.backoff, |s| backoff(&s, base.backoff)),
        same_first: section.flag("same_first", base.same_first),
        history: section.choice(
            "history",
            &[("full", History::Full), ("last_user_message", History::LastUserMessage)],
            base.history,
        ),
        rate_limited: section.choice(
            "rate_limited",
            &[("auto", RateLimited::Auto), ("wait", RateLimited::Wait), ("switch", RateLimited::Switch)],
            base.rate_limited,
        ),
        empty: section.choice("empty", &[("tell", Empty::Tell), ("next", Empty::Next)], base.empty),
        tool_calls: section.choice("tool_calls", &DELIVERY, base.tool_calls),
        structured: section.choice("structured", &DELIVERY, base.structured),
        conversation: section.choice(
            "conversation",
            &[("reject", Concurrency::Reject), ("queue", Concurrency::Queue), ("supersede", Concurrency::Supersede)],
            base.conversation,
        ),
        affinity: section.duration("affinity", Zero::Allowed, base.affinity),
        budget,
        hedge: section.section("hedge").and_then(|s| hedge(&s, budget)),
        shed_at,
        queue,
        announce: section.choice("announce", &[("none", false), ("comment", true)], base.announce),
        seam_window: around.seam_window,
        ..base
    };
    if let Some(min) = level.min_quality
        && !level.chain.is_empty()
        && level.chain.iter().all(|e| e.target.quality > min)
        && let Some(value) = section.get("min_quality")
    {
        value
            .error(format!("no target of the chain is of quality {min} or better"), "raise it, or add a better target");
    }
    Some(Arc::new(level))
}

/// Reads a chain. `None` if nothing can be built of it; why is noted.
fn chain(section: &Section<'_>, around: &Around<'_>, clocks: Timeouts) -> Option<Vec<Entry>> {
    const EXAMPLE: &str = "[{ connection = \"openai-prod\", model = \"gpt-4.1\" }]";
    let value = section.need("chain", EXAMPLE)?;
    let rows = value.list(EXAMPLE)?;
    if rows.is_empty() {
        value.error("is empty: the level could serve nothing", value.example(EXAMPLE));
        return None;
    }
    let mut chain: Vec<Entry> = Vec::new();
    let (mut unusable, mut broken) = (None, false);
    for row in &rows {
        match place(row, around, clocks) {
            Row::Broken => broken = true,
            Row::Unusable(why) => unusable = Some(why),
            Row::Usable(entry) => {
                let same =
                    |e: &Entry| e.target.connection == entry.target.connection && e.target.model == entry.target.model;
                if chain.iter().any(same) {
                    let target = format!("{}/{}", entry.target.connection, entry.target.model);
                    row.warn(
                        format!("{target} stands in the chain already"),
                        "a target is asked once a turn; this place is left out",
                    );
                } else {
                    chain.push(entry);
                }
            }
        }
    }
    if chain.len() > Level::MAX_CHAIN {
        value.error(
            format!("has {} targets; at most {} are allowed", chain.len(), Level::MAX_CHAIN),
            format!(
                "keep one target and {} fallbacks that share no failure domain: each further one adds cost and \
                 waiting to a turn that is failing, and hardly any independence",
                Level::MAX_CHAIN - 1
            ),
        );
        return None;
    }
    if chain.is_empty()
        && !broken
        && let Some(why) = unusable
    {
        value.error(format!("no target is left that can be asked: {why}"), "add a target of another dialect");
    }
    (!chain.is_empty()).then_some(chain)
}

/// What a row of a chain comes to.
enum Row {
    Usable(Entry),
    /// Its dialect is not built yet, as this says.
    Unusable(&'static str),
    /// It has mistakes, or its connection has.
    Broken,
}

fn place(row: &Value<'_>, around: &Around<'_>, clocks: Timeouts) -> Row {
    let Some(section) = row.section() else { return Row::Broken };
    let name = section.need("connection", "\"openai-prod\"").and_then(|v| Some((v.text("\"openai-prod\"")?, v)));
    let model = section.need("model", "\"gpt-4.1\"").and_then(|v| v.text("\"gpt-4.1\""));
    if let Some((name, value)) = &name
        && !around.names.contains(name)
    {
        let otherwise = format!("add `[connections.{name}]`");
        value.error(
            format!("there is no connection `{name}`"),
            did_you_mean(name, around.names.iter().copied(), &otherwise),
        );
    }
    let facts = facts(&section);
    let own = section.section("timeouts");
    if let Some(own) = &own {
        for key in timeouts::OF_THE_TURN {
            if let Some(value) = own.get(key) {
                value.warn(
                    "is a clock of the whole turn and has no effect on one target",
                    "set it in the level's `timeouts`",
                );
            }
        }
    }
    let timeouts = own.map_or(clocks, |s| {
        let read = timeouts::read(&s, clocks);
        Timeouts { first_word: clocks.first_word, turn: clocks.turn, client_write: clocks.client_write, ..read }
    });
    let connection = name.and_then(|(name, _)| around.connections.iter().find(|c| *c.name == *name));
    let (Some(connection), Some(model)) = (connection, model) else { return Row::Broken };
    if let Some(why) = connection.unusable() {
        row.warn(format!("is left out of the chain: {why}"), "");
        return Row::Unusable(why);
    }
    let target = Target {
        connection: Arc::clone(&connection.name),
        thinks: facts.thinks.or_else(|| around.thinkers.know(model)),
        model: model.into(),
        dialect: connection.dialect,
        issuer: connection.issuer(),
        domains: connection.domains.clone(),
        ..facts
    };
    Row::Usable(Entry { target: Arc::new(target), timeouts })
}

/// What a row says of its target, under names that are put in later.
fn facts(section: &Section<'_>) -> Target {
    let base = Target::new("", "", crate::chat::DialectId::Chat);
    let reasons = section.flag("reasons", base.reasons);
    let tokens = |key| section.get(key).and_then(|v| v.whole(1..=u64::MAX));
    let facts = Target {
        continuation: section.choice(
            "continuation",
            &[
                ("auto", Continuation::Auto),
                ("instruct", Continuation::Instruct),
                ("prefill", Continuation::Prefill),
                ("native", Continuation::Native),
                ("restart", Continuation::Restart),
            ],
            base.continuation,
        ),
        context_window: tokens("context_window"),
        max_output: tokens("max_output"),
        drops: section.texts("drops", "\"seed\""),
        inputs: inputs(section),
        reasons,
        thinks: section.get("reasons").map(|_| reasons),
        deterministic: section.flag("deterministic", base.deterministic),
        quality: narrow(section.whole("quality", QUALITIES, u64::from(base.quality))),
        ..base
    };
    if let (Some(window), Some(output)) = (facts.context_window, facts.max_output)
        && output > window
        && let Some(value) = section.get("max_output")
    {
        value.error(
            format!("is larger than the `context_window` of {window}"),
            "an answer is part of the window; correct one of them",
        );
    }
    facts
}

/// The kinds of content that a target takes besides text.
fn inputs(section: &Section<'_>) -> Option<Modalities> {
    const EXAMPLE: &str = "[\"text\", \"image\"]";
    let mut inputs = Modalities::NONE;
    for entry in section.get("inputs")?.list(EXAMPLE)? {
        let Some(text) = entry.text("\"image\"") else { continue };
        match Modality::ALL.into_iter().find(|kind| kind.name() == text) {
            Some(kind) => inputs = inputs.with(kind),
            None if text == "text" => {}
            None => {
                let known = std::iter::once("text").chain(Modality::ALL.iter().map(|kind| kind.name()));
                entry.error(
                    format!("there is no kind of content called {text:?}"),
                    did_you_mean(text, known, "write \"text\", \"image\", \"audio\", \"file\" or \"video\""),
                );
            }
        }
    }
    Some(inputs)
}

fn backoff(section: &Section<'_>, base: Backoff) -> Backoff {
    let first = section.duration("base", Zero::Refused, base.base);
    let cap = section.get("cap").and_then(|v| v.duration(Zero::Refused).map(|cap| (cap, v)));
    if let Some((cap, value)) = &cap
        && *cap < first
    {
        value.error("is shorter than `base`", "raise it, or lower `base`");
    }
    Backoff { base: first, cap: cap.map_or_else(|| base.cap.max(first), |(cap, _)| cap) }
}

fn hedge(section: &Section<'_>, budget: f64) -> Option<Hedge> {
    const EXAMPLE: &str = "\"p90\" or \"150ms\"";
    let after = section.need("after", "\"p90\"")?;
    let text = after.text(EXAMPLE);
    let when = match text.map(units::percentile) {
        Some(Some(Ok(percentile))) => Some(After::Percentile(percentile)),
        Some(Some(Err(why))) => {
            after.error(why, after.example(EXAMPLE));
            None
        }
        Some(None) => after.duration(Zero::Refused).map(After::Time),
        None => None,
    };
    // A fixed time is meant as it stands: the bounds that tame a percentile do not move it unless they are given.
    let (low, high) = match when {
        Some(After::Time(time)) => (HEDGE_MIN.min(time), HEDGE_MAX.max(time)),
        _ => (HEDGE_MIN, HEDGE_MAX),
    };
    let min = section.get("min").and_then(|v| v.duration(Zero::Allowed).map(|d| (d, v)));
    let max = section.get("max").and_then(|v| v.duration(Zero::Refused).map(|d| (d, v)));
    let bounds = (min.as_ref().map_or(low, |m| m.0), max.as_ref().map_or(high, |m| m.0));
    let bounds = match (&min, &max) {
        (Some((low, value)), Some((high, _))) if low > high => {
            value.error("is later than `max`", "lower it, or raise `max`");
            (*high, *high)
        }
        // One bound alone pushes the other's default aside.
        (Some((low, _)), None) => (*low, bounds.1.max(*low)),
        (None, Some((high, _))) => (bounds.0.min(*high), *high),
        _ => bounds,
    };
    if let Some(After::Time(time)) = when
        && !(bounds.0..=bounds.1).contains(&time)
    {
        after.error("lies outside of `min` and `max`", "leave `min` and `max` out: they bound a percentile");
    }
    Some(Hedge { after: when?, min: bounds.0, max: bounds.1, budget: section.share("budget", Zero::Allowed, budget) })
}

/// For values whose range was checked to fit.
fn narrow(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

const DELIVERY: [(&str, Delivery); 2] = [("hold", Delivery::Hold), ("stream", Delivery::Stream)];

const QUALITIES: std::ops::RangeInclusive<u64> = 1..=1000;

/// More tries at one target are a storm.
const MAX_RETRIES: u64 = 10;

/// A hedge by percentile starts no sooner, unless told otherwise: quicker providers are racing against noise.
const HEDGE_MIN: Duration = Duration::from_millis(80);

/// A hedge by percentile starts no later, unless told otherwise.
const HEDGE_MAX: Duration = Duration::from_millis(400);
