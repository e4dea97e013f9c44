//! What a JSON text will be as a value, told from its bytes alone: counted in one pass, without building anything.
//!
//! A value takes far more room than its text, and how much more is for whoever wrote the text to choose: `[[]],` is five
//! bytes and becomes half a kilobyte. Whoever takes in foreign JSON asks here first.

/// What a text holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// Values of every kind, names of members not among them.
    pub values: usize,
    /// How deeply arrays and objects stand in each other, up to [`DEEPEST`] + 1.
    pub depth: usize,
    /// About how many bytes of heap the value takes. It errs to the high side, at most by half.
    pub heap: usize,
}

/// Counts what `text` holds. Of a text that is no JSON it counts what a parser would have built before it noticed, or
/// more. It looks no further than a parser would go: past [`DEEPEST`] levels it stops.
pub fn shape(text: &[u8]) -> Shape {
    let mut shape = Shape::default();
    let mut objects = Levels::default();
    let mut at = 0;
    let mut begins = true;
    while let Some(&byte) = text.get(at) {
        at += 1;
        match byte {
            b'"' => {
                let end = string_end(text, at);
                shape.heap += ALLOCATION + (end - at);
                at = end + 1;
                if begins {
                    shape.values += 1;
                }
                begins = false;
            }
            b'[' | b'{' => {
                shape.values += 1;
                shape.depth = shape.depth.max(objects.depth + 1);
                if !objects.push(byte == b'{') {
                    return shape;
                }
                let empty = matches!(text[at..].iter().find(|b| !b.is_ascii_whitespace()), Some(b']' | b'}') | None);
                if !empty {
                    shape.heap += if byte == b'{' { OBJECT } else { ARRAY };
                }
                begins = byte == b'[';
            }
            b']' | b'}' => {
                objects.pop();
                begins = false;
            }
            b',' => {
                shape.heap += if objects.top() { MEMBER } else { ELEMENT };
                begins = !objects.top();
            }
            b':' => begins = true,
            b' ' | b'\t' | b'\r' | b'\n' => {}
            _ => {
                if begins {
                    shape.values += 1;
                }
                begins = false;
            }
        }
    }
    shape
}

/// Where the string ends that begins at `from`: the place of its closing quote, or the end of the text.
fn string_end(text: &[u8], from: usize) -> usize {
    let mut at = from;
    while let Some(found) = text.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        at += found;
        if text[at] == b'"' {
            return at;
        }
        at += 2;
    }
    text.len()
}

/// Which of the open levels are objects.
#[derive(Default)]
struct Levels {
    bits: u128,
    depth: usize,
}

// === impl Levels ===

impl Levels {
    /// Opens a level; `false`: it is one too many.
    fn push(&mut self, object: bool) -> bool {
        self.bits = self.bits << 1 | u128::from(object);
        self.depth += 1;
        self.depth <= DEEPEST
    }

    fn pop(&mut self) {
        self.bits >>= 1;
        self.depth = self.depth.saturating_sub(1);
    }

    fn top(&self) -> bool {
        self.bits & 1 == 1
    }
}

// === consts ===

/// No parser here goes deeper: `serde_json` refuses what has more levels.
pub const DEEPEST: usize = 127;
/// What every allocation takes besides its bytes.
const ALLOCATION: usize = 16;
/// The first allocation of an array, which is for four values.
const ARRAY: usize = 4 * VALUE + ALLOCATION;
/// Each further element: an array that is full doubles.
const ELEMENT: usize = VALUE + VALUE / 2;
/// The first allocations of an object, for four members and their index.
const OBJECT: usize = 4 * (VALUE + 32) + 96;
/// Each further member.
const MEMBER: usize = VALUE + 32 + (VALUE + 32) / 2 + 24;
/// A value itself.
const VALUE: usize = size_of::<serde_json::Value>();

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test's panic is its report")]
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    fn values(value: &Value) -> usize {
        1 + match value {
            Value::Array(items) => items.iter().map(values).sum(),
            Value::Object(fields) => fields.values().map(values).sum(),
            _ => 0,
        }
    }

    #[test]
    fn values_and_levels_are_counted_as_a_parser_finds_them() {
        for (text, count, depth) in [
            ("1", 1, 0),
            ("\"a,[b\\\"{\"", 1, 0),
            ("[]", 1, 1),
            ("[ [] , {} ]", 3, 2),
            ("{\"a\": [1, \"x\", null], \"b\": {\"c\": true}}", 7, 2),
            ("  [1.5e3,-2]", 3, 1),
        ] {
            let shape = shape(text.as_bytes());
            assert_eq!((shape.values, shape.depth), (count, depth), "{text}");
            assert_eq!(values(&serde_json::from_str(text).unwrap()), count, "{text}");
        }
        let deep = "[".repeat(1_000_000);
        assert_eq!(shape(deep.as_bytes()).depth, DEEPEST + 1);
        assert_eq!(shape(b"\"\\").values, 1);
    }

    #[test]
    fn the_deepest_text_that_is_counted_is_the_deepest_that_is_parsed() {
        for (depth, parses) in [(DEEPEST, true), (DEEPEST + 1, false)] {
            let text = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
            assert_eq!(shape(text.as_bytes()).depth, depth);
            assert_eq!(serde_json::from_str::<Value>(&text).is_ok(), parses, "{depth}");
        }
    }

    proptest! {
        #[test]
        fn any_value_is_counted_right(seed in prop::collection::vec(0_u8..8, 0..60)) {
            let mut open: Vec<Value> = vec![Value::Array(Vec::new())];
            for byte in seed {
                match byte {
                    0 => open.push(Value::Array(Vec::new())),
                    1 => open.push(Value::Object(serde_json::Map::new())),
                    2 | 3 if open.len() > 1 => {
                        let done = open.pop().unwrap();
                        put(open.last_mut().unwrap(), done);
                    }
                    n => put(open.last_mut().unwrap(), if n % 2 == 0 { Value::from("a\"],") } else { Value::from(n) }),
                }
            }
            while open.len() > 1 {
                let done = open.pop().unwrap();
                put(open.last_mut().unwrap(), done);
            }
            let text = open[0].to_string();
            prop_assert_eq!(shape(text.as_bytes()).values, values(&open[0]), "{}", text);
        }
    }

    fn put(holder: &mut Value, value: Value) {
        match holder {
            Value::Array(items) => items.push(value),
            Value::Object(fields) => drop(fields.insert(format!("k{}", fields.len()), value)),
            _ => {}
        }
    }
}
