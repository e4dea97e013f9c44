//! From a request to a response: read it within the limits, begin the turn, wait until the status is known.

use super::body::TurnBody;
use super::{coding, key, refuse};
use crate::chat::DialectId;
use crate::dialect::{self, Reason, Refusal};
use crate::gateway::Gateway;
use crate::gateway::buffer::Held;
use crate::gateway::caller::Caller;
use crate::gateway::drive::{Drive, Start};
use axum::body::{Body, BodyDataStream};
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, Version, header};
use axum::response::Response;
use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Serves one turn in the dialect `id`.
pub(super) async fn turn(gateway: &Gateway, id: DialectId, request: Request) -> Response {
    let reading = Arc::from("(a request)");
    match gateway.watchdog().over(&reading, begin(gateway, id, request)).await {
        Ok(drive) => respond(gateway, id, drive).await,
        Err(refusal) => {
            gateway.note_refusal(&refusal);
            refuse(id, &refusal)
        }
    }
}

async fn begin(gateway: &Gateway, id: DialectId, request: Request) -> Result<Started, Refusal> {
    let Received { caller, parts, body, held } = receive(gateway, request).await?;
    let Some(dialect) = dialect::client(id) else {
        return Err(Refusal::new(Reason::NotFound, "unknown_route", "this dialect is not built in"));
    };
    let (headers, version) = (parts.headers, parts.version);
    let counts = gateway.config().limits.bounds;
    let read = move |body: &[u8]| dialect::read(dialect, &headers, body, &counts);
    let (request, held) = gateway.read(body, held, read).await?;
    let stream = request.stream;
    let mut drive = gateway.begin(&caller, request).await?;
    drive.keep(held);
    if stream && version == Version::HTTP_2 {
        // It ends with the turn, so a shutdown need not wait for it.
        tokio::spawn(drive.watch());
    }
    Ok(Started { drive, stream })
}

/// A request that was let in and read.
pub(super) struct Received {
    pub(super) caller: Caller,
    pub(super) parts: Parts,
    pub(super) body: Bytes,
    pub(super) held: Held,
}

/// Asks who asks, reads the body within its limits, and unpacks it.
pub(super) async fn receive(gateway: &Gateway, request: Request) -> Result<Received, Refusal> {
    let (parts, body) = request.into_parts();
    let caller = gateway.authorize(key(&parts.headers))?;
    let server = &gateway.config().server;
    // Who waits to be told to go on is not told, and sends nothing.
    let sends = !parts.headers.contains_key(header::EXPECT);
    let mut held = gateway.hold();
    let bounds = Bounds { body: server.max_body, buffer: server.buffer, within: server.receive };
    let body = read(body, bounds, sends, &mut held).await?;
    let body = coding::decode(&parts.headers, body, (bounds.body, bounds.buffer), &mut held).await?;
    Ok(Received { caller, parts, body, held })
}

/// A turn that has begun.
struct Started {
    drive: Drive,
    stream: bool,
}

/// What a body may take.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    /// Bytes.
    body: usize,
    /// Bytes of all that is held.
    buffer: usize,
    /// The time in which it must have come whole.
    within: Duration,
}

/// Reads a body within `bounds`. One that is too large is read on
/// for a moment, by twice `bounds.body`, if the client `sends` it: many clients read no answer before they have sent all, and
/// a connection that is closed under them says nothing of limits.
async fn read(body: Body, bounds: Bounds, sends: bool, held: &mut Held) -> Result<Bytes, Refusal> {
    let limit = bounds.body;
    let length = http_body::Body::size_hint(&body).lower();
    let mut pieces = body.into_data_stream();
    if length <= limit as u64
        && let Some(whole) = gather(&mut pieces, usize::try_from(length).unwrap_or_default(), bounds, held).await?
    {
        return Ok(whole);
    }
    if sends {
        let rest = async {
            let mut left = limit.saturating_mul(2);
            while let Some(Ok(piece)) = pieces.next().await {
                left = left.saturating_sub(piece.len());
                if left == 0 {
                    break;
                }
            }
        };
        // However it ends, the answer is the same.
        let _ = tokio::time::timeout(LINGER, rest).await;
    }
    let message =
        format!("the request body is larger than {limit} bytes (server.max_body); shorten it or raise the limit");
    Err(Refusal::new(Reason::TooLarge, "request_too_large", message))
}

/// The whole body, of which `length` bytes were announced; `None`: it is too large.
async fn gather(
    pieces: &mut BodyDataStream,
    length: usize,
    bounds: Bounds,
    held: &mut Held,
) -> Result<Option<Bytes>, Refusal> {
    let until = Instant::now() + bounds.within;
    let mut first: Option<Bytes> = None;
    let mut whole = BytesMut::new();
    let mut so_far = 0;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let next = tokio::time::timeout(SILENCE.min(left), pieces.next()).await;
        let late = |_| match bounds.within.as_millis() {
            ms if until <= Instant::now() => {
                unreadable(&format!("it did not come whole within {ms} ms (server.receive)"))
            }
            _ => unreadable(&format!("nothing of it came for {} s", SILENCE.as_secs())),
        };
        let piece = match next.map_err(late)? {
            Some(piece) => piece.map_err(|error| unreadable(&error))?,
            None => return Ok(Some(first.unwrap_or_else(|| whole.freeze()))),
        };
        so_far += piece.len();
        if so_far > bounds.body {
            return Ok(None);
        }
        held.add(piece.len(), bounds.buffer)?;
        match first.take() {
            // Most bodies come in one piece and are not copied.
            None if whole.is_empty() => first = Some(piece),
            Some(head) => {
                whole.reserve(length.max(head.len() + piece.len()));
                whole.extend_from_slice(&head);
                whole.extend_from_slice(&piece);
            }
            None => whole.extend_from_slice(&piece),
        }
    }
}

fn unreadable(why: &dyn std::fmt::Display) -> Refusal {
    Refusal::new(Reason::Request, "unreadable_body", format!("the request body could not be read: {why}"))
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
        *response.body_mut() = Body::new(TurnBody { drive });
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

/// A client that sends nothing of a body for so long is gone.
const SILENCE: Duration = Duration::from_secs(30);
/// For so long a body that is too large is read on.
const LINGER: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test's panic is its report")]
    use super::*;
    use futures::stream;
    use std::convert::Infallible;
    use std::sync::atomic::{AtomicUsize, Ordering};

    const PIECE: usize = 1024;

    /// A body of `pieces`, which ends or hangs; and how many were read.
    fn body(pieces: usize, hangs: bool) -> (Body, Arc<AtomicUsize>) {
        let read = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&read);
        let sent = stream::iter(0..pieces).map(move |_| {
            count.fetch_add(1, Ordering::Relaxed);
            Ok::<_, Infallible>(Bytes::from_static(&[b' '; PIECE]))
        });
        (if hangs { Body::from_stream(sent.chain(stream::pending())) } else { Body::from_stream(sent) }, read)
    }

    fn nothing() -> Held {
        Held::of(&Arc::default())
    }

    fn bounds((body, buffer): (usize, usize)) -> Bounds {
        Bounds { body, buffer, within: Duration::from_secs(120) }
    }

    async fn refused(body: Body, limits: (usize, usize), sends: bool) -> Refusal {
        read(body, bounds(limits), sends, &mut nothing()).await.unwrap_err()
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_trickles_is_given_up() {
        let begun = Instant::now();
        let drops = stream::repeat_with(|| Ok::<_, Infallible>(Bytes::from_static(b" "))).then(|drop| async {
            tokio::time::sleep(Duration::from_secs(10)).await;
            drop
        });
        let refusal = refused(Body::from_stream(drops), (8 * PIECE, 8 * PIECE), true).await;
        assert_eq!((refusal.reason.status(), &*refusal.code), (400, "unreadable_body"));
        assert!(refusal.message.contains("120000 ms (server.receive)"), "{}", refusal.message);
        assert_eq!(begun.elapsed(), Duration::from_secs(120));
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_is_read_within_its_limits_and_no_longer_than_it_comes() {
        let mut held = nothing();
        let whole = read(body(8, false).0, bounds((8 * PIECE, 8 * PIECE)), true, &mut held).await.unwrap();
        assert_eq!(whole.len(), 8 * PIECE);
        let silent = refused(body(8, true).0, (16 * PIECE, 16 * PIECE), true).await;
        assert_eq!((silent.reason.status(), &*silent.code), (400, "unreadable_body"));
        assert!(silent.message.contains("30 s"), "{}", silent.message);
        let full = refused(body(8, false).0, (8 * PIECE, 8 * PIECE - 1), true).await;
        assert_eq!((full.reason.status(), &*full.code), (413, "request_too_large"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_is_too_large_is_read_on_for_a_moment_so_that_its_sender_hears_why() {
        for (pieces, hangs, sends, most) in
            [(12, false, true, 12), (12, true, true, 12), (12, false, false, 9), (1000, false, true, 8 + 1 + 16)]
        {
            let (body, read) = body(pieces, hangs);
            let refusal = refused(body, (8 * PIECE, 100 * PIECE), sends).await;
            assert_eq!((refusal.reason.status(), &*refusal.code), (413, "request_too_large"));
            assert_eq!(read.load(Ordering::Relaxed), most, "{pieces} pieces, hangs: {hangs}, sends: {sends}");
        }
    }
}
