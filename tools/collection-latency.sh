#!/usr/bin/env bash
# How long writes take while collection runs, against a volume that has so much room that nothing is collected: random
# writes of 4 KiB at 90 % fullness, after the volume has been overwritten once; as fast as they are taken, and then half
# as many a second as the smaller volume took. Prints a line for each run.
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
    rate=$(python3 - "$1" "$2" "$work/result" 2>&3 <<'PYTHON'
import json
import sys

system, capacity, path = sys.argv[1:]
with open(path) as file:
    result = json.load(file)
writes = next(row for row in result["kinds"] if row["kind"] == "write")
keys = ("p50_ns", "p99_ns", "p999_ns", "max_ns")
times = [writes[key] / 1e6 for key in keys] + [result["latest_ns"] / 1e6]
rate = writes["requests_per_s"]
print(system, capacity, f"{rate:.0f}", *(f"{time:.2f}" for time in times), file=sys.stderr)
print(f"{rate:.0f}")
PYTHON
    )
}

echo "system capacity writes/s p50 p99 p99.9 max latest, times in ms"
for system in "${systems[@]}"; do
    for capacity in 1000MiB 8000MiB; do
        rm -rf "$work/disk"
        "$program" create "$work/disk" --size 900MiB --capacity "$capacity" --system "$system" 2>/dev/null >&2
        load --pattern write --block-size 1MiB --operations 900 >/dev/null
        load --seed 2 --depth "$depth" --operations 230400 >/dev/null
        load --seed 3 --depth "$depth" --time "${seconds}s" >"$work/result"
        tell "$system" "$capacity"
        [[ $capacity = 8000MiB ]] || half=$((rate / 2))
        load --seed 4 --depth 32 --rate "$half" --time "${seconds}s" >"$work/result"
        tell "$system" "$capacity"
    done
done
