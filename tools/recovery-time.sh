#!/usr/bin/env bash
# How long a volume takes to be opened after kill -9, and to go back, against its size and what has happened: volumes of
# several sizes are filled, written to at random for two seconds by a process that is killed, and opened; then each
# goes back over 1,000 and over 20,000 changes. Prints a line for each volume, in seconds.
#
#     cargo build --release && tools/recovery-time.sh [SYSTEM] [SIZE_MIB...]
#
# Run it on a machine with nothing else to do. PROGRAM names another program, TMPDIR where the volumes lie.
set -euo pipefail

system=${1:-combined}
sizes=("${@:2}")
((${#sizes[@]})) || sizes=(256 1024 4096)
program=${PROGRAM:-$(dirname "$0")/../target/release/flashlore}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

load() { "$program" bench "$work/disk" --overwrite "$@" >/dev/null 2>&1; }
# Seconds that a command takes.
timed() {
    local begin end
    begin=$(date +%s%N)
    "$@" >/dev/null 2>&1
    end=$(date +%s%N)
    awk "BEGIN { printf \"%.2f\", ($end - $begin) / 1e9 }"
}
# The present, as an instant.
now() { echo "ns:$(date +%s%N)"; }

echo "system MiB open_clean events open_after_kill return_1000 return_20000"
for size in "${sizes[@]}"; do
    rm -rf "$work/disk"
    "$program" create "$work/disk" --size "${size}MiB" --capacity "$((size * 2))MiB" --system "$system" >/dev/null 2>&1
    load --pattern write --block-size 1MiB --operations "$size"
    clean=$(timed "$program" info "$work/disk")
    before=$(now)
    "$program" bench "$work/disk" --overwrite --seed 3 --depth 8 --flush-every 1000 --time 1h >/dev/null 2>&1 &
    sleep 2
    kill -9 $!
    wait $! 2>/dev/null || true
    events=$("$program" check "$work/disk" | grep -o '[0-9]* events' | cut -d' ' -f1)
    killed=$(timed "$program" info "$work/disk")
    first=-
    second=-
    if "$program" recover "$work/disk" --to "$before" --dry-run >/dev/null 2>&1; then
        start=$(now)
        load --seed 4 --operations 20000
        middle=$(now)
        load --seed 5 --operations 1000
        first=$(timed "$program" recover "$work/disk" --to "$middle")
        second=$(timed "$program" recover "$work/disk" --to "$start")
    fi
    echo "$system $size $clean $events $killed $first $second"
done
