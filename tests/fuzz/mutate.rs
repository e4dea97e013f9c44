//! Makes inputs from others: a few changes each, of the kinds that parsers trip over.

/// Makes one input from a seed.
pub(crate) struct Mutator(u64);

impl Mutator {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// One of `corpus`, changed.
    pub(crate) fn input(&mut self, corpus: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = corpus[self.below(corpus.len())].clone();
        for _ in 0..=self.below(6) {
            self.change(&mut bytes, corpus);
            bytes.truncate(LONGEST);
        }
        bytes
    }

    fn change(&mut self, bytes: &mut Vec<u8>, corpus: &[Vec<u8>]) {
        let at = self.below(bytes.len() + 1);
        match self.below(12) {
            0 if at < bytes.len() => bytes[at] ^= 1 << self.below(8),
            1 => bytes.insert(at, b"{}[]\",:\\ \n\r\0\xff0e-u"[self.below(17)]),
            2 | 3 => {
                let (from, to) = self.span(bytes.len());
                bytes.drain(from..to);
            }
            4 => {
                let (from, to) = self.span(bytes.len());
                let piece = bytes[from..to].to_vec();
                insert(bytes, at, &piece);
            }
            5 => {
                // Many times over: what is not linear shows.
                let (from, to) = self.span(bytes.len());
                let times = 2 + self.below(200);
                let piece = bytes[from..to].repeat(times.min(LONGEST / (to - from + 1) + 1));
                insert(bytes, at, &piece);
            }
            6 => {
                let other = &corpus[self.below(corpus.len())];
                let (from, to) = self.span(other.len());
                insert(bytes, at, &other[from..to]);
            }
            7 => bytes.truncate(at),
            8 => {
                let token = TOKENS[self.below(TOKENS.len())];
                insert(bytes, at, token.as_bytes());
            }
            // A value in the place of another, which leaves it JSON.
            _ => {
                let Some(from) = self.value(bytes) else { return };
                let to = end_of_value(bytes, from);
                let with = match self.below(3) {
                    0 => {
                        let other = self.value(bytes).unwrap_or(from);
                        bytes[other..end_of_value(bytes, other)].to_vec()
                    }
                    1 => {
                        let items = vec![bytes[from..to].to_vec(); 1 + self.below(20)];
                        [b"[".to_vec(), items.join(&b","[..]), b"]".to_vec()].concat()
                    }
                    _ => TOKENS[self.below(TOKENS.len())].as_bytes().to_vec(),
                };
                bytes.splice(from..to, with);
            }
        }
    }

    /// The start of some value: behind a colon, a comma or a bracket.
    fn value(&mut self, bytes: &[u8]) -> Option<usize> {
        let from = self.below(bytes.len() + 1);
        let found = (from..bytes.len()).chain(0..from).find(|at| matches!(bytes[*at], b':' | b',' | b'['))?;
        Some(found + 1).filter(|at| *at < bytes.len())
    }

    fn span(&mut self, length: usize) -> (usize, usize) {
        let from = self.below(length + 1);
        let most = if self.below(4) == 0 { length - from } else { (length - from).min(24) };
        (from, from + self.below(most + 1))
    }

    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((z ^ (z >> 31)) % most.max(1) as u64).unwrap_or_default()
    }
}

fn insert(bytes: &mut Vec<u8>, at: usize, piece: &[u8]) {
    bytes.splice(at..at, piece.iter().copied());
}

/// Where the value ends that begins at `from`, as far as brackets and quotes tell.
fn end_of_value(bytes: &[u8], from: usize) -> usize {
    let (mut depth, mut quoted, mut escaped) = (0_u32, false, false);
    for (at, byte) in bytes.iter().enumerate().skip(from) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            _ if quoted => {}
            b'[' | b'{' => depth += 1,
            b']' | b'}' | b',' if depth == 0 => return at,
            b']' | b'}' => depth -= 1,
            _ => {}
        }
    }
    bytes.len()
}

/// No input is longer, in bytes.
const LONGEST: usize = 20_000;

/// Values and pieces of them that readers are known to trip over.
const TOKENS: [&str; 40] = [
    "null",
    "true",
    "0",
    "-1",
    "1e999",
    "1e-999",
    "18446744073709551616",
    "0.5",
    "[]",
    "{}",
    "\"\"",
    "[[]]",
    "[{}]",
    "\"\\ud83d\"",
    "\"\\ude00x\"",
    "\"\\ud83d\\ude00\"",
    "\"\\uffffd83d\"",
    "\"\\u0000\"",
    "\"\\",
    "\u{feff}",
    "\u{2028}",
    "[DONE]",
    "data: ",
    "\n\n",
    "\r\n\r\n",
    "event: error\n",
    ": ping\n",
    "data:\n",
    "{\"error\":{}}",
    "{\"error\":\"x\"}",
    "\"tool_calls\"",
    "\"stop\"",
    "\"error\"",
    "\"length\"",
    "\"index\":9",
    "4294967295",
    "4294967296",
    "\"claude-x\"",
    "{\"type\":\"text\",\"text\":\"a\"}",
    "[null,1,\"a\",{}]",
];
