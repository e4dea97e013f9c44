//! What the audience sees: the text as it comes, the seam, and the account of the turn.

use super::account::{Account, Moment};
use super::acts::{Act, Side};
use super::audience::Beat;
use crate::cli::paint::{Ink, Paint};
use std::io::{self, Write};
use std::time::Duration;

/// Shows turns on an output.
pub(super) struct Show<'a> {
    out: &'a mut dyn Write,
    paint: Paint,
    /// Where the next character of a text goes; 0: at the start of a line.
    column: usize,
    /// Bytes of the text so far.
    told: usize,
    /// The seam is behind us.
    crossed: bool,
    /// Columns of the note about silence that stands behind the text.
    note: usize,
}

// === impl Show ===

impl<'a> Show<'a> {
    pub(super) fn new(out: &'a mut dyn Write, paint: Paint) -> Self {
        Self { out, paint, column: 0, told: 0, crossed: false, note: 0 }
    }

    /// What this is, before the first act.
    pub(super) fn overture(&mut self, base_url: &str) -> io::Result<()> {
        let Self { paint, .. } = *self;
        writeln!(self.out, "{}", paint.ink(Ink::Bold, "Segue: a turn survives its provider"))?;
        let colours = if paint.is_lively() { "; the first one's words are cyan, the second one's yellow" } else { "" };
        let text = format!(
            "A client streams from the gateway at {base_url}. Behind it are two providers on this machine, one of which \
             speaks Chat Completions and the other Anthropic Messages. {SEAM} marks where they changed{colours}."
        );
        writeln!(self.out, "{}", paint.ink(Ink::Dim, &paint.wrapped(&text, 0, 0)))
    }

    /// Before a turn.
    pub(super) fn open(&mut self, number: usize, act: &Act) -> io::Result<()> {
        let Self { paint, .. } = *self;
        (self.column, self.told, self.crossed, self.note) = (0, 0, false, 0);
        let title = paint.wrapped(&format!("{number}  {}", act.title), 0, MARGIN);
        writeln!(self.out, "\n{}", paint.ink(Ink::Bold, &title))?;
        let program = paint.wrapped(act.program, MARGIN, MARGIN);
        writeln!(self.out, "{}{}\n", " ".repeat(MARGIN), paint.ink(Ink::Dim, &program))?;
        self.out.flush()
    }

    /// While it runs. `seam` is how much of the text the fallback was told, as far as it was asked.
    pub(super) fn beat(&mut self, beat: Beat<'_>, seam: Option<usize>) -> io::Result<()> {
        match beat {
            Beat::Piece(piece) => {
                self.hush()?;
                let from = seam.map_or(piece.len(), |seam| seam.saturating_sub(self.told).min(piece.len()));
                let (before, after) = piece.split_at(from);
                self.told += piece.len();
                self.text(before, Side::Primary)?;
                if !after.is_empty() && !self.crossed {
                    self.crossed = true;
                    self.mark()?;
                }
                self.text(after, Side::Fallback)?;
            }
            Beat::Silence(time) => self.silence(time)?,
        }
        self.out.flush()
    }

    /// After a turn.
    pub(super) fn close(&mut self, act: &Act, account: &Account) -> io::Result<()> {
        self.hush()?;
        if self.column > 0 {
            writeln!(self.out)?;
        }
        if let Some(call) = &account.call {
            if let (Some(cut), Some(made)) = (&account.call_cut_at, &act.call) {
                self.fact("told", &format!("{}({cut}{SEAM}", made.name), Some(Ink::First))?;
            }
            self.fact("given", call, Some(Ink::Second))?;
        }
        writeln!(self.out)?;
        for moment in &account.timeline {
            self.moment(moment)?;
        }
        writeln!(self.out)?;
        if let Some(gap) = account.gap_ms {
            let mut text = match act.call {
                Some(_) => format!("{gap:.0} ms from the kill to the whole call"),
                None => format!("{gap:.0} ms from the last character of the primary to the first of the fallback"),
            };
            if let Some(first) = account.fallback_first_token_ms {
                text.push_str(&format!("; {first:.0} of them the fallback's own, to its first token"));
            }
            if let Some(usual) = account.usual_gap_ms {
                text.push_str(&format!(". {usual:.0} is usual from word to word"));
            }
            self.fact("gap", &text, None)?;
        }
        if account.exact {
            let call = if act.call.is_some() { ", one call, whole and valid" } else { "" };
            let told = format!(
                "{} of {} characters{call}, one id, one finish",
                account.characters, account.expected_characters
            );
            self.fact("exact", &told, Some(Ink::Good))?;
        }
        for problem in &account.problems {
            self.fact("wrong", problem, Some(Ink::Bad))?;
        }
        self.out.flush()
    }

    /// After the last one.
    pub(super) fn finale(&mut self, accounts: &[Account]) -> io::Result<()> {
        let Self { paint, .. } = *self;
        let exact = accounts.iter().filter(|account| account.exact).count();
        let characters: usize = accounts.iter().map(|account| account.characters).sum();
        writeln!(self.out)?;
        if exact == accounts.len() {
            let line =
                format!("All {exact} turns exact: {characters} characters, none lost, none doubled, none moved.");
            writeln!(self.out, "{}", paint.ink(Ink::Good, &paint.wrapped(&line, 0, 0)))?;
        } else {
            let line = format!("{exact} of {} turns exact; see `wrong` above.", accounts.len());
            writeln!(self.out, "{}", paint.ink(Ink::Bad, &paint.wrapped(&line, 0, 0)))?;
        }
        let gaps: Vec<String> =
            accounts.iter().filter_map(|a| Some(format!("{} {:.0} ms", a.act, a.gap_ms?))).collect();
        writeln!(self.out, "{}", paint.wrapped(&format!("Gaps that the client saw: {}.", gaps.join(", ")), 0, 0))?;
        let line = "Measured over loopback by a client that knows nothing of Segue; the faults are the providers' own.";
        writeln!(self.out, "{}", paint.wrapped(line, 0, 0))?;
        self.out.flush()
    }

    // --- the text ---

    fn text(&mut self, text: &str, side: Side) -> io::Result<()> {
        let mut run = String::new();
        for c in text.chars() {
            let end = self.paint.width().saturating_sub(1);
            if c.is_whitespace() && self.column == 0 {
                continue;
            }
            // A piece may be the beginning of a word, so a line ends while a usual word would still fit.
            if c == '\n' || c == ' ' && self.column + WORD > end || self.column >= end {
                run.push('\n');
                self.column = 0;
                if c.is_whitespace() {
                    continue;
                }
            }
            if self.column == 0 {
                run.extend(std::iter::repeat_n(' ', MARGIN));
                self.column = MARGIN;
            }
            run.push(c);
            self.column += 1;
        }
        if run.is_empty() {
            return Ok(());
        }
        let ink = match side {
            Side::Primary => Ink::First,
            Side::Fallback => Ink::Second,
        };
        write!(self.out, "{}", self.paint.ink(ink, &run))
    }

    fn mark(&mut self) -> io::Result<()> {
        if self.column == 0 {
            write!(self.out, "{}", " ".repeat(MARGIN))?;
            self.column = MARGIN;
        }
        self.column += 1;
        write!(self.out, "{}", self.paint.ink(Ink::Bad, SEAM))
    }

    /// Says behind the text how long nothing has come. The cursor goes back, so that the text can go on.
    fn silence(&mut self, time: Duration) -> io::Result<()> {
        if !self.paint.is_lively() || time < NOTICED || self.told == 0 {
            return Ok(());
        }
        self.hush()?;
        let note = format!(" … {:.1} s", time.as_secs_f64());
        let width = note.chars().count();
        if self.column + width >= self.paint.width() {
            return Ok(());
        }
        self.note = width;
        write!(self.out, "{}\x1b[{width}D", self.paint.ink(Ink::Dim, &note))
    }

    /// Takes the note away.
    fn hush(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.note) > 0 { write!(self.out, "\x1b[K") } else { Ok(()) }
    }

    // --- the account ---

    fn moment(&mut self, moment: &Moment) -> io::Result<()> {
        let Self { paint, .. } = *self;
        let (name, ink) = match moment.who {
            Some(side @ Side::Primary) => (side.name(), Ink::First),
            Some(side @ Side::Fallback) => (side.name(), Ink::Second),
            None => ("client", Ink::Bold),
        };
        let text = paint.wrapped(&moment.what, MOMENT, MOMENT);
        writeln!(self.out, "{:>8.0} ms  {}  {text}", moment.ms, paint.ink(ink, &format!("{name:<8}")))
    }

    fn fact(&mut self, name: &str, text: &str, ink: Option<Ink>) -> io::Result<()> {
        let Self { paint, .. } = *self;
        let lead = format!("{}{name:<7}", " ".repeat(MARGIN));
        let text = paint.wrapped(text, lead.len(), lead.len());
        let text = ink.map_or_else(|| text.clone(), |ink| paint.ink(ink, &text));
        writeln!(self.out, "{}{text}", paint.ink(Ink::Bold, &lead))
    }
}

/// Where the providers changed. It is not part of the text.
const SEAM: &str = "‖";

/// Columns before a text.
const MARGIN: usize = 3;

/// Columns before what happened: when, and to whom.
const MOMENT: usize = 23;

/// Few words are longer.
const WORD: usize = 12;

/// A shorter silence is not noticed.
const NOTICED: Duration = Duration::from_millis(250);

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test's panic is its report")]

    use super::{Beat, Duration, MARGIN, Paint, Show};

    fn shown(pieces: &[&str], seam: Option<usize>, width: usize) -> String {
        let mut out = Vec::new();
        let mut show = Show::new(&mut out, Paint::plain(width));
        for piece in pieces {
            show.beat(Beat::Silence(Duration::from_secs(2)), seam).unwrap();
            show.beat(Beat::Piece(piece), seam).unwrap();
        }
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_seam_is_marked_where_the_fallback_was_told_to_go_on() {
        assert_eq!(shown(&["go on with", "out a pau", "se, and"], None, 80), "   go on without a pause, and");
        assert_eq!(shown(&["go on without a pau", "se, and"], Some(19), 80), "   go on without a pau‖se, and");
        assert_eq!(shown(&["go on without a pause"], Some(19), 80), "   go on without a pau‖se");
    }

    #[test]
    fn lines_fit_narrow_terminals_and_lose_nothing_but_spaces_at_their_ends() {
        let text =
            "The last note of the slow movement is still in the air when the first note of the fast one meets it.";
        for width in [24, 30, 80] {
            let pieces: Vec<&str> = text.split_inclusive(' ').collect();
            let shown = shown(&pieces, None, width);
            assert!(shown.lines().all(|line| line.chars().count() < width), "{shown}");
            let joined: Vec<&str> = shown.lines().map(|line| &line[MARGIN..]).collect();
            assert_eq!(joined.join(" "), text);
        }
    }
}
