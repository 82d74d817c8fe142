# A Linux guest for scripts, to be sourced: an initial root with a shell and the modules of a virtio disk, and its boot. The
# processor is emulated: a boot takes ten seconds or more.
#
# Needs qemu-system-x86_64, busybox-static, cpio, and a Debian kernel with its modules (Debian package
# linux-image-cloud-amd64; KERNEL names another image, MODULES the directory of its modules).

kernel=${KERNEL:-$(ls /boot/vmlinuz-*-cloud-amd64 2>/dev/null | tail -n 1)}
modules=${MODULES:-/lib/modules/${kernel##*/vmlinuz-}}

# guest_root ROOT INITRD [TOOL...]: makes the initial root of what the script of standard input does, and the programs
# that it uses. The script has $b, the shell with its programs, and fail WHAT; it ends the guest by its own end.
guest_root() {
    local root=$1 initrd=$2 module file tool path library
    shift 2
    local order=(virtio_ring virtio virtio_pci_modern_dev virtio_pci_legacy_dev virtio_pci virtio_blk)
    mkdir -p "$root"/{bin,dev,lib,mnt,proc,sys}
    cp "$(command -v busybox)" "$root/bin/busybox"
    for module in "${order[@]}"; do
        file=$(find "$modules" -name "$module.ko*" | head -n 1)
        case $file in
        *.xz) xz -dc "$file" >"$root/lib/$module.ko" ;;
        *.zst) zstd -qdc "$file" >"$root/lib/$module.ko" ;;
        *) cp "$file" "$root/lib/$module.ko" ;;
        esac
    done
    for tool in "$@"; do
        path=$(PATH=/usr/sbin:/sbin:$PATH command -v "$tool")
        cp "$path" "$root/bin/$tool"
        ldd "$path" | grep -o '/[^ ]*' | while read -r library; do
            mkdir -p "$root$(dirname "$library")"
            cp -L "$library" "$root$library"
        done
    done
    {
        cat <<EOF
#!/bin/busybox sh
b=/bin/busybox
\$b mount -t proc proc /proc
\$b mount -t sysfs sys /sys
\$b mount -t devtmpfs dev /dev
for module in ${order[*]}; do \$b insmod /lib/\$module.ko; done
fail() { echo "guest: \$1 failed"; \$b poweroff -f; }
EOF
        cat
        echo 'echo "guest: done"'
        echo '$b poweroff -f'
    } >"$root/init"
    chmod +x "$root/init"
    (cd "$root" && find . | cpio --quiet -o -H newc) >"$initrd"
}

# guest_boot INITRD SOCKET EXPORT WORDS LOG: boots it with words on its command line; fails if it does not get through.
guest_boot() {
    timeout 300 qemu-system-x86_64 -accel tcg -cpu max,-cx16 -M q35 -m 512 -smp 1 -display none -nodefaults \
        -no-user-config -serial stdio -no-reboot -kernel "$kernel" -initrd "$1" \
        -append "console=ttyS0 panic=-1 quiet tsc=reliable no_timer_check $4" \
        -blockdev "driver=nbd,node-name=d0,server.type=unix,server.path=$2,export=$3,cache.direct=on,discard=unmap" \
        -device virtio-blk-pci,drive=d0 | tee "$5"
    grep -q "guest: done" "$5" || { echo "the guest did not get through: $4" >&2; return 1; }
}
