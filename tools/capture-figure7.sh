#!/usr/bin/env bash
# Figure 7 of BVSSD's paper with its own benchmarks: records what postmark and Bonnie++ do on ext4 on a served volume,
# and replays both on a device that never collects, on a plain SSD, BVSSD with and without its queue, and TRAP.
#
#     cargo build --release -p flashlore && tools/capture-figure7.sh DIRECTORY
#
# The traces and the bytes of their pages stay in DIRECTORY; those that are there are not recorded again. Needs root,
# FUSE and loop devices, and the Debian packages postmark, bonnie++, nbdfuse, fuse3 and e2fsprogs.
set -euo pipefail

directory=$(realpath -m "${1:?expected a directory for the traces}")
program=$(realpath "${PROGRAM:-$(dirname "$0")/../target/release/flashlore}")
work=$(mktemp -d)
loop=
record=
leave() {
    mountpoint -q "$work/fs" && umount "$work/fs"
    [[ -z $loop ]] || losetup -d "$loop" || true
    mountpoint -q "$work/nbd" && fusermount3 -u "$work/nbd"
    [[ -z $record ]] || kill "$record" 2>/dev/null || true
    rm -rf "$work"
}
trap leave EXIT

# Mounted with sync: its files are deleted before the page cache would write them.
postmark_on() {
    mount -o remount,sync "$work/fs"
    printf '%s\n' "set location $1" 'set number 1000' 'set transactions 5000' 'set size 500 10000' \
        'set seed 42' run quit | postmark >/dev/null
}

bonnie_on() {
    bonnie++ -d "$1" -s 128M -r 32M -n 4:16384:512 -u root -q >/dev/null 2>&1
}

# Records what a benchmark does on a new volume: capture NAME FUNCTION.
capture() {
    local name=$1 benchmark=$2
    [[ ! -e $directory/$name.parquet ]] || return 0
    rm -rf "$work"/*
    mkdir "$work/nbd" "$work/fs"
    "$program" create "$work/disk" --size 512MiB >/dev/null
    "$program" record "$work/disk" "$work/$name.parquet" --content "$work/$name.pages.zst" &
    record=$!
    until [[ -S $work/disk/nbd.sock ]]; do sleep 0.1; done
    nbdfuse "$work/nbd" "nbd+unix:///disk?socket=$work/disk/nbd.sock" &
    until [[ -e $work/nbd/nbd ]]; do sleep 0.1; done
    loop=$(losetup --find --show "$work/nbd/nbd")
    mkfs.ext4 -q "$loop"
    mount "$loop" "$work/fs"
    mkdir "$work/fs/bench"
    "$benchmark" "$work/fs/bench"
    umount "$work/fs"
    losetup -d "$loop"
    loop=
    fusermount3 -u "$work/nbd"
    kill -TERM "$record"
    wait "$record"
    record=
    mv "$work/$name.parquet" "$work/$name.pages.zst" "$directory"
}

mkdir -p "$directory"
capture postmark postmark_on
capture bonnie bonnie_on
printf 'base = "bvssd"\nname = "bvssd-direct"\n[queue]\nenabled = false\n' >"$work/direct.toml"
for name in postmark bonnie; do
    echo "$name"
    "$program" compare "$directory/$name.parquet" --systems "plain,bvssd,$work/direct.toml,trap" --device bvssd-60g \
        --set device.capacity=4GiB --set device.geometry.blocks_per_plane=302 \
        --set device.precondition.fill=0 --set codec.ratio=codec
done
