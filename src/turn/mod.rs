//! The answer of one turn, as the client has been told it.
//!
//! [`Turn`] absorbs what is *emitted*, never what is merely received: whatever decides about going on (what to quote,
//! whether anything was said, whether a call is out) asks the truth about the client. It knows no provider.

pub mod form;
pub mod resume;
mod script;
pub mod seam;

use crate::event::{Event, Finish, Step};

/// What the client was told so far. Its size is bounded by a limit in bytes.
#[derive(Clone, Debug)]
pub struct Turn {
    choices: Vec<Choice>,
    bytes: usize,
    limit: usize,
    /// What has no common form is kept until the end.
    whole: bool,
    bound: bool,
    /// Tools of the provider's own that were told and whose results were not.
    hosted: u32,
}

/// One of the `n` answers.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// The visible text.
    pub text: String,
    /// Characters of `text`.
    pub chars: usize,
    /// Bytes of shown reasoning.
    pub reasoning: usize,
    /// The refusal's text.
    pub refusal: String,
    /// Tool calls, in order.
    pub calls: Vec<Call>,
    /// How it ended.
    pub finish: Option<Finish>,
    ascii: usize,
    /// Something of `text` is not white space.
    shows: bool,
    /// Characters of the refusal and of the calls' arguments.
    beside: Letters,
    /// Tokens of the calls' names.
    names: u64,
}

/// Characters counted as they come, so that nobody has to read a long text again to know how many tokens it is.
#[derive(Clone, Copy, Debug, Default)]
struct Letters {
    ascii: u64,
    wide: u64,
}

/// A tool call that the client was told, whole or in part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// Its id; empty where the provider gave none.
    pub id: String,
    /// The function.
    pub name: String,
    /// The arguments so far.
    pub args: String,
    /// The arguments are complete.
    pub closed: bool,
}

/// The turn is larger than the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong {
    /// The limit, in bytes.
    pub limit: usize,
}

// === impl Turn ===

impl Turn {
    /// A turn of which nothing was told, of at most `limit` bytes. `whole`: it is told at its end, so that what has no
    /// common form counts as what it occupies until then.
    pub fn new(limit: usize, whole: bool) -> Self {
        Self { choices: vec![Choice::default()], bytes: 0, limit, whole, bound: false, hosted: 0 }
    }

    /// Notes what is being told.
    ///
    /// # Errors
    /// [`TooLong`] if `step` would exceed the limit; the turn is unchanged then.
    pub fn absorb(&mut self, step: &Step) -> Result<(), TooLong> {
        let size: usize = step.events.iter().map(|event| self.size(event)).sum();
        if self.bytes.saturating_add(size) > self.limit {
            return Err(TooLong { limit: self.limit });
        }
        self.bytes += size;
        for event in &step.events {
            self.note(event);
        }
        Ok(())
    }

    fn size(&self, event: &Event) -> usize {
        match event {
            Event::Text { text, .. } | Event::Reasoning { text, .. } | Event::Refusal { text, .. } => text.len(),
            Event::Signature { data, .. } => data.len(),
            Event::ToolOpen { id, name, .. } => size_of::<Call>() + id.len() + name.len(),
            Event::ToolArgs { args, .. } => args.len(),
            Event::Extra(_) if self.whole => event.weight(),
            Event::Extra(_) => 64,
            Event::Alive
            | Event::Identity(_)
            | Event::Thinking(_)
            | Event::ServerTool(_)
            | Event::ToolClose { .. }
            | Event::Usage(_)
            | Event::Finish { .. } => 0,
        }
    }

    fn note(&mut self, event: &Event) {
        match event {
            Event::Text { choice, text } => self.choice(*choice).push(text),
            Event::Reasoning { choice, text } => self.choice(*choice).reasoning += text.len(),
            Event::Refusal { choice, text } => {
                let choice = self.choice(*choice);
                choice.refusal.push_str(text);
                choice.beside.count(text);
            }
            Event::ToolOpen { choice, call, id, name } => {
                let choice = self.choice(*choice);
                choice.names += crate::chat::tokens(name);
                let call = choice.call(*call);
                call.id.clone_from(id);
                call.name.clone_from(name);
            }
            Event::ToolArgs { choice, call, args } => {
                let choice = self.choice(*choice);
                choice.beside.count(args);
                choice.call(*call).args.push_str(args);
            }
            Event::ToolClose { choice, call } => self.choice(*choice).call(*call).closed = true,
            Event::Finish { choice, reason, .. } => self.choice(*choice).finish = Some(reason.clone()),
            Event::Extra(extra) => self.bound |= extra.bound,
            Event::ServerTool(true) => self.hosted = self.hosted.saturating_add(1),
            Event::ServerTool(false) => self.hosted = self.hosted.saturating_sub(1),
            Event::Alive | Event::Identity(_) | Event::Thinking(_) | Event::Signature { .. } | Event::Usage(_) => {}
        }
    }

    fn choice(&mut self, index: u32) -> &mut Choice {
        let index = index as usize;
        if index >= self.choices.len() {
            self.choices.resize_with(index + 1, Choice::default);
        }
        &mut self.choices[index]
    }

    /// The bytes of all that was told.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The choices told so far; never empty.
    pub fn choices(&self) -> &[Choice] {
        &self.choices
    }

    /// The visible text of the first choice.
    pub fn text(&self) -> &str {
        &self.choices[0].text
    }

    /// Whether the client was told nothing at all that the model said.
    pub fn is_silent(&self) -> bool {
        !self.bound && self.choices.iter().all(Choice::is_silent)
    }

    /// Whether nothing visible was told: at most white space and reasoning. Such a turn starts again from the
    /// pristine request.
    pub fn is_blank(&self) -> bool {
        !self.bound && self.choices.iter().all(Choice::is_blank)
    }

    /// Whether content was told that only its issuer can go on from.
    pub fn is_bound(&self) -> bool {
        self.bound
    }

    /// Whether a tool that the provider runs itself was told and its result was not. Nobody can bring that result any more,
    /// and a history that holds the one without the other is refused.
    pub fn awaits_a_result(&self) -> bool {
        self.hosted > 0
    }

    /// Whether every one of `n` choices has finished.
    pub fn is_finished(&self, n: u32) -> bool {
        self.choices.len() >= n as usize && self.choices.iter().all(|c| c.finish.is_some())
    }

    /// Characters of visible text told, over all choices.
    pub fn chars(&self) -> usize {
        self.choices.iter().map(|c| c.chars).sum()
    }

    /// An estimate of the tokens of what was told visibly: text, refusal and calls.
    pub fn tokens(&self) -> u64 {
        self.choices.iter().map(Choice::tokens).sum()
    }
}

// === impl Choice ===

impl Choice {
    fn push(&mut self, text: &str) {
        self.text.push_str(text);
        self.chars += text.chars().count();
        self.ascii += text.bytes().filter(u8::is_ascii).count();
        self.shows = self.shows || !text.trim_start().is_empty();
    }

    fn call(&mut self, index: u32) -> &mut Call {
        let index = index as usize;
        if index >= self.calls.len() {
            self.calls.resize_with(index + 1, Call::default);
        }
        &mut self.calls[index]
    }

    fn is_silent(&self) -> bool {
        self.reasoning == 0 && self.text.is_empty() && self.refusal.is_empty() && self.calls.is_empty()
    }

    fn is_blank(&self) -> bool {
        self.refusal.is_empty() && self.calls.is_empty() && !self.shows
    }

    fn tokens(&self) -> u64 {
        let text = self.ascii.div_ceil(4) + (self.chars - self.ascii);
        text as u64 + self.beside.tokens() + self.names
    }
}

// === impl Letters ===

impl Letters {
    fn count(&mut self, text: &str) {
        let ascii = text.bytes().filter(u8::is_ascii).count();
        let all = if ascii == text.len() { ascii } else { text.chars().count() };
        self.ascii += ascii as u64;
        self.wide += (all - ascii) as u64;
    }

    fn tokens(self) -> u64 {
        self.ascii.div_ceil(4) + self.wide
    }
}

/// Whether the arguments of a call are JSON; none at all are an empty object.
pub fn is_whole(args: &str) -> bool {
    args.trim().is_empty() || serde_json::from_str::<serde::de::IgnoredAny>(args).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(choice: u32, text: &str) -> Step {
        Step::of(Event::Text { choice, text: text.to_owned() })
    }

    #[test]
    fn white_space_and_reasoning_leave_a_turn_blank_but_not_silent() {
        let mut turn = Turn::new(1000, false);
        assert!(turn.is_silent() && turn.is_blank());
        assert!(turn.absorb(&text(0, "\n ")).is_ok());
        assert!(!turn.is_silent() && turn.is_blank());
        assert!(turn.absorb(&Step::of(Event::Reasoning { choice: 0, text: "hm".into() })).is_ok());
        assert!(turn.is_blank());
        assert!(turn.absorb(&text(0, "x")).is_ok());
        assert!(!turn.is_blank());
        assert_eq!(turn.text(), "\n x");
    }

    #[test]
    fn a_step_over_the_limit_changes_nothing() {
        let mut turn = Turn::new(5, false);
        assert!(turn.absorb(&text(0, "12345")).is_ok());
        assert_eq!(turn.absorb(&text(0, "6")), Err(TooLong { limit: 5 }));
        assert_eq!(turn.text(), "12345");
    }

    #[test]
    fn it_is_finished_when_every_choice_is() {
        let finish = |choice| Step::of(Event::Finish { choice, reason: Finish::Stop, stop_sequence: None });
        let mut turn = Turn::new(1000, false);
        assert!(turn.absorb(&finish(0)).is_ok());
        assert!(turn.is_finished(1) && !turn.is_finished(2));
        assert!(turn.absorb(&text(1, "b")).is_ok());
        assert!(!turn.is_finished(2));
        assert!(turn.absorb(&finish(1)).is_ok());
        assert!(turn.is_finished(2));
    }

    #[test]
    fn tokens_count_ascii_by_fours_and_others_singly() {
        let mut turn = Turn::new(1000, false);
        assert!(turn.absorb(&text(0, "abcdefgh")).is_ok());
        assert!(turn.absorb(&text(0, "北京")).is_ok());
        assert_eq!(turn.tokens(), 4);
        assert_eq!(turn.chars(), 10);
    }
}
