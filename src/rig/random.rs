//! Random scripts for property tests: every break at every position, every behaviour at a join.

use super::delay::{Delay, Draw};
use super::script::{
    Break, Close, Content, Continuation, Ending, Fault, Form, Pace, Quirks, Reject, Script, ToolCall, Wrong,
};
use super::seed::Dice;
use super::text::{self, Kind};
use std::time::Duration;

/// A random script: about half of them break, some refuse, the rest tell all.
pub fn script(seed: u64) -> Script {
    let mut dice = Dice::labelled(seed, 1);
    let whole = random_text(&mut dice);
    provider(&whole, &mut dice)
}

/// One to four providers that tell the same text in different pieces. The last one is as likely to break as the others;
/// [`Script::fault`] and [`Script::reject`] say which do.
pub fn chain(seed: u64) -> Vec<Script> {
    let mut dice = Dice::labelled(seed, 2);
    let whole = random_text(&mut dice);
    let count = dice.between(1, MAX_CHAIN);
    (0..count).map(|_| provider(&whole, &mut dice)).collect()
}

/// The same, but each provider of which a gateway can repair the faults and the joins: no tool calls, no reasoning, one
/// choice, obedient continuations; and the last one does not break. So whatever happens, the client must get the text.
pub fn rescuable_chain(seed: u64) -> Vec<Script> {
    let mut chain = chain(seed);
    let mut dice = Dice::labelled(seed, 3);
    for script in &mut chain {
        script.content = Content { text: std::mem::take(&mut script.content.text), ..Content::default() };
        script.ending = Ending::Whole;
        script.continuation = match dice.below(4) {
            0 => Continuation::Preamble,
            1 => Continuation::CurlyQuotes,
            _ => Continuation::Obedient,
        };
        match &mut script.reject {
            Some(Reject::Error { wrong, status, .. }) => (*status, *wrong) = (503, None),
            Some(Reject::JsonError { wrong }) => *wrong = Wrong::Overloaded,
            _ => {}
        }
        if let Some(Fault { how: Break::ErrorEvent { wrong, .. }, .. }) = &mut script.fault {
            *wrong = Wrong::Overloaded;
        }
    }
    if let Some(last) = chain.last_mut() {
        (last.fault, last.reject) = (None, None);
    }
    chain
}

// === parts ===

fn random_text(dice: &mut Dice) -> String {
    let kind = dice.pick(&Kind::ALL).copied().unwrap_or(Kind::Prose);
    let length = match dice.below(10) {
        0 => dice.between(0, 12),
        1..=7 => dice.between(20, 120),
        _ => dice.between(120, 500),
    };
    if length == 0 { String::new() } else { text::text(kind, length, dice.roll()) }
}

fn provider(whole: &str, dice: &mut Dice) -> Script {
    let pieces = if dice.once_in(5) { text::words(whole) } else { text::cut(whole, dice.between(1, 24), dice) };
    let mut content = Content { text: pieces, ..Content::default() };
    if dice.once_in(8) {
        content.reasoning = text::words("First I look at what was asked, then I answer.");
    }
    if dice.once_in(16) {
        content.thinks = Some(millis(dice.between(10, 20_000)));
    }
    if dice.once_in(8) {
        content.tools = (0..dice.between(1, 3)).map(|call| tool(call, dice)).collect();
    }
    content.usage = !dice.once_in(6);
    let tokens = content.reasoning.len()
        + content.text.len()
        + content.tools.iter().map(|tool| 1 + tool.args.len()).sum::<usize>();
    let reject = dice.once_in(8).then(|| reject(dice));
    let fault = dice.once_in(2).then(|| Fault { at: dice.between(0, tokens + 1), how: broken(dice) });
    let ending = match dice.below(12) {
        0 => Ending::NoTerminator,
        1 => Ending::NoFinish,
        2 => Ending::HeldOpen,
        _ => Ending::Whole,
    };
    let continuation = dice.pick(&CONTINUATIONS).copied().unwrap_or_default();
    Script { content, pace: pace(dice), fault, reject, continuation, ending, limited: false, quirks: quirks(dice) }
}

fn tool(call: usize, dice: &mut Dice) -> ToolCall {
    let args = format!("{{\"city\":\"Zürich {}\",\"days\":[1,2,{{\"a\":null}}]}}", dice.below(100));
    let args = if dice.once_in(4) { Vec::new() } else { text::cut(&args, dice.between(1, 30), dice) };
    ToolCall { id: format!("call_{call}_{}", dice.below(1000)), name: format!("weather_{call}"), args }
}

fn pace(dice: &mut Dice) -> Pace {
    Pace {
        headers: delay(dice, 200),
        first: delay(dice, 1500),
        gap: delay(dice, 150),
        keep_alive: dice.once_in(8).then(|| millis(dice.between(200, 3000))),
    }
}

fn delay(dice: &mut Dice, scale: usize) -> Delay {
    let wait = millis(dice.between(0, scale));
    match dice.below(8) {
        0 => Delay::Fixed(Duration::ZERO),
        1 => Delay::List(vec![wait, millis(dice.between(0, scale * 40)), millis(dice.between(0, scale))]),
        2 => Delay::Drawn(Draw::Uniform { min: Duration::ZERO, max: wait }),
        3 => Delay::Drawn(Draw::LogNormal { median: wait, sigma: 1.0 }),
        4 => Delay::Drawn(Draw::Pareto { min: wait / 4, alpha: 1.2 }),
        _ => Delay::Fixed(wait),
    }
}

fn broken(dice: &mut Dice) -> Break {
    match dice.below(11) {
        0 => Break::Reset,
        1 => Break::Fin,
        2 => Break::CleanEnd,
        3 => Break::HalfEvent { then: close(dice) },
        4 => Break::HalfChar { then: close(dice) },
        5 | 6 => Break::ErrorEvent { wrong: wrong(dice), form: form(dice), done: dice.once_in(3) },
        7 => Break::Silence,
        8 => Break::PingsOnly { every: millis(dice.between(20, 3000)) },
        9 => Break::Garbage,
        _ => Break::Dribble { gap: millis(dice.between(200, 4000)) },
    }
}

fn reject(dice: &mut Dice) -> Reject {
    match dice.below(10) {
        0..=3 => {
            let status = dice.pick(&[429, 429, 500, 503, 529, 401, 402, 400]).copied().unwrap_or(500);
            let after = dice.once_in(2).then(|| ("retry-after".to_owned(), dice.between(1, 20).to_string()));
            Reject::Error { status, headers: after.into_iter().collect(), wrong: None }
        }
        4 => Reject::JsonError { wrong: wrong(dice) },
        5 => Reject::DoneOnly,
        6 => Reject::Html { status: if dice.once_in(2) { 200 } else { 502 } },
        7 => Reject::HeadersOnly,
        8 => Reject::NeverAnswers,
        _ => Reject::ClosesAtOnce,
    }
}

fn close(dice: &mut Dice) -> Close {
    dice.pick(&[Close::Reset, Close::Fin, Close::End, Close::Hold]).copied().unwrap_or_default()
}

fn form(dice: &mut Dice) -> Form {
    dice.pick(&[Form::Object, Form::Text, Form::Finish]).copied().unwrap_or_default()
}

fn wrong(dice: &mut Dice) -> Wrong {
    let often = [Wrong::Overloaded, Wrong::Server, Wrong::RateLimited, Wrong::Overloaded, Wrong::Server];
    let seldom = [Wrong::Quota, Wrong::Auth, Wrong::Invalid, Wrong::TooLong, Wrong::Filtered];
    let list: &[Wrong] = if dice.once_in(6) { &seldom } else { &often };
    dice.pick(list).copied().unwrap_or_default()
}

fn quirks(dice: &mut Dice) -> Quirks {
    use super::script::LineEnd;
    if !dice.once_in(4) {
        return Quirks::default();
    }
    Quirks {
        lines: dice.pick(&[LineEnd::Lf, LineEnd::CrLf, LineEnd::Cr]).copied().unwrap_or_default(),
        bom: dice.once_in(3),
        no_space: dice.once_in(2),
        cut: if dice.once_in(2) { dice.between(1, 40) } else { 0 },
        short_reasoning: dice.once_in(2),
        odd: Vec::new(),
    }
}

fn millis(millis: usize) -> Duration {
    Duration::from_millis(millis as u64)
}

// === consts ===

/// Obedience is as likely as all disobedience together.
const CONTINUATIONS: [Continuation; 26] = {
    let mut all = [Continuation::Obedient; 26];
    let mut at = 0;
    while at < Continuation::ALL.len() {
        all[at] = Continuation::ALL[at];
        at += 1;
    }
    all
};

/// The most providers of a chain.
const MAX_CHAIN: usize = 4;
