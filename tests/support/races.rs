//! Races over real sockets: how soon a loser's connection is closed after the winner's first word, and how soon a
//! provider learns that the client has hung up. The providers note it themselves, on the clock of this process.

use super::h2::H2Server;
use super::house::House;
use super::raw::RawServer;
use bytes::Bytes;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::{Instant, sleep, timeout};

/// What is spoken, to the providers and by the client alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Http {
    /// HTTP/1.1: to cancel is to close the connection.
    One,
    /// HTTP/2 with prior knowledge: to cancel is to reset the stream.
    Two,
}

/// A provider of either kind.
enum Provider {
    One(RawServer),
    Two(H2Server),
}

/// When something was seen.
type Seen = mpsc::UnboundedReceiver<Instant>;

/// Runs `count` races, one after another, that the hedge wins; from its first word on the wire to the moment when the
/// loser sees its own connection closed or its stream reset.
pub(crate) async fn losers(http: Http, count: usize) -> Vec<Duration> {
    let (closed, mut closings) = mpsc::unbounded_channel();
    let (won, mut wins) = mpsc::unbounded_channel();
    // The winner waits for the loser to have been reached: on a busy machine it would not be, and there were no race.
    let reached = Arc::new(Semaphore::new(0));
    let loser = silent(http, closed, Some(Arc::clone(&reached))).await;
    let winner = quick(http, won, reached).await;
    let house = house(http, &[&loser, &winner], "hedge = { after = \"5ms\", budget = 1.0 }\nbudget = 1.0").await;
    let mut times = Vec::with_capacity(count);
    for _ in 0..count {
        let body = ask(house.addr).await;
        assert!(body.contains("won") && body.contains("[DONE]"), "{body}");
        let (won, closed) = (next(&mut wins).await, next(&mut closings).await);
        times.push(closed.saturating_duration_since(won));
    }
    times
}

/// Runs `count` turns whose client hangs up after the first word; from there to the moment when the provider sees it.
pub(crate) async fn hangups(http: Http, count: usize) -> Vec<Duration> {
    let (closed, mut closings) = mpsc::unbounded_channel();
    let provider = silent(http, closed, None).await;
    let house = house(http, &[&provider], "").await;
    let mut times = Vec::with_capacity(count);
    match http {
        Http::One => {
            for _ in 0..count {
                let mut client = TcpStream::connect(house.addr).await.unwrap();
                client.write_all(request(house.addr).as_bytes()).await.unwrap();
                until(&mut client, "won").await;
                let left = Instant::now();
                drop(client);
                times.push(next(&mut closings).await.saturating_duration_since(left));
            }
        }
        Http::Two => {
            let io = TcpStream::connect(house.addr).await.unwrap();
            io.set_nodelay(true).unwrap();
            let (client, connection) = h2::client::handshake(io).await.unwrap();
            let connection = tokio::spawn(connection);
            for _ in 0..count {
                let mut client = client.clone().ready().await.unwrap();
                let request = http::Request::post(format!("http://{}/v1/chat/completions", house.addr))
                    .header("content-type", "application/json")
                    .body(())
                    .unwrap();
                let (response, mut upload) = client.send_request(request, false).unwrap();
                upload.send_data(Bytes::from_static(BODY.as_bytes()), true).unwrap();
                let mut body = response.await.unwrap().into_body();
                let mut heard = String::new();
                while !heard.contains("won") {
                    let piece = body.data().await.unwrap().unwrap();
                    body.flow_control().release_capacity(piece.len()).unwrap();
                    heard.push_str(std::str::from_utf8(&piece).unwrap());
                }
                let left = Instant::now();
                upload.send_reset(h2::Reason::CANCEL);
                drop(body);
                times.push(next(&mut closings).await.saturating_duration_since(left));
            }
            connection.abort();
        }
    }
    times
}

/// The value that `percent` of `times` do not exceed.
pub(crate) fn percentile(times: &mut [Duration], percent: usize) -> Duration {
    times.sort();
    times[(times.len() * percent).div_ceil(100).clamp(1, times.len()) - 1]
}

// === providers ===

/// Answers with headers, and a word unless it is to lose, then nothing; says that it was reached, and notes when its peer
/// has left.
async fn silent(http: Http, closed: mpsc::UnboundedSender<Instant>, loses: Option<Arc<Semaphore>>) -> Provider {
    match http {
        Http::One => Provider::One(
            RawServer::start(move |mut conn| {
                let (closed, loses) = (closed.clone(), loses.clone());
                async move {
                    let Some(_) = conn.request().await else { return };
                    conn.events().await;
                    match loses {
                        Some(reached) => reached.add_permits(1),
                        None => drop(conn.chunk(word()).await),
                    }
                    conn.closed().await;
                    let _ = closed.send(Instant::now());
                }
            })
            .await,
        ),
        Http::Two => Provider::Two(
            H2Server::start(1000, move |exchange| {
                let (closed, loses) = (closed.clone(), loses.clone());
                async move {
                    let mut body = exchange.events();
                    match loses {
                        Some(reached) => reached.add_permits(1),
                        None => body.send(&word()),
                    }
                    body.cancelled().await;
                    let _ = closed.send(Instant::now());
                }
            })
            .await,
        ),
    }
}

/// Answers as soon as the other was `reached`, notes when, and finishes a little later.
async fn quick(http: Http, won: mpsc::UnboundedSender<Instant>, reached: Arc<Semaphore>) -> Provider {
    match http {
        Http::One => Provider::One(
            RawServer::start(move |mut conn| {
                let (won, reached) = (won.clone(), Arc::clone(&reached));
                async move {
                    while conn.request().await.is_some() {
                        conn.events().await;
                        reached.acquire().await.unwrap().forget();
                        let _ = won.send(Instant::now());
                        conn.chunk(word()).await;
                        sleep(REST).await;
                        conn.chunk(rest()).await;
                        conn.end().await;
                    }
                }
            })
            .await,
        ),
        Http::Two => Provider::Two(
            H2Server::start(1000, move |exchange| {
                let (won, reached) = (won.clone(), Arc::clone(&reached));
                async move {
                    let mut body = exchange.events();
                    reached.acquire().await.unwrap().forget();
                    let _ = won.send(Instant::now());
                    body.send(&word());
                    sleep(REST).await;
                    body.end(&rest());
                }
            })
            .await,
        ),
    }
}

impl Provider {
    fn url(&self) -> String {
        match self {
            Self::One(server) => server.url(),
            Self::Two(server) => server.url(),
        }
    }
}

async fn house(http: Http, providers: &[&Provider], level: &str) -> House {
    let http2 = if http == Http::Two { "prior_knowledge" } else { "off" };
    let (mut connections, mut chain) = (String::new(), String::new());
    for (provider, name) in providers.iter().zip(["a", "b"]) {
        let url = provider.url();
        connections +=
            &format!("[connections.{name}]\ndialect = \"chat\"\nbase_url = \"{url}\"\nhttp2 = \"{http2}\"\n");
        chain += &format!("{{ connection = \"{name}\", model = \"m\" }}, ");
    }
    House::with(&format!("{connections}\n[levels.main]\nchain = [{chain}]\n{level}\n"), Vec::new()).await
}

// === the client ===

/// One turn over a connection of its own, to its end.
async fn ask(addr: SocketAddr) -> String {
    let mut client = TcpStream::connect(addr).await.unwrap();
    client.write_all(request(addr).as_bytes()).await.unwrap();
    until(&mut client, "[DONE]").await
}

fn request(addr: SocketAddr) -> String {
    let length = BODY.len();
    format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: {addr}\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n{BODY}"
    )
}

/// Reads until `mark` has come; all that did.
async fn until(client: &mut TcpStream, mark: &str) -> String {
    let mut heard = Vec::new();
    let read = async {
        while !String::from_utf8_lossy(&heard).contains(mark) {
            let count = client.read_buf(&mut heard).await.unwrap();
            assert!(count > 0, "it ended: {}", String::from_utf8_lossy(&heard));
        }
    };
    timeout(PATIENCE, read).await.unwrap_or_else(|_| panic!("`{mark}` does not come"));
    String::from_utf8_lossy(&heard).into_owned()
}

async fn next(seen: &mut Seen) -> Instant {
    timeout(PATIENCE, seen.recv()).await.unwrap_or_else(|_| panic!("a provider was not told")).unwrap()
}

fn word() -> String {
    chunk(r#"{"role":"assistant","content":"won"}"#, "null")
}

fn rest() -> String {
    format!("{}data: [DONE]\n\n", chunk("{}", "\"stop\""))
}

fn chunk(delta: &str, finish: &str) -> String {
    format!(
        "data: {{\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{{\"index\":0,\
         \"delta\":{delta},\"finish_reason\":{finish}}}]}}\n\n"
    )
}

const BODY: &str = r#"{"model":"main","stream":true,"messages":[{"role":"user","content":"go"}]}"#;

/// From the winner's first word to its end.
const REST: Duration = Duration::from_millis(3);

/// Nothing here takes longer, unless it is broken.
const PATIENCE: Duration = Duration::from_secs(5);
