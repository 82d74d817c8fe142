//! Any bytes as an encoded page and as pages to be encoded: decoding never panics.
#![no_main]

#[path = "../../crates/delta/tests/exercise/mod.rs"]
mod exercise;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    exercise::exercise(bytes);
});
