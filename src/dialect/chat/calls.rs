//! Tells the tool calls of one choice apart, whatever the provider does to `index` and `id`.
//!
//! The documented form is simple: `index` names the call, its first fragment carries id and name, the others pieces of
//! the arguments. In the field the index is missing, always 0 or skips; id and name are repeated in each fragment;
//! arguments come as a placeholder `{}` before the real object, or twice. An index is therefore a hint, not an
//! identity: a new id opens a call, as does a new name after whole arguments, and the events that leave here count
//! calls from 0 without gaps.

use super::surrogates::Halves;
use super::wire::{Entry, Rest, is_void, value};
use crate::bounds::Excess;
use crate::chat::DialectId;
use crate::dialect::Expect;
use crate::event::{self, Event, Extra, Place};
use crate::failure::{Failure, Kind, Stage};
use serde_json::{Map, Value};
use smallvec::SmallVec;
use std::ops::Range;

/// What a decoder gathers of one upstream event.
pub(super) type Events = SmallVec<[Event; 2]>;

/// The calls of one choice.
#[derive(Debug, Default)]
pub(super) struct Calls {
    calls: Vec<Call>,
    /// How many were told.
    told: u32,
    /// Bytes of ids, names and arguments that are kept.
    bytes: usize,
    /// The most calls, and the most bytes of them.
    most: (usize, usize),
}

/// One call.
#[derive(Debug, Default)]
struct Call {
    /// Its number, once it was told.
    ordinal: Option<u32>,
    /// The provider's index.
    index: Option<u64>,
    id: String,
    name: String,
    /// All arguments so far.
    args: String,
    /// Where in `args` what is no white space begins and ends.
    ink: Range<usize>,
    /// How many bytes of them were told.
    sent: usize,
    /// Where `args` stands as JSON.
    json: Json,
    /// A repetition of `args` is under way, and has come so far.
    repeat: Option<usize>,
    halves: Halves,
    closed: bool,
    /// Fields that nobody here knows and that were not told yet.
    rest: Map<String, Value>,
}

/// Follows JSON text to see where its first object or array ends.
#[derive(Debug, Default)]
struct Json {
    depth: u32,
    in_string: bool,
    escaped: bool,
    whole: bool,
}

/// Which call an entry belongs to.
enum Where {
    At(usize),
    New,
}

// === impl Calls ===

impl Calls {
    /// No calls yet, and no more than are expected.
    pub(super) fn new(expect: Expect) -> Self {
        Self { most: (expect.bounds.calls, expect.max_turn), ..Self::default() }
    }

    /// Whether any call was opened.
    pub(super) fn any(&self) -> bool {
        !self.calls.is_empty()
    }

    /// Whether a call was opened that has not ended.
    pub(super) fn is_open(&self) -> bool {
        self.calls.iter().any(|call| !call.closed)
    }

    /// Takes an element of `tool_calls`. `marked`: the event held halves of characters.
    ///
    /// # Errors
    /// `Malformed`, for arguments that belong to no call or can no longer be right.
    pub(super) fn entry(
        &mut self,
        choice: u32,
        entry: &Entry<'_>,
        marked: bool,
        out: &mut Events,
    ) -> Result<(), Failure> {
        let index = entry.index.0;
        // An id that is too long is none, and the client is given one of ours.
        let id = Some(entry.id.as_str()).filter(|id| id.len() <= MAX_ID).unwrap_or_default();
        let (name, args) = match &entry.function {
            Some(function) => (function.name.as_str(), function.args()),
            None => ("", "".into()),
        };
        let rest = rest(entry, marked);
        if id.is_empty() && name.is_empty() && args.is_empty() && (rest.is_empty() || self.calls.is_empty()) {
            return Ok(());
        }
        if name.len() > MAX_NAME {
            return Err(malformed("the name of a tool call is longer than any function's"));
        }
        self.bytes = self.bytes.saturating_add(id.len() + name.len() + args.len());
        self.bytes = self.bytes.saturating_add(rest.values().map(event::weight_of).sum());
        if self.bytes > self.most.1 {
            let most = self.most.1;
            let failure = Failure::new(Kind::Framing, Stage::Streaming);
            return Err(failure.saying(format!("tool calls of more than limits.max_turn ({most} bytes)")));
        }
        let at = match self.locate(index, id, name, &args) {
            Where::At(at) => at,
            Where::New => {
                self.close_whole(choice, out);
                if self.calls.len() >= self.most.0 {
                    let excess = Excess { what: "tool calls", key: "max_calls", field: None, most: self.most.0 };
                    return Err(malformed(&format!("the answer makes {excess}")));
                }
                self.calls.push(Call { index, id: id.to_owned(), ..Call::default() });
                self.calls.len() - 1
            }
        };
        let Some(call) = self.calls.get_mut(at) else { return Ok(()) };
        event::keep(&mut call.rest, rest, EXTRA);
        if call.ordinal.is_none() {
            if call.id.is_empty() {
                id.clone_into(&mut call.id);
            }
            if !name.is_empty() {
                name.clone_into(&mut call.name);
                call.ordinal = Some(self.told);
                self.told += 1;
                // The client is told of it together with the call.
                call.tell_rest(choice, out);
                out.push(Event::ToolOpen { choice, call: self.told - 1, id: call.id.clone(), name: call.name.clone() });
            }
        }
        if let Some(ordinal) = call.ordinal.filter(|_| !name.is_empty() && call.name != name && call.args.is_empty()) {
            // In pieces, or anew and longer each time.
            call.name = if name.starts_with(&call.name) { name.to_owned() } else { format!("{}{name}", call.name) };
            if call.name.len() > MAX_NAME {
                return Err(malformed("the name of a tool call is longer than any function's"));
            }
            out.push(Event::ToolOpen { choice, call: ordinal, id: call.id.clone(), name: call.name.clone() });
        }
        call.tell_rest(choice, out);
        call.index = call.index.or(index);
        if !args.is_empty() {
            if marked || !call.halves.is_empty() {
                let joined = call.halves.join(&args);
                call.append(&joined)?;
            } else {
                call.append(&args)?;
            }
        }
        call.tell(choice, false, out);
        Ok(())
    }

    /// Text follows: calls whose arguments are whole are closed.
    pub(super) fn close_whole(&mut self, choice: u32, out: &mut Events) {
        for call in &mut self.calls {
            if !call.closed && call.json.whole && !call.is_placeholder() && call.repeat.is_none() {
                call.close(choice, out);
            }
        }
    }

    /// The choice is finished: closes all calls. Arguments that are empty are an empty object.
    ///
    /// # Errors
    /// `Malformed` for a call that was given arguments but never a name.
    pub(super) fn finish(&mut self, choice: u32, out: &mut Events) -> Result<(), Failure> {
        for call in &mut self.calls {
            if call.ordinal.is_none() && !call.args.is_empty() {
                return Err(malformed("a tool call has arguments but no name"));
            }
            if !call.closed {
                call.close(choice, out);
            }
        }
        Ok(())
    }

    fn locate(&self, index: Option<u64>, id: &str, name: &str, args: &str) -> Where {
        let calls = &self.calls;
        // A call of which only arguments came so far is now named.
        if !(id.is_empty() && name.is_empty()) {
            let anonymous = |c: &Call| c.ordinal.is_none() && c.id.is_empty();
            let here = |c: &Call| index.is_none() || c.index.is_none() || c.index == index;
            if let Some(at) = calls.iter().position(|c| anonymous(c) && here(c)) {
                return Where::At(at);
            }
        }
        let open_here = || {
            let open = |c: &Call| !c.closed;
            let here = index.and_then(|i| calls.iter().rposition(|c| open(c) && c.index == Some(i)));
            here.or_else(|| calls.iter().rposition(open))
        };
        if !id.is_empty() {
            if let Some(at) = calls.iter().rposition(|c| c.id == id) {
                // Another index and a name: a provider that gives all its calls the same id.
                let alike =
                    !name.is_empty() && index.is_some() && calls[at].index.is_some() && calls[at].index != index;
                return if alike { Where::New } else { Where::At(at) };
            }
            // A fresh id without a name, but with arguments, is a fragment of a provider that draws an id for each; a
            // call could not be made of it anyway.
            if name.is_empty() && !args.is_empty() {
                let same = index.and_then(|i| calls.iter().rposition(|c| !c.closed && c.index == Some(i)));
                if let Some(at) = same.filter(|at| !calls[*at].json.whole) {
                    return Where::At(at);
                }
            }
            return Where::New;
        }
        if !name.is_empty() {
            let at = match index {
                Some(i) => calls.iter().rposition(|c| c.index == Some(i)),
                None => calls.len().checked_sub(1),
            };
            let Some(at) = at else { return Where::New };
            let call = &calls[at];
            let unnamed = call.ordinal.is_none();
            // The rest of a name, before anything else of the call came.
            let rest = index.is_some() && id.is_empty() && !call.closed && call.args.is_empty();
            let same = call.name == name || rest;
            // A name repeated with other arguments than the whole ones before is the next call of that function.
            let next = call.json.whole && !args.is_empty() && !call.is_placeholder() && args.trim() != call.trimmed();
            return if unnamed || (same && !next) { Where::At(at) } else { Where::New };
        }
        // What a call holds besides may come when another is open already.
        if let Some(at) = index.filter(|_| args.is_empty()).and_then(|i| calls.iter().rposition(|c| c.index == Some(i)))
        {
            return Where::At(at);
        }
        let closed_here = || index.and_then(|i| calls.iter().rposition(|c| c.index == Some(i)));
        match open_here().or_else(closed_here).or_else(|| calls.len().checked_sub(1)) {
            Some(at) => Where::At(at),
            // Its name comes later.
            None => Where::New,
        }
    }
}

// === impl Call ===

impl Call {
    /// Whole arguments that may be a stand-in for the real ones: nothing of them was told yet.
    fn is_placeholder(&self) -> bool {
        self.json.whole && self.sent == 0 && self.trimmed() == "{}"
    }

    /// The arguments so far without the white space around them, which may be long: nobody looks for it twice.
    fn trimmed(&self) -> &str {
        self.args.get(self.ink.clone()).unwrap_or_default()
    }

    fn push(&mut self, piece: &str) {
        let before = self.args.len();
        self.args.push_str(piece);
        let (blank, ink) = (piece.len() - piece.trim_start().len(), piece.trim_end().len());
        if ink > 0 {
            let start = if self.ink.is_empty() { before + blank } else { self.ink.start };
            self.ink = start..before + ink;
        }
    }

    fn append(&mut self, piece: &str) -> Result<(), Failure> {
        let mut piece = piece;
        if self.repeat.is_none() && self.json.whole {
            piece = piece.trim_start();
            if piece.is_empty() {
                return Ok(());
            }
            if piece.starts_with(['{', '[']) {
                if self.is_placeholder() && !self.closed {
                    self.args.clear();
                    self.ink = 0..0;
                    self.json = Json::default();
                } else {
                    self.repeat = Some(0);
                }
            }
        }
        if let Some(at) = self.repeat {
            let owed = self.trimmed().get(at..).unwrap_or_default();
            if owed.starts_with(piece) {
                self.repeat = Some(at + piece.len()).filter(|_| owed.len() > piece.len());
                return Ok(());
            }
            if piece.strip_prefix(owed).is_some_and(|rest| rest.trim().is_empty()) {
                self.repeat = None;
                return Ok(());
            }
            return Err(malformed("the arguments of a tool call were followed by others"));
        }
        if self.closed {
            return Err(malformed("a tool call was given more arguments after it was complete"));
        }
        self.push(piece);
        self.json.feed(piece);
        Ok(())
    }

    /// Tells of fields without a common form.
    fn tell_rest(&mut self, choice: u32, out: &mut Events) {
        if let Some(call) = self.ordinal.filter(|_| !self.rest.is_empty()) {
            let (place, fields) = (Place::Call { choice, call }, std::mem::take(&mut self.rest));
            out.push(Event::Extra(Box::new(Extra { dialect: DialectId::Chat, place, fields, bound: false })));
        }
    }

    /// Tells what of the arguments is not told yet; a placeholder only if `last`.
    fn tell(&mut self, choice: u32, last: bool, out: &mut Events) {
        let Some(call) = self.ordinal else { return };
        if self.sent < self.args.len() && (last || !self.is_placeholder()) {
            let args = self.args[self.sent..].to_owned();
            self.sent = self.args.len();
            out.push(Event::ToolArgs { choice, call, args });
        }
    }

    fn close(&mut self, choice: u32, out: &mut Events) {
        if let Some(half) = self.halves.take() {
            self.push(half.encode_utf8(&mut [0; 4]));
        }
        if self.args.is_empty() {
            self.push("{}");
        }
        self.tell(choice, true, out);
        self.closed = true;
        if let Some(call) = self.ordinal {
            out.push(Event::ToolClose { choice, call });
        }
    }
}

// === impl Json ===

impl Json {
    fn feed(&mut self, piece: &str) {
        for byte in piece.bytes() {
            if self.in_string {
                match byte {
                    _ if self.escaped => self.escaped = false,
                    b'\\' => self.escaped = true,
                    b'"' => self.in_string = false,
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' => self.in_string = true,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        self.whole = true;
                    }
                }
                _ => {}
            }
        }
    }
}

// === helpers ===

/// The fields of a call that nobody here knows.
fn rest(entry: &Entry<'_>, marked: bool) -> Map<String, Value> {
    let known = |fields: &Rest<'_>| -> Map<String, Value> {
        let said = fields.iter().filter(|(_, raw)| !is_void(raw));
        said.map(|(key, raw)| (key.to_string(), value(raw, marked))).collect()
    };
    let mut rest = known(&entry.rest);
    let function = entry.function.as_ref().map(|function| known(&function.rest)).unwrap_or_default();
    if !function.is_empty() {
        rest.insert("function".to_owned(), Value::Object(function));
    }
    rest
}

fn malformed(what: &str) -> Failure {
    Failure::new(Kind::Malformed, Stage::Streaming).saying(what)
}

/// The longest id of a call. Some gateways put a model's signature into it, so it is no short one.
const MAX_ID: usize = 64 << 10;

/// The longest name of a function.
const MAX_NAME: usize = 1024;
/// The most bytes of a field of a call that has no common form.
const EXTRA: usize = 256 << 10;
