//! Faults by the name of a model, so that they can be tried with nothing but a client: `fault-stall@20`.
//!
//! A name is read after its last `/`, in parts joined by `+`; parts that are no words of this vocabulary are the model's
//! own name, so `mock-large+fault-reset@12+gap-5ms` is one that tells twelve tokens, 5 ms apart, and is reset.
//!
//! | part | what it does |
//! | --- | --- |
//! | `fault-reset@N` | TCP reset in place of token N (20 where `@N` is left out, here and below) |
//! | `fault-fin@N`, `fault-end@N` | FIN inside the body; an end of the body without a finish |
//! | `fault-half@N`, `fault-halfchar@N` | reset inside an event; inside a character |
//! | `fault-error@N`, `fault-limit@N` | an error event: overloaded; rate limit |
//! | `fault-stall@N`, `fault-pings@N` | silence; nothing but comments or pings, one a second |
//! | `fault-dribble@N` | from there on one token a second |
//! | `fault-garbage@N` | an event that is no JSON |
//! | `fault-429`, `fault-503`, any status from 400 to 599 | that status instead of a stream |
//! | `fault-hang`, `fault-headers`, `fault-close` | never an answer; headers and nothing more; a close without an answer |
//! | `fault-done`, `fault-json`, `fault-html` | only the terminator; 200 with an error body; 502 with a page |
//! | `seam-NAME` | how a continuation begins: `obedient`, `verbatim`, `echo`, `preamble`, `preamble-only`, `restart`, `restart-diverges`, `missing-space`, `extra-space`, `paragraph-break`, `curly-quotes`, `refuses-prefill`, `refuses`, `empty` |
//! | `text-NAME` | what is told: `prose`, `code`, `json`, `list`, `cjk`, `emoji`, `repeat` |
//! | `headers-T`, `first-T`, `gap-T` | time to the headers, from there to the first token, between tokens (`300ms`, `2s`) |

use super::delay::Delay;
use super::script::{Break, Close, Continuation, Fault, Form, Reject, Script, Wrong};
use super::span;
use super::text::{self, Kind};
use std::collections::BTreeMap;
use std::time::Duration;

/// `base` with what the name of `model` says.
///
/// # Errors
/// If a part looks like the vocabulary's and is not; the text says what there is.
pub fn script(model: &str, base: &Script) -> Result<Script, String> {
    let mut script = base.clone();
    for part in model.rsplit('/').next().unwrap_or_default().split('+') {
        apply(part, &mut script).map_err(|why| format!("`{part}` in the model's name: {why}"))?;
    }
    Ok(script)
}

fn apply(part: &str, script: &mut Script) -> Result<(), String> {
    let Some((word, rest)) = part.split_once('-') else { return Ok(()) };
    let wait = |rest: &str| span::parse(rest).map(Delay::Fixed);
    match word {
        "fault" => return fault(rest, script),
        "seam" => script.continuation = seam(rest)?,
        "text" => {
            let kind = Kind::ALL
                .into_iter()
                .find(|kind| kind.name() == rest)
                .ok_or_else(|| format!("there is no such text; there are {}", Kind::ALL.map(Kind::name).join(", ")))?;
            script.content.text = text::words(&text::text(kind, TEXT, 1));
        }
        "headers" => script.pace.headers = wait(rest)?,
        "first" => script.pace.first = wait(rest)?,
        "gap" => script.pace.gap = wait(rest)?,
        _ => {}
    }
    Ok(())
}

fn fault(rest: &str, script: &mut Script) -> Result<(), String> {
    let (word, at) = match rest.split_once('@') {
        Some((word, at)) => (word, at.parse().map_err(|_| format!("`{at}` is no number of a token"))?),
        None => (rest, AT),
    };
    let status = word.parse::<u16>().ok().filter(|status| (400..=599).contains(status));
    let reject = match word {
        _ if status.is_some() => {
            Some(Reject::Error { status: status.unwrap_or_default(), headers: BTreeMap::new(), wrong: None })
        }
        "hang" => Some(Reject::NeverAnswers),
        "headers" => Some(Reject::HeadersOnly),
        "close" => Some(Reject::ClosesAtOnce),
        "done" => Some(Reject::DoneOnly),
        "json" => Some(Reject::JsonError { wrong: Wrong::Server }),
        "html" => Some(Reject::Html { status: 502 }),
        _ => None,
    };
    if reject.is_some() {
        script.reject = reject;
        return Ok(());
    }
    let error = |wrong| Break::ErrorEvent { wrong, form: Form::Object, done: false };
    let second = Duration::from_secs(1);
    let how = match word {
        "reset" => Break::Reset,
        "fin" => Break::Fin,
        "end" => Break::CleanEnd,
        "half" => Break::HalfEvent { then: Close::Reset },
        "halfchar" => Break::HalfChar { then: Close::Reset },
        "error" => error(Wrong::Overloaded),
        "limit" => error(Wrong::RateLimited),
        "stall" => Break::Silence,
        "pings" => Break::PingsOnly { every: second },
        "dribble" => Break::Dribble { gap: second },
        "garbage" => Break::Garbage,
        _ => return Err(format!("there is no such fault; there are {FAULTS} and statuses from 400 to 599")),
    };
    script.fault = Some(Fault { at, how });
    Ok(())
}

fn seam(name: &str) -> Result<Continuation, String> {
    let found = SEAMS.iter().zip(Continuation::ALL).find(|(known, _)| **known == name);
    found
        .map(|(_, continuation)| continuation)
        .ok_or_else(|| format!("there is no such seam; there are {}", SEAMS.join(", ")))
}

// === consts ===

/// The vocabulary in short, for a command's help.
pub const HELP: &str = "\
By the model's name, in parts joined by +, as in mock+fault-stall@20+gap-5ms:
  fault-reset@N                   TCP reset in place of token N
  fault-fin@N, fault-end@N        the body breaks off, or ends without a finish
  fault-half@N, fault-halfchar@N  reset inside an event, inside a character
  fault-error@N, fault-limit@N    an error event: overloaded, rate limit
  fault-stall@N, fault-pings@N    silence; nothing but pings
  fault-dribble@N                 from there on one token a second
  fault-garbage@N                 an event that is no JSON
  fault-429 (any status)          that status instead of a stream
  fault-html, fault-json          a page; 200 with an error body
  fault-hang, fault-headers       never an answer; headers and nothing more
  fault-close, fault-done         no answer; only the terminator
  text-NAME                       what is told: prose, code, json, list, cjk,
                                  emoji, repeat
  headers-T, first-T, gap-T       waiting times, such as 300ms or 2s
  seam-NAME                       how a continuation begins: obedient, verbatim,
                                  echo, preamble, preamble-only, restart,
                                  restart-diverges, missing-space, extra-space,
                                  paragraph-break, curly-quotes,
                                  refuses-prefill, refuses, empty
";

/// Names for a list of models: one of each kind, to be seen and copied.
pub const EXAMPLES: [&str; 10] = [
    "mock",
    "fault-reset@20",
    "fault-end@20",
    "fault-stall@20",
    "fault-pings@20",
    "fault-error@20",
    "fault-429",
    "fault-503",
    "seam-preamble",
    "text-code",
];

const FAULTS: &str = "reset, fin, end, half, halfchar, error, limit, stall, pings, dribble, garbage (each with @N), \
                      hang, headers, close, done, json, html";

/// In the order of [`Continuation::ALL`].
const SEAMS: [&str; 14] = [
    "obedient",
    "verbatim",
    "echo",
    "preamble",
    "preamble-only",
    "restart",
    "restart-diverges",
    "missing-space",
    "extra-space",
    "paragraph-break",
    "curly-quotes",
    "refuses-prefill",
    "refuses",
    "empty",
];

/// Where a fault strikes that does not say it.
const AT: usize = 20;

/// Length of a text chosen by name, in characters.
const TEXT: usize = 600;

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test's panic is its report")]

    use super::{Break, Continuation, Delay, Duration, EXAMPLES, Fault, Reject, SEAMS, Script, script};

    #[test]
    fn names_say_faults() {
        let base = Script::telling("a b c");
        let got = script("x/mock-large+fault-stall@7+seam-restart+gap-5ms", &base).unwrap();
        assert_eq!(got.fault, Some(Fault { at: 7, how: Break::Silence }));
        assert_eq!(got.continuation, Continuation::Restart);
        assert_eq!(got.pace.gap, Delay::Fixed(Duration::from_millis(5)));
        assert_eq!(got.content, base.content);
        assert_eq!(script("fault-reset", &base).unwrap().fault.unwrap().at, 20);
        assert!(matches!(script("fault-529", &base).unwrap().reject, Some(Reject::Error { status: 529, .. })));
        assert_eq!(script("gpt-4.1", &base).unwrap(), base);
        assert_ne!(script("text-cjk", &base).unwrap().content, base.content);
    }

    #[test]
    fn every_example_and_every_seam_is_known() {
        let base = Script::default();
        for name in EXAMPLES {
            script(name, &base).unwrap();
        }
        assert!(SEAMS.iter().all(|seam| super::HELP.contains(seam)));
        for (name, continuation) in SEAMS.iter().zip(Continuation::ALL) {
            let snake = serde_json::to_value(continuation).unwrap();
            assert_eq!(snake.as_str().unwrap(), name.replace('-', "_"), "the two spellings belong together");
        }
    }

    #[test]
    fn unknown_words_are_named_with_those_that_there_are() {
        for (name, word) in
            [("fault-explode@3", "reset"), ("seam-x", "preamble"), ("text-x", "emoji"), ("gap-x", "150ms")]
        {
            let error = script(name, &Script::default()).unwrap_err();
            assert!(error.contains(name) && error.contains(word), "{error}");
        }
        assert!(script("fault-reset@x", &Script::default()).unwrap_err().contains("token"));
        assert!(script("fault-600", &Script::default()).is_err());
    }
}
