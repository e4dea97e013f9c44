//! Plays one timeline on a connection.

use super::connection::{Connection, Gone};
use super::is_reusable;
use super::records::{Fate, Ticket};
use crate::rig::play::{Act, Answer, Body, Say};
use crate::rig::reading::Reading;
use crate::rig::script::{Close, Script};
use crate::rig::wire::{Api, Names, Whole, Writer};
use std::io::Write;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// One request and its answer.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) api: Api,
    pub(super) names: Names,
    pub(super) ticket: Ticket,
    /// When the request had been read.
    pub(super) start: Instant,
    pub(super) keep_alive: bool,
}

/// How the script ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Over {
    close: Close,
    /// The terminator was written: a peer that leaves now cancels nothing.
    whole: bool,
}

/// The body of a streamed answer.
struct Chunked<'a> {
    connection: &'a mut Connection,
    ticket: &'a Ticket,
    before: u64,
    tokens: usize,
    cut: usize,
    chunk: Vec<u8>,
}

// === impl Exchange ===

impl Exchange {
    /// Plays `acts` as an event stream; `true` if the connection may be used again.
    pub(super) async fn stream(
        self,
        connection: &mut Connection,
        script: &Script,
        reading: &Reading,
        acts: Vec<(Duration, Act<'_>)>,
    ) -> bool {
        let played = self.play(connection, script, reading, acts).await;
        self.settle(connection, played).await
    }

    /// Waits for the end of `acts` and answers with all that they say; `true` if the connection may be used again.
    pub(super) async fn whole(self, connection: &mut Connection, acts: Vec<(Duration, Act<'_>)>) -> bool {
        let played = self.play_whole(connection, acts).await;
        self.settle(connection, played).await
    }

    /// Answers that there is no such model.
    pub(super) async fn no_model(self, connection: &mut Connection, message: &str) -> bool {
        let quoted = serde_json::Value::from(message);
        let body = match self.api {
            Api::Chat | Api::Responses => format!(
                "{{\"error\":{{\"message\":{quoted},\"type\":\"invalid_request_error\",\"param\":\"model\",\
                 \"code\":\"model_not_found\"}}}}"
            ),
            Api::Anthropic => {
                format!("{{\"type\":\"error\",\"error\":{{\"type\":\"not_found_error\",\"message\":{quoted}}}}}")
            }
        };
        let written = connection.whole(404, &[], "application/json", body.as_bytes(), self.keep_alive).await;
        self.settle(connection, written.map(|()| Over::of(Close::End))).await
    }

    /// Closes the connection as the script says and writes down how it ended.
    async fn settle(self, connection: &mut Connection, played: Result<Over, Gone>) -> bool {
        let Over { close, whole } = match played {
            Ok(over) => over,
            Err(Gone) => {
                self.ticket.settle(Fate::Cancelled);
                return false;
            }
        };
        match close {
            Close::Reset => connection.reset().await,
            Close::Hold => {
                connection.gone().await;
                self.ticket.settle(if whole { Fate::Told } else { Fate::Cancelled });
                return false;
            }
            Close::Fin | Close::End => {}
        }
        self.ticket.settle(Fate::Told);
        let reusable = is_reusable(close) && self.keep_alive;
        if !reusable && close != Close::Reset {
            connection.finish().await;
        }
        reusable
    }

    async fn play(
        &self,
        connection: &mut Connection,
        script: &Script,
        reading: &Reading,
        acts: Vec<(Duration, Act<'_>)>,
    ) -> Result<Over, Gone> {
        let mut writer = Writer::new(self.api, self.names.clone(), reading.include_usage, script.quirks.clone());
        let before = connection.sent;
        let mut body =
            Chunked { connection, ticket: &self.ticket, before, tokens: 0, cut: script.quirks.cut, chunk: Vec::new() };
        let mut event = Vec::new();
        let mut whole = false;
        for (at, act) in acts {
            self.wait(body.connection, at).await?;
            event.clear();
            match act {
                Act::Answer(answer) => return self.answer(body.connection, &answer).await,
                Act::Headers => body.head(self.api, &self.names, self.keep_alive).await?,
                Act::Say(say) => {
                    whole |= say == Say::Done;
                    writer.say(&say, &mut event);
                    body.tokens += usize::from(say.is_token());
                    body.event(&event).await?;
                }
                Act::Half(say, half) => {
                    writer.half(&say, half, &mut event);
                    body.event(&event).await?;
                }
                Act::Garbage => {
                    writer.garbage(&mut event);
                    body.event(&event).await?;
                }
                Act::Pings(every) => {
                    writer.say(&Say::Ping, &mut event);
                    let mut next = at;
                    loop {
                        next += every;
                        self.wait(body.connection, next).await?;
                        body.event(&event).await?;
                    }
                }
                Act::Close(Close::End) => {
                    body.end().await?;
                    return Ok(Over { close: Close::End, whole });
                }
                Act::Close(close) => return Ok(Over { close, whole }),
            }
        }
        Ok(Over::of(Close::Fin))
    }

    async fn play_whole(&self, connection: &mut Connection, acts: Vec<(Duration, Act<'_>)>) -> Result<Over, Gone> {
        let mut whole = Whole::default();
        let mut failed = None;
        for (at, act) in acts {
            match act {
                Act::Say(Say::Error { wrong, .. }) => failed = failed.or(Some(wrong)),
                Act::Say(say) => whole.say(&say),
                Act::Headers | Act::Half(..) | Act::Garbage => {}
                Act::Answer(answer) => {
                    self.wait(connection, at).await?;
                    return self.answer(connection, &answer).await;
                }
                // A body that is not there yet has nothing to ping with.
                Act::Pings(_) => return Ok(Over::of(Close::Hold)),
                Act::Close(close) => {
                    self.wait(connection, at).await?;
                    if let Some(wrong) = failed {
                        let answer = Answer { status: self.api.status(wrong), headers: None, body: Body::Error(wrong) };
                        return self.answer(connection, &answer).await;
                    }
                    if !whole.is_finished() {
                        // A broken answer is none, whatever a stream would have shown of it.
                        return Ok(Over::of(if close == Close::End { Close::Fin } else { close }));
                    }
                    let json = whole.render(self.api, &self.names);
                    let headers = [(self.api.request_id_header(), self.names.id.as_str())];
                    let before = connection.sent;
                    connection.whole(200, &headers, "application/json", json.as_bytes(), self.keep_alive).await?;
                    self.ticket.wrote(connection.sent - before, 0);
                    return Ok(Over::of(if close == Close::Hold { Close::End } else { close }));
                }
            }
        }
        Ok(Over::of(Close::Fin))
    }

    async fn answer(&self, connection: &mut Connection, answer: &Answer<'_>) -> Result<Over, Gone> {
        let (body, kind) = answer.render(self.api);
        let own = answer.headers.into_iter().flatten().map(|(name, value)| (name.as_str(), value.as_str()));
        let headers: Vec<(&str, &str)> = own.chain([(self.api.request_id_header(), self.names.id.as_str())]).collect();
        let before = connection.sent;
        connection.whole(answer.status, &headers, kind, body.as_bytes(), self.keep_alive).await?;
        self.ticket.wrote(connection.sent - before, 0);
        Ok(Over::of(Close::End))
    }

    /// Waits until `at` after the request, unless the peer leaves before.
    async fn wait(&self, connection: &mut Connection, at: Duration) -> Result<(), Gone> {
        let due = self.start + at;
        if due <= Instant::now() {
            return Ok(());
        }
        tokio::select! {
            biased;
            () = connection.gone() => Err(Gone),
            () = sleep_until(due) => Ok(()),
        }
    }
}

// === impl Over ===

impl Over {
    fn of(close: Close) -> Self {
        Self { close, whole: false }
    }
}

// === impl Chunked ===

impl Chunked<'_> {
    async fn head(&mut self, api: Api, names: &Names, keep_alive: bool) -> Result<(), Gone> {
        let close = if keep_alive { "" } else { "connection: close\r\n" };
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ncache-control: no-cache\r\n\
             transfer-encoding: chunked\r\n{}: {}\r\n{close}\r\n",
            api.request_id_header(),
            names.id
        );
        self.write(head.as_bytes()).await
    }

    /// Writes one event as a chunk of its own, or as several where the script cuts.
    async fn event(&mut self, event: &[u8]) -> Result<(), Gone> {
        let size = if self.cut == 0 { event.len().max(1) } else { self.cut };
        for piece in event.chunks(size) {
            let mut chunk = std::mem::take(&mut self.chunk);
            chunk.clear();
            // A vector takes everything.
            let _ = write!(chunk, "{:x}\r\n", piece.len());
            chunk.extend_from_slice(piece);
            chunk.extend_from_slice(b"\r\n");
            let written = self.write(&chunk).await;
            self.chunk = chunk;
            written?;
        }
        Ok(())
    }

    async fn end(&mut self) -> Result<(), Gone> {
        self.write(b"0\r\n\r\n").await
    }

    async fn write(&mut self, bytes: &[u8]) -> Result<(), Gone> {
        self.connection.write(bytes).await?;
        self.ticket.wrote(self.connection.sent - self.before, self.tokens);
        Ok(())
    }
}
