//! What a connection of the configuration comes to at each part that works for it.

use crate::config::{Breaker, Connection, Http2, Quota};
use crate::fleet;
use crate::health::breaker;
use crate::upstream::http;
use std::time::Duration;

/// How its provider is reached.
pub(super) fn settings(connection: &Connection) -> http::Settings {
    http::Settings {
        base_url: connection.base_url.clone(),
        api_key: connection.api_key.as_ref().map(|k| k.expose().into()),
        headers: connection.headers.iter().map(|(n, v)| (n.clone(), v.expose().to_owned())).collect(),
        query: connection.query.iter().map(|(n, v)| (n.clone(), v.expose().to_owned())).collect(),
        versioned: connection.versioned,
        version: connection.version.clone(),
        http2: match connection.http2 {
            Http2::Auto => http::Http2::Auto,
            Http2::PriorKnowledge => http::Http2::PriorKnowledge,
            Http2::Off => http::Http2::Off,
        },
        ..http::Settings::new(&*connection.name)
    }
}

/// When its circuits open and close.
pub(super) fn breaker(policy: &Breaker) -> breaker::Policy {
    breaker::Policy {
        consecutive: policy.consecutive,
        error_rate: policy.error_rate,
        window: policy.window,
        min_samples: policy.min_samples,
        latency: breaker::Latency {
            p95: policy.latency.as_ref().and_then(|l| l.p95),
            over_baseline: policy.latency.as_ref().and_then(|l| l.over_baseline),
            baseline: None,
        },
        cooldown: policy.cooldown,
        max_cooldown: policy.max_cooldown,
        max_cooldown_degraded: policy.max_cooldown_degraded,
    }
}

/// How much it is asked.
pub(super) fn limits(quota: &Quota, retry_after_cap: Duration) -> fleet::ConnectionLimits {
    let in_flight = quota.in_flight.map(|n| usize::try_from(n).unwrap_or(usize::MAX));
    fleet::ConnectionLimits { in_flight, rpm: quota.rpm, tpm: quota.tpm, retry_after_cap }
}
