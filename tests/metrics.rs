//! What is measured is documented, and what is documented is measured; the dashboard and the alerts ask for nothing else.
#![expect(clippy::unwrap_used, reason = "a test's panic is its report")]

mod support;

use axum::body::Body;
use axum::http::{Request, StatusCode};
use segue::admin;
use segue::gateway::Gateway;
use segue::rig::origin::{Origin, Scripts};
use segue::rig::script::{Break, Script};
use segue::telemetry::catalogue::{ALL, Kind};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use support::house::House;
use tower::ServiceExt;

const DOCS: &str = include_str!("../docs/metrics.md");
const GRAFANA: &str = include_str!("../docs/grafana.json");
const ALERTS: &str = include_str!("../docs/alerts.yml");

async fn ask(gateway: &Gateway, path: &str, token: Option<&str>) -> (StatusCode, String) {
    let routes = admin::routes(gateway.clone(), token.map(Arc::from));
    let request = Request::get(path).header("host", "127.0.0.1").body(Body::empty()).unwrap();
    let response = routes.oneshot(request).await.unwrap();
    let status = response.status();
    let body = axum::body::to_bytes(response.into_body(), 1 << 24).await.unwrap();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

/// Every name of a metric in a text, series of histograms included.
fn names(text: &str) -> BTreeSet<&str> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).filter(|word| word.starts_with("segue_")).collect()
}

#[test]
fn every_metric_is_documented_with_its_type_and_labels_and_no_other_is() {
    let rows = |line: &&str| line.starts_with("| `segue_");
    let documented: Vec<&str> = DOCS.lines().filter(rows).collect();
    for metric in ALL {
        let labels: Vec<String> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
        let row =
            format!("| `{}` | {} | {} |", metric.name, metric.kind.name(), labels.join(", ")).replace("|  |", "| |");
        assert!(documented.iter().any(|line| line.starts_with(&row)), "docs/metrics.md has no row that begins {row}");
    }
    assert_eq!(documented.len(), ALL.len());
}

#[test]
fn dashboard_and_alerts_ask_for_metrics_that_exist() {
    let known: BTreeSet<String> = ALL
        .iter()
        .flat_map(|metric| match metric.kind {
            Kind::Histogram(_) => ["_bucket", "_sum", "_count"].map(|end| format!("{}{end}", metric.name)).to_vec(),
            Kind::Counter | Kind::Gauge => vec![metric.name.to_owned()],
        })
        .collect();
    let dashboard: Value = serde_json::from_str(GRAFANA).unwrap();
    let queries: Vec<&str> = dashboard["panels"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|panel| panel["targets"].as_array().unwrap())
        .map(|target| target["expr"].as_str().unwrap())
        .collect();
    assert!(queries.len() > 20);
    for text in queries.into_iter().chain([ALERTS]) {
        let asked = names(text);
        assert!(!asked.is_empty(), "{text}");
        for name in asked {
            assert!(known.contains(name), "{name} in {text}");
        }
        assert_eq!(text.matches('(').count(), text.matches(')').count(), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_day_shows_in_every_metric() {
    let tells = Script::telling("One answer is told in pieces, of which there are enough for what is shown here.");
    let (slow, dies) =
        (tells.clone().paced(Duration::from_secs(60), Duration::ZERO), tells.clone().breaking(6, Break::Reset));
    let mut origins = Vec::new();
    let mut text = String::new();
    for (name, script) in [("a", dies), ("b", tells), ("c", slow)] {
        let origin = Origin::local(Scripts::fixed(script)).await.unwrap();
        let base = origin.base_url();
        text += &format!(
            "[connections.{name}]\ndialect = \"chat\"\nbase_url = \"{base}\"\napi_key = {{ env = \"KEY\" }}\n\
             breaker = {{ consecutive = 1 }}\n"
        );
        origins.push(origin);
    }
    text += "[levels.main]\nchain = [{ connection = \"a\", model = \"m\" }, { connection = \"b\", model = \"m\" }]\n\
             [levels.raced]\nchain = [{ connection = \"c\", model = \"m\" }, { connection = \"b\", model = \"m\" }]\n\
             hedge = { after = \"1ms\", budget = 1.0 }\n";
    let house = House::with(&text, origins).await;
    house.chat(&json!({"model": "raced"})).await.assert_whole("raced");
    house.chat(&json!({})).await.assert_whole("spliced");
    house.chat(&json!({})).await.assert_whole("the circuit is open");
    house.chat(&json!({"model": "b/m"})).await.assert_whole("served alone");
    assert_eq!(house.chat(&json!({"model": "nothing"})).await.status, 404);
    house.gateway.fleet().force("a", None, segue::health::breaker::Force::Open);
    let (status, text) = ask(&house.gateway, "/metrics", None).await;
    assert_eq!(status, StatusCode::OK);
    for metric in ALL {
        assert!(text.contains(&format!("# TYPE {} {}\n", metric.name, metric.kind.name())), "{}", metric.name);
        let series = |line: &str| line.starts_with(metric.name);
        assert!(text.lines().any(series), "{} has no series:\n{text}", metric.name);
    }
    for name in names(&text) {
        let known = |metric: &&segue::telemetry::catalogue::Metric| name.starts_with(metric.name);
        assert!(ALL.iter().any(known), "{name}");
    }
    let (status, _) = ask(&house.gateway, "/metrics", Some("a-token")).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED);
}
