#!/usr/bin/env bash
# Virtual machines on one array: a native image and its clones, each booted in QEMU, read and changed. What that cost the
# array is printed as JSON: blocks by kind, operations and bytes of both media.
#
#     tools/vm-images.sh IMAGES
#     tools/vm-clones.sh IMAGES [KEY=VALUE...]       # KEY is an option in array.json, such as similarity=nothing
#
# Each of four guests mounts its clone, reads a quarter of its files, and changes what an upgrade and some hours of use
# change: one file of twelve is written anew beside the old one and renamed, with a line more or some bytes in the middle
# changed; logs grow; files are removed and copied. Then it unmounts and is switched off. Which files is decided by names
# and the number of the guest: two runs change the same.
#
# PROGRAM is the program. Needs what guest.sh says, and jq.
set -euo pipefail
. "$(dirname "$0")/guest.sh"

images=$1
shift
program=$(realpath "${PROGRAM:-$(dirname "$0")/../target/release/flashlore}")
work=$(mktemp -d)
server=
trap '[[ -z $server ]] || kill "$server" 2>/dev/null; rm -rf "$work"' EXIT

guest_root "$work/root" "$work/initrd" <<'EOF'
guest=$($b sed 's/.*guest=\([0-9]*\).*/\1/' /proc/cmdline)
$b mount -t ext4 -o noatime /dev/vda /mnt || fail mount
cd /mnt
$b find . -type f | $b sort >/files
n=0
while read -r file; do
    n=$((n + 1))
    [ $((n % 4)) != $((guest % 4)) ] || $b cat "$file" >/dev/null
    case $(((n + guest) % 24)) in
    0) { $b cat "$file"; echo "line of guest $guest"; } >"$file.new" && $b mv "$file.new" "$file" ;;
    12) $b cp "$file" "$file.new" && echo "guest $guest" | $b dd of="$file.new" bs=1 seek=700 conv=notrunc 2>/dev/null &&
        $b mv "$file.new" "$file" ;;
    esac
    [ $((n % 97)) != "$guest" ] || $b rm "$file"
    [ $((n % 101)) != "$guest" ] || $b cp -p "$file" "$file.copy" 2>/dev/null
    [ $((n % 200)) != 0 ] || $b sync
done </files
for n in $($b seq 3000); do echo "host$guest daemon[$n]: request $n served, $((n * 37 % 1000)) ms"; done >>log
cd /
$b umount /mnt || fail umount
EOF

cd "$work"
size=$(stat -c %s "$images/native.img")
"$program" create vms --system i-cash --fast fast --slow slow --size "$size" --machines 5 ${CREATE:-} >/dev/null
for pair in "$@"; do
    key=${pair%%=*} value=${pair#*=}
    jq --arg key "$key" --arg value "$value" \
        '.options[$key] = ($value | . as $text | try tonumber catch (if $text == "true" then true elif $text == "false" then false else $text end))' \
        vms/array.json >new.json && mv new.json vms/array.json
done
"$program" import vms "$images/native.img" 2>/dev/null
for machine in 1 2 3 4; do "$program" clone vms 0 $machine 2>/dev/null >/dev/null; done
"$program" serve vms 2>served &
server=$!
until grep -q ^serving served; do
    kill -0 "$server" || { cat served; exit 1; }
    sleep .1
done
# The kernel that follows reads nothing of the array.
begin=$(date +%s%N)
for machine in 1 2 3 4; do
    guest_boot "$work/initrd" "$work/vms/nbd.sock" "vms.$machine" "guest=$machine" log >&2
done
took=$((($(date +%s%N) - begin) / 1000000))
"$program" info vms --json >info.json
kill -TERM "$server"
wait "$server" || true
server=
"$program" check vms >&2
jq --argjson took "$took" '{took_ms: $took, references: .element.references, associates: .element.associates,
    independents: .element.independents, delta_ram: .element.delta_ram, fast_used: .element.fast_used,
    traffic: .element.traffic, counters: .element.counters}' info.json
