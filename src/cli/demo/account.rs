//! The account of one turn: whether it was exact, how long the gap was, and what happened at which millisecond.
//!
//! Three witnesses are asked. The client knows what came and when; the providers know when they broke and what they
//! were asked; the gateway's journal knows when it opened and gave up its attempts. Nothing here is assumed to have
//! happened because it was arranged.

use super::acts::{Act, Side};
use super::audience::Heard;
use crate::record::turn::Fate as End;
use crate::record::{Outcome, TurnRecord};
use crate::relay::journal::Cause;
use crate::rig::origin::{Fate, Record};
use serde::Serialize;
use std::time::{Duration, Instant};

/// The account of one turn.
#[derive(Debug, Serialize)]
pub(super) struct Account {
    /// Its name.
    pub(super) act: &'static str,
    /// Nothing is wrong with it.
    pub(super) exact: bool,
    /// What is.
    pub(super) problems: Vec<String>,
    /// Characters that the client was given.
    pub(super) characters: usize,
    /// Characters that both providers tell.
    pub(super) expected_characters: usize,
    /// After how many characters the providers changed.
    pub(super) seam_at: Option<usize>,
    /// From the last character of the primary to the first of the fallback, as the client saw it, in milliseconds; of a
    /// call, from the break of the primary until the client had it whole.
    pub(super) gap_ms: Option<f64>,
    /// The usual time from one piece of text to the next: the median of the others.
    pub(super) usual_gap_ms: Option<f64>,
    /// From the fallback's request to the first thing that it said, in milliseconds: its own share of the gap.
    pub(super) fallback_first_token_ms: Option<f64>,
    /// The tool call that the client was given.
    pub(super) call: Option<String>,
    /// What the primary had told of it when it broke.
    pub(super) call_cut_at: Option<String>,
    /// What happened, in order.
    pub(super) timeline: Vec<Moment>,
    /// The gateway's own account.
    pub(super) turn: Option<TurnRecord>,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Moment {
    /// Since the client asked, in milliseconds.
    pub(super) ms: f64,
    /// Of whom.
    #[serde(serialize_with = "side")]
    pub(super) who: Option<Side>,
    /// What.
    pub(super) what: String,
}

/// What the witnesses say.
pub(super) struct Witnesses<'a> {
    pub(super) act: &'a Act,
    pub(super) heard: &'a Heard,
    pub(super) primary: Option<&'a Record>,
    pub(super) fallback: Option<&'a Record>,
    pub(super) turn: Option<TurnRecord>,
}

// === impl Account ===

impl Account {
    /// Hears the witnesses.
    pub(super) fn of(witnesses: Witnesses<'_>) -> Self {
        let Witnesses { act, heard, fallback, .. } = &witnesses;
        let text = heard.text();
        let seam = fallback.and_then(|record| record.reading.ask.told()).map(str::len);
        let (mut gap, usual) = gaps(heard, seam);
        if act.call.is_some() {
            let broken = witnesses.primary.and_then(|record| record.ended).map(tokio::time::Instant::into_std);
            let whole = heard.calls.values().find_map(|call| Some(call.at?.1));
            gap = whole.zip(broken).map(|(whole, broken)| whole.saturating_duration_since(broken));
        }
        let problems = problems(&witnesses, &text);
        let timeline = timeline(&witnesses, seam);
        let (expected_characters, name) = (act.text().chars().count(), act.name);
        let call_cut_at = witnesses.primary.filter(|_| act.call.is_some()).map(|r| act.told_of_call(r.tokens));
        let call = heard.calls.values().next().map(|call| format!("{}({})", call.name, call.args));
        let second = |turn: &TurnRecord| turn.attempts.get(1)?.first_token_ms;
        Self {
            act: name,
            exact: problems.is_empty(),
            problems,
            characters: text.chars().count(),
            expected_characters,
            seam_at: seam.and_then(|at| Some(text.get(..at)?.chars().count())),
            gap_ms: gap.map(millis),
            usual_gap_ms: usual.map(millis),
            fallback_first_token_ms: witnesses.turn.as_ref().and_then(second),
            call,
            call_cut_at,
            timeline,
            turn: witnesses.turn,
        }
    }
}

// === is it exact ===

fn problems(witnesses: &Witnesses<'_>, text: &str) -> Vec<String> {
    let Witnesses { act, heard, primary, fallback, turn } = witnesses;
    let mut problems = heard.stray.clone();
    let mut must = |holds: bool, what: String| {
        if !holds {
            problems.push(what);
        }
    };
    let whole = act.text();
    must(heard.status == 200, format!("the status is {}", heard.status));
    must(text == whole, difference(text, &whole));
    must(heard.ids.len() == 1, format!("the chunks bear {} ids", heard.ids.len()));
    must(heard.models.len() == 1, format!("the chunks name {} models", heard.models.len()));
    let finish = if act.call.is_some() { "tool_calls" } else { "stop" };
    must(heard.finishes == [finish], format!("finished with {:?} instead of `{finish}` once", heard.finishes));
    must(heard.terminators == 1, format!("[DONE] came {} times", heard.terminators));
    if let (Some((first, _)), Some(asked)) = (heard.calls.values().find_map(|call| call.at), fallback.map(|r| r.at)) {
        must(first >= asked.into_std(), "a part of the call came before the fallback was asked".to_owned());
    }
    let calls: Vec<(&str, &str)> = heard.calls.values().map(|c| (c.name.as_str(), c.args.as_str())).collect();
    let args = act.call.as_ref().map(|call| call.args.concat());
    let made: Vec<(&str, &str)> = act.call.iter().map(|call| call.name).zip(args.as_deref()).collect();
    must(calls == made, format!("the tool calls are {calls:?} instead of {made:?}"));
    // A turn to which nothing happened proves nothing.
    must(primary.is_some(), "the primary was never asked".to_owned());
    must(fallback.is_some(), "the fallback was never asked".to_owned());
    match turn {
        None => must(false, "the gateway has no account of it".to_owned()),
        Some(turn) => {
            must(turn.splices == 1, format!("the lead changed {} times", turn.splices));
            must(turn.outcome == Outcome::Complete, format!("the gateway calls it {}", turn.outcome));
        }
    }
    problems
}

/// Where two texts part.
fn difference(text: &str, whole: &str) -> String {
    let same = text.chars().zip(whole.chars()).take_while(|(a, b)| a == b).count();
    let around = |of: &str| of.chars().skip(same.saturating_sub(12)).take(30).collect::<String>();
    format!("the text is another from character {same} on: {:?} instead of {:?}", around(text), around(whole))
}

// === how long was the gap ===

/// The time from the last piece before `seam` (in bytes of text) to the first one after it, and the median of all other
/// times between pieces.
fn gaps(heard: &Heard, seam: Option<usize>) -> (Option<Duration>, Option<Duration>) {
    let mut told: Vec<(Instant, usize)> = Vec::with_capacity(heard.pieces.len());
    let mut length = 0;
    for (at, piece) in &heard.pieces {
        length += piece.len();
        told.push((*at, length));
    }
    let (mut gap, mut others) = (None, Vec::with_capacity(told.len()));
    for pair in told.windows(2) {
        let (before, after) = (pair[0], pair[1]);
        let time = after.0.saturating_duration_since(before.0);
        match seam {
            Some(seam) if before.1 <= seam && after.1 > seam => gap = Some(time),
            _ => others.push(time),
        }
    }
    others.sort_unstable();
    (gap, others.get(others.len() / 2).copied())
}

// === what happened when ===

fn timeline(witnesses: &Witnesses<'_>, seam: Option<usize>) -> Vec<Moment> {
    let Witnesses { act, heard, primary, fallback, turn } = witnesses;
    let mut all: Vec<Moment> = Vec::new();
    let mut add = |ms: f64, who, what: String| all.push(Moment { ms: (ms * 10.0).round() / 10.0, who, what });
    let seen = |at: Instant| millis(at.saturating_duration_since(heard.asked));
    // The gateway dates its account by the clock on the wall.
    let asked = heard.asked_at.duration_since(std::time::UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    let attempts = turn.as_ref().map(|turn| ((turn.started - asked).max(0.0) * 1e3, turn.attempts.as_slice()));
    let (offset, attempts) = attempts.unwrap_or_default();
    for attempt in attempts {
        let side = [Side::Primary, Side::Fallback].into_iter().find(|side| side.name() == &*attempt.connection);
        let opened = offset + attempt.opened_ms;
        let dialect = match side {
            Some(Side::Fallback) => "Anthropic Messages",
            _ => "Chat Completions",
        };
        let anchor = fallback.filter(|_| side == Some(Side::Fallback)).map(|r| r.reading.ask.anchor());
        let why = match (attempt.cause, anchor.filter(|anchor| !anchor.is_empty())) {
            (Cause::First, _) | (_, None) => String::new(),
            (_, Some(anchor)) => format!(", to go on after “{}”", end_of(anchor)),
        };
        add(opened, side, format!("asked over {dialect}{why}"));
        if let Some(first) = attempt.first_token_ms {
            let what = if why.is_empty() { "its first token" } else { "its first token: it repeats these words" };
            add(opened + first, side, what.to_owned());
        }
        if let (Some(ended), End::Failed, Some(failure)) = (attempt.ended_ms, attempt.outcome, attempt.failure) {
            add(offset + ended, side, format!("given up by the gateway: {}", failure.name()));
        }
        if let (Some(ended), End::Superseded) = (attempt.ended_ms, attempt.outcome) {
            add(offset + ended, side, "overtaken, and hung up on".to_owned());
        }
    }
    if let Some(record) = primary {
        match (act.is_silence(), record.fate) {
            (false, Fate::Told) => {
                let at = record.ended.map(tokio::time::Instant::into_std);
                if let Some(at) = at {
                    add(seen(at), Some(Side::Primary), "killed: TCP reset".to_owned());
                }
            }
            (true, _) => {
                if let Some(at) = record.written.map(tokio::time::Instant::into_std) {
                    add(seen(at), Some(Side::Primary), "its last token; silence from here on".to_owned());
                }
            }
            (false, _) => {}
        }
    }
    let mut length = 0;
    let spliced = heard.pieces.iter().find(|(_, piece)| {
        length += piece.len();
        seam.is_some_and(|seam| length > seam)
    });
    if let Some((at, piece)) = spliced {
        add(seen(*at), None, format!("spliced: it goes on with “{piece}”"));
    }
    for call in heard.calls.values() {
        if let Some((_, at)) = call.at {
            add(seen(at), None, "the client has the call, whole".to_owned());
        }
    }
    add(seen(heard.ended), None, format!("the end: {}", heard.finishes.join(", ")));
    all.sort_by(|a, b| a.ms.total_cmp(&b.ms));
    all
}

// === helpers ===

/// The last few words of a text.
fn end_of(text: &str) -> String {
    let skip = text.chars().count().saturating_sub(SHOWN);
    let cut: String = text.chars().skip(skip).collect();
    match cut.split_once(' ') {
        Some((_, words)) if skip > 0 => format!("… {words}"),
        _ => cut,
    }
}

fn millis(span: Duration) -> f64 {
    (span.as_secs_f64() * 1e4).round() / 10.0
}

#[expect(clippy::ref_option, clippy::trivially_copy_pass_by_ref, reason = "serde gives references")]
fn side<S: serde::Serializer>(side: &Option<Side>, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(side.map_or("client", Side::name))
}

/// So many characters of a text are quoted.
const SHOWN: usize = 24;

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test's panic is its report")]

    use super::super::acts::ACTS;
    use super::{Account, Duration, Heard, Witnesses, difference, end_of, gaps};

    /// A client that was told these pieces, 10 ms apart, save that piece `late` came 100 ms later.
    fn heard(pieces: &[&str], late: usize) -> Heard {
        let mut heard = Heard::new();
        let mut at = heard.asked;
        for (index, piece) in pieces.iter().enumerate() {
            at += Duration::from_millis(if index == late { 110 } else { 10 });
            heard.pieces.push((at, (*piece).to_owned()));
        }
        (heard.status, heard.terminators) = (200, 1);
        heard.ids.insert("a".to_owned());
        heard.models.insert("m".to_owned());
        heard.finishes.push("stop".to_owned());
        heard
    }

    #[test]
    fn the_gap_is_that_at_the_seam() {
        let heard = heard(&["One ", "two ", "th", "ree ", "four"], 3);
        let (gap, usual) = gaps(&heard, Some("One two th".len()));
        assert_eq!(gap, Some(Duration::from_millis(110)));
        assert_eq!(usual, Some(Duration::from_millis(10)));
        assert_eq!(gaps(&heard, None).0, None);
    }

    #[test]
    fn a_lost_a_doubled_and_a_changed_character_are_found() {
        let act = &ACTS[0];
        let whole = act.text();
        let account = |text: &str| {
            let heard = heard(&[text], 9);
            Account::of(Witnesses { act, heard: &heard, primary: None, fallback: None, turn: None })
        };
        let about_the_text = |account: &Account| account.problems.iter().any(|p| p.starts_with("the text is another"));
        let good = account(&whole);
        assert!(!about_the_text(&good));
        // Nothing happened to it, and nobody says that it did: that is no proof.
        assert!(!good.exact, "{:?}", good.problems);
        for wrong in
            [whole.replacen("pause", "pase", 1), whole.replacen("pause", "pauuse", 1), whole.replacen("p", "b", 1)]
        {
            let account = account(&wrong);
            assert!(about_the_text(&account) && !account.exact, "{:?}", account.problems);
        }
        assert!(about_the_text(&account(whole.get(..40).unwrap())));
    }

    #[test]
    fn two_ids_two_finishes_and_an_error_are_no_exact_turn() {
        let act = &ACTS[0];
        let text = act.text();
        let count = |change: fn(&mut Heard)| {
            let mut heard = heard(&[&text], 9);
            change(&mut heard);
            Account::of(Witnesses { act, heard: &heard, primary: None, fallback: None, turn: None }).problems.len()
        };
        let base = count(|_| {});
        assert_eq!(count(|h| h.ids.extend(["b".to_owned()])), base + 1);
        assert_eq!(count(|h| h.finishes.push("stop".to_owned())), base + 1);
        assert_eq!(count(|h| h.terminators = 0), base + 1);
        assert_eq!(count(|h| h.stray.push("an error".to_owned())), base + 1);
        assert_eq!(count(|h| drop(h.calls.insert(0, super::super::audience::HeardCall::default()))), base + 1);
    }

    #[test]
    fn words_say_where_texts_part_and_how_they_end() {
        assert_eq!(difference("abcX", "abcd"), "the text is another from character 3 on: \"abcX\" instead of \"abcd\"");
        assert_eq!(end_of("between them, segue: go on without a pau"), "… go on without a pau");
        assert_eq!(end_of("short"), "short");
    }
}
