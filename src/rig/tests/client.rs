//! A bare HTTP client: one connection, bytes in, and how the connection ended.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test's panic is its report")]

use crate::rig::wire::Api;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// How a body ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// As HTTP says it should.
    Whole,
    /// FIN before it was whole.
    Fin,
    /// RST.
    Reset,
    /// Nothing came for as long as the client is patient.
    Open,
}

/// An answer.
#[derive(Debug)]
pub(super) struct Got {
    /// 0 if there was no head.
    pub(super) status: u16,
    /// Names in lower case, one a line.
    pub(super) head: String,
    pub(super) body: Vec<u8>,
    /// The body's chunks, as they were framed.
    pub(super) chunks: usize,
    pub(super) end: End,
}

/// A connection.
pub(super) struct Client {
    stream: TcpStream,
    inbox: Vec<u8>,
    /// How long it waits for the next bytes.
    pub(super) patience: Duration,
}

// === impl Client ===

impl Client {
    pub(super) async fn to(addr: SocketAddr) -> Self {
        Self { stream: TcpStream::connect(addr).await.unwrap(), inbox: Vec::new(), patience: PATIENCE }
    }

    pub(super) async fn send(&mut self, api: Api, body: &Value) {
        let path = match api {
            Api::Chat => "/v1/chat/completions",
            Api::Anthropic => "/v1/messages",
            Api::Responses => "/v1/responses",
        };
        let body = body.to_string();
        let text =
            format!("POST {path} HTTP/1.1\r\nhost: x\r\nX-Test: yes\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        self.raw(text.as_bytes()).await;
    }

    pub(super) async fn raw(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
    }

    pub(super) async fn answer(&mut self) -> Got {
        let mut got = Got { status: 0, head: String::new(), body: Vec::new(), chunks: 0, end: End::Whole };
        if let Err(end) = self.read_answer(&mut got).await {
            got.end = end;
        }
        got
    }

    /// Reads until `count` bytes of a body have come.
    pub(super) async fn read_some(&mut self, count: usize) {
        while self.inbox.len() < count {
            self.more().await.expect("more bytes");
        }
    }

    /// Whether the other side closes the connection.
    pub(super) async fn is_closed(&mut self) -> bool {
        loop {
            match self.more().await {
                Ok(()) => {}
                Err(End::Open) => return false,
                Err(_) => return true,
            }
        }
    }

    /// Reads a head alone.
    pub(super) async fn answer_head(&mut self) -> String {
        let end = loop {
            match self.inbox.windows(4).position(|w| w == b"\r\n\r\n") {
                Some(at) => break at,
                None => self.more().await.expect("more bytes"),
            }
        };
        String::from_utf8(self.inbox.drain(..end + 4).collect()).unwrap().to_lowercase()
    }

    async fn read_answer(&mut self, got: &mut Got) -> Result<(), End> {
        let end = loop {
            match self.inbox.windows(4).position(|w| w == b"\r\n\r\n") {
                Some(at) => break at,
                None => self.more().await?,
            }
        };
        let head: Vec<u8> = self.inbox.drain(..end + 4).collect();
        got.head = String::from_utf8(head).unwrap().to_lowercase();
        got.status = got.head[9..12].parse().unwrap();
        if let Some(at) = got.head.find("content-length: ") {
            let length = got.head[at + 16..].split("\r\n").next().unwrap().parse::<usize>().unwrap();
            while self.inbox.len() < length {
                self.more().await?;
            }
            got.body = self.inbox.drain(..length).collect();
            return Ok(());
        }
        assert!(got.head.contains("transfer-encoding: chunked"), "{}", got.head);
        loop {
            let line = loop {
                match self.inbox.windows(2).position(|w| w == b"\r\n") {
                    Some(at) => break at,
                    None => self.more().await?,
                }
            };
            let size = usize::from_str_radix(std::str::from_utf8(&self.inbox[..line]).unwrap(), 16).unwrap();
            while self.inbox.len() < line + 2 + size + 2 {
                self.more().await?;
            }
            got.body.extend_from_slice(&self.inbox[line + 2..line + 2 + size]);
            self.inbox.drain(..line + 2 + size + 2);
            if size == 0 {
                return Ok(());
            }
            got.chunks += 1;
        }
    }

    async fn more(&mut self) -> Result<(), End> {
        match timeout(self.patience, self.stream.read_buf(&mut self.inbox)).await {
            Err(_) => Err(End::Open),
            Ok(Ok(0)) => Err(End::Fin),
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => {
                assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
                Err(End::Reset)
            }
        }
    }
}

/// Asks once on a connection of its own.
pub(super) async fn ask(addr: SocketAddr, api: Api, body: &Value) -> Got {
    let mut client = Client::to(addr).await;
    client.send(api, body).await;
    client.answer().await
}

/// The same for an answer that is not expected to end.
pub(super) async fn ask_endless(addr: SocketAddr, api: Api, body: &Value) -> Got {
    let mut client = Client::to(addr).await;
    client.patience = BRIEFLY;
    client.send(api, body).await;
    client.answer().await
}

/// A request for a stream.
pub(super) fn question() -> Value {
    json!({
        "model": "m", "stream": true, "stream_options": {"include_usage": true}, "max_tokens": 1000,
        "messages": [{"role": "user", "content": "go"}],
    })
}

/// A request to go on after `told`, as the last message or, with `quote`, by a message that quotes it.
pub(super) fn go_on(told: &str, quote: Option<&str>) -> Value {
    let mut body = question();
    let messages = body["messages"].as_array_mut().unwrap();
    messages.push(json!({"role": "assistant", "content": told}));
    if let Some(quote) = quote {
        messages.push(json!({"role": "user", "content": format!("It stopped after <<{quote}>>, please go on.")}));
    }
    body
}

/// For what must come.
const PATIENCE: Duration = Duration::from_secs(10);

/// For what should not.
const BRIEFLY: Duration = Duration::from_millis(400);
