//! From a request to a response: read it within the limits, begin the turn, wait until the status is known.

use super::body::TurnBody;
use super::{key, refuse};
use crate::chat::DialectId;
use crate::dialect::{self, Reason, Refusal};
use crate::gateway::Gateway;
use crate::gateway::drive::{Drive, Start};
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::Response;
use bytes::{Bytes, BytesMut};
use futures::StreamExt;

/// Serves one turn in the dialect `id`.
pub(super) async fn turn(gateway: &Gateway, id: DialectId, request: Request) -> Response {
    match begin(gateway, id, request).await {
        Ok(drive) => respond(gateway, id, drive).await,
        Err(refusal) => refuse(id, &refusal),
    }
}

async fn begin(gateway: &Gateway, id: DialectId, request: Request) -> Result<Started, Refusal> {
    let (parts, body) = request.into_parts();
    let caller = gateway.authorize(key(&parts.headers))?;
    let body = read(body, gateway.config().server.max_body).await?;
    let Some(dialect) = dialect::of(id) else {
        return Err(Refusal::new(Reason::NotFound, "unknown_route", "this dialect is not built in"));
    };
    let request = dialect.parse(&parts.headers, &body)?;
    drop(body);
    let stream = request.stream;
    let drive = gateway.begin(&caller, request).await?;
    Ok(Started { drive, stream })
}

/// A turn that has begun.
struct Started {
    drive: Drive,
    stream: bool,
}

/// Reads a body of at most `limit` bytes.
async fn read(body: Body, limit: usize) -> Result<Bytes, Refusal> {
    let too_large = || {
        let message =
            format!("the request body is larger than {limit} bytes (server.max_body); shorten it or raise the limit");
        Refusal::new(Reason::TooLarge, "request_too_large", message)
    };
    let hint = http_body::Body::size_hint(&body);
    if hint.lower() > limit as u64 {
        return Err(too_large());
    }
    let mut pieces = body.into_data_stream();
    let mut first: Option<Bytes> = None;
    let mut whole = BytesMut::new();
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(|e| {
            Refusal::new(Reason::Request, "unreadable_body", format!("the request body could not be read: {e}"))
        })?;
        let so_far = if whole.is_empty() { first.as_ref().map_or(0, Bytes::len) } else { whole.len() };
        if so_far + piece.len() > limit {
            return Err(too_large());
        }
        match first.take() {
            // Most bodies come in one piece and are not copied.
            None if whole.is_empty() => first = Some(piece),
            Some(head) => {
                whole.reserve(usize::try_from(hint.lower()).unwrap_or_default().max(head.len() + piece.len()));
                whole.extend_from_slice(&head);
                whole.extend_from_slice(&piece);
            }
            None => whole.extend_from_slice(&piece),
        }
    }
    Ok(first.unwrap_or_else(|| whole.freeze()))
}

async fn respond(gateway: &Gateway, id: DialectId, started: Started) -> Response {
    let Started { mut drive, stream } = started;
    if let Start::Refused(refusal) = drive.start(gateway.headers_after()).await {
        let mut response = refuse(id, &refusal);
        describe(&drive, &mut response, false);
        return response;
    }
    let mut response = Response::new(Body::empty());
    describe(&drive, &mut response, !stream);
    let headers = response.headers_mut();
    if stream {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=utf-8"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
        headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
        *response.body_mut() = Body::new(TurnBody(drive));
    } else {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let bytes = std::future::poll_fn(|cx| drive.poll_frame(cx)).await;
        *response.body_mut() = Body::from(bytes.unwrap_or_default());
    }
    response
}

/// What became of the turn so far, for people who look at headers.
fn describe(drive: &Drive, response: &mut Response, whole: bool) {
    let (attempts, splices) = drive.counts();
    let mut facts = vec![
        ("x-segue-turn", Some(drive.id().to_owned())),
        ("x-segue-level", Some(drive.level().to_owned())),
        ("x-segue-served-by", drive.served_by()),
        ("x-segue-dropped", Some(drive.dropped().join(", ")).filter(|d| !d.is_empty())),
    ];
    if whole {
        facts.push(("x-segue-splices", Some(splices.to_string())));
        facts.push(("x-segue-attempts", Some(attempts.to_string())));
    }
    for (name, value) in facts {
        let Some(value) = value.and_then(|v| HeaderValue::from_str(&v).ok()) else { continue };
        response.headers_mut().insert(HeaderName::from_static(name), value);
    }
}
