//! One attempt over real sockets: what comes back from a provider, and what is told of it.
#![expect(clippy::unwrap_used, reason = "a test's panic is its report")]

mod support;

use futures::{FutureExt, StreamExt};
use segue::event::Signal;
use segue::failure::{Kind, Stage};
use segue::upstream::Upstream;
use std::time::Duration;
use support::attempt::{call, failure, http, open, rest, take, tell, text, told};
use support::raw::{Conn, RawServer};
use tokio::time::{Instant, sleep};

// === the happy path ===

#[tokio::test]
async fn a_turn_is_sent_opened_told_step_by_step_and_ended() {
    let server = RawServer::start(|mut conn| async move {
        conn.request().await;
        conn.events().await;
        conn.chunk("data: text a\n\ndata: text b\n\n").await;
        conn.chunk("data: nothing\n\ndata: finish\n\ndata: [DONE]\n\n").await;
        conn.end().await;
    })
    .await;
    assert_eq!(told(&server).await, "Sent Opened a b Finish Ended");
}

#[tokio::test]
async fn a_read_that_completes_no_event_is_a_sign_of_life() {
    let server = RawServer::start(|mut conn| async move {
        conn.request().await;
        conn.events().await;
        for piece in [": waiting\n\n", "data: te", "xt a\n", "\n: b\n\n", "data: nothing\n\n", "data: [DONE]\n\n"] {
            sleep(Duration::from_millis(20)).await;
            conn.chunk(piece).await;
        }
    })
    .await;
    assert_eq!(told(&server).await, "Sent Opened Alive Alive Alive a Alive Ended");
}

#[tokio::test]
async fn steps_of_one_read_come_without_waiting_for_the_socket() {
    let server = RawServer::start(|mut conn| async move {
        conn.request().await;
        conn.events().await;
        conn.chunk("data: text a\n\ndata: text b\n\ndata: text c\n\n").await;
        conn.closed().await;
    })
    .await;
    let mut stream = open(&server);
    assert_eq!(tell(&take(&mut stream, 3).await), "Sent Opened a");
    let b = stream.next().now_or_never().flatten().unwrap();
    let c = stream.next().now_or_never().flatten().unwrap();
    assert_eq!(tell(&[b, c]), "b c");
    assert!(stream.next().now_or_never().is_none());
}

#[tokio::test]
async fn the_terminator_ends_the_turn_whatever_the_socket_does() {
    let server = RawServer::start(|mut conn| async move {
        conn.request().await;
        conn.events().await;
        conn.chunk("data: text a\n\ndata: [DONE]\n\n").await;
        conn.closed().await;
    })
    .await;
    let mut stream = open(&server);
    assert_eq!(tell(&take(&mut stream, 3).await), "Sent Opened a");
    assert_eq!(stream.next().now_or_never(), Some(Some(Signal::Ended)), "it waits for the end of the body");
    assert!(stream.next().await.is_none());
    assert!(server.saw_closed(1).await, "a body that does not end is dropped, even if the stream is kept");
}

#[tokio::test]
async fn four_mebibytes_in_one_event_arrive_and_more_than_the_limit_is_framing() {
    let server = RawServer::start(|mut conn| async move {
        let request = conn.request().await.unwrap();
        let size: usize = String::from_utf8(request.body).unwrap().parse().unwrap();
        conn.events().await;
        conn.chunk("data: text ").await;
        for _ in 0..size / 16384 {
            if !conn.chunk(vec![b'z'; 16384]).await {
                return conn.closed().await;
            }
        }
        conn.chunk("\n\ndata: [DONE]\n\n").await;
        conn.closed().await;
    })
    .await;
    let http = http(&server.url());
    let signals = rest(&mut http.open(call(&(4 << 20).to_string()))).await;
    let texts: Vec<usize> = signals.iter().filter_map(|signal| text(signal).map(str::len)).collect();
    assert_eq!(texts, [4 << 20]);
    assert_eq!(signals.last(), Some(&Signal::Ended));

    let mut large = call(&(64 << 20).to_string());
    large.max_event = 1 << 20;
    let failure = failure(&rest(&mut http.open(large)).await);
    assert_eq!((failure.kind, failure.stage), (Kind::Framing, Stage::Streaming));
    assert!(failure.said.message.contains("1048576"), "{failure:?}");
    assert!(server.saw_closed(2).await);
}

// === what came back is not what was asked for ===

#[tokio::test]
async fn a_body_is_read_by_what_it_is() {
    let json = r#"  {"text": "a"}"#;
    let events = "data: text a\n\ndata: finish\n\ndata: [DONE]\n\n";
    for (content_type, body, wanted) in [
        ("application/json", json, "a Finish Ended"),
        ("application/json; charset=utf-8", json, "a Finish Ended"),
        ("text/event-stream", json, "a Finish Ended"),
        ("", json, "a Finish Ended"),
        ("text/html", json, "a Finish Ended"),
        ("application/json", r#"{"error": "no"}"#, "Failed(ServerError Refused 200)"),
        ("text/event-stream", r#"{"error": "no"}"#, "Failed(ServerError Refused 200)"),
        ("application/json", r#"{"text": "#, "Failed(Framing Streaming 200)"),
        ("application/json", "", "Failed(Framing Streaming 200)"),
        ("", events, "a Finish Ended"),
        ("text/plain", events, "a Finish Ended"),
        ("application/json", events, "a Finish Ended"),
        ("text/html", "<html><body>sign in</body></html>", "Failed(Framing Streaming 200)"),
        ("text/event-stream", "<!doctype html><html>", "Failed(Framing Streaming 200)"),
        ("image/png", "\u{1}\u{2}", "Failed(Framing Streaming 200)"),
        ("text/event-stream", "", "Failed(EmptyTurn Streaming 200)"),
        ("", "", "Failed(EmptyTurn Streaming 200)"),
        ("text/event-stream", "\n\n: hm\n\n", "Failed(EmptyTurn Streaming 200)"),
        ("text/event-stream", "data: text a\n\n", "a Failed(Truncated Streaming 200)"),
        ("text/event-stream", "data: wrong\n\ndata: text a\n\n", "Failed(Malformed Streaming 200)"),
        ("text/event-stream", "data: error no\n\ndata: [DONE]\n\n", "Failed(Overloaded Streaming 200)"),
    ] {
        let server = RawServer::start(move |mut conn| async move {
            conn.request().await;
            let content_type = if content_type.is_empty() { "x" } else { content_type };
            let name = if content_type == "x" { "x-no-type" } else { "content-type" };
            let length = body.len();
            conn.send(format!("HTTP/1.1 200 OK\r\n{name}: {content_type}\r\ncontent-length: {length}\r\n\r\n{body}"))
                .await;
            conn.closed().await;
        })
        .await;
        let told = told(&server).await.replace(" Alive", "");
        assert_eq!(told, format!("Sent Opened {wanted}"), "{content_type:?} {body:?}");
    }
}

#[tokio::test]
async fn empty_lines_before_a_whole_answer_are_signs_of_life() {
    let server = RawServer::start(|mut conn| async move {
        conn.request().await;
        conn.head("200 OK", &[("content-type", "application/json")]).await;
        for piece in ["\n", "\n\n", r#"{"text""#, r#": "a"}"#] {
            sleep(Duration::from_millis(20)).await;
            conn.chunk(piece).await;
        }
        conn.end().await;
    })
    .await;
    assert_eq!(told(&server).await, "Sent Opened Alive Alive Alive Alive a Finish Ended");
}

#[tokio::test]
async fn a_whole_answer_over_the_limit_is_framing() {
    let server = RawServer::start(|mut conn| async move {
        conn.request().await;
        conn.head("200 OK", &[("content-type", "application/json")]).await;
        conn.chunk("{").await;
        while conn.chunk([b' '; 4096]).await {}
        conn.closed().await;
    })
    .await;
    let mut large = call("");
    large.max_event = 1 << 20;
    let failure = failure(&rest(&mut http(&server.url()).open(large)).await);
    assert_eq!(failure.kind, Kind::Framing);
    assert!(server.saw_closed(1).await);
}

#[tokio::test]
async fn gzip_is_undone_as_it_comes_and_what_is_not_gzip_is_framing() {
    let server = RawServer::start(|mut conn| async move {
        let request = conn.request().await.unwrap();
        let coding = String::from_utf8(request.body).unwrap();
        let headers = [("content-type", "text/event-stream"), ("content-encoding", coding.trim_start_matches("bad "))];
        conn.head("200 OK", &headers).await;
        let [first, second] = gzip(["data: text a\n\n", "data: [DONE]\n\n"]);
        conn.chunk(if coding.starts_with("bad") { b"not gzip at all".to_vec() } else { first }).await;
        sleep(Duration::from_millis(300)).await;
        conn.chunk(second).await;
        conn.end().await;
    })
    .await;
    let http = http(&server.url());
    let mut stream = http.open(call("gzip"));
    assert_eq!(tell(&take(&mut stream, 3).await), "Sent Opened a");
    assert!(stream.next().now_or_never().is_none(), "the first event came before the second was sent");
    assert_eq!(tell(&rest(&mut stream).await).replace("Alive ", ""), "Ended");
    for coding in ["br", "bad gzip"] {
        assert_eq!(failure(&rest(&mut http.open(call(coding))).await).kind, Kind::Framing, "{coding}");
    }
}

// === refusals ===

#[tokio::test]
async fn a_refusal_is_classified_from_status_and_body_and_a_redirect_is_one() {
    for (status, wanted) in [
        ("429 Too Many Requests", "Failed(RateLimited Refused 429)"),
        ("500 Internal Server Error", "Failed(ServerError Refused 500)"),
        ("400 Bad Request", "Failed(BadRequest Refused 400)"),
        ("302 Found\r\nlocation: http://127.0.0.1:9/", "Failed(BadRequest Refused 302)"),
    ] {
        let server = RawServer::start(move |mut conn| async move {
            while conn.request().await.is_some() {
                conn.whole(status, "application/json", r#"{"error": "why"}"#).await;
            }
        })
        .await;
        let http = http(&server.url());
        for _ in 0..3 {
            let signals = rest(&mut http.open(call(""))).await;
            assert_eq!(tell(&signals), format!("Sent {wanted}"));
            assert_eq!(failure(&signals).said.message, r#"16 bytes: {"error": "why"}"#);
        }
        assert_eq!(server.accepted(), 1, "a refusal that was read to its end leaves its connection usable");
    }
}

#[tokio::test]
async fn an_error_body_that_never_ends_is_bounded_in_time() {
    let server = RawServer::start(|mut conn| async move {
        conn.request().await;
        conn.head("429 Too Many Requests", &[]).await;
        conn.chunk("slow down").await;
        conn.closed().await;
    })
    .await;
    let http = http(&server.url());
    let begun = Instant::now();
    for _ in 0..20 {
        let failure = failure(&rest(&mut http.open(call(""))).await);
        assert_eq!((failure.kind, failure.said.message.as_str()), (Kind::RateLimited, "9 bytes: slow down"));
    }
    assert!(begun.elapsed() < Duration::from_secs(5), "20 bodies of 100 ms took {:?}", begun.elapsed());
    assert!(server.saw_closed(20).await, "every one was closed");
}

#[tokio::test]
async fn an_error_body_is_bounded_in_size_and_a_broken_one_counts_as_far_as_it_came() {
    let server = RawServer::start(|mut conn| async move {
        let request = conn.request().await.unwrap();
        conn.head("500 Internal Server Error", &[]).await;
        if request.body == b"broken" {
            conn.chunk("oh").await;
            return conn.reset();
        }
        while conn.chunk([b'x'; 5000]).await {}
        conn.closed().await;
    })
    .await;
    let http = http(&server.url());
    let mut patient = call("");
    patient.error_body = Duration::from_secs(30);
    let large = failure(&rest(&mut http.open(patient)).await);
    assert!(large.said.message.starts_with("65536 bytes: xxx"), "{}", large.said.message);
    assert!(server.saw_closed(1).await);
    let broken = failure(&rest(&mut http.open(call("broken"))).await);
    assert_eq!((broken.kind, broken.status), (Kind::ServerError, Some(500)));
}

// === broken connections ===

#[tokio::test]
async fn a_body_that_breaks_off_is_a_reset_unless_the_answer_was_whole() {
    let one: fn(Conn) -> futures::future::BoxFuture<'static, ()> = |conn| async move { conn.close() }.boxed();
    let reset: fn(Conn) -> futures::future::BoxFuture<'static, ()> = |conn| async move { conn.reset() }.boxed();
    for (end, name) in [(one, "fin"), (reset, "rst")] {
        for (body, wanted) in [
            ("data: text a\n\n", "a Failed(Reset Streaming 200)"),
            ("data: text a\n\ndata: text b", "a Failed(Reset Streaming 200)"),
            ("data: text a\n\ndata: finish\n\n", "a Finish Ended"),
            ("data: text a\n\ndata: finish", "a Finish Ended"),
        ] {
            let server = RawServer::start(move |mut conn| async move {
                conn.request().await;
                conn.events().await;
                conn.chunk(body).await;
                sleep(Duration::from_millis(50)).await;
                end(conn).await;
            })
            .await;
            assert_eq!(told(&server).await, format!("Sent Opened {wanted}"), "{name} {body:?}");
        }
    }
}

#[tokio::test]
async fn a_chunk_that_is_cut_is_a_reset_and_one_that_is_garbled_is_framing() {
    for (bytes, wanted) in
        [("40\r\ndata: text b\n", "Alive Failed(Reset Streaming 200)"), ("zz\r\n", "Failed(Framing Streaming 200)")]
    {
        let server = RawServer::start(move |mut conn| async move {
            conn.request().await;
            conn.events().await;
            conn.chunk("data: text a\n\n").await;
            sleep(Duration::from_millis(20)).await;
            conn.send(bytes).await;
        })
        .await;
        assert_eq!(told(&server).await, format!("Sent Opened a {wanted}"));
    }
}

#[tokio::test]
async fn a_body_that_is_ended_by_the_connection_counts_what_is_terminal_at_its_end() {
    for (body, wanted) in [
        ("data: text a\n\ndata: [DONE]", "a Ended"),
        ("data: text a\n\ndata: finish\n", "a Finish Ended"),
        ("data: text a\n\ndata: text b\n", "a Failed(Truncated Streaming 200)"),
        ("data: text a\n\n", "a Failed(Truncated Streaming 200)"),
    ] {
        let server = RawServer::start(move |mut conn| async move {
            conn.request().await;
            conn.send(format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n{body}")).await;
        })
        .await;
        assert_eq!(told(&server).await, format!("Sent Opened {wanted}"), "{body:?}");
    }
}

#[tokio::test]
async fn a_new_connection_that_breaks_before_headers_is_a_reset_and_not_sent_again() {
    let reset = RawServer::start(|mut conn| async move {
        conn.request().await;
        conn.reset();
    })
    .await;
    assert_eq!(told(&reset).await, "Sent Failed(Reset Waiting -)");
    assert_eq!(reset.requests().len(), 1);
    let closed = RawServer::start(|mut conn| async move {
        conn.request().await;
    })
    .await;
    assert_eq!(told(&closed).await, "Sent Failed(Reset Waiting -)");
    assert_eq!(closed.requests().len(), 1);
}

// === helpers ===

/// One gzip member whose pieces are stored blocks, so that each can be read when it has come.
fn gzip(pieces: [&str; 2]) -> [Vec<u8>; 2] {
    let block = |piece: &str, last: bool| {
        let length = u16::try_from(piece.len()).unwrap();
        let mut block = vec![u8::from(last)];
        block.extend(length.to_le_bytes());
        block.extend((!length).to_le_bytes());
        block.extend(piece.bytes());
        block
    };
    let all = pieces.concat();
    let crc = !all.bytes().fold(!0_u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| if crc & 1 == 1 { (crc >> 1) ^ 0xEDB8_8320 } else { crc >> 1 })
    });
    let mut first = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
    first.extend(block(pieces[0], false));
    let mut second = block(pieces[1], true);
    second.extend(crc.to_le_bytes());
    second.extend(u32::try_from(all.len()).unwrap().to_le_bytes());
    [first, second]
}
