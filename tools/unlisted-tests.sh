#!/bin/sh
# Tests that would never run: where tests of a crate are modules of one program, files that nobody lists, and examples
# in comments, which `make rust-tests` leaves out because looking for them takes a minute. This names them and fails if
# there are any.
set -eu
cd "$(dirname "$0")/.."
status=0
for program in crates/*/tests/all.rs; do
    directory=$(dirname "$program")
    for file in "$directory"/*.rs; do
        name=$(basename "$file" .rs)
        [ "$name" != all ] || continue
        grep -q "^mod $name;" "$program" && continue
        grep -q "^name = \"$name\"" "$directory/../Cargo.toml" && continue
        echo "$file: neither a module of $program nor a [[test]] of its crate" >&2
        status=1
    done
done
# Fences of comments open and close in turn: one that opens without a language, or with another than `text`, is code,
# and so is what follows an empty line four blanks in.
find crates -path '*/src/*' -name '*.rs' -exec awk '
    function example() {
        print FILENAME ":" FNR ": an example that nothing runs: call it text, or let `make rust-tests` run --doc" > "/dev/stderr"
        found = 1
    }
    FNR == 1 { open = empty = 0 }
    /^ *\/\/[\/!] *(```|~~~)/ {
        open = !open
        if (open && !/(```|~~~)text *$/) example()
    }
    empty && !open && /^ *\/\/[\/!]     / { example() }
    { empty = /^ *\/\/[\/!] *$/ }
    END { exit found }' {} + || status=1
exit $status
