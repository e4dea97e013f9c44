//! The store in memory: what it keeps, and what has to go.
#![expect(clippy::unwrap_used, reason = "a test's panic is its report")]

use super::*;
use crate::chat::DialectId;
use crate::store::{Exchange, State};
use serde_json::json;
use std::sync::atomic::{AtomicU64, Ordering};

/// A store whose clock the test moves.
struct Bench {
    store: Memory,
    ms: Arc<AtomicU64>,
}

impl Bench {
    fn new(max_bytes: usize, ttl_ms: u64) -> Self {
        let (start, ms) = (tokio::time::Instant::now().into_std(), Arc::new(AtomicU64::new(0)));
        let clock = {
            let ms = Arc::clone(&ms);
            Arc::new(move || start + Duration::from_millis(ms.load(Ordering::Relaxed)))
        };
        Self { store: Memory::new(Bounds { max_bytes, ttl: Duration::from_millis(ttl_ms) }, clock), ms }
    }

    fn pass(&self, ms: u64) {
        self.ms.fetch_add(ms, Ordering::Relaxed);
    }

    fn load(&self, key: &Key) -> Option<Conversation> {
        self.store.load(key).now_or_never().unwrap().unwrap()
    }

    fn ask(&self, key: &Key, turn: &str, keep: usize, text: &str) {
        let asked = vec![json!({"role": "user", "content": text})];
        let exchange = Exchange { origin: DialectId::Chat, asked, turn: Some(turn.into()), answer: None };
        let question = Question { system: None, keep, more: vec![exchange] };
        self.store.ask(key, question).now_or_never().unwrap().unwrap();
    }

    fn answer(&self, key: &Key, turn: &str, state: State, text: &str) {
        let message = Some(json!({"role": "assistant", "content": text}));
        let answer = Answer { state, message, served_by: None };
        self.store.answer(key, turn, answer).now_or_never().unwrap().unwrap();
    }

    fn texts(&self, key: &Key) -> Vec<String> {
        let Some(conversation) = self.load(key) else { return Vec::new() };
        let messages = conversation.exchanges.iter().flat_map(|e| {
            e.asked.iter().chain(e.answer.as_ref().and_then(|a| a.message.as_ref())).cloned().collect::<Vec<_>>()
        });
        messages.map(|m| m["content"].as_str().unwrap().to_owned()).collect()
    }
}

fn key(name: &str) -> Key {
    Key::new(None, name)
}

#[test]
fn questions_and_answers_stand_in_their_order_and_the_last_word_on_an_answer_counts() {
    let bench = Bench::new(1 << 20, 1000);
    let c = key("c");
    assert!(bench.load(&c).is_none());
    bench.ask(&c, "t1", 0, "one?");
    bench.answer(&c, "t1", State::Incomplete, "on");
    bench.answer(&c, "t1", State::Complete, "one");
    bench.ask(&c, "t2", 1, "two?");
    assert_eq!(bench.texts(&c), ["one?", "one", "two?"]);
    bench.answer(&c, "t2", State::Complete, "two");
    bench.ask(&c, "t3", 1, "other?");
    assert_eq!(bench.texts(&c), ["one?", "one", "other?"]);
    bench.answer(&c, "t2", State::Complete, "late");
    assert_eq!(bench.texts(&c), ["one?", "one", "other?"], "a turn that was forgotten does not come back");
}

#[test]
fn tenants_do_not_share_a_conversation_of_one_name() {
    let bench = Bench::new(1 << 20, 1000);
    let (a, b) = (Key::new(Some("a"), "c"), Key::new(Some("b"), "c"));
    bench.ask(&a, "t", 0, "of a");
    bench.ask(&b, "t", 0, "of b");
    bench.answer(&b, "t", State::Complete, "to b");
    bench.ask(&key("c"), "t", 0, "of nobody");
    assert_eq!(bench.texts(&a), ["of a"]);
    assert_eq!(bench.texts(&b), ["of b", "to b"]);
    assert!(bench.store.forget(&a).now_or_never().unwrap().unwrap());
    assert!(!bench.store.forget(&a).now_or_never().unwrap().unwrap());
    assert_eq!(bench.texts(&b), ["of b", "to b"]);
    assert_eq!(bench.texts(&key("c")), ["of nobody"]);
}

#[test]
fn what_was_deleted_during_a_turn_stays_deleted() {
    let bench = Bench::new(1 << 20, 1000);
    bench.ask(&key("c"), "t", 0, "?");
    assert!(bench.store.forget(&key("c")).now_or_never().unwrap().unwrap());
    bench.answer(&key("c"), "t", State::Complete, "!");
    assert!(bench.load(&key("c")).is_none());
    assert_eq!(bench.store.holdings(), Holdings::default());
}

#[test]
fn a_conversation_is_kept_for_the_ttl_after_its_last_write() {
    let bench = Bench::new(1 << 20, 1000);
    bench.ask(&key("old"), "t", 0, "?");
    bench.ask(&key("live"), "t", 0, "?");
    bench.pass(900);
    bench.answer(&key("live"), "t", State::Complete, "!");
    // To look at one does not keep it.
    assert!(bench.load(&key("old")).is_some());
    bench.pass(99);
    assert!(bench.load(&key("old")).is_some());
    bench.pass(1);
    assert!(bench.load(&key("old")).is_none());
    assert_eq!(bench.texts(&key("live")), ["?", "!"]);
    bench.pass(900);
    assert!(bench.load(&key("live")).is_none());
    assert_eq!(bench.store.holdings(), Holdings { expired: 2, ..Holdings::default() });
}

#[test]
fn those_that_were_idle_longest_make_room() {
    let bench = Bench::new(64 * 1024, 1_000_000);
    let text = "x".repeat(8 * 1024);
    for name in ["a", "b", "c", "d", "e"] {
        bench.ask(&key(name), "t", 0, &text);
        bench.pass(1);
    }
    bench.answer(&key("a"), "t", State::Complete, "!");
    for name in ["f", "g", "h"] {
        bench.ask(&key(name), "t", 0, &text);
    }
    let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let left = || names.into_iter().filter(|n| bench.load(&key(n)).is_some()).collect::<Vec<_>>();
    assert_eq!(left(), ["a", "d", "e", "f", "g", "h"]);
    let holdings = bench.store.holdings();
    assert!(holdings.bytes <= 64 * 1024 && holdings.evicted == 2 && holdings.conversations == 6, "{holdings:?}");
    // One that is too large alone is not kept, and nobody has to go for it.
    bench.ask(&key("huge"), "t", 0, &"x".repeat(65 * 1024));
    assert!(bench.load(&key("huge")).is_none());
    assert_eq!(left(), ["a", "d", "e", "f", "g", "h"]);
}

#[test]
fn the_count_of_bytes_is_that_of_what_is_held() {
    let bench = Bench::new(1 << 20, 1_000_000);
    let mut number = 7_u64;
    for step in 0..3000_u64 {
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let draw = number >> 40;
        let (name, text) = (key(&format!("c{}", draw % 7)), "y".repeat((draw % 501) as usize));
        let len = bench.load(&name).map_or(0, |c| c.exchanges.len());
        match draw % 5 {
            0 => drop(bench.store.forget(&name).now_or_never()),
            1 | 2 => bench.ask(&name, &format!("t{step}"), len, &text),
            3 => bench.ask(&name, &format!("t{step}"), (draw % 3) as usize, &text),
            _ => bench.answer(&name, &format!("t{}", step - 1), State::Complete, &text),
        }
    }
    let shelf = bench.store.shelf();
    let counted: usize =
        shelf.kept.values().map(|k| k.conversation.exchanges.iter().map(|e| e.bytes()).sum::<usize>()).sum();
    let names: usize = shelf.kept.keys().map(|k| CONVERSATION + 2 * k.conversation.len()).sum();
    assert_eq!(shelf.holdings.bytes, counted + names);
    assert_eq!((shelf.holdings.conversations, shelf.idle.len()), (shelf.kept.len(), shelf.kept.len()));
    drop(shelf);
    for name in 0..7 {
        drop(bench.store.forget(&key(&format!("c{name}"))).now_or_never());
    }
    assert_eq!(bench.store.holdings(), Holdings::default());
}
