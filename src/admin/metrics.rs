//! `/metrics`, in the text format of Prometheus.

use super::Admin;
use crate::gateway::Gateway;
use crate::health::breaker::State as Circuit;
use crate::telemetry::catalogue as c;
use crate::telemetry::registry::Registry;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use std::time::SystemTime;

pub(super) async fn metrics(State(admin): State<Admin>) -> Response {
    let gateway = &admin.gateway;
    let now = SystemTime::now();
    let text = gateway.metrics().render(now, |registry| moment(gateway, now, registry));
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
}

/// What is true at this moment.
fn moment(gateway: &Gateway, now: SystemTime, registry: &mut Registry) {
    let flag = |is: bool| if is { 1.0 } else { 0.0 };
    registry.set(&c::OPEN_TURNS, &[], gateway.open_turns() as f64);
    registry.set(&c::DRAINING, &[], flag(gateway.is_draining()));
    let workers = gateway.watchdog().report();
    registry.set(&c::WORKERS_ANSWERING, &[], flag(workers.answering));
    registry.set(&c::LONG_POLLS, &[], workers.long_polls as f64);
    registry.set(&c::STORE_FAILED, &[], gateway.store_failures() as f64);
    for (sink, dropped) in gateway.sinks().dropped() {
        registry.set(&c::SINK_DROPPED, &[sink], dropped as f64);
    }
    let config = gateway.config();
    let named = |connection: &str, model: &str| {
        let chains = config.levels.iter().flat_map(|level| &level.chain);
        chains.map(|entry| &entry.target).any(|t| &*t.connection == connection && &*t.model == model)
    };
    for circuit in gateway.fleet().circuits(tokio::time::Instant::now().into_std()) {
        registry.set(&c::QUEUED, &[&circuit.connection], circuit.queued as f64);
        // What only a client has named is not named here.
        if !named(&circuit.connection, &circuit.model) {
            continue;
        }
        let target = [&*circuit.connection, &*circuit.model];
        for state in [Circuit::Closed, Circuit::Open, Circuit::HalfOpen] {
            let labels = [target[0], target[1], state.name()];
            registry.set(&c::CIRCUIT_STATE, &labels, flag(circuit.state == state));
        }
        let rest = circuit.resting_until.and_then(|until| until.duration_since(now).ok()).unwrap_or_default();
        registry.set(&c::REST_SECONDS, &target, rest.as_secs_f64());
        registry.set(&c::IN_FLIGHT, &target, f64::from(circuit.in_flight));
    }
}
