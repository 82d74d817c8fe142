# What a user or a contributor runs. Everything needs Rust, a C compiler and Python 3.11 or newer; what else is needed
# of Python is installed into .venv.

CARGO ?= cargo
PYTHON ?= python3
VENV ?= .venv
# How long `make fuzz` looks for a finding.
FUZZ_SECONDS ?= 300
# How long `make search` searches.
SEARCH_SECONDS ?= 3600
# Whose evaluation `make papers-quick` runs.
PAPER ?= all
# How often `make test-repeated` runs the tests.
N ?= 10

PIP = $(VENV)/bin/python -m pip --disable-pip-version-check --quiet

.PHONY: install install-editable demo test test-rust rust-format rust-lints rust-doc rust-tests rust-tests-a rust-tests-rest \
	test-python python-lints python-tests python-doc test-repeated search snippets notebooks papers-quick bench fuzz paper-check planted

# The command and the Python package, into .venv.
install: $(VENV)/bin/python
	@echo "Building Flashlore into $(VENV); from nothing this takes minutes."
	$(PIP) install .

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

# The captures inside the program on a plain SSD and on CA-SSD: a table within seconds of the build, and a page.
demo: install
	$(VENV)/bin/flashlore demo --out demo --report demo.html --force

# Everything a change must pass. What is drawn at random is drawn from fixed seeds: it passes again if it passed once.
# Continuous integration runs the parts one by one and says how long each took.
test: test-rust test-python

test-rust: rust-format rust-lints rust-doc rust-tests

test-python: install-editable python-lints python-tests python-doc

rust-format:
	tools/unlisted-tests.sh
	tools/one-build.sh
	for patch in crates/*/planted/*.patch; do git apply --check "$$patch" || exit 1; done
	$(CARGO) fmt --all --check

rust-lints:
	$(CARGO) clippy --workspace --all-targets -- --deny warnings

rust-doc:
	RUSTDOCFLAGS="--deny warnings" $(CARGO) doc --workspace --no-deps

# In two parts, each of which may run beside the other and tells all that fails: all programs of tests whose names begin
# with an a, as most of the longest do, and the rest.
rust-tests: rust-tests-a rust-tests-rest

rust-tests-a:
	$(CARGO) test --workspace --no-fail-fast --test 'a*'

rust-tests-rest:
	$(CARGO) test --workspace --no-fail-fast --lib --bins --test '[!a]*'

# The module lies in the tree then, beside the source that the tests read; `make install` has built it before.
install-editable: $(VENV)/bin/python
	$(PIP) install --editable '.[dev]'

python-lints:
	$(VENV)/bin/ruff format --check
	$(VENV)/bin/ruff check
	$(VENV)/bin/mypy

python-tests:
	$(VENV)/bin/pytest --quiet --numprocesses auto --dist loadfile

python-doc:
	$(VENV)/bin/python tools/python-doc.py target/python-doc

# The tests of Rust and of Python N times from one build, beside a process that never rests.
test-repeated: install-editable
	CARGO="$(CARGO)" VENV="$(VENV)" tools/test-repeated.sh $(N)

# Property tests, model tests and crash searches with seeds never used before, for SEARCH_SECONDS. Each seed is printed,
# and each failure with the command that repeats it.
search:
	CARGO="$(CARGO)" VENV="$(VENV)" SEARCH_SECONDS=$(SEARCH_SECONDS) tools/search.sh

# The blocks of all documents, those included that take minutes.
snippets: install-editable
	$(VENV)/bin/pytest -rs --long-snippets python/tests/test_snippets.py

# The notebooks, executed anew where they are.
notebooks: install-editable
	$(VENV)/bin/python python/tests/run_notebooks.py

# The evaluations of all papers at a small scale, as a page; with PAPER=delta-ftl that of one.
papers-quick: install
	$(VENV)/bin/flashlore reproduce $(PAPER) --quick --report papers.html --force

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

# Bugs planted in the volume, in what only simulation has, in pages of tables and in the array, one after the other: each
# must be found by a test.
planted:
	crates/volume/planted/run.sh
	PLANTED_PATCHES=crates/ftl/planted \
	PLANTED_TESTS="ftl/lib ftl/similar ftl/prefetch ftl/sealed_before_window ftl/map_of_deltas ftl/map_cache ftl/delta_vectors" \
	crates/volume/planted/run.sh
	PLANTED_PATCHES=crates/sim/planted PLANTED_TESTS=sim/lib crates/volume/planted/run.sh
	PLANTED_PATCHES=crates/metadata/planted PLANTED_TESTS=metadata/store crates/volume/planted/run.sh
	PLANTED_PATCHES=crates/array/planted \
	PLANTED_TESTS="array/lib array/images array/model array/crash_search array/faults array/damage array/arbitrary array/options array/reshape array/versions array/fast_lost array/table_pages serve/array_crash" \
	crates/volume/planted/run.sh

# The checks that take minutes: tests marked as ignored, among them every profile at its full size
# against what was published of it, and the evaluations of CA-SSD, DeltaFTL, BVSSD, I-CASH and of all
# together, as a page.
paper-check: install
	$(CARGO) test --release --workspace -- --ignored
	$(VENV)/bin/flashlore reproduce all --report papers.html --force
