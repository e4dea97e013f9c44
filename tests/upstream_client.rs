//! Segue as somebody's client.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's panic is its report")]

mod support;

use futures::StreamExt;
use http::HeaderMap;
use segue::upstream::client::{Answer, Broken, Client};
use std::time::Duration;
use support::raw::RawServer;
use tokio::time::sleep;

#[tokio::test]
async fn events_come_as_they_are_sent_each_with_its_time() {
    let server = RawServer::start(|mut conn| async move {
        conn.request().await;
        conn.events().await;
        conn.chunk(": hello\n\nevent: ping\nid: 7\ndata: a\ndata: b\n\n").await;
        sleep(Duration::from_millis(60)).await;
        conn.chunk("data: c\n\n").await;
        conn.end().await;
    })
    .await;
    let mut headers = HeaderMap::new();
    headers.insert("authorization", "Bearer k".parse().unwrap());
    let answer = Client::new().unwrap().post(&server.url(), headers, "{}").await.unwrap();
    assert_eq!((answer.status, &answer.headers["content-type"]), (200, &"text/event-stream".parse().unwrap()));
    let headers_at = answer.at;
    let events: Vec<_> = answer.events().map(Result::unwrap).collect().await;
    let [first, second] = &events[..] else { panic!("{events:?}") };
    assert_eq!((first.name.as_str(), first.data.as_str(), first.id.as_str()), ("ping", "a\nb", "7"));
    assert_eq!((second.name.as_str(), second.data.as_str()), ("message", "c"));
    assert!(headers_at <= first.at);
    assert!(second.at - first.at >= Duration::from_millis(50), "{:?}", second.at - first.at);
    let request = &server.requests()[0];
    assert!(request.headers.contains(&("authorization".to_owned(), "Bearer k".to_owned())));
    assert!(request.headers.contains(&("content-type".to_owned(), "application/json".to_owned())));
}

#[tokio::test]
async fn a_byte_order_mark_is_no_part_of_the_first_event_however_it_is_cut() {
    let server = RawServer::start(|mut conn| async move {
        let request = conn.request().await.unwrap();
        conn.events().await;
        let body = String::from_utf8(request.body).unwrap();
        for piece in body.split('|') {
            let bytes: Vec<u8> = piece.chars().map(|c| u8::try_from(u32::from(c)).unwrap()).collect();
            conn.chunk(bytes).await;
            sleep(Duration::from_millis(20)).await;
        }
        conn.end().await;
    })
    .await;
    let client = Client::new().unwrap();
    for body in [
        "\u{ef}\u{bb}\u{bf}data: a\n\n",
        "\u{ef}|\u{bb}|\u{bf}|data: a\n\n",
        "\u{ef}\u{bb}|\u{bf}data: a\n\n",
        "\u{ef}\u{bb}\u{bf}\n\ndata: a\n\n",
        "d|ata: a\n\n",
    ] {
        let events: Vec<_> = post(&client, &server, body).await.events().map(|e| e.unwrap().data).collect().await;
        assert_eq!(events, ["a"], "{body:?}");
    }
}

#[tokio::test]
async fn a_break_ends_the_events_with_one_error_and_a_drop_hangs_up() {
    let server = RawServer::start(|mut conn| async move {
        let request = conn.request().await.unwrap();
        conn.events().await;
        conn.chunk("data: a\n\n").await;
        sleep(Duration::from_millis(30)).await;
        if request.body == b"break" { conn.reset() } else { conn.closed().await }
    })
    .await;
    let client = Client::new().unwrap();
    let events: Vec<_> = post(&client, &server, "break").await.events().collect().await;
    assert_eq!(events.len(), 2);
    assert!(matches!(&events[1], Err(Broken::Reset(_))), "{:?}", events[1]);

    let mut events = post(&client, &server, "hang").await.events();
    assert_eq!(events.next().await.unwrap().unwrap().data, "a");
    drop(events);
    assert!(server.saw_closed(1).await);
}

#[tokio::test]
async fn a_whole_body_is_bounded_and_a_missing_server_is_named() {
    let server = RawServer::start(|mut conn| async move {
        while conn.request().await.is_some() {
            conn.whole("404 Not Found", "application/json", r#"{"error": 1}"#).await;
        }
    })
    .await;
    let client = Client::new().unwrap();
    let answer = client.get(&server.url(), HeaderMap::new()).await.unwrap();
    assert_eq!(answer.status, 404);
    assert_eq!(answer.bytes(100).await.unwrap(), br#"{"error": 1}"#);
    let long = post(&client, &server, "{}").await.bytes(5).await;
    assert!(matches!(&long, Err(Broken::Garbled(why)) if why.contains("5 bytes")), "{long:?}");

    let nobody = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap().local_addr().unwrap();
    let refused = client.post(&format!("http://{nobody}/"), HeaderMap::new(), "{}").await.unwrap_err();
    assert!(matches!(refused, Broken::Connect(_)), "{refused:?}");
    let unusable = client.post("nonsense", HeaderMap::new(), "{}").await.unwrap_err();
    assert!(matches!(unusable, Broken::Unusable(_)), "{unusable:?}");
}

// === helpers ===

async fn post(client: &Client, server: &RawServer, body: &'static str) -> Answer {
    client.post(&server.url(), HeaderMap::new(), body).await.unwrap()
}
