//! Tool calls across attempts: held until they are whole, or matched against what was told of them already.

use crate::event::{Event, Finish, Place, Step};
use crate::turn::{Call, Turn, is_whole};
use std::borrow::Cow;

/// Calls that were told in part and must be made again, word for word, by whoever goes on. Only what is new of them
/// passes.
#[derive(Debug, Default)]
pub(super) struct Replay {
    told: Vec<Call>,
    /// How many bytes of arguments each that was opened again has been given so far.
    made: Vec<Option<usize>>,
}

/// A call differs from what was told of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Differs;

// === impl Replay ===

impl Replay {
    /// A replay of the calls in `told`.
    pub(super) fn of(told: &[Call]) -> Self {
        Self { told: told.to_vec(), made: vec![None; told.len()] }
    }

    /// What of `event` is new; `None` if the client knows it.
    pub(super) fn sift(&mut self, event: Event) -> Result<Option<Event>, Differs> {
        match event {
            Event::ToolOpen { call, ref name, .. } => match self.told.get(call as usize) {
                Some(told) if told.name != *name => Err(Differs),
                Some(_) => {
                    self.made[call as usize].get_or_insert_default();
                    Ok(None)
                }
                None => Ok(Some(event)),
            },
            Event::ToolArgs { choice, call, args } => {
                let Some(told) = self.told.get(call as usize) else {
                    return Ok(Some(Event::ToolArgs { choice, call, args }));
                };
                let made = self.made[call as usize].get_or_insert_default();
                // Each byte is compared once, however small the pieces are.
                let owed = told.args.as_bytes().get(*made..).unwrap_or_default();
                let shared = owed.len().min(args.len());
                let goes_on = args.len() > shared;
                if owed[..shared] != args.as_bytes()[..shared] || (goes_on && told.closed) {
                    return Err(Differs);
                }
                *made = made.saturating_add(args.len());
                let rest = args.get(shared..).filter(|rest| !rest.is_empty());
                Ok(rest.map(|rest| Event::ToolArgs { choice, call, args: rest.to_owned() }))
            }
            Event::ToolClose { call, .. } => match self.told.get(call as usize) {
                Some(told) if !is_made(told, self.made[call as usize]) => Err(Differs),
                Some(told) if told.closed => Ok(None),
                _ => Ok(Some(event)),
            },
            Event::Extra(extra) => {
                let known = matches!(extra.place, Place::Call { call, .. } if self.told.get(call as usize).is_some());
                Ok((!known).then_some(Event::Extra(extra)))
            }
            other => Ok(Some(other)),
        }
    }

    /// The finish: every call that was told must have been made.
    pub(super) fn finish(&self) -> Result<(), Differs> {
        let whole = self.told.iter().zip(&self.made).all(|(told, made)| is_made(told, *made));
        if whole { Ok(()) } else { Err(Differs) }
    }
}

// === helpers ===

/// Says of an answer that it met its limit where a call in it was cut, whatever its finish says: fragments that were told
/// as they came cannot be taken back, and a call that is no JSON must not pass for a whole one. `turn` is what was told
/// before `told`.
pub(super) fn own_up(turn: &Turn, told: &mut Step) {
    let finish = told.events.iter().find_map(|event| match event {
        Event::Finish { choice, reason: Finish::Stop | Finish::ToolCalls | Finish::Other(_), .. } => Some(*choice),
        _ => None,
    });
    let Some(choice) = finish else { return };
    let before = turn.choices().get(choice as usize).map_or(&[][..], |choice| &choice.calls);
    let mut args: Vec<Cow<'_, str>> = before.iter().map(|call| Cow::Borrowed(&*call.args)).collect();
    for event in &told.events {
        match event {
            Event::ToolOpen { choice: c, .. } if *c == choice => args.push(Cow::Borrowed("")),
            Event::ToolArgs { choice: c, call, args: more } if *c == choice => {
                if let Some(args) = args.get_mut(*call as usize) {
                    args.to_mut().push_str(more);
                }
            }
            _ => {}
        }
    }
    if args.iter().filter(|args| args.len() <= CHECKED).all(|args| is_whole(args)) {
        return;
    }
    for event in &mut told.events {
        if let Event::Finish { choice: c, reason, .. } = event
            && *c == choice
        {
            *reason = Finish::Length;
        }
    }
    told.raw = None;
}

/// Longer arguments are not checked: it would hold up other turns for milliseconds.
const CHECKED: usize = 1 << 20;

/// Whether a call was made again at least as far as it was told.
fn is_made(told: &Call, made: Option<usize>) -> bool {
    made.is_some_and(|made| made >= told.args.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replay(args: &str) -> Replay {
        Replay::of(&[Call { id: "c1".into(), name: "f".into(), args: args.into(), closed: false }])
    }

    fn open(name: &str) -> Event {
        Event::ToolOpen { choice: 0, call: 0, id: "c9".into(), name: name.into() }
    }

    fn args(args: &str) -> Event {
        Event::ToolArgs { choice: 0, call: 0, args: args.into() }
    }

    #[test]
    fn only_the_remainder_of_the_same_call_passes() {
        let mut replay = replay("{\"q\":\"par");
        assert_eq!(replay.sift(open("f")), Ok(None));
        assert_eq!(replay.sift(args("{\"q\"")), Ok(None));
        assert_eq!(replay.sift(args(":\"paris")), Ok(Some(args("is"))));
        assert_eq!(replay.sift(args("\"}")), Ok(Some(args("\"}"))));
        assert_eq!(replay.finish(), Ok(()));
    }

    #[test]
    fn another_function_or_other_arguments_differ() {
        assert_eq!(replay("{").sift(open("g")), Err(Differs));
        assert_eq!(replay("{\"q\":\"par").sift(args("{\"q\":\"rome")), Err(Differs));
        assert_eq!(replay("{\"q\"").finish(), Err(Differs));
        assert_eq!(replay("").finish(), Err(Differs), "it was opened and is not made again");
    }

    #[test]
    fn a_multi_byte_character_cut_in_two_is_put_together() {
        let mut replay = replay("{\"q\":\"né");
        assert_eq!(replay.sift(args("{\"q\":\"nérac")), Ok(Some(args("rac"))));
    }
}
