//! Readers that know no dialect: event streams, seams, configurations.

use super::measure::{MANY, PLACED, linear, report};
use super::shapes::Shape;
use bytes::Bytes;
use segue::config;
use segue::sse;
use segue::turn::resume::Anchor;
use segue::turn::seam::Seam;
use std::sync::Arc;

#[test]
fn an_event_stream_is_read_linearly_however_it_is_cut() {
    let shapes: [Shape; 8] = [
        ("one long line", |n| format!("data: {}\n\n", "a".repeat(n))),
        ("a line that never ends", |n| format!("data: {}", "a".repeat(n))),
        ("many lines of one event", |n| "data: a\n".repeat(n / 8)),
        ("empty lines of one event", |n| "data:\n".repeat(n / 6)),
        ("many events", |n| "data: a\n\n".repeat(n / 9)),
        ("comments", |n| ":\n".repeat(n / 2)),
        ("line ends", |n| "\r\n".repeat(n / 2)),
        ("names", |n| "event: aaaaaaaaaaa\n".repeat(n / 19)),
    ];
    let mut dear = Vec::new();
    for (shape, make) in shapes {
        for piece in [1, 7, 1460, usize::MAX] {
            let make = |n: usize| (Bytes::from(make(n)), n);
            let work = |body: &Bytes| {
                let mut decoder = sse::Decoder::new(1 << 30);
                for at in (0..body.len()).step_by(piece) {
                    decoder.push(body.slice(at..body.len().min(at.saturating_add(piece))));
                    while decoder.next().unwrap().is_some() {}
                }
                decoder.finish();
            };
            dear.extend(linear(&|| format!("{shape} in pieces of {piece}"), (MANY, 20), &make, &work));
        }
    }
    report(&dear);
}

#[test]
fn a_seam_is_linear_in_both_texts() {
    let texts: [Shape; 12] = [
        ("one letter", |n| "a".repeat(n)),
        ("one word", |n| "ha ".repeat(n / 3)),
        ("blanks", |n| " ".repeat(n)),
        ("line breaks", |n| "\n".repeat(n)),
        ("marks", |n| format!("a{}", "\u{301}".repeat(n / 2))),
        ("open brackets", |n| "{[".repeat(n / 2)),
        ("items of a list", |n| "- a\n".repeat(n / 4)),
        ("fences", |n| "```rust\n".repeat(n / 8)),
        ("openers", |n| "Sure, continuing from where I left off: ".repeat(n / 40)),
        ("quotes", |n| "\u{201c}\u{ab}\"".repeat(n / 6)),
        ("backslashes in quotes", |n| format!("{{\"{}", "\\\"".repeat(n / 2))),
        ("sentences", |n| (0..n / 24).map(|at| format!("Sentence {at} goes on. ")).collect()),
    ];
    let mut dear = Vec::new();
    for (told, delivered) in texts {
        for (said, continuation) in texts {
            for piece in [1, 4096] {
                let make = |n: usize| ((delivered(n), continuation(n)), 2 * n);
                let work = |(delivered, said): &(String, String)| {
                    let delivered: Arc<str> = delivered.as_str().into();
                    let anchor = Anchor::of(&delivered);
                    let mut seams = [
                        Seam::anchored(Arc::clone(&delivered), &anchor, 240),
                        Seam::echo(Arc::clone(&delivered)),
                        Seam::trimmed(&delivered[delivered.trim_end().len()..]),
                    ];
                    for seam in &mut seams {
                        let mut rest = said.as_str();
                        while !rest.is_empty() {
                            let (head, tail) = rest.split_at(rest.floor_char_boundary(piece.max(4).min(rest.len())));
                            if seam.push(head).is_err() {
                                break;
                            }
                            rest = tail;
                        }
                        let _ = seam.close();
                    }
                };
                let what = || format!("{told}, gone on with {said} in pieces of {piece}");
                dear.extend(linear(&what, (PLACED, 40), &make, &work));
            }
        }
    }
    report(&dear);
}

#[test]
fn a_configuration_is_read_linearly() {
    let shapes: [Shape; 7] = [
        ("unknown tables", |n| (0..n / 12).map(|at| format!("[t{at:06}]\n")).collect()),
        ("deep lists", |n| format!("a = {}", "[".repeat(n))),
        ("empty lists", |n| format!("a = [{}]", "[],".repeat(n / 3))),
        ("a deep key", |n| format!("{}x = 1", "a.".repeat(n / 2))),
        ("a long text", |n| format!("a = \"{}\"", "a".repeat(n))),
        ("one key many times", |n| "a = 1\n".repeat(n / 6)),
        ("lines that mean nothing", |n| "=\n".repeat(n / 2)),
    ];
    let mut dear = Vec::new();
    for (shape, make) in shapes {
        let work = |text: &String| {
            let _ = std::hint::black_box(config::load(text, "segue.toml", &config::Nothing));
        };
        dear.extend(linear(&|| format!("a configuration of {shape}"), (MANY, 400), &|n| (make(n), n), &work));
    }
    report(&dear);
}
