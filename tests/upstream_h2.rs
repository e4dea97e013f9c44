//! HTTP/2 over real sockets: resets, graceful ends, windows, many streams.
#![expect(clippy::unwrap_used, reason = "a test's panic is its report")]

mod support;

use futures::StreamExt;
use futures::stream::BoxStream;
use h2::Reason;
use segue::event::Signal;
use segue::upstream::Upstream;
use segue::upstream::http::{Http, Http2, Settings};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use support::attempt::{call, rest, take, tell, text};
use support::h2::H2Server;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

#[tokio::test]
async fn turns_share_a_connection() {
    let server = H2Server::start(100, |exchange| async move { exchange.answer() }).await;
    let http = http(&server.url());
    for _ in 0..3 {
        assert_eq!(tell(&rest(&mut open(&http)).await), "Sent Opened a Finish Ended");
    }
    assert_eq!((server.requests(), server.accepted()), (3, 1));
}

#[tokio::test]
async fn a_stream_that_is_reset_in_its_body_is_a_reset() {
    // NO_ERROR asks not to go on sending (RFC 9113, 8.1): the body has ended, and too early.
    for (reason, kind) in
        [(Reason::INTERNAL_ERROR, "Reset"), (Reason::CANCEL, "Reset"), (Reason::NO_ERROR, "Truncated")]
    {
        let server = H2Server::start(100, move |exchange| async move {
            let mut body = exchange.events();
            body.send("data: text a\n\n");
            sleep(Duration::from_millis(30)).await;
            body.reset(reason);
        })
        .await;
        let told = tell(&rest(&mut open(&http(&server.url()))).await);
        assert_eq!(told, format!("Sent Opened a Failed({kind} Streaming 200)"), "{reason:?}");
    }
}

#[tokio::test]
async fn a_graceful_end_of_the_connection_lets_the_turn_finish_and_the_next_goes_elsewhere() {
    let server = H2Server::start(100, |exchange| async move {
        let mut body = exchange.events();
        body.send("data: text a\n\n");
        body.go_away().await;
        sleep(Duration::from_millis(100)).await;
        body.end("data: text b\n\ndata: finish\n\ndata: [DONE]\n\n");
    })
    .await;
    let http = http(&server.url());
    let mut first = open(&http);
    assert_eq!(tell(&take(&mut first, 3).await), "Sent Opened a");
    sleep(Duration::from_millis(50)).await;
    let mut second = open(&http);
    assert_eq!(tell(&take(&mut second, 3).await), "Sent Opened a");
    assert_eq!(tell(&rest(&mut first).await), "b Finish Ended");
    assert_eq!(tell(&rest(&mut second).await), "b Finish Ended");
    assert_eq!((server.requests(), server.accepted()), (2, 2));
}

#[tokio::test]
async fn what_was_refused_before_it_was_processed_is_sent_again() {
    let server = H2Server::start(100, |exchange| async move {
        if exchange.index == 0 { exchange.reset(Reason::REFUSED_STREAM) } else { exchange.answer() }
    })
    .await;
    assert_eq!(tell(&rest(&mut open(&http(&server.url()))).await), "Sent Opened a Finish Ended");
    assert_eq!(server.requests(), 2);
}

#[tokio::test]
async fn a_server_that_always_refuses_is_asked_a_bounded_number_of_times() {
    let server = H2Server::start(100, |exchange| async move { exchange.reset(Reason::REFUSED_STREAM) }).await;
    assert_eq!(tell(&rest(&mut open(&http(&server.url()))).await), "Sent Failed(Reset Waiting -)");
    assert!(server.requests() <= 3, "{} requests", server.requests());
}

#[tokio::test]
async fn a_connection_that_says_goodbye_before_it_processed_the_request_is_nobodys_failure() {
    // The first connection is answered by hand with SETTINGS and GOAWAY(last stream 0, NO_ERROR).
    let server = H2Server::start(100, |exchange| async move { exchange.answer() }).await;
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let (front, back) = (listener.local_addr().unwrap(), server.addr);
    let proxy = tokio::spawn(async move {
        let (mut first, _) = listener.accept().await.unwrap();
        // The request's HEADERS frame is in it: preface, SETTINGS, WINDOW_UPDATE come before it.
        let mut seen = Vec::new();
        while !seen.windows(4).any(|window| window == [1, 4, 0, 0]) {
            first.read_buf(&mut seen).await.unwrap();
        }
        first.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0]).await.unwrap();
        first.write_all(&[0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]).await.unwrap();
        let (mut second, _) = listener.accept().await.unwrap();
        let mut through = tokio::net::TcpStream::connect(back).await.unwrap();
        let _ = tokio::io::copy_bidirectional(&mut second, &mut through).await;
        drop(first);
    });
    assert_eq!(tell(&rest(&mut open(&http(&format!("http://{front}")))).await), "Sent Opened a Finish Ended");
    proxy.abort();
}

#[tokio::test]
async fn a_used_connection_that_is_gone_is_nobodys_failure_but_a_reset_stream_is_one() {
    let server = H2Server::start(100, |exchange| async move {
        match exchange.index {
            1 => exchange.hangup().await,
            3 => exchange.reset(Reason::INTERNAL_ERROR),
            _ => exchange.answer(),
        }
    })
    .await;
    let http = http(&server.url());
    assert_eq!(tell(&rest(&mut open(&http)).await), "Sent Opened a Finish Ended");
    assert_eq!(tell(&rest(&mut open(&http)).await), "Sent Opened a Finish Ended", "request 1 died, request 2 served");
    assert_eq!(server.requests(), 3);
    assert_eq!(tell(&rest(&mut open(&http)).await), "Sent Failed(Reset Waiting -)");
    assert_eq!(server.requests(), 4);
}

#[tokio::test]
async fn a_slow_reader_holds_up_nobody_and_is_sent_no_more_than_its_window() {
    let pushed = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&pushed);
    let server = H2Server::start(100, move |exchange| {
        let count = Arc::clone(&count);
        async move {
            if exchange.index != 0 {
                return exchange.answer();
            }
            let mut body = exchange.events();
            body.send("data: text a\n\n");
            let comment = format!(":{}\n", "x".repeat(16384));
            while count.load(Ordering::SeqCst) < 8 << 20 {
                count.fetch_add(body.push(&comment).await, Ordering::SeqCst);
            }
        }
    })
    .await;
    let http = http(&server.url());
    let mut slow = open(&http);
    assert_eq!(tell(&take(&mut slow, 3).await), "Sent Opened a");
    for _ in 0..100 {
        if pushed.load(Ordering::SeqCst) >= 200 << 10 {
            break;
        }
        sleep(Duration::from_millis(20)).await;
    }
    for _ in 0..3 {
        let fast = timeout(Duration::from_secs(1), rest(&mut open(&http))).await.unwrap();
        assert_eq!(tell(&fast), "Sent Opened a Finish Ended");
    }
    assert_eq!(server.accepted(), 1, "they share the connection");
    sleep(Duration::from_millis(100)).await;
    let pushed = pushed.load(Ordering::SeqCst);
    assert!((200 << 10..400 << 10).contains(&pushed), "{pushed} bytes were let through to a reader that reads none");
}

#[tokio::test]
async fn a_drop_resets_the_stream_and_leaves_the_connection() {
    let (seen, mut resets) = mpsc::channel(4);
    let server = H2Server::start(100, move |exchange| {
        let seen = seen.clone();
        async move {
            if exchange.index == 1 {
                return exchange.answer();
            }
            let mut body = exchange.events();
            body.send("data: text a\n\n");
            seen.send(body.cancelled().await).await.unwrap();
        }
    })
    .await;
    let http = http(&server.url());
    let mut stream = open(&http);
    assert_eq!(tell(&take(&mut stream, 3).await), "Sent Opened a");
    drop(stream);
    assert_eq!(timeout(Duration::from_secs(1), resets.recv()).await.unwrap(), Some(Reason::CANCEL));
    assert_eq!(tell(&rest(&mut open(&http)).await), "Sent Opened a Finish Ended");
    assert_eq!(server.accepted(), 1);
}

#[tokio::test]
async fn more_turns_than_a_connection_takes_do_not_wait_for_each_other() {
    let server = H2Server::start(100, |exchange| async move {
        let mut body = exchange.events();
        body.send("data: text a\n\n");
        body.cancelled().await;
    })
    .await;
    let http = http(&server.url());
    let mut open: Vec<_> = (0..250).map(|_| open(&http)).collect();
    for stream in &mut open {
        assert_eq!(text(take(stream, 3).await.last().unwrap()), Some("a"));
    }
    assert_eq!(server.accepted(), 3);
}

// === helpers ===

fn http(url: &str) -> Http {
    let base_url = Some(url.to_owned());
    Http::new(Settings { base_url, http2: Http2::PriorKnowledge, ..Settings::new("lines") }).unwrap()
}

fn open(http: &Http) -> BoxStream<'static, Signal> {
    http.open(call("{}")).boxed()
}
