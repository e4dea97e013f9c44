//! Ids of calls in the form that a target takes.
//!
//! Other providers' ids are of any length and alphabet, and some give each turn's calls the same ones. What is made of
//! an id depends on nothing but the ids before it in the request: a conversation that goes on keeps its names, and so
//! its prompt cache.

use crate::failure::CallIds;
use std::collections::{HashMap, VecDeque};

/// Names the calls of one request.
#[derive(Debug)]
pub(super) struct Ids {
    want: CallIds,
    /// Names that are taken, and the number that the next one like it may have.
    used: HashMap<String, u32>,
    /// The names of the last message's calls, by the ids that they had.
    open: HashMap<String, VecDeque<String>>,
    /// The last name of each id.
    last: HashMap<String, String>,
}

// === impl Ids ===

impl Ids {
    /// For a target that takes `want`.
    pub(super) fn new(want: CallIds) -> Self {
        Self { want, used: HashMap::new(), open: HashMap::new(), last: HashMap::new() }
    }

    /// A message with calls begins: results that come from here on are its calls'.
    pub(super) fn begin(&mut self) {
        self.open.clear();
    }

    /// The name of a call.
    pub(super) fn call(&mut self, id: &str) -> String {
        let name = self.fresh(id);
        self.open.entry(id.to_owned()).or_default().push_back(name.clone());
        self.last.insert(id.to_owned(), name.clone());
        name
    }

    /// The name of the call that a result is of.
    pub(super) fn result(&mut self, id: &str) -> String {
        let open = self.open.get_mut(id).and_then(VecDeque::pop_front);
        open.or_else(|| self.last.get(id).cloned()).unwrap_or_else(|| self.shaped(id))
    }

    /// A name that no other call has.
    pub(super) fn fresh(&mut self, id: &str) -> String {
        let base = self.shaped(id);
        let Some(mut count) = self.used.get(&base).copied() else {
            self.used.insert(base.clone(), 2);
            return base;
        };
        let name = loop {
            let name = match self.want {
                CallIds::Any => format!("{base}_{count}"),
                CallIds::Nine => nine(id, count),
                CallIds::Word | CallIds::Short => {
                    let suffix = format!("_{count}");
                    let room = longest(self.want).saturating_sub(suffix.len());
                    format!("{}{suffix}", &base[..base.len().min(room)])
                }
            };
            count = count.saturating_add(1);
            if !self.used.contains_key(&name) {
                break name;
            }
        };
        self.used.insert(base, count);
        self.used.insert(name.clone(), 2);
        name
    }

    fn shaped(&self, id: &str) -> String {
        match self.want {
            CallIds::Any => id.to_owned(),
            CallIds::Nine if id.len() == 9 && id.bytes().all(|b| b.is_ascii_alphanumeric()) => id.to_owned(),
            CallIds::Nine => nine(id, 0),
            CallIds::Word | CallIds::Short => {
                let ok = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
                let word: String = id.chars().map(|c| if ok(c) { c } else { '_' }).collect();
                let most = longest(self.want);
                if word.is_empty() {
                    "call".to_owned()
                } else if word.len() <= most {
                    word
                } else {
                    // What is cut off tells some of them apart.
                    format!("{}_{}", &word[..most - 10], nine(id, 0))
                }
            }
        }
    }
}

// === helpers ===

fn longest(want: CallIds) -> usize {
    if want == CallIds::Short { 40 } else { 64 }
}

/// Nine letters or digits that stand for `id` (FNV-1a, which is the same everywhere and for ever).
fn nine(id: &str, salt: u32) -> String {
    const LETTERS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in id.bytes().chain(salt.to_le_bytes()) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    let mut name = String::with_capacity(9);
    for _ in 0..9 {
        let at = usize::try_from(hash % 62).unwrap_or(0);
        name.push(char::from(LETTERS[at]));
        hash /= 62;
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_their_target_and_are_the_same_each_time() {
        let long = "x".repeat(100);
        for (want, most) in [(CallIds::Word, 64), (CallIds::Short, 40), (CallIds::Nine, 9)] {
            let name = |n: usize| {
                let mut ids = Ids::new(want);
                (0..n)
                    .map(|n| ids.call(["call_a", "functions.bash:0", "", &long, "日本", "call_a"][n]))
                    .collect::<Vec<_>>()
            };
            let all = name(6);
            assert_eq!(all[..3], name(3)[..], "what was named before keeps its name");
            for (at, id) in all.iter().enumerate() {
                assert!(!id.is_empty() && id.len() <= most, "{want:?} {id}");
                assert!(id.bytes().all(|b| b.is_ascii_alphanumeric() || (want != CallIds::Nine && b"_-".contains(&b))));
                assert!(!all[..at].contains(id), "{want:?}: {id} twice");
            }
        }
    }

    #[test]
    fn results_find_their_calls_even_if_ids_repeat() {
        let mut ids = Ids::new(CallIds::Word);
        ids.begin();
        let (a, b) = (ids.call("call_0"), ids.call("call_0"));
        assert_eq!((ids.result("call_0"), ids.result("call_0")), (a, b.clone()));
        assert_eq!(ids.result("call_0"), b, "one more is the last one's");
        ids.begin();
        let c = ids.call("call_0");
        assert_eq!(ids.result("call_0"), c);
        assert_eq!(ids.result("else where"), "else_where");
    }

    #[test]
    fn an_id_that_fits_is_kept() {
        let mut nine = Ids::new(CallIds::Nine);
        assert_eq!(nine.call("AbCdEf123"), "AbCdEf123");
        assert_eq!(Ids::new(CallIds::Word).call("toolu_01-A"), "toolu_01-A");
    }

    #[test]
    fn a_hundred_thousand_equal_ids_are_named_in_no_time() {
        for want in [CallIds::Word, CallIds::Nine] {
            let mut ids = Ids::new(want);
            let names: std::collections::HashSet<_> = (0..100_000).map(|_| ids.fresh("a")).collect();
            assert_eq!(names.len(), 100_000);
        }
    }
}
