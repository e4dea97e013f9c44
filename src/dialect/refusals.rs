//! Whose mistake a refusal is: one table for all dialects.
//!
//! Providers agree on little but the envelope of an error: a code is a word, a number or a sentence; the type of one is
//! the code of another; a gateway in between wraps it all once more. So a refusal is read for what it means ([`Report`]),
//! and then the rows of [`table`] are asked in order: credit and limits, key, region, model or route, too long, the form
//! that this target does not take, policy. What no row knows is the request's own mistake, unless it is no answer of
//! such an API at all.
//!
//! Codes and types are asked before the status where they say more, and words last: a message may repeat what the
//! request itself holds. So words inside quotation marks do not count, and a judgement that rests on words alone says so
//! ([`Failure::by_words`]).

use crate::failure::{Failure, Kind, Remedy, RetryAt, Said, Stage};
use crate::retry_after;
use http::HeaderMap;
pub(super) use report::is_error;
use report::{Report, Shape};
use table::{Rule, TABLE};
use words::Words;

mod meanings;
mod report;
mod table;
#[cfg(test)]
mod tests;
mod words;

/// The way out that a refusal names, in the words of one dialect.
pub(super) type Way = fn(&Said) -> Option<Remedy>;

/// The failure of a response that is not a success, or of a success that is no stream.
pub(super) fn response(status: u16, headers: &HeaderMap, body: &[u8], way: Way) -> Failure {
    let mut report = Report::of(body);
    let told = report.status;
    if status >= 400 {
        report.status = Some(status);
    }
    if let Some(kind) = headers.get("x-amzn-errortype").and_then(|value| value.to_str().ok()) {
        report.note_type(kind.split(':').next().unwrap_or_default());
    }
    if report.said.message.is_empty() {
        report.said.message = format!("HTTP status {status} without a message");
    }
    let retry_at = retry_after::from_headers(headers).or(report.retry_at);
    let waits = headers.contains_key("retry-after") || headers.contains_key("retry-after-ms");
    let mut failure = if status >= 400 || report.error {
        judge(&report, Stage::Refused, waits, retry_at, way)
    } else {
        // A redirect, which is not followed, or a body of another kind.
        Failure::new(Kind::Framing, Stage::Refused)
    };
    failure.said = report.said;
    failure.status = if status < 400 { told.or(Some(status)) } else { Some(status) };
    // The provider forbids to ask again: a time that it gives besides is not to be waited for here.
    let no_retry = headers.get("x-should-retry").is_some_and(|v| v.as_bytes().eq_ignore_ascii_case(b"false"));
    if no_retry && failure.status.is_some_and(|s| s >= 500 || s == 429) {
        failure.retry_at = None;
    }
    failure
}

/// The failure that an event inside a stream reports; `data` is JSON, or whatever else came with `event: error`.
pub(super) fn in_band(data: &[u8], way: Way) -> Failure {
    let mut report = Report::of(data);
    if report.said.message.is_empty() {
        report.said.message = "an error event without a message".to_owned();
    }
    let mut failure = judge(&report, Stage::Streaming, false, report.retry_at, way);
    failure.status = report.status;
    failure.said = report.said;
    failure
}

/// Asks the table.
fn judge(report: &Report, stage: Stage, waits: bool, retry_at: Option<RetryAt>, way: Way) -> Failure {
    let case = Case { report, status: report.status.unwrap_or(0), waits, timed: waits || retry_at.is_some() };
    let (kind, by_words) = case.kind();
    let mut failure = Failure::new(kind, stage);
    failure.by_words = by_words;
    // A local server fails with 500 where it was given no projector for pictures, or its template does not take the messages.
    let lacks = kind == Kind::ServerError && LOCAL.iter().any(|words| report.words.contains(words));
    // What is too long may be an id, and what is too much the answer that was asked for.
    let too_long = kind == Kind::ContextTooLong;
    let shorter = |remedy: &Remedy| matches!(remedy, Remedy::CallIds(_) | Remedy::Cap { lasting: false, .. });
    if (lacks || too_long || matches!(kind, Kind::BadRequest | Kind::Repairable))
        && let Some(remedy) = way(&report.said).filter(|remedy| !too_long || shorter(remedy))
    {
        failure.kind = Kind::Repairable;
        failure.remedy = Some(remedy);
        // A way out is tried before it is believed.
        failure.by_words = false;
    }
    failure.retry_at = retry_at.filter(|_| may_heal(failure.kind));
    if kind == Kind::RateLimited && case.is_over_the_whole_limit() {
        (failure.no_retry, failure.retry_at) = (true, None);
    }
    failure
}

/// A refusal before the table.
struct Case<'a> {
    report: &'a Report,
    /// 0 where nobody named one.
    status: u16,
    /// Its headers say when to ask again.
    waits: bool,
    /// So they do, or its body does.
    timed: bool,
}

impl Case<'_> {
    /// What it is, and whether words alone say so.
    fn kind(&self) -> (Kind, bool) {
        // Whoever says when to come back does not forbid to.
        if self.status == 403 && self.waits {
            return (Kind::RateLimited, false);
        }
        if let Some(kind) = self.by_code() {
            // "Permission denied" is a code for much that is no matter of keys, and then the words say what.
            let vague = kind == Kind::Auth && self.status == 403;
            let told = self.said_besides(kind).filter(|told| vague && *told != Kind::Auth);
            return told.map_or((kind, false), |told| (told, true));
        }
        if let Some(found) = self.by_status() {
            return found;
        }
        let words = Words::of(&self.report.words);
        let row = TABLE.iter().find(|row| self.allows(row) && row.words.iter().any(|word| words.mean(word)));
        if let Some(row) = row {
            return (row.kind, true);
        }
        (self.otherwise(), false)
    }

    fn by_code(&self) -> Option<Kind> {
        let code = |row: &&Rule| {
            let part = |known: &&&str| self.report.codes.iter().any(|code| code.contains(**known));
            let exact = |known: &&&str| self.report.codes.iter().any(|code| code == **known);
            row.codes.iter().any(|known| part(&known)) || row.numbers.iter().any(|known| exact(&known))
        };
        let row = TABLE.iter().filter(|row| self.allows(row)).find(code)?;
        Some(match row.kind {
            // The name of a thing that is missing, but not of the model: it is of this account only.
            Kind::NotForUs if self.misses_a_thing() => Kind::Repairable,
            // A text over its own limit is the client's name for itself, or another field that can be left out.
            Kind::ContextTooLong if self.is_of_a_field() => return None,
            kind => kind,
        })
    }

    /// What a status says by itself, where it says it whatever the words are; some leave a choice to them.
    fn by_status(&self) -> Option<(Kind, bool)> {
        let words = Words::of(&self.report.words);
        let says = |kind| self.says(&words, kind);
        Some(match self.status {
            402 => (Kind::QuotaExhausted, false),
            // An account without credit is told with 429 by many; one that names a time has some.
            429 if !self.timed && says(Kind::QuotaExhausted) => (Kind::QuotaExhausted, true),
            429 => (Kind::RateLimited, false),
            401 => (Kind::Auth, false),
            451 => (Kind::NotForUs, false),
            403 if self.report.shape == Shape::Markup => (Kind::NotForUs, false),
            403 => self.said_besides(Kind::Auth).map_or((Kind::Auth, false), |kind| (kind, true)),
            404 if self.misses_a_thing() || (words.mean(&meanings::LACKS) && !says(Kind::NotForUs)) => {
                (Kind::Repairable, false)
            }
            404 | 405 | 410 | 421 | 426 => (Kind::NotForUs, false),
            // The limit of a window, or of a proxy before it, unless it is one of tokens a minute.
            413 if says(Kind::RateLimited) => (Kind::RateLimited, true),
            413 => (Kind::ContextTooLong, false),
            408 | 409 | 425 | 499 => (Kind::ServerError, false),
            498 => (Kind::Overloaded, false),
            503 | 529 if says(Kind::QuotaExhausted) => (Kind::QuotaExhausted, true),
            503 | 529 => (Kind::Overloaded, false),
            400..=499 if matches!(self.report.shape, Shape::Markup | Shape::Empty) => (Kind::NotForUs, false),
            _ => return None,
        })
    }

    /// What the words of a refusal say that may have several grounds; `unless`: what it is otherwise.
    fn said_besides(&self, unless: Kind) -> Option<Kind> {
        let words = Words::of(&self.report.words);
        let kinds = [Kind::QuotaExhausted, Kind::RateLimited, Kind::ContentFiltered, unless, Kind::NotForUs];
        kinds.into_iter().find(|kind| self.says(&words, *kind))
    }

    fn says(&self, words: &Words<'_>, kind: Kind) -> bool {
        TABLE.iter().any(|row| row.kind == kind && self.allows(row) && row.words.iter().any(|word| words.mean(word)))
    }

    /// What it is where neither codes nor words say more.
    fn otherwise(&self) -> Kind {
        match (self.status, self.report.shape) {
            (400..=499, Shape::Json) => Kind::BadRequest,
            // No answer of such an API: whoever sent it does not know what it was asked.
            (400..=499, _) => Kind::NotForUs,
            (0, _) if self.is_called_wrong() => Kind::BadRequest,
            _ => Kind::ServerError,
        }
    }

    /// Whether a row may speak at this status.
    fn allows(&self, row: &Rule) -> bool {
        let here = match self.status {
            // An answer that fails on its way has been taken, unless its code says that it was not.
            0 => row.kind != Kind::Repairable || self.is_called_wrong(),
            status => row.at.contains(&status),
        };
        here && !(row.weak && self.timed)
    }

    /// Whether the request alone is more than the limit ever gives: no wait helps it, and it says nothing of how busy the
    /// target is.
    fn is_over_the_whole_limit(&self) -> bool {
        let words = &self.report.words;
        let asked = number(words, "requested").zip(number(words, "limit"));
        self.status == 413 || words.contains("request too large") || asked.is_some_and(|(asked, limit)| limit < asked)
    }

    fn is_called_wrong(&self) -> bool {
        self.report.codes.iter().any(|code| meanings::WRONG.iter().any(|wrong| code.contains(wrong)))
    }

    /// Whether what is not there is a file, an earlier answer or the like, and not the model.
    fn misses_a_thing(&self) -> bool {
        let words = Words::of(&self.report.words);
        words.mean(&meanings::THING) && !words.mean(&meanings::MODEL)
    }

    fn is_of_a_field(&self) -> bool {
        let param = &self.report.said.param;
        !param.is_empty() && !["messages", "input", "prompt", "system"].iter().any(|field| param.starts_with(field))
    }
}

// === helpers ===

/// Words of local servers that fail of the request's form.
const LOCAL: [&str; 4] = ["mmproj", "must alternate", "system message must be", "messages at the end of the list"];

/// The whole number that follows `word` in `words`.
fn number(words: &str, word: &str) -> Option<u64> {
    words.match_indices(word).find_map(|(at, _)| {
        let rest = words[at + word.len()..].trim_start_matches([':', ' ', '=']);
        let digits: String = rest.chars().take_while(|c| c.is_ascii_digit() || *c == ',').collect();
        digits.replace(',', "").parse().ok()
    })
}

/// Whether a time to ask again means anything for a failure of this kind.
fn may_heal(kind: Kind) -> bool {
    matches!(kind, Kind::RateLimited | Kind::Overloaded | Kind::ServerError | Kind::QuotaExhausted | Kind::Unavailable)
}
