//! Any bytes as a provider's stream: it says the same however it is cut, and can be told to every kind of client.
//!
//! `cargo +nightly fuzz run answers`; `cargo test --test fuzz` gives the same targets to a mutator of its own.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../tests/fuzz/targets.rs"]
mod targets;

fuzz_target!(|input: &[u8]| {
    for target in &targets::STREAMS {
        (target.play)(input);
    }
});
