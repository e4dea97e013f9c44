//! Who asks, and what a model's name means for them.

use crate::config::alias::{self, Alias};
use crate::config::{Config, Tenant};
use crate::dialect::{Reason, Refusal};
use crate::fleet::Who;
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
    aliases: Vec<Alias>,
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
            aliases: tenant.aliases.clone(),
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

// === impl Caller ===

impl Caller {
    /// Its tenant's own credential for a connection.
    pub(super) fn credential(&self, connection: &str) -> Option<Arc<str>> {
        self.tenant.as_ref()?.credential(connection)
    }

    /// As the fleet knows it.
    pub(super) fn who<'a>(&'a self, credential: Option<&'a str>) -> Who<'a> {
        Who { tenant: self.tenant.as_ref().map(|tenant| &*tenant.name), credential }
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

/// The first digits of a key's digest: they tell which key is meant, and nothing else.
pub(super) fn mark(key: &[u8; 32]) -> Arc<str> {
    let [a, b, c, d, ..] = key;
    format!("{a:02x}{b:02x}{c:02x}{d:02x}").into()
}

fn equal(a: &[u8; 32], b: &[u8; 32]) -> bool {
    let difference = a.iter().zip(b).fold(0_u8, |all, (a, b)| all | (a ^ b));
    std::hint::black_box(difference) == 0
}

pub(super) fn models(caller: &Caller, config: &Config) -> Vec<(Arc<str>, Arc<str>)> {
    let tenant = caller.tenant.as_deref();
    let mut models: Vec<(Arc<str>, Arc<str>)> = match tenant {
        None => config.levels.iter().map(|l| (Arc::clone(&l.name), Arc::clone(&l.name))).collect(),
        Some(tenant) => tenant.levels.iter().map(|(name, level)| (Arc::clone(name), Arc::clone(level))).collect(),
    };
    let own = tenant.map(|t| t.aliases.as_slice()).unwrap_or_default();
    // A pattern names nothing that could be asked for as it stands.
    for alias in own.iter().chain(&config.aliases).filter(|alias| !alias.is_pattern()) {
        let served = tenant.map_or(Some(&alias.level), |t| t.levels.get(&alias.level));
        if let Some(level) = served
            && !models.iter().any(|(name, _)| *name == alias.name)
        {
            models.push((Arc::clone(&alias.name), Arc::clone(level)));
        }
    }
    models.sort();
    models
}

/// What serves a request for `model`. In this order: a level by its name, an alias, a target by `connection/model`, a
/// pattern of an alias; the tenant's own aliases go before those for everyone. No name at all means the default.
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
    let tenant = caller.tenant.as_deref();
    let own = tenant.map(|t| t.aliases.as_slice()).unwrap_or_default();
    let level = |name: &str| {
        let served_by = match tenant {
            None => name,
            Some(tenant) => tenant.levels.get(name)?,
        };
        levels.get(served_by)
    };
    let aliased = |meant: fn(&'_ [Alias], &str) -> Option<Arc<str>>| {
        let meant = [own, &config.aliases].into_iter().find_map(|aliases| {
            // An alias for everyone may mean a level that this tenant has not.
            meant(aliases, model).filter(|name| level(name).is_some())
        });
        meant.and_then(|name| level(&name))
    };
    let found = if model.is_empty() {
        level(default(tenant, config)?)
    } else {
        level(model).or_else(|| aliased(|aliases, model| alias::exact(aliases, model).cloned()))
    };
    if let Some(level) = found {
        return Ok(Route { level: Arc::clone(level) });
    }
    let direct = direct(caller, model, levels);
    if let Ok(Some(direct)) = direct {
        return Ok(Route { level: direct });
    }
    if let Some(level) = aliased(|aliases, model| alias::by_pattern(aliases, model).cloned()) {
        return Ok(Route { level: Arc::clone(level) });
    }
    direct?;
    let message = format!("the model `{model}` does not exist here; {}", known(caller, config));
    Err(Refusal::new(Reason::NotFound, "model_not_found", message).about("model"))
}

/// What a request without a model asks for: the default if this caller may have it, else the only level there is for it.
fn default<'a>(tenant: Option<&'a TenantView>, config: &'a Config) -> Result<&'a str, Refusal> {
    let configured = config.server.default_level.as_deref();
    let found = match tenant {
        None => configured.or_else(|| match config.levels.as_slice() {
            [only] => Some(&*only.name),
            _ => None,
        }),
        Some(tenant) => configured.filter(|name| tenant.levels.contains_key(*name)).or_else(|| {
            let mut names = tenant.levels.keys();
            names.next().filter(|_| names.next().is_none()).map(|name| &**name)
        }),
    };
    found.ok_or_else(|| {
        let caller = "the request names no `model`, and there is no `server.default_level`";
        Refusal::new(Reason::Request, "model_missing", format!("{caller}; name a level")).about("model")
    })
}

/// What may be asked for, in words.
fn known(caller: &Caller, config: &Config) -> String {
    let mut known: Vec<String> = models(caller, config).into_iter().map(|(name, _)| name.to_string()).collect();
    known.truncate(NAMED);
    let whose =
        if caller.tenant.is_some() { "this key may ask for" } else { "a model is the name of a level, and there are" };
    format!("{whose}: {}", known.join(", "))
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
