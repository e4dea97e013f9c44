//! What a provider says, as bytes: templates written by hand after the vendors' documents, with the fields that real
//! streams have.
//!
//! Nothing here goes through the product's own dialects: what they read must agree with the API, not with themselves.

use super::play::{Answer, Body, Half, Say};
use super::script::{LineEnd, Quirks, Wrong};
use std::io::Write;
use std::ops::Range;

mod anthropic;
mod chat;
mod responses;
mod whole;

pub use whole::Whole;

/// An API that the rig speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Api {
    /// OpenAI Chat Completions.
    Chat,
    /// Anthropic Messages.
    Anthropic,
    /// OpenAI Responses.
    Responses,
}

/// The names that one answer gives itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    /// Response id.
    pub id: String,
    /// The model.
    pub model: String,
    /// Unix seconds.
    pub created: u64,
}

/// Writes one streamed answer.
#[derive(Debug)]
pub struct Writer {
    api: Api,
    names: Names,
    include_usage: bool,
    quirks: Quirks,
    /// How many things were said.
    said: u64,
    blocks: anthropic::Blocks,
    items: responses::Items,
}

/// Puts events into frames.
struct Frames<'a> {
    quirks: &'a Quirks,
    out: &'a mut Vec<u8>,
    /// The frame of the event that carries what is said: the last one, trailers aside.
    carrier: Range<usize>,
    /// Which thing is said, from 1.
    number: u64,
}

// === impl Api ===

impl Api {
    /// The APIs in which a finish is told before the terminator.
    pub const ALL: [Self; 2] = [Self::Chat, Self::Anthropic];

    /// The API that answers POST at `path`.
    pub fn of_path(path: &str) -> Option<Self> {
        let path = path.split('?').next().unwrap_or_default().trim_end_matches('/');
        if path.ends_with("/chat/completions") {
            Some(Self::Chat)
        } else if path.ends_with("/messages") {
            Some(Self::Anthropic)
        } else if path.ends_with("/responses") {
            Some(Self::Responses)
        } else {
            None
        }
    }

    /// The header that names a request.
    pub fn request_id_header(self) -> &'static str {
        match self {
            Self::Chat | Self::Responses => "x-request-id",
            Self::Anthropic => "request-id",
        }
    }

    /// The names of the answer to request `number`.
    pub fn names(self, number: u64, model: &str, created: u64) -> Names {
        let id = match self {
            Self::Chat => format!("chatcmpl-rig{number:08}"),
            Self::Anthropic => format!("msg_rig{number:08}"),
            Self::Responses => format!("resp_rig{number:08}"),
        };
        Names { id, model: model.to_owned(), created }
    }

    /// The body of an error answer, and its content type.
    pub fn error(self, status: u16, body: Body) -> (String, &'static str) {
        let json = "application/json";
        match (self, body) {
            (_, Body::Html) => (HTML.replace("STATUS", &status.to_string()), "text/html; charset=utf-8"),
            (Self::Chat | Self::Responses, Body::Error(wrong)) => (responses::error(wrong, None), json),
            (Self::Chat | Self::Responses, Body::Invalid(m)) => (responses::error(Wrong::Invalid, Some(m)), json),
            (Self::Anthropic, Body::Error(wrong)) => (anthropic::error(wrong, None), json),
            (Self::Anthropic, Body::Invalid(m)) => (anthropic::error(Wrong::Invalid, Some(m)), json),
        }
    }

    /// The status that goes with an error where the answer is not streamed.
    pub fn status(self, wrong: Wrong) -> u16 {
        match (self, wrong) {
            (Self::Chat | Self::Responses, Wrong::Overloaded) => 503,
            (Self::Anthropic, Wrong::Overloaded) => 529,
            (_, Wrong::Server) => 500,
            (_, Wrong::RateLimited) | (Self::Chat | Self::Responses, Wrong::Quota) => 429,
            (Self::Anthropic, Wrong::Quota) => 402,
            (_, Wrong::Auth) => 401,
            (_, Wrong::Invalid | Wrong::TooLong | Wrong::Filtered) => 400,
        }
    }
}

// === impl Answer ===

impl Answer<'_> {
    /// Its body and content type in `api`.
    pub fn render(&self, api: Api) -> (String, &'static str) {
        api.error(self.status, self.body)
    }
}

// === impl Writer ===

impl Writer {
    /// A writer for one answer. `include_usage`: the client of a chat API asked for usage.
    pub fn new(api: Api, names: Names, include_usage: bool, quirks: Quirks) -> Self {
        Self {
            api,
            names,
            include_usage,
            quirks,
            said: 0,
            blocks: anthropic::Blocks::default(),
            items: responses::Items::default(),
        }
    }

    /// Appends the bytes that say this.
    pub fn say(&mut self, say: &Say<'_>, out: &mut Vec<u8>) {
        self.frames(say, out);
    }

    /// Appends the first half of the bytes that say this: less than a whole event at the end.
    pub fn half(&mut self, say: &Say<'_>, half: Half, out: &mut Vec<u8>) {
        let carrier = self.frames(say, out);
        let start = carrier.start;
        let frame = &out[carrier];
        let cut = match half {
            Half::Middle => frame.len() / 2,
            Half::Char => frame.iter().position(|byte| *byte >= 0xc0).map_or(frame.len() / 2, |lead| lead + 1),
        };
        out.truncate(start + cut);
    }

    /// Appends an event whose data is no JSON.
    pub fn garbage(&mut self, out: &mut Vec<u8>) {
        let mut frames = Frames::new(&self.quirks, out, &mut self.said);
        match self.api {
            Api::Chat => frames.event(None, format_args!("{{\"id\":\"{}\",\"choices\":[{{\"index\":", self.names.id)),
            Api::Anthropic => frames.event(Some("content_block_delta"), format_args!("{{\"type\":\"content_block_del")),
            Api::Responses => {
                frames.event(Some("response.output_text.delta"), format_args!("{{\"type\":\"response.outp"))
            }
        }
    }

    fn frames(&mut self, say: &Say<'_>, out: &mut Vec<u8>) -> Range<usize> {
        let mut frames = Frames::new(&self.quirks, out, &mut self.said);
        match self.api {
            Api::Chat => chat::say(say, &self.names, self.include_usage, &mut frames),
            Api::Anthropic => self.blocks.say(say, &self.names, &mut frames),
            Api::Responses => self.items.say(say, &self.names, &mut frames),
        }
        frames.carrier
    }
}

// === impl Frames ===

impl<'a> Frames<'a> {
    fn new(quirks: &'a Quirks, out: &'a mut Vec<u8>, said: &mut u64) -> Self {
        if quirks.bom && *said == 0 {
            out.extend_from_slice("\u{feff}".as_bytes());
        }
        *said += 1;
        Self { number: *said, carrier: out.len()..out.len(), quirks, out }
    }

    fn event(&mut self, name: Option<&str>, data: std::fmt::Arguments<'_>) {
        let start = self.out.len();
        self.trailer(name, data);
        self.carrier = start..self.out.len();
    }

    /// An event beside the one that carries what is said.
    fn trailer(&mut self, name: Option<&str>, data: std::fmt::Arguments<'_>) {
        if let Some(name) = name {
            self.line("event", format_args!("{name}"));
        }
        self.line("data", data);
        self.end_line();
    }

    fn comment(&mut self, text: &str) {
        self.out.extend_from_slice(b": ");
        self.out.extend_from_slice(text.as_bytes());
        self.end_line();
        self.end_line();
    }

    fn line(&mut self, field: &str, value: std::fmt::Arguments<'_>) {
        self.out.extend_from_slice(field.as_bytes());
        self.out.extend_from_slice(if self.quirks.no_space { b":" } else { b": " });
        // A vector takes everything.
        let _ = self.out.write_fmt(value);
        self.end_line();
    }

    fn end_line(&mut self) {
        self.out.extend_from_slice(match self.quirks.lines {
            LineEnd::Lf => b"\n",
            LineEnd::CrLf => b"\r\n",
            LineEnd::Cr => b"\r",
        });
    }
}

// === helpers ===

/// Shows a text as a JSON string.
struct Quoted<'a>(&'a str);

impl std::fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        use std::fmt::Write;
        f.write_char('"')?;
        let mut plain = 0;
        for (at, byte) in self.0.bytes().enumerate() {
            if byte >= 0x20 && byte != b'"' && byte != b'\\' {
                continue;
            }
            f.write_str(&self.0[plain..at])?;
            plain = at + 1;
            match byte {
                b'"' => f.write_str("\\\"")?,
                b'\\' => f.write_str("\\\\")?,
                b'\n' => f.write_str("\\n")?,
                b'\r' => f.write_str("\\r")?,
                b'\t' => f.write_str("\\t")?,
                byte => write!(f, "\\u{byte:04x}")?,
            }
        }
        f.write_str(&self.0[plain..])?;
        f.write_char('"')
    }
}

const HTML: &str = "<!DOCTYPE html>\n<html><head><title>STATUS</title></head><body><h1>STATUS</h1>\
                    <p>The upstream of this proxy is having a rest.</p></body></html>\n";

#[cfg(test)]
mod tests {
    use super::Quoted;

    #[test]
    fn quoted_texts_are_json() {
        let text = "a\"b\\c\n\r\t\u{1}\u{7f}é𠮷\u{2028}";
        assert_eq!(serde_json::from_str::<String>(&Quoted(text).to_string()).ok().as_deref(), Some(text));
    }
}
