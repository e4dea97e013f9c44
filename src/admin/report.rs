//! `/api/report` and `/api/spend`: what the ledger tells.

use super::{Admin, problem};
use crate::ledger::reader::Reader;
use crate::ledger::report::Ask;
use crate::ledger::when;
use axum::Json;
use axum::extract::{Query, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use serde::Deserialize;
use serde_json::json;
use std::path::PathBuf;
use std::time::SystemTime;

/// Query of `/api/report` and `/api/spend`.
#[derive(Debug, Deserialize)]
pub(super) struct Wanted {
    from: Option<String>,
    to: Option<String>,
    tenant: Option<String>,
    level: Option<String>,
    format: Option<String>,
}

/// The report of a span of time; of the last day unless it is said.
pub(super) async fn report(State(admin): State<Admin>, Query(wanted): Query<Wanted>) -> Response {
    let now = SystemTime::now();
    let moments = (wanted.from.as_deref().unwrap_or("24h"), wanted.to.as_deref().unwrap_or("now"));
    let (from, to) = match span(moments, now) {
        Ok(span) => span,
        Err(why) => return problem(StatusCode::BAD_REQUEST, &why),
    };
    let format = wanted.format.unwrap_or_else(|| "json".to_owned());
    if !["json", "text", "markdown", "html"].contains(&&*format) {
        return problem(StatusCode::BAD_REQUEST, "format: write json, text, markdown or html");
    }
    let ask = Ask { from, to, tenant: wanted.tenant, level: wanted.level };
    let report = match read(&admin, move |reader| reader.report(&ask)).await {
        Ok(report) => report,
        Err(response) => return *response,
    };
    match &*format {
        "text" => report.text().into_response(),
        "markdown" => ([(header::CONTENT_TYPE, "text/markdown; charset=utf-8")], report.markdown()).into_response(),
        "html" => {
            let mut response = Html(report.html()).into_response();
            // The page is styled by itself, and names from requests stand in it.
            let policy =
                HeaderValue::from_static("default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'");
            response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
            response
        }
        _ => Json(report).into_response(),
    }
}

/// What was spent in a span of time; in this month, in UTC, unless it is said.
pub(super) async fn spend(State(admin): State<Admin>, Query(wanted): Query<Wanted>) -> Response {
    let now = SystemTime::now();
    let seconds = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    let [_, (month, _)] = when::periods(seconds);
    let month = month.to_string();
    let moments = (wanted.from.as_deref().unwrap_or(&month), wanted.to.as_deref().unwrap_or("now"));
    let (from, to) = match span(moments, now) {
        Ok(span) => span,
        Err(why) => return problem(StatusCode::BAD_REQUEST, &why),
    };
    match read(&admin, move |reader| reader.spent(from, to)).await {
        Ok(spent) => Json(json!({ "from": from, "to": to, "spent": spent })).into_response(),
        Err(response) => *response,
    }
}

// === helpers ===

fn span((from, to): (&str, &str), now: SystemTime) -> Result<(f64, f64), String> {
    let from = when::moment(from, now).map_err(|why| format!("from: {why}"))?;
    let to = when::moment(to, now).map_err(|why| format!("to: {why}"))?;
    if from < to { Ok((from, to)) } else { Err("from: must be before `to`".to_owned()) }
}

/// Asks the ledger, on a thread that may wait for the disk.
async fn read<T: Send + 'static>(
    admin: &Admin,
    ask: impl FnOnce(&Reader) -> Result<T, String> + Send + 'static,
) -> Result<T, Box<Response>> {
    let Some(path) = admin.gateway.ledger().map(|ledger| PathBuf::from(ledger.path())) else {
        let message =
            "this gateway keeps no ledger: it runs without a configuration file, or with `ledger.path = \"off\"`";
        return Err(Box::new(problem(StatusCode::NOT_FOUND, message)));
    };
    let asked = tokio::task::spawn_blocking(move || ask(&Reader::open(&path)?)).await;
    let answer = asked.unwrap_or_else(|error| Err(format!("the ledger's reader broke off: {error}")));
    answer.map_err(|why| Box::new(problem(StatusCode::SERVICE_UNAVAILABLE, &why)))
}
