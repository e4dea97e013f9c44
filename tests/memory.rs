//! The built program under a flood, watched from outside: requests that are small as text and large as values, answers
//! of one-byte pieces without an end. Its memory stays under half a gigabyte, and other turns are exact.
#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test's panic is its report")]

mod support;

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use support::program::{Running, SERVE, Stream, ask, scratch};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// What the gateway may hold, and what the process may take.
const BUFFER: &str = "160MiB";
const MOST: u64 = 512 << 20;

/// A provider that answers `model` "calls" with a call of one-byte pieces that has no end, and others with a word.
async fn provider() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(answer(stream));
        }
    });
    port
}

async fn answer(mut stream: TcpStream) -> std::io::Result<()> {
    let mut asked = Vec::new();
    let mut piece = vec![0; 64 << 10];
    loop {
        let read = stream.read(&mut piece).await?;
        asked.extend_from_slice(&piece[..read]);
        let Some(end) = asked.windows(4).position(|w| w == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&asked[..end]).to_lowercase();
        let length = head.split("content-length: ").nth(1).unwrap().split("\r\n").next().unwrap().parse::<usize>();
        if read == 0 || asked.len() >= end + 4 + length.unwrap() {
            break;
        }
    }
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n").await?;
    if String::from_utf8_lossy(&asked).contains("\"calls\"") {
        let call = r#"{"index":0,"id":"t","type":"function","function":{"name":"f","arguments":"{"}}"#;
        stream.write_all(event(&format!(r#"{{"tool_calls":[{call}]}}"#), "null").as_bytes()).await?;
        let pieces = vec![r#"{"index":0,"function":{"arguments":"a"}}"#; 500].join(",");
        let more = event(&format!(r#"{{"tool_calls":[{pieces}]}}"#), "null");
        loop {
            stream.write_all(more.as_bytes()).await?;
        }
    }
    stream.write_all(event(r#"{"content":"well"}"#, "null").as_bytes()).await?;
    stream.write_all((event("{}", "\"stop\"") + "data: [DONE]\n\n").as_bytes()).await
}

fn event(delta: &str, finish: &str) -> String {
    format!(
        "data: {{\"id\":\"c\",\"created\":1,\"model\":\"m\",\"choices\":[{{\"index\":0,\"delta\":{delta},\"finish_reason\":{finish}}}]}}\n\n"
    )
}

/// `VmRSS` and `VmHWM` of a process, in bytes.
fn memory(process: u32) -> (u64, u64) {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let of = |name: &str| {
        let line = status.lines().find_map(|l| l.strip_prefix(name)).unwrap();
        line.trim_matches([':', ' ', '\t']).split_whitespace().next().unwrap().parse::<u64>().unwrap() * 1024
    };
    (of("VmRSS"), of("VmHWM"))
}

/// Sends a request and reads its answer for at most `patience`; gives the status.
async fn post(address: &str, body: &[u8], patience: Duration) -> String {
    let Ok(mut stream) = TcpStream::connect(address).await else { return String::new() };
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let mut answer = Vec::new();
    let exchange = async {
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(body).await?;
        stream.read_to_end(&mut answer).await
    };
    // A refusal may come before all is sent.
    let _ = tokio::time::timeout(patience, exchange).await;
    String::from_utf8_lossy(&answer).chars().skip(9).take(3).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg(target_os = "linux")]
async fn a_flood_of_dear_requests_and_endless_answers_takes_no_more_than_it_may() {
    let port = provider().await;
    let mut text = format!("[server]\nbuffer = \"{BUFFER}\"\n[limits]\nmax_values = 100000000\n");
    for name in ["a", "b"] {
        write!(text, "[connections.{name}]\ndialect = \"chat\"\nbase_url = \"http://127.0.0.1:{port}/v1\"\n").unwrap();
    }
    for (level, model) in [("calls", "calls"), ("well", "m")] {
        write!(text, "[levels.{level}]\nretries = 0\nchain = [{{ connection = \"a\", model = \"{model}\" }}, {{ connection = \"b\", model = \"{model}\" }}]\n").unwrap();
    }
    let file = scratch("memory", &text);
    let arguments = [&SERVE[..], &["--config", file.to_str().unwrap()]].concat();
    let mut gateway = Running::start(&arguments, &[], Stream::Err);
    let base_url = gateway.find("  clients  ", "/v1") + "/v1";
    let address = base_url.trim_start_matches("http://").trim_end_matches("/v1").to_owned();
    let seconds = std::env::var("SEGUE_SECONDS").ok().and_then(|s| s.parse().ok()).unwrap_or(6);
    let until = Instant::now() + Duration::from_secs(seconds);
    let dear = |bytes: usize| {
        let nested = "[[]],".repeat(bytes / 5);
        format!(r#"{{"model":"well","stream":true,"messages":[{{"role":"user","content":"x"}}],"x":[{nested}[]]}}"#)
    };
    let bodies = Arc::new([
        dear(31 << 20),
        dear(1 << 20),
        dear(300 << 10),
        r#"{"model":"calls","stream":true,"messages":[{"role":"user","content":"x"}]}"#.to_owned(),
    ]);
    let stop = Arc::new(AtomicBool::new(false));
    let mut flood = tokio::task::JoinSet::new();
    for number in 0..12 {
        let (address, bodies, stop) = (address.clone(), Arc::clone(&bodies), Arc::clone(&stop));
        flood.spawn(async move {
            let mut heard = std::collections::BTreeMap::<String, u32>::new();
            while !stop.load(Ordering::Relaxed) {
                let status = post(&address, bodies[number % bodies.len()].as_bytes(), Duration::from_secs(8)).await;
                *heard.entry(status).or_default() += 1;
            }
            (number % bodies.len(), heard)
        });
    }
    let (mut exact, mut most) = (0, 0);
    while Instant::now() < until {
        let (status, answer) = ask(&base_url, "well").await;
        // Where all memory is taken a new turn hears so.
        if status == 200 {
            assert_eq!(answer["choices"][0]["message"]["content"], "well");
            exact += 1;
        } else {
            assert_eq!((status, &answer["error"]["code"]), (503, &"buffer_full".into()), "{answer}");
        }
        most = most.max(memory(gateway.id()).0);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    stop.store(true, Ordering::Relaxed);
    let mut told = String::new();
    while let Some(Ok((kind, heard))) = flood.join_next().await {
        writeln!(told, "kind {kind}: {heard:?}").unwrap();
    }
    let (_, peak) = memory(gateway.id());
    // Pages go back when the allocator next looks, which is some seconds later.
    let patience = Instant::now() + Duration::from_secs(30);
    let mut kept = memory(gateway.id()).0;
    while kept >= MOST / 2 && Instant::now() < patience {
        tokio::time::sleep(Duration::from_millis(500)).await;
        kept = memory(gateway.id()).0;
    }
    let told = format!("{exact} exact; peak {} MiB, afterwards {} MiB\n{told}", peak >> 20, kept >> 20);
    assert!(peak < MOST, "{told}");
    assert!(kept < MOST / 2, "{told}");
    assert!(exact > 10, "{told}");
    assert_eq!(gateway.stop(), Some(0));
}
