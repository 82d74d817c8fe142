//! Any bytes through detection, decompression, every parser and the workload.
#![no_main]

#[path = "../../crates/trace/tests/exercise/mod.rs"]
mod exercise;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    exercise::exercise(bytes);
});
