//! What holds when this process itself is short of something: workers, descriptors, patience.
#![expect(clippy::unwrap_used, reason = "a test's panic is its report")]

mod support;

use http::HeaderMap;
use segue::rig::origin::{Origin, Scripts};
use segue::rig::script::Script;
use segue::upstream::client::Client;
use serde_json::Value;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;
use support::program::{Running, SERVE, Stream, ask, scratch};

fn file(name: &str, origin: &Origin, server: &str) -> String {
    let text = format!(
        "[server]\n{server}\n[ledger]\npath = \"off\"\n[connections.a]\ndialect = \"chat\"\nbase_url = \"{0}\"\n\
         [connections.b]\ndialect = \"chat\"\nbase_url = \"{0}\"\n\
         [levels.main]\nretries = 0\nchain = [{{ connection = \"a\", model = \"m\" }}, {{ connection = \"b\", model = \"m\" }}]\n",
        origin.base_url()
    );
    scratch(name, &text).to_str().unwrap().to_owned()
}

async fn circuits(admin: &str) -> Value {
    let answer = Client::new().unwrap().get(&format!("{admin}/api/circuits"), HeaderMap::new()).await.unwrap();
    serde_json::from_slice(&answer.bytes(1 << 20).await.unwrap()).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_take_every_place_take_none_from_providers_and_operators() {
    let origin = Origin::local(Scripts::fixed(Script::telling("hello"))).await.unwrap();
    let path = file("places", &origin, "");
    // A shell lowers the hard limit, which the program cannot raise again.
    let mut command = Command::new("sh");
    let program = format!("ulimit -n 100; exec {} {} --config {path}", env!("CARGO_BIN_EXE_segue"), SERVE.join(" "));
    command.args(["-c", &program]).env_clear().stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut gateway = Running::of(command, Stream::Err);
    let clients = gateway.find("clients", "/v1");
    let admin = gateway.find("admin", "/api");
    let place = clients.trim_start_matches("http://").to_owned();

    let mut streams: Vec<TcpStream> = (0..90).map(|_| TcpStream::connect(&place).unwrap()).collect();
    let body = r#"{"model": "main", "messages": [{"role": "user", "content": "x"}]}"#;
    // The first are in, and are served again and again.
    for _ in 0..8 {
        let first = &mut streams[0];
        first.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let head =
            format!("POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n", body.len());
        first.write_all(format!("{head}{body}").as_bytes()).unwrap();
        let mut heard = String::new();
        while !heard.trim_end().ends_with('}') {
            let mut piece = [0; 4096];
            let count = first.read(&mut piece).unwrap();
            assert!(count > 0, "{heard}");
            heard += &String::from_utf8_lossy(&piece[..count]);
        }
        assert!(heard.starts_with("HTTP/1.1 200"), "{heard}");
    }
    let told = circuits(&admin).await;
    for circuit in told.as_array().unwrap() {
        assert_eq!((&circuit["state"], &circuit["failures"]), (&"closed".into(), &0.into()), "{told}");
    }
    // Who waited at the door comes in when others have left.
    drop(streams);
    assert_eq!(ask(&format!("{clients}/v1"), "main").await.0, 200);
    assert_eq!(gateway.stop(), Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_bound_on_connections_can_be_set() {
    let origin = Origin::local(Scripts::fixed(Script::telling("hello"))).await.unwrap();
    let path = file("bound", &origin, "max_connections = 2");
    let mut gateway = Running::start(&[&SERVE[..], &["--config", &path]].concat(), &[], Stream::Err);
    let clients = gateway.find("clients", "/v1");
    let place = clients.trim_start_matches("http://").to_owned();
    let mut streams: Vec<TcpStream> = (0..3).map(|_| TcpStream::connect(&place).unwrap()).collect();
    let health = |stream: &mut TcpStream, patience: u64| {
        stream.set_read_timeout(Some(Duration::from_millis(patience))).unwrap();
        stream.read(&mut [0; 64])
    };
    for stream in &mut streams {
        stream.write_all(b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    }
    assert!(health(&mut streams[0], 20_000).is_ok() && health(&mut streams[1], 20_000).is_ok());
    assert!(health(&mut streams[2], 100).is_err(), "the third waits at the door");
    streams.remove(0);
    assert!(health(&mut streams[1], 20_000).is_ok(), "and comes in when one has left");
    drop(streams);
    assert_eq!(gateway.stop(), Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn told_twice_it_stops_at_once() {
    let slow = Script::telling("one two three four").paced(Duration::ZERO, Duration::from_secs(30));
    let origin = Origin::local(Scripts::fixed(slow)).await.unwrap();
    let path = file("twice", &origin, "drain = \"5m\"");
    let mut gateway = Running::start(&[&SERVE[..], &["--config", &path]].concat(), &[], Stream::Err);
    let clients = gateway.find("clients", "/v1");
    let body = r#"{"model": "main", "stream": true, "messages": [{"role": "user", "content": "x"}]}"#;
    let client = Client::new().unwrap();
    let answer = client.post(&format!("{clients}/v1/chat/completions"), HeaderMap::new(), body).await.unwrap();
    gateway.signal("INT");
    gateway.until("draining");
    gateway.signal("INT");
    assert_eq!(gateway.wait(), Some(130));
    drop(answer);
}
