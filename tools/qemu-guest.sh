#!/usr/bin/env bash
# A Linux guest on a served volume: it boots, makes an ext4 file system, writes, syncs, and is stopped without
# unmounting; a second boot mounts it, compares checksums and has e2fsck look at it.
#
#     cargo build --release && tools/qemu-guest.sh [SYSTEM]
#
# Needs qemu-system-x86_64, busybox-static, e2fsprogs, cpio, and a Debian kernel with its modules (Debian package
# linux-image-cloud-amd64; KERNEL names another image, MODULES the directory of its modules). The processor is emulated:
# a boot takes ten seconds or more.
set -euo pipefail

system=${1:-combined}
program=${PROGRAM:-$(dirname "$0")/../target/release/flashlore}
kernel=${KERNEL:-$(ls /boot/vmlinuz-*-cloud-amd64 | tail -n 1)}
modules=${MODULES:-/lib/modules/${kernel##*/vmlinuz-}}
work=$(mktemp -d)
server=
trap '[[ -z $server ]] || kill "$server" 2>/dev/null; rm -rf "$work"' EXIT

# What the guest has: a shell, three modules and what they need, and the programs under test with their libraries.
root=$work/root
mkdir -p "$root"/{bin,dev,lib,mnt,proc,sys}
cp "$(command -v busybox)" "$root/bin/busybox"
order=(virtio_ring virtio virtio_pci_modern_dev virtio_pci_legacy_dev virtio_pci virtio_blk)
for module in "${order[@]}"; do
    file=$(find "$modules" -name "$module.ko*" | head -n 1)
    case $file in
    *.xz) xz -dc "$file" >"$root/lib/$module.ko" ;;
    *.zst) zstd -qdc "$file" >"$root/lib/$module.ko" ;;
    *) cp "$file" "$root/lib/$module.ko" ;;
    esac
done
for tool in mke2fs e2fsck; do
    path=$(PATH=/usr/sbin:/sbin:$PATH command -v "$tool")
    cp "$path" "$root/bin/$tool"
    ldd "$path" | grep -o '/[^ ]*' | while read -r library; do
        mkdir -p "$root$(dirname "$library")"
        cp -L "$library" "$root$library"
    done
done
cat >"$root/init" <<EOF
#!/bin/busybox sh
b=/bin/busybox
\$b mount -t proc proc /proc
\$b mount -t sysfs sys /sys
\$b mount -t devtmpfs dev /dev
for module in ${order[*]}; do \$b insmod /lib/\$module.ko; done
fail() { echo "guest: \$1 failed"; \$b poweroff -f; }
if \$b grep -q step=write /proc/cmdline; then
    /bin/mke2fs -q -t ext4 /dev/vda || fail mke2fs
    \$b mount -t ext4 /dev/vda /mnt || fail mount
    for n in \$(\$b seq 60); do
        \$b dd if=/dev/urandom of=/mnt/random\$n bs=3000 count=\$n 2>/dev/null
        \$b yes "line \$n" | \$b head -n \$((n * 100)) >/mnt/text\$n
    done
    \$b cp /mnt/random60 /mnt/copy
    \$b rm /mnt/text7 /mnt/random8
    cd /mnt && \$b sha256sum random* text* copy >sums || fail sha256sum
    \$b sync
else
    \$b mount -t ext4 /dev/vda /mnt || fail mount
    cd /mnt && \$b sha256sum -c sums >/dev/null || fail checksums
    cd / && \$b umount /mnt || fail umount
    /bin/e2fsck -fn /dev/vda || fail e2fsck
fi
echo "guest: done"
\$b poweroff -f
EOF
chmod +x "$root/init"
(cd "$root" && find . | cpio --quiet -o -H newc) >"$work/initrd"

"$program" create "$work/disk" --size 256MiB --system "$system" >/dev/null
"$program" serve "$work/disk" 2>"$work/served" &
server=$!
until grep -q ^serving "$work/served"; do
    kill -0 "$server" || { cat "$work/served"; exit 1; }
    sleep .1
done

boot() {
    timeout 300 qemu-system-x86_64 -accel tcg -cpu max,-cx16 -M q35 -m 512 -smp 1 -display none -nodefaults \
        -no-user-config -serial stdio -no-reboot -kernel "$kernel" -initrd "$work/initrd" \
        -append "console=ttyS0 panic=-1 quiet tsc=reliable no_timer_check step=$1" \
        -blockdev "driver=nbd,node-name=d0,server.type=unix,server.path=$work/disk/nbd.sock,export=disk,cache.direct=on,discard=unmap" \
        -device virtio-blk-pci,drive=d0 | tee "$work/$1"
    grep -q "guest: done" "$work/$1" || { echo "the guest did not get through step $1" >&2; exit 1; }
}
boot write
boot check
kill -TERM "$server"
wait "$server"
server=
"$program" check "$work/disk"
echo "qemu-guest: $system: passed"
