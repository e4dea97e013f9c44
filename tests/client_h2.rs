//! Clients that speak HTTP/2: one that takes nothing is let go, though its connection lives.
#![expect(clippy::unwrap_used, reason = "a test's panic is its report")]

mod support;

use bytes::Bytes;
use segue::fleet::Held;
use segue::rig::origin::Scripts;
use segue::rig::script::Script;
use std::time::Duration;
use support::house::House;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};

#[tokio::test]
async fn a_client_that_gives_no_window_holds_a_provider_no_longer_than_client_write() {
    let script = Script::telling(&"word ".repeat(1000)).paced(Duration::ZERO, Duration::from_millis(100));
    let level = "timeouts = { client_write = \"500ms\" }";
    let house = House::of(vec![("chat", Scripts::fixed(script))], "", level).await;
    let mut client = h2::client::Builder::new();
    client.initial_window_size(0).enable_push(false);
    let socket = TcpStream::connect(house.addr).await.unwrap();
    let (mut send, connection) = client.handshake::<_, Bytes>(socket).await.unwrap();
    let connection = tokio::spawn(connection);
    let uri = format!("http://{}/v1/chat/completions", house.addr);
    let request = http::Request::post(uri).header("content-type", "application/json").body(()).unwrap();
    let body = r#"{"model": "main", "stream": true, "messages": [{"role": "user", "content": "x"}]}"#;
    let (answer, mut sent) = send.send_request(request, false).unwrap();
    sent.send_data(Bytes::from_static(body.as_bytes()), true).unwrap();
    let answer = answer.await.unwrap();
    assert_eq!(answer.status(), 200);
    assert_eq!(house.gateway.open_turns(), 1);
    let since = Instant::now();
    while house.gateway.open_turns() > 0 || house.gateway.fleet().held() != Held::default() {
        assert!(since.elapsed() < Duration::from_secs(20), "{:?} is still held", house.gateway.fleet().held());
        sleep(Duration::from_millis(20)).await;
    }
    assert!(Duration::from_millis(300) < since.elapsed(), "it has its time");
    assert_eq!(house.gateway.recent(1)[0].outcome.name(), "interrupted");
    assert!(!connection.is_finished(), "its other streams go on");
    connection.abort();
}
