//! Any bytes over both media of a small array: opening, checking, reading and writing it never panics.
#![no_main]

#[path = "../../crates/array/tests/exercise/mod.rs"]
mod exercise;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    exercise::exercise(bytes);
});
