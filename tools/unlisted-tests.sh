#!/bin/sh
# Where tests of a crate are modules of one program, a file that nobody lists would never run: this names such files
# and fails if there are any.
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
exit $status
