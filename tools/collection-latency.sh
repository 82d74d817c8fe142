#!/usr/bin/env bash
# How long writes and reads take while collection runs, against a volume that has so much room that nothing is
# collected: random requests of 4 KiB at 90 % fullness, after the volume has been overwritten once; writes as fast as
# they are taken, then half as many a second as the smaller volume took, then writes and reads mixed evenly as fast as
# they are taken. Prints a line for each run, and for the reads of the last.
#
#     cargo build --release && tools/collection-latency.sh [SECONDS] [DEPTH] [SYSTEM...]
#
# Run it on a machine with nothing else to do. PROGRAM names another program, TMPDIR where the volumes lie.
set -euo pipefail

seconds=${1:-20}
depth=${2:-8}
systems=("${@:3}")
((${#systems[@]})) || systems=(plain combined)
program=${PROGRAM:-$(dirname "$0")/../target/release/flashlore}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

load() { "$program" bench "$work/disk" --overwrite --json "$@" 2>/dev/null; }

# Prints a result, and leaves its rate in $rate.
exec 3>&1
tell() {
    rate=$(python3 - "$@" "$work/result" 2>&3 <<'PYTHON'
import json
import sys

system, capacity, kind, path = sys.argv[1:]
with open(path) as file:
    result = json.load(file)
row = next(row for row in result["kinds"] if row["kind"] == kind)
keys = ("p50_ns", "p99_ns", "p999_ns", "max_ns")
times = [row[key] / 1e6 for key in keys] + [result["latest_ns"] / 1e6]
rate = row["requests_per_s"]
print(system, capacity, kind, f"{rate:.0f}", *(f"{time:.2f}" for time in times), file=sys.stderr)
print(f"{rate:.0f}")
PYTHON
    )
}

echo "system capacity kind requests/s p50 p99 p99.9 max latest, times in ms"
for system in "${systems[@]}"; do
    for capacity in 1000MiB 8000MiB; do
        rm -rf "$work/disk"
        "$program" create "$work/disk" --size 900MiB --capacity "$capacity" --system "$system" 2>/dev/null >&2
        load --pattern write --block-size 1MiB --operations 900 >/dev/null
        load --seed 2 --depth "$depth" --operations 230400 >/dev/null
        load --seed 3 --depth "$depth" --time "${seconds}s" >"$work/result"
        tell "$system" "$capacity" write
        [[ $capacity = 8000MiB ]] || half=$((rate / 2))
        load --seed 4 --depth 32 --rate "$half" --time "${seconds}s" >"$work/result"
        tell "$system" "$capacity" write
        load --seed 5 --pattern mixed --reads 50% --depth "$depth" --time "${seconds}s" >"$work/result"
        tell "$system" "$capacity" write
        tell "$system" "$capacity" read
    done
done
