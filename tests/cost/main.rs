//! The cost rule: whatever a client or a provider sends costs at most k times its bytes, in CPU time and in heap.
//!
//! Every reader and translator of foreign bytes is given hostile shapes of two sizes, n and 4n, and fails if the larger
//! one costs more than five times as much, or holds more heap than its bytes justify. What bytes do not bound is bounded
//! by count; with those bounds lifted the readers are as linear, so that no bound is what holds them up.
#![expect(clippy::unwrap_used, reason = "a test's panic is its report")]

mod measure;
mod providers;
mod readers;
mod requests;
mod shapes;
mod turns;

use segue::bounds::Bounds;

/// The bounds as they are, and lifted.
fn bounds() -> [(&'static str, Bounds); 2] {
    [("", Bounds::default()), (", bounds lifted", lifted())]
}

/// Bounds that are larger than anything here.
fn lifted() -> Bounds {
    let far = 1 << 40;
    Bounds {
        depth: Bounds::DEPTH,
        values: far,
        messages: far,
        parts: far,
        tools: far,
        stops: far,
        choices: far,
        calls: far,
    }
}
