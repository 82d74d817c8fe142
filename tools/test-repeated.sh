#!/usr/bin/env bash
# The tests of `make test`, N times from one build, beside a process that never rests: tests that depend on time or on
# load fail here. Each run goes on behind a failure; failures are printed, their output is kept, and the exit status
# is 1 if there was any.
#
#     tools/test-repeated.sh N
set -euo pipefail
cd "$(dirname "$0")/.."

runs=${1:-}
if (($# != 1)) || ! [[ $runs =~ ^[1-9][0-9]{0,4}$ ]]; then
    echo "usage: $0 N, with the number of runs, at least 1; found \"$*\"" >&2
    exit 2
fi
cargo=${CARGO:-cargo}
python=${VENV:-.venv}/bin/python
logs=target/test-repeated
rm -rf "$logs"
mkdir -p "$logs"

"$cargo" test --workspace --no-run
if ! [[ -x $python ]]; then
    echo "there is no $python: \`make test-python\` makes it" >&2
    exit 1
fi

(while :; do :; done) &
busy=$!
trap 'kill "$busy"' EXIT

failed=0
# Runs a command into a file, and says what failed.
attempt() {
    local log=$1
    shift
    "$@" >"$log" 2>&1 && return
    failed=$((failed + 1))
    grep -E '^(test .* FAILED|error|FAILED |ERROR )' "$log" || tail -n 20 "$log"
    echo "failed: $*; the output is $log"
}

for ((run = 1; run <= runs; run++)); do
    echo "$(date +%T) run $run of $runs"
    attempt "$logs/$run-rust" "$cargo" test --workspace --no-fail-fast
    attempt "$logs/$run-python" "$python" -m pytest --quiet --numprocesses auto --dist loadfile
done
echo "$runs runs, $failed failures"
((failed == 0))
