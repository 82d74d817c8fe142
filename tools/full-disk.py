#!/usr/bin/env python3
"""Whether a full disk goes on taking overwrites: for each system a volume of its default capacity is served, ext4 on it
is filled to the last block, and small edits follow, with some files deleted and written anew. No call may fail, the
kernel may log no error, the file system must be clean, and everything must read as it was written. Prints a line for
each system; the exit status is 1 if one fails.

    cargo build --release && sudo tools/full-disk.py [SYSTEM...]

Needs nbdfuse, e2fsprogs, /dev/fuse, loop devices and the right to mount. PROGRAM names another program, TMPDIR where
the volumes lie, SIZE how large they are in MiB (256), OPERATIONS how many there are for each system (500000).
"""

import errno
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

SYSTEMS = ["plain", "ca-ssd", "ca-ssd-trusted", "compress", "delta-ftl", "bvssd", "combined"]
PROGRAM = os.environ.get("PROGRAM", str(Path(__file__).parent.parent / "target/release/flashlore"))
SIZE = int(os.environ.get("SIZE", "256"))
OPERATIONS = int(os.environ.get("OPERATIONS", "500000"))
MIB = 1 << 20
EDIT_BYTES = 60
FLUSH_EVERY = 1000
LARGE = "large"
SMALL_BYTES = 32 << 10
SMALL_SHARE = 0.1
CHURN_SHARE = 0.02


def run(*command: object) -> str:
    """Runs a program; what it printed."""
    done = subprocess.run([str(part) for part in command], check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))} ended with {done.returncode}: {done.stdout} {done.stderr}")
    return done.stdout.strip()


def wait_for(what: str, is_there: Callable[[], bool]) -> None:
    """Waits up to a minute."""
    for _ in range(600):
        if is_there():
            return
        time.sleep(0.1)
    raise RuntimeError(f"{what} did not appear within a minute")


class Disk:
    """A served volume as a loop device."""

    def __init__(self, work: Path, system: str) -> None:
        self.work = work
        self.log = work / "server.log"
        self.volume = work / "disk"
        self.loop = ""
        self.processes: list[subprocess.Popen[bytes]] = []
        run(PROGRAM, "create", self.volume, "--size", f"{SIZE}MiB", "--system", system)

    def attach(self) -> None:
        """Serves the volume and makes it a loop device."""
        socket, export = self.volume / "nbd.sock", self.work / "export"
        export.mkdir(exist_ok=True)
        log = self.log.open("ab")
        serve = [PROGRAM, "serve", str(self.volume)]
        self.processes = [subprocess.Popen(serve, stdout=log, stderr=log)]
        wait_for("the socket of the server", socket.exists)
        fuse = ["nbdfuse", str(export), f"nbd+unix:///?socket={socket}"]
        self.processes.append(subprocess.Popen(fuse, stdout=log, stderr=log))
        wait_for("the file of nbdfuse", (export / "nbd").exists)
        self.loop = run("losetup", "--direct-io=on", "-f", "--show", export / "nbd")

    def detach(self) -> None:
        """Takes the loop device away and ends the server."""
        if self.loop:
            run("losetup", "-d", self.loop)
            self.loop = ""
            run("fusermount3", "-u", self.work / "export")
        for process in reversed(self.processes):
            process.terminate()
            process.wait(60)
        self.processes = []


class Files:
    """A large file that is edited and small ones that come and go, with what they must hold."""

    def __init__(self, mount: Path, seed: int) -> None:
        self.mount = mount
        self.random = random.Random(seed)
        self.held: dict[str, bytearray] = {}
        self.small: list[str] = []
        self.large = -1
        self.count = 0

    def write_new(self, name: str, length: int) -> int:
        """Writes as much of a file as there is room for; answers a handle of it."""
        # At most 256 MiB can be drawn at a time.
        pieces = (self.random.randbytes(min(MIB, length - at)) for at in range(0, length, MIB))
        content = bytearray().join(pieces)
        handle = os.open(self.mount / name, os.O_RDWR | os.O_CREAT)
        written = 0
        try:
            while written < length:
                written += os.pwrite(handle, memoryview(content)[written:], written)
        except OSError as error:
            # ext4 itself is full: what fits of the file stays.
            if error.errno != errno.ENOSPC:
                raise
        length = written // 4096 * 4096
        os.ftruncate(handle, length)
        self.held[name] = content[:length]
        return handle

    def add_small(self, length: int) -> None:
        """Writes a small file."""
        name = f"small{self.count}"
        self.count += 1
        os.close(self.write_new(name, length))
        self.small.append(name)

    def fill(self) -> None:
        """Fills the file system to the last block."""
        for _ in range(int(SIZE * SMALL_SHARE * MIB) // SMALL_BYTES):
            self.add_small(SMALL_BYTES)
        self.large = self.write_new(LARGE, SIZE * MIB)

    def edit(self) -> None:
        """Changes a few bytes of the large file."""
        held = self.held[LARGE]
        at = self.random.randrange(len(held) - EDIT_BYTES)
        change = self.random.randbytes(EDIT_BYTES)
        held[at : at + EDIT_BYTES] = change
        os.pwrite(self.large, change, at)

    def churn(self) -> None:
        """Deletes a small file and writes another one."""
        place = self.random.randrange(len(self.small))
        self.small[place], self.small[-1] = self.small[-1], self.small[place]
        name = self.small.pop()
        del self.held[name]
        (self.mount / name).unlink()
        self.add_small(self.random.randrange(1, 16) * 4096)

    def sync(self) -> None:
        """Flushes the large file, and with it the journal; an error of an earlier write is told here."""
        os.fsync(self.large)

    def close(self) -> None:
        """Closes the large file."""
        if self.large >= 0:
            os.close(self.large)
            self.large = -1

    def compare(self) -> None:
        """Every file must hold what was written."""
        for name, held in self.held.items():
            if (self.mount / name).read_bytes() != held:
                raise RuntimeError(f"{name} does not hold what was written")


def kernel_errors(device: str) -> list[str]:
    """What the kernel says of a block device, and of ext4 on it, that is no success."""
    lines = subprocess.run(["dmesg"], check=False, capture_output=True, text=True).stdout.splitlines()
    signs = ("I/O error", "EXT4-fs error", "critical", "Aborting journal", "read-only")
    of_device = [line for line in lines if re.search(rf"\b{device}\b", line)]
    return [line for line in of_device if any(sign in line for sign in signs)]


def trial(work: Path, system: str) -> str:
    """One system; what it did, in figures."""
    disk = Disk(work, system)
    mount = work / "mount"
    mount.mkdir()
    mounted = False
    files = Files(mount, 22)
    try:
        disk.attach()
        device = Path(disk.loop).name
        before = kernel_errors(device)
        run("mkfs.ext4", "-q", "-b", "4096", "-m", "0", disk.loop)
        run("mount", "-o", "discard", disk.loop, mount)
        mounted = True
        files.fill()
        room = os.statvfs(mount)
        began = time.monotonic()
        for number in range(1, OPERATIONS + 1):
            if files.random.random() < CHURN_SHARE:
                files.churn()
            else:
                files.edit()
            if number % FLUSH_EVERY == 0:
                files.sync()
        files.sync()
        took = time.monotonic() - began
        files.close()
        run("umount", mount)
        mounted = False
        run("e2fsck", "-fn", disk.loop)
        if new := [line for line in kernel_errors(device) if line not in before]:
            raise RuntimeError(f"the kernel says: {new[0]}")
        disk.detach()
        disk.attach()
        run("mount", "-o", "ro", disk.loop, mount)
        mounted = True
        files.compare()
        run("umount", mount)
        mounted = False
    finally:
        files.close()
        if mounted:
            run("umount", mount)
        disk.detach()
    run(PROGRAM, "check", disk.volume)
    if "no space" in (log := disk.log.read_text()):
        raise RuntimeError(f"the server says: {log}")
    left = room.f_bfree * 100 / room.f_blocks
    return f"{OPERATIONS} operations, {left:.1f} % of ext4 free, {OPERATIONS / took:.0f} a second; clean"


def main() -> int:
    """All systems."""
    failed = 0
    for system in sys.argv[1:] or SYSTEMS:
        with tempfile.TemporaryDirectory() as work:
            try:
                print(f"{system}: {trial(Path(work), system)}", flush=True)
            except (OSError, RuntimeError) as error:
                failed += 1
                print(f"{system}: FAILED: {error}", flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
