#!/usr/bin/env bash
# Property tests, model tests and crash searches with seeds never used before, round after round for SEARCH_SECONDS:
# one whole round at least, and a command that has begun is finished. Each failure is printed with the command that
# repeats it, and the exit status is 1 if there was any. SEARCH_SEED is the seed of the first round, which repeats a
# search.
#
# `cargo test` and pytest draw from fixed seeds instead (.cargo/config.toml, python/tests/conftest.py).
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${SEARCH_SECONDS:-3600}
cargo=${CARGO:-cargo}
python=${VENV:-.venv}/bin/python
log=target/search
mkdir -p "$log"
for number in "$seconds" "${SEARCH_SEED:-0}"; do
    if ! [[ $number =~ ^[0-9]{1,15}$ ]]; then
        echo "SEARCH_SECONDS and SEARCH_SEED are whole numbers of at most 15 digits, found \"$number\"" >&2
        exit 2
    fi
done

mapfile -t properties < <(find crates -name '*.rs' -print0 | xargs -0 awk -f tools/property-tests.awk | sort -u)

# Each search is a name, the variables that carry the seed, and a command.
names=("property tests" "model" "crashes of volumes" "crashes of arrays" "crashes of served arrays")
seeds=(PROPTEST_RNG_SEED FLASHLORE_MODEL_SEED FLASHLORE_CRASH_SEED FLASHLORE_CRASH_SEED FLASHLORE_CRASH_SEED)
commands=(
    "$cargo test --workspace --no-fail-fast --tests -- ${properties[*]}"
    "$cargo test -p flashlore-ftl --test model -- --exact every_combination_equals_the_list_of_versions"
    "$cargo test -p flashlore-volume --test crash_search -- --exact a_short_search_finds_no_broken_promise"
    "$cargo test -p flashlore-array --test all -- --exact crash_search::no_crash_loses_what_was_flushed_or_mixes_states"
    "$cargo test -p flashlore-serve --test array_crash"
)
if [[ -x $python ]]; then
    names+=("property tests of Python")
    seeds+=("")
    commands+=("$python -m pytest --quiet -m hypothesis --hypothesis-profile=search --hypothesis-seed=SEED")
else
    echo "The property tests of Python are left out: there is no $python; \`make test-python\` makes it."
fi

# What differs from round to round in a command: the seed.
command_of() {
    local search=$1 seed=$2
    echo "${seeds[search]:+${seeds[search]}=$seed }${commands[search]//SEED/$seed}"
}

failures=()
rounds=0
seed=${SEARCH_SEED:-}
SECONDS=0
while ((rounds == 0 || SECONDS < seconds)); do
    # Histories of a crash search have consecutive seeds: thousands of them between two rounds.
    seed=${seed:-$(od -An -N3 -tu4 /dev/urandom | tr -d ' ')000}
    for search in "${!commands[@]}"; do
        ((rounds == 0 || SECONDS < seconds)) || break
        command=$(command_of "$search" "$seed")
        echo "$(date +%T) seed $seed: ${names[search]}"
        # A name that fits no test is no success.
        if ! env bash -c "$command" >"$log/output" 2>&1 || ! grep -qE '^test result: ok\. [1-9]|^[1-9][0-9]* passed' "$log/output"; then
            failures+=("$command")
            cp "$log/output" "$log/failure-${#failures[@]}"
            grep -E '^(test .* FAILED|error:|FAILED |thread .* panicked|minimal failing input)' "$log/output" | head -20 || true
            echo "failed; the output is $log/failure-${#failures[@]}; to repeat it: $command"
        fi
    done
    rounds=$((rounds + 1))
    seed=
done

echo "$rounds rounds in $SECONDS s, ${#failures[@]} failures"
for failure in "${failures[@]}"; do
    echo "failed: $failure"
done
((${#failures[@]} == 0))
