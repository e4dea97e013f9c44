//! How the connections of the targets are reached.

use super::Subject;
use super::lane::Lane;
use crate::config::Config;
use crate::gateway;
use crate::routing::Target;
use crate::upstream::Upstream;
use crate::words::redact::Redactor;
use std::collections::HashMap;
use std::sync::Arc;

/// How a connection is reached.
pub(in crate::bench) struct Way {
    pub(super) lane: Lane,
    pub(in crate::bench) upstream: Arc<dyn Upstream>,
    pub(in crate::bench) secrets: Redactor,
}

/// How the connections of `subjects` are reached, by name; `tokens`: the most that one request of a
/// target may cost.
///
/// # Errors
/// A sentence that names the connection which cannot be set up.
pub(in crate::bench) fn ways<'a>(
    config: &'a Config,
    subjects: &[Subject],
    tokens: impl Fn(&Target) -> u64,
) -> Result<HashMap<&'a str, Way>, String> {
    let mut ways: HashMap<&str, Way> = HashMap::new();
    for connection in &config.connections {
        let of = subjects.iter().filter(|s| s.target.connection == connection.name);
        if let Some(most) = of.map(|s| tokens(&s.target)).max()
            && let Some(upstream) = gateway::dial(connection)?
        {
            let lane = Lane::new(&connection.limits, most);
            ways.insert(&connection.name, Way { lane, upstream, secrets: config.secrets.clone() });
        }
    }
    Ok(ways)
}
