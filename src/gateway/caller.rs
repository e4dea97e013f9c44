//! Who asks, and what a model's name means for them.

use crate::config::{Config, Tenant};
use crate::dialect::{Reason, Refusal};
use crate::routing::Level;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::SystemTime;

/// Who asks.
#[derive(Clone, Debug, Default)]
pub struct Caller {
    /// The tenant; `None` where there are none.
    pub tenant: Option<Arc<TenantView>>,
    /// The digest of its key.
    pub(super) key: Option<[u8; 32]>,
}

/// What the gateway needs of a tenant.
#[derive(Debug)]
pub struct TenantView {
    /// Its name.
    pub name: Arc<str>,
    keys: Vec<([u8; 32], Option<SystemTime>)>,
    levels: HashMap<Arc<str>, Arc<str>>,
    aliases: HashMap<Arc<str>, Arc<str>>,
    direct: bool,
    credentials: HashMap<Arc<str>, Arc<str>>,
    only: Vec<String>,
}

/// What a model's name means.
#[derive(Clone, Debug)]
pub(super) struct Route {
    /// The level that serves the turn.
    pub(super) level: Arc<Level>,
}

// === impl TenantView ===

impl TenantView {
    pub(super) fn of(tenant: &Tenant) -> Self {
        Self {
            name: Arc::clone(&tenant.name),
            keys: tenant.keys.iter().map(|k| (k.sha256, k.expires)).collect(),
            levels: tenant.levels.iter().cloned().collect(),
            aliases: tenant.aliases.iter().cloned().collect(),
            direct: tenant.direct,
            credentials: tenant.credentials.iter().map(|(c, s)| (Arc::clone(c), s.expose().into())).collect(),
            only: tenant.only.clone(),
        }
    }

    /// Its own credential for a connection.
    pub(super) fn credential(&self, connection: &str) -> Option<Arc<str>> {
        self.credentials.get(connection).cloned()
    }

    /// Whether a target of these domains may serve it: any one that it is pinned to.
    pub(super) fn admits(&self, domains: &[String]) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| domains.contains(only))
    }
}

// === helpers ===

pub(super) fn authorize(
    tenants: Option<&[Arc<TenantView>]>,
    key: Option<&str>,
    now: SystemTime,
) -> Result<Caller, Refusal> {
    let Some(tenants) = tenants else { return Ok(Caller::default()) };
    let Some(key) = key.filter(|k| !k.is_empty()) else {
        let message = "no API key: send it as `authorization: Bearer KEY` or `x-api-key: KEY`";
        return Err(Refusal::new(Reason::Key, "missing_api_key", message));
    };
    let digest: [u8; 32] = Sha256::digest(key.as_bytes()).into();
    // Every key of every tenant is compared, and each in constant time: how long it takes tells nothing.
    let mut found = None;
    for tenant in tenants {
        for (known, expires) in &tenant.keys {
            if equal(known, &digest) {
                found = Some((tenant, *expires));
            }
        }
    }
    match found {
        Some((tenant, expires)) if expires.is_none_or(|at| now < at) => {
            Ok(Caller { tenant: Some(Arc::clone(tenant)), key: Some(digest) })
        }
        Some(_) => Err(Refusal::new(Reason::Key, "expired_api_key", "this API key has expired; ask for a new one")),
        None => Err(Refusal::new(Reason::Key, "invalid_api_key", "this API key is not known here")),
    }
}

fn equal(a: &[u8; 32], b: &[u8; 32]) -> bool {
    let difference = a.iter().zip(b).fold(0_u8, |all, (a, b)| all | (a ^ b));
    std::hint::black_box(difference) == 0
}

pub(super) fn models(caller: &Caller, config: &Config) -> Vec<(Arc<str>, Arc<str>)> {
    let mut models: Vec<(Arc<str>, Arc<str>)> = match &caller.tenant {
        None => config.levels.iter().map(|l| (Arc::clone(&l.name), Arc::clone(&l.name))).collect(),
        Some(tenant) => {
            let names = tenant.levels.iter().chain(&tenant.aliases);
            names.map(|(name, level)| (Arc::clone(name), Arc::clone(level))).collect()
        }
    };
    models.sort();
    models
}

pub(super) fn route(
    caller: &Caller,
    model: &str,
    levels: &HashMap<Arc<str>, Arc<Level>>,
    config: &Config,
) -> Result<Route, Refusal> {
    if model.len() > LONGEST {
        let message = format!("no model's name is longer than {LONGEST} bytes; ask for a level, an alias or a target");
        return Err(Refusal::new(Reason::Request, "model_too_long", message).about("model"));
    }
    let name = match &caller.tenant {
        None => Some(model),
        Some(tenant) => {
            let aliased = tenant.aliases.get(model).map_or(model, |level| &**level);
            tenant.levels.get(aliased).map(|level| &**level)
        }
    };
    if let Some(level) = name.and_then(|name| levels.get(name)) {
        return Ok(Route { level: Arc::clone(level) });
    }
    if let Some(direct) = direct(caller, model, levels)? {
        return Ok(Route { level: direct });
    }
    let mut known: Vec<String> = models(caller, config).into_iter().map(|(name, _)| name.to_string()).collect();
    known.truncate(NAMED);
    let whose =
        if caller.tenant.is_some() { "this key may ask for" } else { "a model is the name of a level, and there are" };
    let message = format!("the model `{model}` does not exist here; {whose}: {}", known.join(", "));
    Err(Refusal::new(Reason::NotFound, "model_not_found", message).about("model"))
}

/// `connection/model` as a level of its own, with the policies of the level that has the connection in its chain.
fn direct(caller: &Caller, model: &str, levels: &HashMap<Arc<str>, Arc<Level>>) -> Result<Option<Arc<Level>>, Refusal> {
    let Some((connection, wanted)) = model.split_once('/') else { return Ok(None) };
    let entries = |level: &Arc<Level>| level.chain.iter().find(|e| &*e.target.connection == connection).cloned();
    let mut names: Vec<&Arc<Level>> = levels.values().collect();
    names.sort_by(|a, b| a.name.cmp(&b.name));
    let Some((level, mut entry)) = names.into_iter().find_map(|l| Some((l, entries(l)?))) else { return Ok(None) };
    if caller.tenant.as_ref().is_some_and(|t| !t.direct) {
        let message = "this key may not address a connection directly; ask for a level, or set `direct = true` for it";
        return Err(Refusal::new(Reason::Forbidden, "direct_not_allowed", message).about("model"));
    }
    if &*entry.target.model != wanted {
        let mut target = (*entry.target).clone();
        target.model = wanted.into();
        entry.target = Arc::new(target);
    }
    let mut level = (**level).clone();
    level.name = model.into();
    level.chain = vec![entry];
    Ok(Some(Arc::new(level)))
}

/// The longest name that a client may ask for, in bytes: it is kept with the turns that ended last.
const LONGEST: usize = 256;
/// The most names that an error lists.
const NAMED: usize = 20;
