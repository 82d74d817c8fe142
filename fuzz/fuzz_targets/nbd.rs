//! Any bytes as a client and as a server of NBD: cutting changes no event, a slow reader agrees, and
//! nothing panics.
#![no_main]

#[path = "../../crates/nbd/tests/client/mod.rs"]
mod client;
#[path = "../../crates/nbd/tests/exercise/mod.rs"]
mod exercise;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    exercise::exercise(bytes);
});
