# What a user or a contributor runs. Everything needs Rust and a C compiler, nothing else.

CARGO ?= cargo
# How long `make fuzz` looks for a finding.
FUZZ_SECONDS ?= 300

.PHONY: demo test bench fuzz paper-check planted

# The captures inside the program on a plain SSD and on CA-SSD: a table within a minute of the build.
demo:
	$(CARGO) run --package flashlore -- demo

# Everything a change must pass.
test:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- --deny warnings
	RUSTDOCFLAGS="--deny warnings" $(CARGO) doc --workspace --no-deps
	$(CARGO) test --workspace

# Speed of parsing, of synthesis, of the translation layer and of whole replays.
bench:
	$(CARGO) bench --workspace

# Arbitrary bytes through the trace formats, as profiles, over a volume, over both media of an array, as encoded
# pages, and as both sides of NBD. Needs `cargo install cargo-fuzz`;
# the variable lets a stable compiler build the sanitizers.
fuzz:
	RUSTC_BOOTSTRAP=1 $(CARGO) fuzz run detect -- -max_total_time=$(FUZZ_SECONDS)
	RUSTC_BOOTSTRAP=1 $(CARGO) fuzz run profile -- -max_total_time=$(FUZZ_SECONDS)
	RUSTC_BOOTSTRAP=1 $(CARGO) fuzz run volume -- -max_total_time=$(FUZZ_SECONDS)
	RUSTC_BOOTSTRAP=1 $(CARGO) fuzz run array -- -max_total_time=$(FUZZ_SECONDS)
	RUSTC_BOOTSTRAP=1 $(CARGO) fuzz run delta -- -max_total_time=$(FUZZ_SECONDS)
	RUSTC_BOOTSTRAP=1 $(CARGO) fuzz run nbd -- -max_total_time=$(FUZZ_SECONDS)

# Bugs planted in the volume, in what only simulation has, and in the array, one after the other: each must be found
# by a test.
planted:
	crates/volume/planted/run.sh
	PLANTED_PATCHES=crates/ftl/planted \
	PLANTED_TESTS="ftl/prefetch ftl/sealed_before_window ftl/map_of_differences ftl/map_cache" \
	crates/volume/planted/run.sh
	PLANTED_PATCHES=crates/array/planted \
	PLANTED_TESTS="array/lib array/images array/model array/crash_search array/faults array/damage array/arbitrary array/options" \
	crates/volume/planted/run.sh

# The checks that take minutes: tests marked as ignored, among them every profile at its full size
# against what was published of it, and the evaluations of CA-SSD, DeltaFTL, BVSSD, I-CASH and of all
# together.
paper-check:
	$(CARGO) test --release --workspace -- --ignored
	$(CARGO) run --release --package flashlore -- reproduce ca-ssd
	$(CARGO) run --release --package flashlore -- reproduce delta-ftl
	$(CARGO) run --release --package flashlore -- reproduce bvssd
	$(CARGO) run --release --package flashlore -- reproduce combined --figure profiles
	$(CARGO) run --release --package flashlore -- reproduce i-cash
