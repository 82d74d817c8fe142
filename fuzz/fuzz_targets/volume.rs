//! Any bytes over a small volume: checking, showing and opening it never panics.
#![no_main]

#[path = "../../crates/volume/tests/exercise/mod.rs"]
mod exercise;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    exercise::exercise(bytes);
});
