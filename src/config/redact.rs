//! The configuration as JSON for people who may see it, but not its secrets.
//!
//! Secrets are shown as [`HIDDEN`], so that it is clear that there is one. Digests of keys are cut to eight digits:
//! enough to tell which key is meant.

use super::units::show;
use super::{Alias, Backend, Breaker, Config, Connection, Http2, Limits, Quota, Server, Tenant};
use crate::chat::modality::Modality;
use crate::routing::{
    After, Concurrency, Continuation, Delivery, Empty, Entry, Hedge, History, Level, RateLimited, Timeouts,
};
use serde_json::{Map, Value, json};
use std::time::{Duration, SystemTime};

/// Stands for a secret.
pub const HIDDEN: &str = "•••";

/// The whole configuration, defaults included, in the shape of the file.
pub fn redact(config: &Config) -> Value {
    let connections = config.connections.iter().map(|c| (c.name.to_string(), connection(c)));
    let levels = config.levels.iter().map(|l| (l.name.to_string(), level(l)));
    let tenants =
        config.tenants.as_ref().map(|all| Value::Object(all.iter().map(|t| (t.name.to_string(), tenant(t))).collect()));
    let store = &config.store;
    let ledger = &config.ledger;
    let prices = ledger
        .prices
        .iter()
        .map(|p| (format!("{}/{}", p.connection, p.model), json!({ "input": p.input, "output": p.output })));
    json!({
        "server": server(&config.server),
        "admin": { "listen": config.admin.listen.to_string(), "token": config.admin.token.as_ref().map(|_| HIDDEN) },
        "connections": connections.collect::<Map<_, _>>(),
        "levels": levels.collect::<Map<_, _>>(),
        "tenants": tenants,
        "aliases": aliases(&config.aliases),
        "limits": limits(&config.limits),
        // One for all levels.
        "seam": { "window": config.levels.first().map(|l| l.seam_window) },
        "store": {
            "backend": if matches!(store.backend, Backend::Memory) { "memory" } else { "redis" },
            "url": if matches!(store.backend, Backend::Memory) { None } else { Some(HIDDEN) },
            "ttl": show(store.ttl),
            "max_bytes": store.max_bytes,
            "resume_grace": show(store.resume_grace),
            "domains": store.domains,
        },
        "ledger": {
            "path": ledger.path.as_deref().unwrap_or("off"),
            "keep": show(ledger.keep),
            "bodies": ledger.bodies,
            "prices": prices.collect::<Map<_, _>>(),
        },
        "alerts": { "webhook": config.alerts.webhook.as_ref().map(|_| HIDDEN) },
    })
}

fn server(server: &Server) -> Value {
    json!({
        "listen": server.listen.to_string(),
        "max_body": server.max_body,
        "receive": show(server.receive),
        "buffer": server.buffer,
        "max_turns": server.max_turns,
        "headers_after": or_off(server.headers_after),
        "keep_alive": show(server.keep_alive),
        "drain_delay": show(server.drain_delay),
        "drain": show(server.drain),
        "tls": server.tls.as_ref().map(|tls| json!({ "cert": tls.cert, "key": tls.key })),
        "domains": server.domains,
        "allow_anonymous": server.allow_anonymous,
        "cors": server.cors,
        "hosts": server.hosts,
        "default_level": server.default_level,
        "max_connections": server.max_connections,
    })
}

fn connection(connection: &Connection) -> Value {
    let hidden = |pairs: &[(String, super::Secret)]| -> Map<String, Value> {
        pairs.iter().map(|(name, _)| (name.clone(), HIDDEN.into())).collect()
    };
    json!({
        "dialect": if connection.mock { "mock" } else { connection.dialect.name() },
        "base_url": connection.base_url,
        "api_key": connection.api_key.as_ref().map(|_| HIDDEN),
        "headers": hidden(&connection.headers),
        "query": hidden(&connection.query),
        "versioned": connection.versioned,
        "version": connection.version,
        "http2": match connection.http2 {
            Http2::Auto => "auto",
            Http2::PriorKnowledge => "prior_knowledge",
            Http2::Off => "off",
        },
        "warm": connection.warm,
        "domains": connection.domains,
        "limits": quota(&connection.limits),
        "breaker": breaker(&connection.breaker),
    })
}

pub(super) fn breaker(breaker: &Breaker) -> Value {
    let latency = breaker.latency.map(|l| json!({ "p95": l.p95.map(show), "over_baseline": l.over_baseline }));
    json!({
        "consecutive": breaker.consecutive,
        "error_rate": breaker.error_rate,
        "window": show(breaker.window),
        "min_samples": breaker.min_samples,
        "latency": latency,
        "cooldown": show(breaker.cooldown),
        "max_cooldown": show(breaker.max_cooldown),
        "max_cooldown_degraded": show(breaker.max_cooldown_degraded),
    })
}

pub(super) fn level(level: &Level) -> Value {
    json!({
        "chain": level.chain.iter().map(entry).collect::<Vec<_>>(),
        "timeouts": timeouts(&level.timeouts),
        "min_quality": level.min_quality,
        "retries": level.retries,
        "backoff": { "base": show(level.backoff.base), "cap": show(level.backoff.cap) },
        "same_first": level.same_first,
        "history": match level.history {
            History::Full => "full",
            History::LastUserMessage => "last_user_message",
        },
        "rate_limited": match level.rate_limited {
            RateLimited::Auto => "auto",
            RateLimited::Wait => "wait",
            RateLimited::Switch => "switch",
        },
        "empty": match level.empty {
            Empty::Tell => "tell",
            Empty::Next => "next",
        },
        "tool_calls": delivery(level.tool_calls),
        "structured": delivery(level.structured),
        "conversation": match level.conversation {
            Concurrency::Reject => "reject",
            Concurrency::Queue => "queue",
            Concurrency::Supersede => "supersede",
        },
        "affinity": show(level.affinity),
        "budget": level.budget,
        "hedge": level.hedge.as_ref().map(hedge),
        "shed_at": level.shed_at,
        "queue": level.queue.map(show),
        "announce": if level.announce { "comment" } else { "none" },
    })
}

fn entry(entry: &Entry) -> Value {
    let target = &entry.target;
    json!({
        "connection": &*target.connection,
        "model": &*target.model,
        "quality": target.quality,
        "continuation": match target.continuation {
            Continuation::Auto => "auto",
            Continuation::Instruct => "instruct",
            Continuation::Prefill => "prefill",
            Continuation::Native => "native",
            Continuation::Restart => "restart",
        },
        "context_window": target.context_window,
        "max_output": target.max_output,
        "drops": target.drops,
        "inputs": target.inputs.map(|inputs| inputs.iter().map(Modality::name).collect::<Vec<_>>()),
        "reasons": target.reasons,
        "deterministic": target.deterministic,
        "timeouts": timeouts(&entry.timeouts),
    })
}

fn timeouts(clocks: &Timeouts) -> Value {
    json!({
        "connect": show(clocks.connect),
        "first_token": show(clocks.first_token),
        "first_token_per_1k": or_off(clocks.first_token_per_1k),
        "first_word": or_off(clocks.first_word),
        "thinking": show(clocks.thinking),
        "suspect": or_off(clocks.suspect),
        "pace": clocks.pace.map_or_else(|| "off".to_owned(), |p| format!("{} chars/s over {}", p.chars, show(p.window))),
        "stall": show(clocks.stall),
        "idle": show(clocks.idle),
        "turn": show(clocks.turn),
        "client_write": show(clocks.client_write),
        "error_body": show(clocks.error_body),
    })
}

fn hedge(hedge: &Hedge) -> Value {
    let after = match hedge.after {
        After::Time(time) => show(time),
        After::Percentile(p) => format!("p{p}"),
    };
    json!({ "after": after, "min": show(hedge.min), "max": show(hedge.max), "budget": hedge.budget })
}

fn tenant(tenant: &Tenant) -> Value {
    let map = |pairs: &[(std::sync::Arc<str>, std::sync::Arc<str>)]| -> Map<String, Value> {
        pairs.iter().map(|(a, b)| (a.to_string(), Value::from(&**b))).collect()
    };
    let keys: Vec<Value> = tenant
        .keys
        .iter()
        .map(|key| {
            let digest: String = key.sha256.iter().take(4).map(|b| format!("{b:02x}")).collect();
            let expires =
                key.expires.and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok()).map(|d| d.as_secs());
            json!({ "sha256": format!("{digest}…"), "expires": expires, "limits": quota(&key.limits) })
        })
        .collect();
    json!({
        "keys": keys,
        "levels": map(&tenant.levels),
        "aliases": aliases(&tenant.aliases),
        "direct": tenant.direct,
        "credentials": tenant.credentials.iter().map(|(c, _)| (c.to_string(), HIDDEN.into())).collect::<Map<_, _>>(),
        "only": tenant.only,
        "limits": quota(&tenant.limits),
    })
}

fn aliases(aliases: &[Alias]) -> Map<String, Value> {
    aliases.iter().map(|alias| (alias.name.to_string(), Value::from(&*alias.level))).collect()
}

fn limits(limits: &Limits) -> Value {
    json!({
        "rpm": limits.rpm,
        "tpm": limits.tpm,
        "in_flight": limits.in_flight,
        "retry_after_cap": show(limits.retry_after_cap),
        "max_event": limits.max_event,
        "max_turn": limits.max_turn,
        "max_depth": limits.bounds.depth,
        "max_values": limits.bounds.values,
        "max_messages": limits.bounds.messages,
        "max_parts": limits.bounds.parts,
        "max_tools": limits.bounds.tools,
        "max_stops": limits.bounds.stops,
        "max_choices": limits.bounds.choices,
        "max_calls": limits.bounds.calls,
        "check": show(limits.check),
    })
}

fn quota(quota: &Quota) -> Value {
    json!({ "in_flight": quota.in_flight, "rpm": quota.rpm, "tpm": quota.tpm })
}

fn delivery(delivery: Delivery) -> &'static str {
    match delivery {
        Delivery::Hold => "hold",
        Delivery::Stream => "stream",
    }
}

fn or_off(time: Option<Duration>) -> String {
    time.map_or_else(|| "off".to_owned(), show)
}
