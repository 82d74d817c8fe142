#!/bin/sh
# Plants each bug of a directory in a scratch worktree and runs tests on it.
# Prints which test found it. Ends with 1 if one was not found, does not apply,
# does not build or makes a test run on without end.
#
#   run.sh [NAME...]     the patches to plant, without `.patch`; all of them if none is named
#
# PLANTED_PATCHES is the directory of the patches, this one unless given.
#
# All tests must pass without a planted bug, else it stops. PLANTED_TESTS names the tests to run: `ftl/conflicts` is
# one of the crate `ftl`, a program of its own or a module of its tests, `crash_search` one of the volume, and `lib`
# those inside it. A line `Found by TEST.` of a patch names the one that runs first.
#
# PLANTED_SECONDS is after how many a test counts as one without end, 300 unless given.
#
# CARGO_TARGET_DIR is where it builds, target/planted unless given.
set -u

here=$(cd "$(dirname "$0")" && pwd)
root=$(git -C "$here" rev-parse --show-toplevel)
patches=$(cd "${PLANTED_PATCHES:-$here}" && pwd) || exit 1
tests="${PLANTED_TESTS:-crash_search bulk disk failures reopen lib journal_chain differential bit_flips rot damage grow golden tables table_pages given_up moved index arbitrary ftl/conflicts ftl/similar}"
seconds=${PLANTED_SECONDS:-300}

export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$root/target/planted}"
export RUST_BACKTRACE=0
# That it fails is enough.
export FLASHLORE_CRASH_SHRINK=0
scratch=$(mktemp -d)/tree
log=$(mktemp)
git -C "$root" worktree add --quiet --detach "$scratch" HEAD || exit 1
trap 'git -C "$root" worktree remove --force "$scratch"; rm -f "$log"' EXIT
trap 'exit 1' INT TERM
cd "$scratch" || exit 1

# Runs a command on one of the tests.
on_test() {
    name=${1##*/}
    crate=volume
    [ "$name" = "$1" ] || crate=${1%/*}
    target="--test=$name"
    [ "$name" != lib ] || target=--lib
    only=
    if grep -qs "^mod $name;" "crates/$crate/tests/all.rs"; then
        target=--test=all
        only="$name::"
    fi
    shift
    "$@" --quiet --package "flashlore-$crate" "$target" -- $only >"$log" 2>&1
}

# Answers the first of these tests that fails, or nothing.
first_failure() {
    for test in "$@"; do
        if ! on_test "$test" cargo test --no-run; then
            echo "does not build: $(grep -m 1 '^error' "$log")"
            return
        fi
        on_test "$test" timeout "$seconds" cargo test
        case $? in
        0) ;;
        124)
            echo "no end: $test after $seconds seconds"
            return
            ;;
        *)
            name=$(sed -n 's/^    \([a-z_:0-9]*\)$/\1/p' "$log" | head -n 1)
            echo "$test ${name:+($name)}"
            return
            ;;
        esac
    done
}

missed=0
[ $# -gt 0 ] || set -- $(cd "$patches" && ls ./*.patch | sed 's|^\./||; s|\.patch$||')
# A test that fails anyway finds nothing: this run is never left out.
found=$(first_failure $tests)
if [ -n "$found" ]; then
    echo "without a planted bug: $found"
    exit 1
fi
for name in "$@"; do
    git checkout --quiet -- .
    if ! git apply "$patches/$name.patch" 2>"$log"; then
        echo "DOES NOT APPLY  $name: $(head -n 1 "$log")"
        missed=1
        continue
    fi
    # The test that found it before comes first.
    found=$(first_failure $(sed -n 's/^Found by \([a-z_/]*\)\.$/\1/p' "$patches/$name.patch") $tests)
    case $found in
    "")
        echo "NOT FOUND       $name"
        missed=1
        ;;
    "does not build"* | "no end"*)
        echo "NOT FOUND       $name: $found"
        missed=1
        ;;
    *) echo "found           $name: $found" ;;
    esac
done
exit $missed
