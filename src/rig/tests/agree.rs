//! Signals and bytes of one script say the same.

#![expect(clippy::unwrap_used, reason = "a test's panic is its report")]

use super::client::{ask, question};
use super::heard::{self, Heard};
use crate::event::Signal;
use crate::failure::Kind;
use crate::rig::origin::{Origin, Scripts};
use crate::rig::play::{Act, play};
use crate::rig::random;
use crate::rig::reading::Reading;
use crate::rig::script::{Close, Ending, Pace, Quirks, Script};
use crate::rig::signals;
use crate::rig::wire::{Api, Writer};
use crate::turn::resume::{Anchor, Carry, Continue, How, Origin as Start};
use std::time::Duration;

/// The bytes of a stream without a socket, and how it closes.
fn bytes(script: &Script, reading: &Reading, api: Api, seed: u64) -> (Vec<u8>, Option<Close>) {
    let mut writer = Writer::new(api, api.names(1, "m", 1_700_000_000), true, script.quirks.clone());
    let mut out = Vec::new();
    for (_, act) in play(script, reading, seed) {
        match act {
            Act::Say(say) => writer.say(&say, &mut out),
            Act::Half(say, half) => writer.half(&say, half, &mut out),
            Act::Garbage => writer.garbage(&mut out),
            Act::Close(close) => return (out, Some(close)),
            Act::Headers => {}
            Act::Pings(_) | Act::Answer(_) => return (out, None),
        }
    }
    (out, None)
}

/// Compares what both say, up to where the signals say that the attempt is over.
fn compare(script: &Script, signals: &[(Duration, Signal)], wire: Heard, api: Api, what: &str) {
    let told = heard::signals(signals);
    let failed = signals.iter().find_map(|(_, s)| if let Signal::Failed(f) = s { Some(f.kind) } else { None });
    match failed {
        Some(Kind::Malformed) => assert_eq!(wire.malformed, 1, "{what}"),
        _ => assert_eq!(wire.malformed, 0, "{what}"),
    }
    let mut wire = wire;
    if api == Api::Anthropic {
        // A refusal in words is text there.
        assert!(wire.refusal.is_empty());
        if !told.refusal.is_empty() {
            wire.refusal = told.refusal.clone();
            let text = wire.texts.get_mut(&0).unwrap();
            text.truncate(text.len() - told.refusal.len());
            wire.texts.retain(|_, text| !text.is_empty());
        }
    }
    if failed != Some(Kind::Malformed) {
        assert_eq!((&wire.texts, &wire.reasoning, &wire.tools), (&told.texts, &told.reasoning, &told.tools), "{what}");
        assert_eq!(wire.opened, told.opened, "{what}");
    }
    match signals.last() {
        Some((_, Signal::Ended)) => {
            assert_eq!(wire.errors, 0, "{what}");
            // A body that ends well after the finish is whole, even if a fault took the terminator.
            assert!(wire.done || script.ending == Ending::NoTerminator || script.fault.is_some(), "{what}");
            if script.ending != Ending::NoFinish {
                assert_eq!(wire.finishes, told.finishes, "{what}");
                assert!(!told.finishes.is_empty(), "{what}");
                if wire.done || api == Api::Chat {
                    assert_eq!(wire.usage, told.usage, "{what}");
                }
            } else {
                assert!(wire.finishes.is_empty(), "{what}");
            }
        }
        // A terminator ends well only what said something.
        _ => assert!(!wire.done || wire.errors + wire.malformed > 0 || failed == Some(Kind::EmptyTurn), "{what}"),
    }
}

fn carry(told: &str, how: How) -> Carry {
    let origin = Start::Continue(Continue { delivered: told.into(), anchor: Anchor::of(told), how, tokens: 0 });
    Carry { origin, ..Carry::fresh() }
}

#[test]
fn random_scripts_say_the_same_in_signals_and_in_bytes() {
    for seed in 0..4000 {
        let mut script = random::script(seed);
        if seed % 7 == 0 {
            script.content.refusal = vec!["I ".into(), "won’t.".into()];
        }
        let carry = match seed % 3 {
            0 => Carry::fresh(),
            _ => {
                let text = script.text();
                let told = &text[..text.floor_char_boundary(text.len() / 2)];
                if told.trim().is_empty() {
                    Carry::fresh()
                } else {
                    carry(told, if seed % 3 == 1 { How::Instruct } else { How::Prefill })
                }
            }
        };
        let signals = signals::timeline(&script, &carry, seed);
        for api in Api::ALL {
            let (bytes, _) = bytes(&script, &Reading::of(&carry), api, seed);
            compare(&script, &signals, heard::read(api, &bytes), api, &format!("seed {seed} {api:?} {script:?}"));
        }
    }
}

#[tokio::test]
async fn random_scripts_say_the_same_over_a_socket() {
    for seed in 0..60 {
        let mut script = random::script(seed);
        // At once, and without what never ends, or each would take a client's whole patience.
        script.pace = Pace::default();
        script.content.thinks = None;
        if let Some(fault) = &mut script.fault {
            use crate::rig::script::Break;
            match &mut fault.how {
                how @ (Break::Silence | Break::PingsOnly { .. }) => *how = Break::Reset,
                Break::HalfEvent { then } | Break::HalfChar { then } if *then == Close::Hold => *then = Close::Fin,
                Break::Dribble { gap } => *gap = Duration::ZERO,
                _ => {}
            }
        }
        script.ending = if script.ending == Ending::HeldOpen { Ending::Whole } else { script.ending };
        script.reject = None;
        let signals = signals::timeline(&script, &Carry::fresh(), seed);
        for api in Api::ALL {
            let origin = Origin::local(Scripts::fixed(script.clone())).await.unwrap();
            let got = ask(origin.addr, api, &question()).await;
            let wire = heard::read(api, &got.body);
            compare(&script, &signals, wire, api, &format!("seed {seed} {api:?} {script:?}"));
            if script.quirks == Quirks::default() {
                assert!(got.head.contains("content-type: text/event-stream"), "{}", got.head);
            }
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_timeline_and_another_other_gaps() {
    let mut differ = 0;
    for seed in 0..300 {
        let script = random::script(seed);
        assert_eq!(script, random::script(seed));
        let (one, two) =
            (signals::timeline(&script, &Carry::fresh(), 1), signals::timeline(&script, &Carry::fresh(), 1));
        assert_eq!(one, two);
        let other = signals::timeline(&script, &Carry::fresh(), 2);
        let times = |signals: &[(Duration, Signal)]| signals.iter().map(|(at, _)| *at).collect::<Vec<_>>();
        differ += usize::from(times(&one) != times(&other));
    }
    assert!(differ > 60, "{differ}");
}

#[test]
fn timelines_begin_with_sent_and_never_go_back() {
    for seed in 0..2000 {
        let script = random::script(seed);
        let signals = signals::timeline(&script, &Carry::fresh(), seed);
        assert_eq!(signals[0], (Duration::ZERO, Signal::Sent));
        assert!(signals.is_sorted_by_key(|(at, _)| *at), "seed {seed}");
        let ends = signals.iter().filter(|(_, s)| matches!(s, Signal::Ended | Signal::Failed(_))).count();
        let last = matches!(signals.last(), Some((_, Signal::Ended | Signal::Failed(_))));
        assert!(ends == 0 || (ends == 1 && last), "seed {seed}");
    }
}

#[test]
fn providers_of_a_chain_tell_one_text() {
    let mut cuts = 0;
    for seed in 0..500 {
        let chain = random::chain(seed);
        assert!((1..=4).contains(&chain.len()));
        for script in &chain {
            assert_eq!(script.text(), chain[0].text());
            cuts += usize::from(script.content.text != chain[0].content.text);
        }
        let rescuable = random::rescuable_chain(seed);
        let last = rescuable.last().unwrap();
        assert_eq!((&last.fault, &last.reject, last.text()), (&None, &None, chain[0].text()));
    }
    assert!(cuts > 400, "the pieces differ: {cuts}");
}

#[test]
fn random_scripts_reach_every_break_at_both_ends_and_every_continuation() {
    use std::collections::HashSet;
    let (mut breaks, mut continuations, mut rejects) = (HashSet::new(), HashSet::new(), HashSet::new());
    let (mut first, mut last, mut after) = (0, 0, 0);
    for seed in 0..5000 {
        let script = random::script(seed);
        continuations.insert(script.continuation as usize);
        rejects.extend(script.reject.as_ref().map(std::mem::discriminant));
        if let Some(fault) = &script.fault {
            breaks.insert(std::mem::discriminant(&fault.how));
            let content = &script.content;
            let args = content.tools.iter().map(|t| t.args.len() + 1).sum::<usize>();
            let tokens = content.reasoning.len() + content.text.len() + args;
            first += usize::from(fault.at == 0);
            last += usize::from(fault.at == tokens);
            after += usize::from(fault.at == tokens + 1);
        }
    }
    assert_eq!((breaks.len(), continuations.len(), rejects.len()), (10, 14, 7));
    assert!(first > 20 && last > 20 && after > 20, "{first} {last} {after}");
}

#[test]
fn scripts_survive_a_file() {
    for seed in 0..1500 {
        let mut script = random::script(seed);
        if seed % 5 == 0 {
            script.content.others = vec![vec!["x".into(), " y".into()]];
        }
        let json = serde_json::to_string(&script).unwrap();
        assert_eq!(serde_json::from_str::<Script>(&json).unwrap(), script, "{json}");
        let toml = toml::to_string(&script).unwrap();
        assert_eq!(toml::from_str::<Script>(&toml).unwrap(), script, "{toml}");
    }
}
