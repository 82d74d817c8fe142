//! Any text as a profile or a fit, and a short workload of what is accepted.
#![no_main]

use flashlore_synth::{Fit, ProfileSource, SynthOptions};
use flashlore_trace::Batch;

/// A workload of more page accesses would take too long.
const PAGES: u64 = 10_000;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let _ = flashlore_synth::Profile::parse("fuzz", text);
    let Ok(fit) = Fit::parse("fuzz", text) else {
        return;
    };
    assert_eq!(Fit::parse("again", &fit.to_text()).expect("own text"), fit);
    if fit.pages() > PAGES {
        return;
    }
    let mut reader = ProfileSource::of_fit(fit, SynthOptions::default()).open();
    let mut batch = Batch::default();
    while reader.next_batch(&mut batch).expect("a workload") {}
});
