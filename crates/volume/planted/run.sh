#!/bin/sh
# Plants each bug of this directory in a scratch worktree and runs the tests of the volume on it.
# Prints which test found it. Ends with 1 if one was not found, does not apply or does not build.
#
#   run.sh [NAME...]     the patches to plant, without `.patch`; all of them if none is named
#
# CARGO_TARGET_DIR is where it builds, target/planted unless given.
set -u

here=$(cd "$(dirname "$0")" && pwd)
root=$(git -C "$here" rev-parse --show-toplevel)
tests="differential failures reopen crash_search bit_flips"
seconds=120

export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$root/target/planted}"
export RUST_BACKTRACE=0
scratch=$(mktemp -d)/tree
log=$(mktemp)
git -C "$root" worktree add --quiet --detach "$scratch" HEAD || exit 1
trap 'git -C "$root" worktree remove --force "$scratch"; rm -f "$log"' EXIT
trap 'exit 1' INT TERM
cd "$scratch" || exit 1

# Answers the first test that fails, or nothing.
first_failure() {
    for test in $tests; do
        timeout "$seconds" cargo test --quiet --package flashlore-volume --test "$test" >"$log" 2>&1
        status=$?
        if [ $status -eq 124 ]; then
            echo "$test (no end after $seconds seconds)"
            return
        elif [ $status -ne 0 ]; then
            name=$(sed -n 's/^    \([a-z_:0-9]*\)$/\1/p' "$log" | head -n 1)
            echo "$test ${name:+($name)}"
            return
        fi
    done
}

builds() {
    cargo test --quiet --package flashlore-volume --tests --no-run >"$log" 2>&1
}

if ! builds || [ -n "$(first_failure)" ]; then
    echo "the tests fail without a planted bug:"
    tail -n 20 "$log"
    exit 1
fi

missed=0
[ $# -gt 0 ] || set -- $(cd "$here" && ls ./*.patch | sed 's|^\./||; s|\.patch$||')
for name in "$@"; do
    git checkout --quiet -- .
    if ! git apply "$here/$name.patch" 2>"$log"; then
        echo "DOES NOT APPLY  $name: $(head -n 1 "$log")"
        missed=1
        continue
    fi
    if ! builds; then
        echo "DOES NOT BUILD  $name: $(grep -m 1 '^error' "$log")"
        missed=1
        continue
    fi
    found=$(first_failure)
    if [ -n "$found" ]; then
        echo "found           $name: $found"
    else
        echo "NOT FOUND       $name"
        missed=1
    fi
done
exit $missed
