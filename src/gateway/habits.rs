//! What an attempt teaches about its target that holds for the turns to come.

use crate::chat::Request;
use crate::fleet::Fleet;
use crate::relay::journal::{Attempt, End};

/// `attempt` at `request` has ended.
pub(super) fn learn(fleet: &Fleet, request: &Request, attempt: &Attempt, end: End) {
    let unasked = request.effort.is_none() && attempt.carried == 0;
    if unasked && (attempt.thought || end == End::Ok) {
        fleet.learn_thinking(&attempt.target, attempt.thought);
    }
}
