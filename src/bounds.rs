//! What bytes do not bound: how many things a request or an answer may consist of.
//!
//! A body of some megabytes can hold a million messages, calls or empty lists, each of which costs many times its bytes
//! once it is read. So what is foreign is bounded by count as well, each count under a name of its own that the
//! configuration (`limits.max_…`), the error and the docs share.

use crate::chat::{Part, Request};
use memchr::memchr2;
use std::fmt;

/// The most that one request, or one turn's answer, may consist of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// How deep the JSON of a request may nest: lists and objects within each other.
    pub depth: usize,
    /// JSON values in one request, in one event of a provider, or in one whole answer.
    pub values: usize,
    /// Messages of one request, instructions included.
    pub messages: usize,
    /// Parts of all messages of one request: texts, images, documents, calls, results and what stands in these. Also the
    /// content blocks of one whole answer.
    pub parts: usize,
    /// Tools of one request, those that the provider runs itself included.
    pub tools: usize,
    /// Stop sequences of one request.
    pub stops: usize,
    /// Answers that one request may ask for (`n`).
    pub choices: usize,
    /// Tool calls of one answer, and fragments of calls in one event.
    pub calls: usize,
}

/// Something is more than its bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Excess {
    /// What there is too much of, in words.
    pub what: &'static str,
    /// The key in `[limits]` that bounds it.
    pub key: &'static str,
    /// The field of a request that holds it, where there is one.
    pub field: Option<&'static str>,
    /// The bound.
    pub most: usize,
}

/// What a JSON text consists of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// The deepest nesting of lists and objects.
    pub depth: usize,
    /// How many values it can hold at most.
    pub values: usize,
}

// === impl Bounds ===

impl Default for Bounds {
    fn default() -> Self {
        Self {
            depth: Self::DEPTH,
            values: 250_000,
            messages: 10_000,
            parts: 50_000,
            tools: 1024,
            stops: 64,
            choices: 16,
            calls: 512,
        }
    }
}

impl Bounds {
    /// As deep as JSON is read at all.
    pub const DEPTH: usize = 127;

    /// As many answers as any provider gives to one request.
    pub const CHOICES: usize = 128;

    /// Whether a client's body may be read. It costs one pass over the bytes and no memory.
    ///
    /// # Errors
    /// What it has too much of.
    pub fn body(&self, json: &[u8]) -> Result<(), Excess> {
        let extent = Extent::of(json, self.depth, self.values);
        let excess = |what, key, most| Err(Excess { what, key, field: None, most });
        if extent.depth > self.depth {
            return excess("levels of nested JSON", "max_depth", self.depth);
        }
        if extent.values > self.values {
            return excess("JSON values", "max_values", self.values);
        }
        Ok(())
    }

    /// Whether a provider's event or whole answer may be read. How deep it nests is no matter here: what is too deep to
    /// be read is no JSON to its reader.
    ///
    /// # Errors
    /// That it holds too many values.
    pub fn event(&self, json: &[u8]) -> Result<(), Excess> {
        // Two bytes a value at least, so nearly every event is known by its length.
        if json.len() / 2 < self.values || Extent::of(json, usize::MAX, self.values).values <= self.values {
            return Ok(());
        }
        Err(Excess { what: "JSON values", key: "max_values", field: None, most: self.values })
    }

    /// Whether a request that was read may be served.
    ///
    /// # Errors
    /// What it has too much of.
    pub fn request(&self, request: &Request) -> Result<(), Excess> {
        let parts: usize = request.system.iter().chain(request.messages.iter().flat_map(|m| &m.parts)).map(parts).sum();
        let messages = request.messages.len() + usize::from(!request.system.is_empty());
        let choices = usize::try_from(request.choices).unwrap_or(usize::MAX);
        let rows = [
            (messages, self.messages, "messages", "max_messages", "messages"),
            (parts, self.parts, "parts of messages", "max_parts", "messages"),
            (request.tools.len() + request.server_tools.len(), self.tools, "tools", "max_tools", "tools"),
            (request.stop.len(), self.stops, "stop sequences", "max_stops", "stop"),
            (choices, self.choices, "answers at once", "max_choices", "n"),
        ];
        match rows.into_iter().find(|(count, most, ..)| count > most) {
            Some((_, most, what, key, field)) => Err(Excess { what, key, field: Some(field), most }),
            None => Ok(()),
        }
    }
}

// === impl Extent ===

impl Extent {
    /// Measures a JSON text; what lies behind the first place where it is deeper than `depth` or holds more than
    /// `values` is not looked at. A text that is no JSON has an extent as well.
    pub fn of(json: &[u8], depth: usize, values: usize) -> Self {
        let mut extent = Self { depth: 0, values: 1 };
        let (mut open, mut at) = (0_usize, 0);
        while let Some(&byte) = json.get(at) {
            at += 1;
            match byte {
                b'"' => at = string_end(json, at),
                b',' => extent.values += 1,
                b'[' | b'{' => {
                    open += 1;
                    extent.depth = extent.depth.max(open);
                    extent.values += 1;
                }
                b']' | b'}' => open = open.saturating_sub(1),
                _ => {}
            }
            if extent.depth > depth || extent.values > values {
                break;
            }
        }
        extent
    }
}

// === impl Excess ===

impl fmt::Display for Excess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "more than {} {} (limits.{})", self.most, self.what, self.key)
    }
}

impl std::error::Error for Excess {}

// === helpers ===

/// The place behind the end of a string that began before `at`.
fn string_end(json: &[u8], mut at: usize) -> usize {
    while let Some(next) = json.get(at..).and_then(|rest| memchr2(b'"', b'\\', rest)) {
        at += next + 1;
        if json[at - 1] == b'"' {
            return at;
        }
        at += 1;
    }
    json.len()
}

fn parts(part: &Part) -> usize {
    match part {
        Part::ToolResult { parts: inner, .. } => 1 + inner.iter().map(parts).sum::<usize>(),
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(json: &str) -> (usize, usize) {
        let Extent { depth, values } = Extent::of(json.as_bytes(), usize::MAX, usize::MAX);
        (depth, values)
    }

    #[test]
    fn values_and_depth_of_a_text_are_those_that_reading_it_would_make() {
        for (json, depth, values) in [
            ("1", 0, 1),
            (r#""a,[{\"]""#, 0, 1),
            (r#"["\\",1]"#, 1, 3),
            ("[[],[[1,2],{}]]", 3, 8),
            (r#"{"a":{"b,":[]},"c":"}"}"#, 3, 5),
            ("", 0, 1),
            ("]]]", 0, 1),
            ("\"", 0, 1),
            ("\"\\", 0, 1),
        ] {
            // A container counts as itself and as the first thing that may be in it.
            assert_eq!(extent(json).0, depth, "{json}");
            assert!((values..=2 * values).contains(&extent(json).1), "{json}: {:?}", extent(json));
        }
    }

    #[test]
    fn a_text_is_looked_at_no_further_than_its_bound() {
        let deep = "[".repeat(1000);
        assert_eq!(Extent::of(deep.as_bytes(), 10, usize::MAX).depth, 11);
        assert_eq!(Extent::of("[[],".repeat(1000).as_bytes(), usize::MAX, 20).values, 21);
    }

    #[test]
    fn a_body_at_its_bound_passes_and_one_beyond_it_is_named() {
        let bounds = Bounds { depth: 3, values: 10, ..Bounds::default() };
        assert_eq!(bounds.body(b"[[[1,2,3,4,5]]]"), Ok(()));
        let deep = bounds.body(b"[[[[]]]]").map_err(|e| e.to_string());
        assert_eq!(deep, Err("more than 3 levels of nested JSON (limits.max_depth)".to_owned()));
        let wide = bounds.body(b"[1,2,3,4,5,6,7,8,9,10]").map_err(|e| e.to_string());
        assert_eq!(wide, Err("more than 10 JSON values (limits.max_values)".to_owned()));
        assert_eq!(bounds.event(b"[[[[[[]]]]]]"), Ok(()), "depth is the reader's matter");
        assert!(bounds.event(b"[1,2,3,4,5,6,7,8,9,10,11]").is_err());
    }
}
