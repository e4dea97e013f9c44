//! Clocks: global, of a level, of a place in its chain; the nearest wins.

use super::document::Section;
use super::value::Zero;
use crate::routing::Timeouts;

/// `outer` with what `section` sets instead.
pub(super) fn read(section: &Section<'_>, outer: Timeouts) -> Timeouts {
    let clock = |key, outer| section.duration(key, Zero::Refused, outer);
    Timeouts {
        connect: clock("connect", outer.connect),
        first_token: clock("first_token", outer.first_token),
        first_token_per_1k: section
            .get("first_token_per_1k")
            .and_then(|v| v.duration_or_off())
            .unwrap_or(outer.first_token_per_1k),
        first_word: section.get("first_word").and_then(|v| v.duration_or_off()).unwrap_or(outer.first_word),
        thinking: clock("thinking", outer.thinking),
        suspect: section.get("suspect").and_then(|v| v.duration_or_off()).unwrap_or(outer.suspect),
        pace: section.get("pace").and_then(|v| v.pace_or_off()).unwrap_or(outer.pace),
        stall: clock("stall", outer.stall),
        idle: clock("idle", outer.idle),
        turn: clock("turn", outer.turn),
        client_write: clock("client_write", outer.client_write),
        error_body: clock("error_body", outer.error_body),
    }
}

/// The clocks under `timeouts`, over those around it.
pub(super) fn of(owner: &Section<'_>, outer: Timeouts) -> Timeouts {
    owner.section("timeouts").map_or(outer, |section| read(&section, outer))
}

/// Clocks that a single place in a chain cannot have for itself.
pub(super) const OF_THE_TURN: [&str; 3] = ["first_word", "turn", "client_write"];
