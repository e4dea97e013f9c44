//! What fails when: fixed before anything runs, and the same for every system that is measured.
//!
//! It is drawn from a seed. The providers that fail are the first of the list, in its order, so that a gateway whose
//! chain cannot be changed meets the same failures; one whose order can be chosen asks them, then the fallback.

use super::suite::{Conversation, Role};
use crate::rig::seed::Dice;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// How a provider fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// It takes the request and says nothing.
    Timeout,
    /// It answers 502.
    ApiError,
    /// It answers 429.
    RateLimit,
    /// It falls silent in the middle of its answer, with the connection open.
    Stall,
    /// Its connection is reset in the middle of its answer.
    Reset,
    /// Its body ends in the middle of its answer, cleanly and without a finish.
    Truncation,
    /// It sends an error event in the middle of its answer.
    ErrorEvent,
}

/// One failure of one conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The index in the conversation's messages of the user's message whose answer fails.
    pub turn: usize,
    /// Until which message (inclusive) the struck providers stay in this failure; `turn` itself, or the probe.
    pub until: usize,
    /// How.
    pub mode: Mode,
    /// How many tokens (words of the built-in providers) of the leg are said before it; only where it fails in the middle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<usize>,
    /// The providers that fail, in the order in which they are asked: one, or two or three in a rolling failure.
    pub providers: Vec<String>,
    /// The provider that is left to answer.
    pub fallback: String,
}

/// What fails in one conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The conversation.
    pub conversation: String,
    /// Its failures in the order of their turns; none of them overlap.
    pub failures: Vec<Failure>,
}

/// A kind of manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// Failures before the first word, as in the paper: timeout, API error, rate limit. The provider stays in it until
    /// after the probe.
    Turn,
    /// Failures in the middle of an answer: the probe's in every conversation, and in half of them one before it.
    MidTurn,
    /// Two or three providers fail one after the other within the probe's answer, in any mode.
    Rolling,
    /// Failures at two or three turns of one conversation, the probe among them, in any mode.
    Repeated,
}

/// What fails in a whole run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The version of this format.
    pub version: u32,
    /// What it was drawn from.
    pub seed: u64,
    /// Its kind.
    pub shape: Shape,
    /// One for each conversation, in the order of the suite.
    pub plans: Vec<Plan>,
}

// === impl Mode ===

impl Mode {
    /// Whether it strikes in the middle of an answer.
    pub fn is_mid_turn(self) -> bool {
        matches!(self, Self::Stall | Self::Reset | Self::Truncation | Self::ErrorEvent)
    }

    /// The name in data.
    pub fn name(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::ApiError => "api_error",
            Self::RateLimit => "rate_limit",
            Self::Stall => "stall",
            Self::Reset => "reset",
            Self::Truncation => "truncation",
            Self::ErrorEvent => "error_event",
        }
    }

    /// The modes of the paper: before the first word.
    pub const BEFORE: [Self; 3] = [Self::Timeout, Self::ApiError, Self::RateLimit];

    /// Those in the middle of an answer.
    pub const WITHIN: [Self; 4] = [Self::Stall, Self::Reset, Self::Truncation, Self::ErrorEvent];

    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Timeout, Self::ApiError, Self::RateLimit, Self::Stall, Self::Reset, Self::Truncation, Self::ErrorEvent];
}

// === impl Shape ===

impl Shape {
    /// All shapes.
    pub const ALL: [Self; 4] = [Self::Turn, Self::MidTurn, Self::Rolling, Self::Repeated];

    /// The name in data and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Turn => "turn",
            Self::MidTurn => "mid_turn",
            Self::Rolling => "rolling",
            Self::Repeated => "repeated",
        }
    }

    fn modes(self) -> &'static [Mode] {
        match self {
            Self::Turn => &Mode::BEFORE,
            Self::MidTurn => &Mode::WITHIN,
            Self::Rolling | Self::Repeated => &Mode::ALL,
        }
    }
}

// === impl Manifest ===

impl Manifest {
    /// What fails in `suite` under `seed`, among `providers` in the order in which they are asked. Every mode of the
    /// shape strikes equally often.
    ///
    /// # Errors
    /// Where there are too few providers: two, or three for [`Shape::Rolling`].
    pub fn draw(
        shape: Shape,
        seed: u64,
        suite: &[Conversation],
        providers: &[impl AsRef<str>],
    ) -> Result<Self, String> {
        let providers: Vec<&str> = providers.iter().map(AsRef::as_ref).collect();
        let least = if shape == Shape::Rolling { 3 } else { 2 };
        if providers.len() < least {
            return Err(format!("{} failures need {least} providers, and there are {}", shape.name(), providers.len()));
        }
        let mut dice = Dice::labelled(seed, LABEL + shape as u64);
        let mut modes = deck(shape.modes(), suite.len(), &mut dice);
        let depths = if providers.len() > 3 { &DEPTHS[..] } else { &DEPTHS[..1] };
        let mut depths = deck(depths, suite.len(), &mut dice);
        let plans = suite.iter().map(|conversation| {
            let probe = conversation.probe_turn_index;
            let asked = asked(conversation);
            let earlier: Vec<usize> = asked.iter().copied().filter(|&turn| turn < probe).collect();
            let later: Vec<usize> = asked.into_iter().filter(|&turn| turn > conversation.fact_turn_index).collect();
            let mode = modes.pop().unwrap_or(Mode::Timeout);
            let mut failures = Vec::new();
            match shape {
                Shape::Turn => {
                    let turn = dice.pick(&later).copied().unwrap_or(probe);
                    failures.push(failure(turn, probe, mode, 1, &providers, &mut dice));
                }
                Shape::MidTurn => {
                    if dice.once_in(2) {
                        failures.extend(further(1, earlier, &Mode::WITHIN, &providers, &mut dice));
                    }
                    failures.push(failure(probe, probe, mode, 1, &providers, &mut dice));
                }
                Shape::Rolling => {
                    let depth = depths.pop().unwrap_or(2);
                    failures.push(failure(probe, probe, mode, depth, &providers, &mut dice));
                }
                Shape::Repeated => {
                    let count = dice.between(1, 2);
                    failures.extend(further(count, earlier, &Mode::ALL, &providers, &mut dice));
                    failures.push(failure(probe, probe, mode, 1, &providers, &mut dice));
                }
            }
            Plan { conversation: conversation.id.clone(), failures }
        });
        Ok(Self { version: VERSION, seed, shape, plans: plans.collect() })
    }

    /// Reads what [`Self::write`] wrote, or what somebody wrote by hand.
    ///
    /// # Errors
    /// Words that name the conversation and what is wrong.
    pub fn read(text: &str) -> Result<Self, String> {
        let manifest: Self = serde_json::from_str(text).map_err(|error| format!("no manifest: {error}"))?;
        if manifest.version != VERSION {
            return Err(format!("version {} of the manifest; this program reads version {VERSION}", manifest.version));
        }
        let mut names = BTreeSet::new();
        for plan in &manifest.plans {
            let name = &plan.conversation;
            if !names.insert(name) {
                return Err(format!("`{name}` is planned twice; put its failures into one plan"));
            }
            plan.sound().map_err(|why| format!("`{name}`: {why}"))?;
        }
        Ok(manifest)
    }

    /// As JSON, the same for the same manifest.
    pub fn write(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }

    /// What fails in the conversation of this name.
    pub fn plan(&self, conversation: &str) -> Option<&Plan> {
        self.plans.iter().find(|plan| plan.conversation == conversation)
    }

    /// Whether it can be played with `suite` and `providers`.
    ///
    /// # Errors
    /// Words that name the conversation and what it does not fit.
    pub fn fits(&self, suite: &[Conversation], providers: &[impl AsRef<str>]) -> Result<(), String> {
        for plan in &self.plans {
            let name = &plan.conversation;
            let Some(conversation) = suite.iter().find(|conversation| conversation.id == *name) else {
                return Err(format!("the manifest plans `{name}`, which is no conversation of the suite"));
            };
            let asked = asked(conversation);
            for failure in &plan.failures {
                if let Some(turn) = [failure.turn, failure.until].iter().find(|turn| !asked.contains(turn)) {
                    return Err(format!("`{name}`: {turn} is no message of the user's; there are {asked:?}"));
                }
                let mut named = failure.providers.iter().chain([&failure.fallback]);
                if let Some(stranger) = named.find(|name| !providers.iter().any(|known| known.as_ref() == **name)) {
                    return Err(format!("`{name}`: there is no provider `{stranger}`"));
                }
            }
        }
        Ok(())
    }
}

// === impl Plan ===

impl Plan {
    fn sound(&self) -> Result<(), String> {
        let mut before = None;
        for failure in &self.failures {
            let Failure { turn, until, mode, token, providers, fallback } = failure;
            if before.is_some_and(|before| before >= *turn) {
                return Err(format!("the failure at {turn} overlaps the one before it"));
            }
            if until < turn {
                return Err(format!("the failure at {turn} ends before it begins, at {until}"));
            }
            if providers.is_empty() || providers.contains(fallback) {
                return Err(format!("the failure at {turn} needs providers that fail and another that does not"));
            }
            if mode.is_mid_turn() != token.is_some() {
                let word = if token.is_some() { "has a `token` and no middle" } else { "needs a `token`" };
                return Err(format!("the failure at {turn} {word}: `token` belongs to failures in mid-turn"));
            }
            before = Some(*until);
        }
        Ok(())
    }
}

// === helpers ===

/// The messages that are answered.
fn asked(conversation: &Conversation) -> Vec<usize> {
    let turns = conversation.turns.iter().enumerate().take(conversation.probe_turn_index + 1);
    turns.filter(|(_, turn)| turn.role == Role::User).map(|(index, _)| index).collect()
}

/// `count` cards, each of `kinds` as often as the others, shuffled.
fn deck<T: Copy>(kinds: &[T], count: usize, dice: &mut Dice) -> Vec<T> {
    let mut cards: Vec<T> = kinds.iter().copied().cycle().take(count).collect();
    for end in (1..cards.len()).rev() {
        cards.swap(end, dice.below(end + 1));
    }
    cards
}

/// At most `count` failures at different turns of `turns`.
fn further(count: usize, mut turns: Vec<usize>, modes: &[Mode], providers: &[&str], dice: &mut Dice) -> Vec<Failure> {
    let mut chosen = BTreeSet::new();
    while chosen.len() < count && !turns.is_empty() {
        chosen.insert(turns.swap_remove(dice.below(turns.len())));
    }
    let mut at = |turn| {
        let mode = dice.pick(modes).copied().unwrap_or(Mode::Reset);
        failure(turn, turn, mode, 1, providers, dice)
    };
    chosen.into_iter().map(&mut at).collect()
}

fn failure(turn: usize, until: usize, mode: Mode, depth: usize, providers: &[&str], dice: &mut Dice) -> Failure {
    let (failing, left) = providers.split_at(depth.min(providers.len()));
    let token = mode.is_mid_turn().then(|| dice.between(TOKENS.0, TOKENS.1 / depth));
    Failure {
        turn,
        until,
        mode,
        token,
        providers: failing.iter().map(|&name| name.to_owned()).collect(),
        fallback: dice.pick(left).map(|&name| name.to_owned()).unwrap_or_default(),
    }
}

// === consts ===

/// The version of the format.
pub const VERSION: u32 = 1;

/// The tokens of an answer at which it breaks: the first and the last. The built-in providers' answers have forty at
/// least; where several legs fail in turn, they share these.
const TOKENS: (usize, usize) = (3, 36);

/// How many providers fail in a rolling failure.
const DEPTHS: [usize; 2] = [2, 3];

/// The stream of random numbers that is the first shape's.
const LABEL: u64 = 0xfa11;

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test's panic is its report")]
    use super::*;
    use crate::bench::continuity::suite;
    use std::collections::BTreeMap;

    const PROVIDERS: [&str; 4] = ["amber", "birch", "cedar", "dune"];

    fn draw(shape: Shape, seed: u64) -> Manifest {
        Manifest::draw(shape, seed, &suite::committed(), &PROVIDERS).unwrap()
    }

    #[test]
    fn every_shape_can_be_written_read_and_played() {
        let suite = suite::committed();
        for shape in Shape::ALL {
            let manifest = draw(shape, 42);
            assert_eq!(manifest, draw(shape, 42), "the same seed, the same failures");
            assert_ne!(manifest.plans, draw(shape, 43).plans);
            assert_eq!(Manifest::read(&manifest.write()).unwrap(), manifest);
            manifest.fits(&suite, &PROVIDERS).unwrap();
            assert_eq!(manifest.plans.len(), suite.len());
            assert_eq!(serde_json::to_value(shape).unwrap(), shape.name());
        }
        for mode in Mode::ALL {
            assert_eq!(serde_json::to_value(mode).unwrap(), mode.name());
        }
    }

    #[test]
    fn modes_strike_equally_often() {
        for (shape, modes) in [(Shape::Turn, 3), (Shape::MidTurn, 4), (Shape::Rolling, 7), (Shape::Repeated, 7)] {
            let mut counts = BTreeMap::new();
            for plan in draw(shape, 42).plans {
                *counts.entry(plan.failures.last().unwrap().mode).or_insert(0) += 1;
            }
            assert_eq!(counts.len(), modes);
            let (least, most) = (counts.values().min().unwrap(), counts.values().max().unwrap());
            assert!(most - least <= 1, "{shape:?}: {counts:?}");
        }
    }

    #[test]
    fn each_shape_strikes_where_it_says() {
        let suite = suite::committed();
        for shape in Shape::ALL {
            let mut counts = BTreeMap::new();
            for (plan, conversation) in draw(shape, 42).plans.iter().zip(&suite) {
                let last = plan.failures.last().unwrap();
                let probe = conversation.probe_turn_index;
                assert_eq!(last.until, probe, "{shape:?}: the probe is always struck");
                assert!(shape == Shape::Turn || last.turn == probe);
                assert!(last.turn > conversation.fact_turn_index);
                for failure in &plan.failures {
                    assert_eq!(failure.providers, PROVIDERS[..failure.providers.len()], "the first are asked first");
                    let most = 36 / failure.providers.len();
                    assert!(failure.token.is_none_or(|token| (3..=most).contains(&token)), "{failure:?}");
                }
                *counts.entry((plan.failures.len(), last.providers.len())).or_insert(0) += 1;
            }
            let kinds: Vec<(usize, usize)> = counts.keys().copied().collect();
            match shape {
                Shape::Turn => assert_eq!(kinds, [(1, 1)]),
                Shape::MidTurn => assert_eq!(kinds, [(1, 1), (2, 1)]),
                Shape::Rolling => assert_eq!(counts, BTreeMap::from([((1, 2), 75), ((1, 3), 75)])),
                Shape::Repeated => assert_eq!(kinds, [(2, 1), (3, 1)]),
            }
        }
    }

    #[test]
    fn what_cannot_be_played_is_refused() {
        let suite = suite::committed();
        let why = Manifest::draw(Shape::Rolling, 1, &suite, &PROVIDERS[..2]).unwrap_err();
        assert!(why.contains("need 3 providers"), "{why}");
        let good = draw(Shape::Repeated, 42);
        type Change = fn(&mut Manifest);
        let cases: [(Change, &str); 6] = [
            (|m| m.version = 2, "version 2"),
            (|m| m.plans[1].conversation = m.plans[0].conversation.clone(), "planned twice"),
            (|m| m.plans[0].failures.reverse(), "overlaps"),
            (|m| m.plans[0].failures[0].fallback = "amber".into(), "another that does not"),
            (|m| m.plans[0].failures[1].until = 0, "ends before it begins"),
            (|m| (m.plans[0].failures[0].mode, m.plans[0].failures[0].token) = (Mode::Reset, None), "needs a `token`"),
        ];
        for (change, want) in cases {
            let mut bad = good.clone();
            change(&mut bad);
            let why = Manifest::read(&bad.write()).unwrap_err();
            assert!(why.contains(want), "{want}: {why}");
        }
        assert!(good.fits(&suite, &PROVIDERS[1..]).unwrap_err().contains("no provider `amber`"));
        assert!(good.fits(&suite[1..], &PROVIDERS).unwrap_err().contains("no conversation of the suite"));
        let mut bad = good;
        (bad.plans[0].failures[0].turn, bad.plans[0].failures[0].until) = (1, 1);
        assert!(bad.fits(&suite, &PROVIDERS).unwrap_err().contains("no message of the user's"));
    }
}
