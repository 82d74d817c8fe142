#!/usr/bin/env bash
# A Linux guest on a served volume: it boots, makes an ext4 file system, writes, syncs, and is stopped without
# unmounting; a second boot mounts it, compares checksums and has e2fsck look at it.
#
#     cargo build --release && tools/qemu-guest.sh [SYSTEM]
#
# Needs what guest.sh says, and e2fsprogs.
set -euo pipefail
. "$(dirname "$0")/guest.sh"

system=${1:-combined}
program=${PROGRAM:-$(dirname "$0")/../target/release/flashlore}
work=$(mktemp -d)
server=
trap '[[ -z $server ]] || kill "$server" 2>/dev/null; rm -rf "$work"' EXIT

guest_root "$work/root" "$work/initrd" mke2fs e2fsck <<'EOF'
if $b grep -q step=write /proc/cmdline; then
    /bin/mke2fs -q -t ext4 /dev/vda || fail mke2fs
    $b mount -t ext4 /dev/vda /mnt || fail mount
    for n in $($b seq 60); do
        $b dd if=/dev/urandom of=/mnt/random$n bs=3000 count=$n 2>/dev/null
        $b yes "line $n" | $b head -n $((n * 100)) >/mnt/text$n
    done
    $b cp /mnt/random60 /mnt/copy
    $b rm /mnt/text7 /mnt/random8
    cd /mnt && $b sha256sum random* text* copy >sums || fail sha256sum
    $b sync
else
    $b mount -t ext4 /dev/vda /mnt || fail mount
    cd /mnt && $b sha256sum -c sums >/dev/null || fail checksums
    cd / && $b umount /mnt || fail umount
    /bin/e2fsck -fn /dev/vda || fail e2fsck
fi
EOF

"$program" create "$work/disk" --size 256MiB --system "$system" >/dev/null
"$program" serve "$work/disk" 2>"$work/served" &
server=$!
until grep -q ^serving "$work/served"; do
    kill -0 "$server" || { cat "$work/served"; exit 1; }
    sleep .1
done

for step in write check; do
    guest_boot "$work/initrd" "$work/disk/nbd.sock" disk "step=$step" "$work/$step"
done
kill -TERM "$server"
wait "$server"
server=
"$program" check "$work/disk"
echo "qemu-guest: $system: passed"
