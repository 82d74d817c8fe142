#!/usr/bin/env bash
# Whether a volume grows slow, or wrong, with age: it is overwritten ten times at 90 % fullness, by 45 % writes, of which
# a third are duplicates, 5 % trims and 50 % reads, with a flush after every 256 requests; then it is checked. Prints a
# line for each round.
#
#     cargo build --release && tools/aging.sh [SYSTEM...]
#
# Run it on a machine with nothing else to do. PROGRAM names another program, TMPDIR where the volumes lie, SIZE how
# large they are, in MiB (900).
set -euo pipefail

systems=("$@")
((${#systems[@]})) || systems=(plain combined)
program=${PROGRAM:-$(dirname "$0")/../target/release/flashlore}
size=${SIZE:-900}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

load() { "$program" bench "$work/disk" --overwrite --json "$@" 2>/dev/null; }

for system in "${systems[@]}"; do
    rm -rf "$work/disk"
    # Filled, it holds nine tenths of what it has room for.
    "$program" create "$work/disk" --size "${size}MiB" --capacity "$((size * 10 / 9))MiB" --system "$system" 2>/dev/null >&2
    load --pattern write --block-size 1MiB --operations "$size" >/dev/null
    for round in $(seq 10); do
        # As many writes as there are pages.
        load --pattern mixed --reads 50% --trims 5% --duplicates 33% --flush-every 256 --depth 8 --seed "$round" \
            --operations "$((size * 256 * 100 / 45))" >"$work/result"
        python3 - "$system" "$round" "$work/result" <<'PYTHON'
import json
import sys

system, round, path = sys.argv[1:]
with open(path) as file:
    result = json.load(file)
rates = {row["kind"]: f"{row['requests_per_s']:.0f}" for row in result["kinds"]}
writes = next(row for row in result["kinds"] if row["kind"] == "write")
times = [f"{writes[key] / 1e6:.2f}" for key in ("p50_ns", "p99_ns", "p999_ns")]
print(f"{system} round {round}: {rates['write']} writes/s, {rates['read']} reads/s; writes take {' '.join(times)} ms")
PYTHON
    done
    "$program" check "$work/disk"
done
