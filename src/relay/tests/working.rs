//! Silence that is work: with the limits that hold by default, nobody is given up for it, and nobody else is asked.

use super::*;
use crate::event::{Extra, Place};

/// Plays an answer of the first of two targets with all clocks at their defaults.
fn begin(reasons: bool) -> Play {
    let mut setup = setup(&["a", "b"]);
    for candidate in &mut setup.candidates {
        candidate.timeouts = Timeouts::default();
        candidate.reasons = reasons;
    }
    let mut play = setup.begin();
    assert_eq!(play.sent(0).moves(), "open0:a");
    play
}

impl Play {
    /// Passes the time in steps in which a clock might go off.
    fn wait(&mut self, time: Duration) -> &mut Self {
        let until = self.now + time;
        while let Some(due) = self.relay.poll_timeout().filter(|due| *due < until) {
            self.now = due.max(self.now);
            let now = self.now;
            self.relay.handle_timeout(now);
            if self.relay.poll_timeout() == Some(due) {
                break;
            }
        }
        self.now = until;
        self.relay.handle_timeout(until);
        self
    }

    fn answers(&mut self, text: &str) {
        self.text(0, text).finish(0, Finish::Stop).signal(0, Signal::Ended);
        assert_eq!(self.journal().attempts.len(), 1, "{:?}", self.journal().attempts);
        assert!(self.moves().ends_with("close:complete"));
    }
}

fn open_call(call: u32) -> Event {
    Event::ToolOpen { choice: 0, call, id: format!("c{call}"), name: "write".to_owned() }
}

fn args(call: u32) -> Event {
    Event::ToolArgs { choice: 0, call, args: "{}".to_owned() }
}

#[test]
fn nine_silent_seconds_of_thinking_that_the_provider_shows_as_a_block() {
    let mut play = begin(false);
    play.say(0, Event::Thinking(true)).wait(secs(9)).say(0, Event::Thinking(false));
    play.wait(secs(7)).answers("42");
}

#[test]
fn nine_silent_seconds_of_a_target_that_is_known_to_think() {
    begin(true).wait(secs(9)).answers("42");
}

#[test]
fn nine_silent_seconds_in_the_middle_of_thinking_aloud() {
    let mut play = begin(false);
    play.say(0, Event::Reasoning { choice: 0, text: "hm".to_owned() }).wait(secs(9));
    play.answers("42");
}

#[test]
fn thinking_between_two_texts() {
    let mut play = begin(false);
    play.text(0, "First, ").say(0, Event::Thinking(true)).wait(secs(20)).say(0, Event::Thinking(false));
    play.wait(secs(4)).answers("then");
}

#[test]
fn a_model_that_has_thought_is_still_given_up_when_it_says_nothing_afterwards() {
    let mut play = begin(false);
    play.say(0, Event::Thinking(true)).wait(secs(9)).say(0, Event::Thinking(false));
    assert_eq!(play.wait(secs(9)).moves(), "drop0:failed open1:b");
}

#[test]
fn thinking_has_its_limit() {
    let mut play = begin(false);
    play.say(0, Event::Thinking(true));
    assert_eq!(play.wait(secs(121)).moves(), "drop0:failed open1:b");
}

#[test]
fn arguments_that_come_only_when_they_are_whole() {
    let mut play = begin(false);
    play.text(0, "I write it.").say(0, open_call(0)).wait(secs(60)).say(0, args(0));
    play.say(0, Event::ToolClose { choice: 0, call: 0 });
    play.finish(0, Finish::ToolCalls).signal(0, Signal::Ended);
    assert_eq!(play.journal().attempts.len(), 1);
    assert!(play.moves().ends_with("close:complete"));
}

#[test]
fn a_second_call_is_held_back_while_the_first_is_closed() {
    let mut play = begin(false);
    play.say(0, open_call(0)).say(0, args(0)).say(0, open_call(1)).say(0, Event::ToolClose { choice: 0, call: 0 });
    play.wait(secs(60)).say(0, args(1)).say(0, Event::ToolClose { choice: 0, call: 1 });
    play.finish(0, Finish::ToolCalls).signal(0, Signal::Ended);
    assert_eq!(play.journal().attempts.len(), 1);
}

#[test]
fn after_a_call_is_closed_silence_is_a_stall_again() {
    let mut play = begin(false);
    play.say(0, open_call(0)).wait(secs(60)).say(0, args(0)).say(0, Event::ToolClose { choice: 0, call: 0 });
    assert_eq!(play.wait(secs(6)).moves(), "drop0:failed open1:b");
}

#[test]
fn searches_of_the_provider() {
    let mut play = begin(false);
    play.text(0, "I search.").say(0, Event::ServerTool(true)).say(0, Event::ServerTool(true)).wait(secs(20));
    play.say(0, Event::ServerTool(false)).wait(secs(20)).say(0, Event::ServerTool(false));
    play.wait(secs(4)).answers("It is blue.");
}

/// A history that holds a search without its result is refused, and the session with it.
#[test]
fn a_search_that_was_told_and_never_answered_is_not_gone_on_from() {
    let bound = || {
        let extra = Extra { dialect: DialectId::Chat, place: Place::Whole, fields: Default::default(), bound: true };
        Event::Extra(Box::new(extra))
    };
    for (answered, goes_on) in [(false, false), (true, true)] {
        let mut setup = setup(&["a", "a"]);
        setup.level.retries = 1;
        let mut play = setup.begin();
        play.sent(0).text(0, "I search.").say(0, bound()).say(0, Event::ServerTool(true));
        if answered {
            play.say(0, Event::ServerTool(false));
        }
        play.moves();
        let moves = play.fail(0, Kind::Reset).moves();
        let expected = if goes_on { "drop0:failed open1:a" } else { "drop0:failed close:NotContinuable(Reset)" };
        assert_eq!(moves, expected);
    }
}

#[test]
fn nobody_is_suspected_while_it_works() {
    let mut setup = setup(&["a", "b"]);
    for candidate in &mut setup.candidates {
        candidate.timeouts.suspect = Some(Duration::from_millis(200));
        candidate.hedge_after = Some(Duration::from_millis(200));
    }
    let mut play = setup.begin();
    play.sent(0).say(0, Event::Thinking(true)).wait(secs(3)).say(0, Event::Thinking(false));
    play.text(0, "So").say(0, open_call(0)).wait(secs(3));
    assert_eq!(play.journal().attempts.len(), 1);
}

#[test]
fn of_one_that_pings_while_it_works_pings_are_expected() {
    let mut silent = begin(false);
    silent.say(0, Event::Thinking(true)).wait(secs(40));
    assert_eq!(silent.moves(), "", "who never pings is not missed");

    let mut pings = begin(false);
    pings.say(0, Event::Thinking(true));
    for _ in 0..5 {
        pings.wait(secs(10)).say(0, Event::Alive);
    }
    assert_eq!(pings.moves(), "");
    assert_eq!(pings.wait(secs(31)).moves(), "drop0:failed open1:b");
}

#[test]
fn the_first_word_has_a_limit_of_its_own_over_all_targets() {
    let mut setup = setup(&["a", "b"]);
    setup.level.timeouts.first_word = Some(secs(10));
    let mut play = setup.begin();
    assert_eq!(play.sent(0).wait(secs(9)).sent(1).moves(), "open0:a drop0:failed open1:b");
    play.say(1, Event::Reasoning { choice: 0, text: "hm".to_owned() });
    play.wait(secs(2));
    assert_eq!(play.moves(), "emit:think\"hm\" drop1:cancelled close:Deadline(FirstTokenTimeout)");
}

#[test]
fn no_limit_of_the_first_word_ends_a_turn_that_has_begun() {
    let mut setup = setup(&["a"]);
    setup.level.timeouts.first_word = Some(secs(2));
    let mut play = setup.begin();
    play.sent(0).text(0, "Well").wait(secs(4)).answers(", then");
}
