//! Any bytes as a client's request: what is read can be written for every kind of target, and kept.
//!
//! `cargo +nightly fuzz run requests`; `cargo test --test fuzz` gives the same targets to a mutator of its own.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../tests/fuzz/targets.rs"]
mod targets;

fuzz_target!(|input: &[u8]| {
    for target in &targets::REQUESTS {
        (target.play)(input);
    }
});
