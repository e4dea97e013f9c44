//! One hostile client, with a provider of its own that helps it: every way to cost others something that is known.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// What the hostile provider can be asked for: calls of one-byte pieces without an end, an event of a million empty
/// calls, an event that never ends, bytes that are no events, and an object that nobody asked for.
pub(crate) const MODELS: [&str; 5] = ["pieces", "wide", "endless", "noise", "object"];

/// Who is attacked how often, and with what.
struct Attack {
    name: &'static str,
    head: &'static str,
    body: String,
    /// Between two of them.
    pause: Duration,
    way: Way,
}

/// How a request is sent and its answer read.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    Plain,
    /// The body comes in drops, and never whole.
    Trickles,
    /// Nothing of the answer is read.
    Deaf,
}

/// Starts all attacks; each tells which statuses it heard how often, once it is stopped.
pub(crate) fn all(address: &str, stop: &Arc<AtomicBool>) -> JoinSet<(&'static str, BTreeMap<String, u32>)> {
    let mut attacks = JoinSet::new();
    for attack in list() {
        let (address, stop) = (address.to_owned(), Arc::clone(stop));
        attacks.spawn(async move {
            let mut heard = BTreeMap::<String, u32>::new();
            while !stop.load(Ordering::Relaxed) {
                *heard.entry(attack.play(&address).await).or_default() += 1;
                tokio::time::sleep(attack.pause).await;
            }
            (attack.name, heard)
        });
    }
    attacks
}

fn list() -> Vec<Attack> {
    let chat = |model: &str, more: &str| {
        format!(r#"{{"model":"{model}","stream":true,"messages":[{{"role":"user","content":"x"}}]{more}}}"#)
    };
    let plain =
        |name, body, pause| Attack { name, head: "", body, pause: Duration::from_millis(pause), way: Way::Plain };
    let mut chain = String::new();
    let mut doubling = String::new();
    for n in 0..4000 {
        write!(chain, r##""d{n}":{{"$ref":"#/$defs/d{}"}},"##, n + 1).unwrap();
    }
    for n in 0..40 {
        write!(doubling, r##""d{n}":{{"allOf":[{{"$ref":"#/$defs/d{0}"}},{{"$ref":"#/$defs/d{0}"}}]}},"##, n + 1)
            .unwrap();
    }
    let schema = |defs: &str, last: u32| {
        let schema = format!(r##"{{"$ref":"#/$defs/d0","$defs":{{{defs}"d{last}":{{}}}}}}"##);
        let format = r#","response_format":{"type":"json_schema","json_schema":{"name":"a","schema":"#;
        chat("object", &format!("{format}{schema}}}}}"))
    };
    let echo = r#","you exceeded your current quota, insufficient balance, invalid api key, model not found":1"#;
    let mut list = vec![
        plain("a schema of many references", schema(&chain, 4000), 50),
        plain("a schema that doubles", schema(&doubling, 40), 50),
        plain("a body of many values", chat("main", &format!(r#","x":[{}[]]"#, "[[]],".repeat(1 << 20))), 1000),
        plain("a body that is too large", chat("main", &format!(r#","x":"{}""#, "x".repeat(40 << 20))), 2000),
        plain("a body that is too deep", "[".repeat(1 << 20), 200),
        plain("many messages", many_messages(), 1000),
        plain("words of a provider's refusals", chat("main", echo), 50),
        plain("a level that is not there, with a line of its own", chat("x\\nERROR y\\u001b[2J", ""), 20),
        plain("no JSON", "\u{fffd}\u{0}garbage".repeat(1000), 20),
        plain("calls of one-byte pieces", chat("pieces", ""), 100),
        plain("an event of empty calls", chat("wide", ""), 1000),
        plain("an event without an end", chat("endless", ""), 1000),
        plain("no events", chat("noise", ""), 50),
    ];
    let foreign = "origin: https://evil.example\r\n";
    list.push(Attack { head: foreign, ..plain("a foreign page", chat("main", ""), 20) });
    for _ in 0..4 {
        list.push(Attack { way: Way::Trickles, ..plain("a body in drops", chat("main", ""), 100) });
        list.push(Attack { way: Way::Deaf, ..plain("a client that reads nothing", chat("main", ""), 100) });
    }
    list
}

fn many_messages() -> String {
    let message = r#"{"role":"user","content":"a"},"#;
    format!(r#"{{"model":"main","stream":true,"messages":[{}]}}"#, message.repeat(100_000).trim_end_matches(','))
}

impl Attack {
    /// Plays it once, and tells the status that came back, if one did.
    async fn play(&self, address: &str) -> String {
        let Ok(mut stream) = TcpStream::connect(address).await else { return "refused".to_owned() };
        let length = self.body.len() + usize::from(self.way == Way::Trickles) * 1_000_000;
        let head = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: {address}\r\n{}content-type: application/json\r\n\
             connection: close\r\ncontent-length: {length}\r\n\r\n",
            self.head
        );
        let mut answer = Vec::new();
        let way = self.way;
        let exchange = async {
            stream.write_all(head.as_bytes()).await?;
            stream.write_all(self.body.as_bytes()).await?;
            match way {
                Way::Plain => stream.take(1 << 20).read_to_end(&mut answer).await.map(drop),
                Way::Trickles => loop {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    stream.write_all(b" ").await?;
                },
                Way::Deaf => std::future::pending().await,
            }
        };
        // A refusal may come before all is sent, and some answers have no end.
        let patience = if way == Way::Plain { 12 } else { 3 };
        let _ = tokio::time::timeout(Duration::from_secs(patience), exchange).await;
        let status: String = String::from_utf8_lossy(&answer).chars().skip(9).take(3).collect();
        if status.is_empty() { "nothing".to_owned() } else { status }
    }
}

/// A provider that answers as its model's name says. Gives its port.
pub(crate) async fn provider() -> u16 {
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
    let (mut asked, mut piece) = (Vec::new(), vec![0; 64 << 10]);
    // All requests end in a brace, and nothing else of them does at the end of a read of this size.
    while !String::from_utf8_lossy(&asked).contains("\"model\":") || !asked.ends_with(b"}") {
        let read = stream.read(&mut piece).await?;
        if read == 0 {
            return Ok(());
        }
        asked.extend_from_slice(&piece[..read]);
    }
    let asked = String::from_utf8_lossy(&asked);
    let model = MODELS.iter().find(|model| asked.contains(&format!("\"model\":\"{model}\""))).copied();
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n").await?;
    match model.unwrap_or_default() {
        "pieces" => {
            let call = r#"{"index":0,"id":"t","type":"function","function":{"name":"f","arguments":"{"}}"#;
            stream.write_all(event(&format!(r#"{{"tool_calls":[{call}]}}"#), "null").as_bytes()).await?;
            let more = vec![r#"{"index":0,"function":{"arguments":"a"}}"#; 20].join(",");
            let more = event(&format!(r#"{{"tool_calls":[{more}]}}"#), "null");
            loop {
                stream.write_all(more.as_bytes()).await?;
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        }
        "wide" => {
            let calls = vec!["{}"; 1 << 20].join(",");
            stream.write_all(event(&format!(r#"{{"tool_calls":[{calls}]}}"#), "null").as_bytes()).await?;
        }
        "endless" => {
            stream.write_all(b"data: {\"choices\":[{\"delta\":{\"content\":\"").await?;
            for _ in 0..400 {
                stream.write_all(&[b'a'; 64 << 10]).await?;
            }
        }
        "noise" => stream.write_all(&[b'\xff'; 4 << 10]).await?,
        _ => {
            stream.write_all(event(r#"{"content":"{\"a\":[1,2]}"}"#, "null").as_bytes()).await?;
            stream.write_all((event("{}", "\"stop\"") + "data: [DONE]\n\n").as_bytes()).await?;
        }
    }
    Ok(())
}

fn event(delta: &str, finish: &str) -> String {
    format!(
        "data: {{\"id\":\"c\",\"created\":1,\"model\":\"m\",\"choices\":[{{\"index\":0,\"delta\":{delta},\"finish_reason\":{finish}}}]}}\n\n"
    )
}
