#!/usr/bin/env bash
# The Python module and the tests of Rust are built from one set of libraries, if they ask for the same features of
# each. This names libraries of which they do not, and fails if there are any: everything above them is built twice.
# The remedy is in crates/python/Cargo.toml.
set -euo pipefail
cd "$(dirname "$0")/.."

features() {
    cargo tree --locked --prefix none --format '{p} [{f}]' "$@" | sed 's/ (\*)$//; s/ (proc-macro)//' | sort -u
}
differ=$(comm -23 <(features -p flashlore-python --edges normal,build) <(features --workspace --edges normal,build,dev))
if [[ -n $differ ]]; then
    echo "the tests ask for other features of these than the Python module, so they are built twice:" >&2
    echo "$differ" >&2
    exit 1
fi
