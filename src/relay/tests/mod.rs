//! The relay, played by hand: each test reads as a ledger of moves. What it does is written as short words:
//! `open0:a` (attempt 0 at target a), `drop0:failed`, `emit:text`, `splice1`, `close:complete`.

#![expect(clippy::expect_used, clippy::panic, reason = "a test's panic is its report")]

mod deciding;
mod failing;
mod holding;
mod racing;

use super::journal::{End, Journal};
use super::{Action, AttemptId, Checked, Open, Outcome, Policy, Relay, Why};
use crate::chat::DialectId;
use crate::chat::modality::Modalities;
use crate::event::{Event, Finish, Signal, Step, Usage};
use crate::failure::{Declined, Failure, Kind, Stage};
use crate::routing::plan::Candidate;
use crate::routing::{Level, Target, Timeouts};
use crate::turn::resume::{How, Origin};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A turn under test, and its clock.
struct Play {
    relay: Relay,
    start: Instant,
    now: Instant,
    opens: Vec<Open>,
}

/// What a test may change before the turn begins.
struct Setup {
    level: Level,
    candidates: Vec<Candidate>,
    policy: Policy,
}

fn setup(names: &[&str]) -> Setup {
    let timeouts = Timeouts { first_token: secs(8), stall: secs(5), ..Timeouts::default() };
    let candidates =
        names.iter().map(|name| Candidate::new(Arc::new(Target::new(*name, "m", DialectId::Chat)), timeouts)).collect();
    let mut level = Level::new("test", Vec::new());
    level.retries = 0;
    let policy = Policy {
        level: Arc::new(level.clone()),
        choices: 1,
        max_tokens: None,
        prompt_estimate: 10,
        asked_in: Modalities::NONE,
        continuable: true,
        structured: false,
        races: true,
        max_turn: 10_000,
        whole: false,
        retry_after_cap: secs(60),
        deadline: secs(300),
        seed: 7,
    };
    Setup { level, candidates, policy }
}

impl Setup {
    #[expect(clippy::disallowed_methods, reason = "a start for a clock that is moved by hand")]
    fn begin(mut self) -> Play {
        self.policy.level = Arc::new(self.level);
        let now = Instant::now();
        Play { relay: Relay::new(self.policy, self.candidates, now), start: now, now, opens: Vec::new() }
    }
}

impl Play {
    /// What the relay does now, in short words.
    fn moves(&mut self) -> String {
        let mut words = Vec::new();
        while let Some(action) = self.relay.poll_action() {
            words.push(match action {
                Action::Open(open) => {
                    let word = format!("open{}:{}", open.id.0, open.target.connection);
                    self.opens.push(*open);
                    word
                }
                Action::Pay { id } => format!("pay{}", id.0),
                Action::Drop { id, end, .. } => format!("drop{}:{}", id.0, end.name()),
                Action::Spliced { id } => format!("splice{}", id.0),
                Action::Check { id, .. } => format!("check{}", id.0),
                Action::Emit(step) => match emitted(&step) {
                    word if word.is_empty() => continue,
                    word => format!("emit:{word}"),
                },
                Action::Close(outcome) => format!("close:{}", closed(&outcome)),
            });
        }
        words.join(" ")
    }

    fn pass(&mut self, time: Duration) -> &mut Self {
        self.now += time;
        self.relay.handle_timeout(self.now);
        self
    }

    fn say(&mut self, id: u32, event: Event) -> &mut Self {
        self.relay.handle_signal(AttemptId(id), Signal::Step(Step::of(event)), self.now);
        self
    }

    fn sent(&mut self, id: u32) -> &mut Self {
        self.signal(id, Signal::Sent)
    }

    fn signal(&mut self, id: u32, signal: Signal) -> &mut Self {
        self.relay.handle_signal(AttemptId(id), signal, self.now);
        self
    }

    fn text(&mut self, id: u32, text: &str) -> &mut Self {
        self.say(id, Event::Text { choice: 0, text: text.to_owned() })
    }

    fn finish(&mut self, id: u32, reason: Finish) -> &mut Self {
        self.say(id, Event::Finish { choice: 0, reason, stop_sequence: None })
    }

    fn fail(&mut self, id: u32, kind: Kind) -> &mut Self {
        self.signal(id, Signal::Failed(Box::new(Failure::new(kind, Stage::Streaming))))
    }

    fn declined(&mut self, id: u32, why: Declined) -> &mut Self {
        self.signal(id, Signal::Declined(Box::new(why)))
    }

    fn checked(&mut self, id: u32, checked: Checked) -> &mut Self {
        self.relay.handle_checked(AttemptId(id), checked, self.now);
        self
    }

    fn journal(&self) -> &Journal {
        self.relay.journal()
    }

    /// When the relay wants to be woken, since the beginning.
    fn wakes_after(&self) -> Option<Duration> {
        self.relay.poll_timeout().map(|at| at - self.start)
    }
}

fn emitted(step: &Step) -> String {
    let word = |event: &Event| match event {
        Event::Text { text, .. } => format!("{text:?}"),
        Event::Reasoning { text, .. } => format!("think{text:?}"),
        Event::Signature { data, .. } => format!("sign{data:?}"),
        Event::Refusal { text, .. } => format!("refuse{text:?}"),
        Event::ToolOpen { name, .. } => format!("call:{name}"),
        Event::ToolArgs { args, .. } => format!("args{args:?}"),
        Event::ToolClose { .. } => "called".to_owned(),
        Event::Finish { reason, .. } => format!("{reason:?}"),
        _ => String::new(),
    };
    step.events.iter().map(word).filter(|w| !w.is_empty()).collect::<Vec<_>>().join("+")
}

fn closed(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Complete(_) => "complete".to_owned(),
        Outcome::Failed(fault) => {
            let cause = fault.cause.as_ref().map_or("nothing", |c| c.kind.name());
            format!("{:?}({cause})", fault.ending)
        }
        Outcome::Interrupted(_) => "interrupted".to_owned(),
    }
}

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}
