#!/usr/bin/env bash
# The disk image of a virtual machine and four images that began as the same installation: what the example `images` of
# flashlore-array stores. All are ext4 file systems with real files of the machine this runs on; no network is used.
#
#     tools/vm-images.sh OUT
#     cargo run --release -p flashlore-array --example images -- OUT/native.img OUT/{configured,upgraded,reinstalled,database}.img
#
# native       Programs, libraries, documents, headers, scripts and configuration, package by package as an installer
#              writes them, a log, and a database of 60,000 rows. About 200 MiB in 256 MiB.
# configured   A clone right after it was made: host name, machine id, host keys, forty edited files of /etc and a
#              longer log are written; nothing else moves. The case that cloning is for.
# upgraded     A clone after an upgrade: one file of ten is replaced as a package manager does it (the new file is
#              written beside the old one, the old one is removed), one of fifty is removed, as many others are added.
#              A new text has some lines more or longer; a new binary has 64 bytes more in the middle and a word
#              changed every 1,000 bytes or so, as a rebuilt one has addresses that moved; what is compressed is
#              compressed anew. These edits are made up, the files are not.
# reinstalled  The same files, installed by themselves in another order: same content, other blocks, other inodes.
#              What a clone is not, and the case for looking at content instead of addresses.
# database     A clone whose database was used: 6,000 rows of 60,000, spread over the file, were changed in place.
#
# Times, identifiers and the choice of files are fixed: the same files give the same images.
#
# Needs mke2fs and debugfs (e2fsprogs) and python3 with sqlite3.
set -euo pipefail

[[ $# == 1 ]] || { echo "usage: $0 OUT" >&2; exit 2; }
mkdir -p "$1"
out=$(cd "$1" && pwd)
PATH=/usr/sbin:/sbin:$PATH
export E2FSPROGS_FAKE_TIME=1700000000 LC_ALL=C
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The commands of debugfs for each image, and the files that are not on this machine.
WORK=$work python3 - <<'PLAN'
import gzip, hashlib, os, sqlite3

work = os.environ["WORK"]
WHENCE = [("/usr/bin", 56), ("/usr/lib/x86_64-linux-gnu", 60), ("/usr/share", 40), ("/usr/include", 15),
          ("/usr/lib/python3", 15), ("/etc", 4)]  # MiB
LARGEST = 8 << 20


def number(what):
    """A number that only depends on a text."""
    return int.from_bytes(hashlib.sha256(what.encode()).digest()[:8], "little")


def noise(what, length):
    return hashlib.shake_256(what.encode()).digest(length)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def candidates(root):
    for directory, _, names in os.walk(root):
        for name in names:
            path = os.path.join(directory, name)
            is_plain = os.path.isfile(path) and not os.path.islink(path) and os.access(path, os.R_OK)
            if is_plain and path.isascii() and not set(path) & set(' "\\') and 0 < os.path.getsize(path) <= LARGEST:
                yield path


def made(name, content):
    path = f"{work}/{len(os.listdir(work))}-{name}"
    with open(path, "wb") as file:
        file.write(content)
    return path


def edited(path):
    """A newer version of a file."""
    content = read(path)
    if path.endswith(".gz"):
        try:
            return gzip.compress(as_text(path, gzip.decompress(content)), mtime=0)
        except OSError:
            pass
    return as_binary(path, content) if b"\0" in content else as_text(path, content)


def as_text(path, content):
    lines = content.split(b"\n")
    for at in range(number(path) % 40, len(lines), 40):
        lines[at] += b" (release 2)" if at % 80 < 40 else b"\nSee the notes of release 2."
    return b"\n".join(lines)


def as_binary(path, content):
    middle = len(content) // 3 // 16 * 16
    new = bytearray(content[:middle] + noise(path, 64) + content[middle:])
    at = 64
    while at + 4 <= len(new):
        word = int.from_bytes(new[at:at + 4], "little") + 64 & 0xFFFFFFFF
        new[at:at + 4] = word.to_bytes(4, "little")
        at += 500 + number(f"{path} {at}") % 1000
    return bytes(new)


def installation(files, order):
    """Commands that write files, given as a path in the image and one of this machine."""
    commands, directories = [], {"/"}
    for path, source in sorted(files.items(), key=order):
        parts = os.path.dirname(path).split("/")[1:]
        for depth in range(len(parts)):
            directory = "/" + "/".join(parts[:depth + 1])
            if directory not in directories:
                directories.add(directory)
                commands += [f"cd {os.path.dirname(directory)}", f"mkdir {parts[depth]}"]
        commands += [f"cd {os.path.dirname(path)}", f"write {source} {os.path.basename(path)}"]
    return commands


def replacement(path, source):
    directory, name = os.path.split(path)
    return [f"cd {directory}", f"write {source} {name}.new", f"rm {name}", f"ln {name}.new {name}",
            f"unlink {name}.new"]


def save(name, commands):
    with open(f"{work}/{name}.commands", "w") as file:
        file.write("\n".join(commands) + "\n")


def log(host, lines):
    line = "Nov 23 {:02}:{:02}:{:02} {} service[{}]: request {} took {} ms\n"
    text = (line.format(n // 3600 % 24, n // 60 % 60, n % 60, host, 300 + n % 7, n, number(str(n)) % 900)
            for n in range(lines))
    return "".join(text).encode()


def database(paths):
    name = f"{work}/app.db"
    connection = sqlite3.connect(name)
    connection.execute("create table item (id integer primary key, path text, digest text, state text, changed int)")
    rows = ((n, paths[n % len(paths)], noise(str(n), 24).hex(), "new", 1600000000 + n) for n in range(60000))
    connection.executemany("insert into item values (?, ?, ?, ?, ?)", rows)
    connection.commit()
    connection.close()
    return name


def used_database(path):
    """The same file after changes in place: no row grows."""
    name = made("used.db", read(path))
    connection = sqlite3.connect(name)
    connection.execute("pragma journal_mode = memory")
    for n in range(6000):
        row = number(f"row {n}") % 60000
        connection.execute("update item set state = 'old', changed = ? where id = ?", (1650000000 + n, row))
    connection.commit()
    connection.close()
    return name


files, others = {}, []
for root, mebibytes in WHENCE:
    left = mebibytes << 20
    for path in sorted(candidates(root), key=number):
        size = os.path.getsize(path)
        if size <= left:
            left -= size
            files[path] = path
        else:
            others.append(path)
programs = sorted(files)
files["/var/log/syslog"] = made("log", log("template", 2000))
files["/var/lib/app/app.db"] = database(programs)
for name, content in [("hostname", b"template\n"), ("machine-id", noise("template", 16).hex().encode() + b"\n")]:
    files[f"/etc/{name}"] = made(name, content)
save("native", installation(files, order=lambda file: file[0]))
save("reinstalled", installation(files, order=lambda file: number(file[0])))

own = {"/etc/hostname": b"clone\n", "/etc/machine-id": noise("clone", 16).hex().encode() + b"\n",
       "/var/log/syslog": log("template", 2000) + log("clone", 5000)}
for path in [path for path in programs if path.startswith("/etc/")][:40]:
    own[path] = read(path) + b"\n# Changed for this host\nlisten 192.0.2.17\n"
commands = [line for path, content in own.items() for line in replacement(path, made("own", content))]
commands += ["cd /etc", "mkdir keys", "cd keys"]
commands += [f"write {made('key', noise(f'key {n}', 400 + 800 * n))} host-key-{n}" for n in range(3)]
save("configured", commands)

changed = [path for path in programs if number("change " + path) % 10 == 0]
removed = [path for path in programs if number("change " + path) % 50 == 1]
directories = {os.path.dirname(path) for path in programs}
added = [path for path in others if os.path.dirname(path) in directories and os.path.getsize(path) < 1 << 20]
added = sorted(added, key=number)[:len(removed)]
commands = [line for path in changed for line in replacement(path, made("new", edited(path)))]
commands += [f"rm {path}" for path in removed]
for path in added:
    commands += [f"cd {os.path.dirname(path)}", f"write {path} {os.path.basename(path)}"]
save("upgraded", commands)

os.rename(used_database(f"{work}/app.db"), f"{work}/used.db")
count = f"{len(files)} files; upgraded: {len(changed)} replaced, {len(removed)} removed"
print(f"{count}, {len(added)} added")
PLAN

# debugfs says what went wrong and goes on: whatever it says besides its commands and the inodes it gives is an error.
run() {
    local said
    said=$(debugfs -w -f "$work/$2.commands" "$1" 2>&1 | grep -v -e '^debugfs' -e '^Allocated inode: ' || true)
    [[ -z $said ]] || { echo "debugfs on $1: $said" | head -n 5 >&2; exit 1; }
}

make() {
    rm -f "$out/$1.img"
    mke2fs -q -t ext4 -b 4096 -N 32768 -m 0 -U "$2" -E hash_seed="$2",lazy_itable_init=0,nodiscard "$out/$1.img" 256M >"$work/mke2fs"
    run "$out/$1.img" "$1"
}

make native 00000000-0000-4000-8000-000000000001
make reinstalled 00000000-0000-4000-8000-000000000002
for name in configured upgraded database; do
    cp --sparse=always "$out/native.img" "$out/$name.img"
done
run "$out/configured.img" configured
run "$out/upgraded.img" upgraded

# The blocks of the database lie where they lay, as after writes to an open file.
blocks=$(debugfs -R 'blocks /var/lib/app/app.db' "$out/database.img" 2>/dev/null)
BLOCKS=$blocks python3 - "$work/app.db" "$work/used.db" "$out/database.img" <<'PATCH'
import os, sys

blocks = [int(number) for number in os.environ["BLOCKS"].split()]
old, new = (open(name, "rb").read() for name in sys.argv[1:3])
if len(old) != len(new) or len(blocks) * 4096 < len(new):
    sys.exit(f"{sys.argv[2]} has {len(new)} bytes, expected {len(old)} in {len(blocks)} blocks")
with open(sys.argv[3], "r+b") as image:
    for place, block in enumerate(blocks):
        content = new[place * 4096:(place + 1) * 4096]
        image.seek(block * 4096)
        if image.read(len(content)) != old[place * 4096:(place + 1) * 4096]:
            sys.exit(f"{sys.argv[3]}: block {block} is not block {place} of the database")
        image.seek(block * 4096)
        image.write(content)
PATCH

for name in native configured upgraded reinstalled database; do
    e2fsck -fn "$out/$name.img" >"$work/e2fsck" 2>&1 || { cat "$work/e2fsck" >&2; exit 1; }
done
(cd "$out" && sha256sum ./*.img)
