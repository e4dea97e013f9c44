//! Any bytes as a whole answer or an error: read as bounded words, and told.
//!
//! `cargo +nightly fuzz run bodies`; `cargo test --test fuzz` gives the same targets to a mutator of its own.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../tests/fuzz/targets.rs"]
mod targets;

fuzz_target!(|input: &[u8]| {
    for target in &targets::BODIES {
        (target.play)(input);
    }
});
