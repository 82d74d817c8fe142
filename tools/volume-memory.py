#!/usr/bin/env python3
"""The memory of served volumes, measured, beside what `create` says they need.

For each size and system: a volume is made and served, filled with pages that all differ (and, with a history or an
encoding, overwritten, so that there are old versions and encoded values), written to until a checkpoint is due soon,
the server is killed, and served again. The table has the peak of the resident memory (VmHWM of /proc/PID/status)
after opening, after filling, of the recovery after the kill, and of the whole; the peak of all divided by what `create`
says; and the seconds until it served after the kill, and after it was ended in order. The volume is thin: its file has
as many bytes as were written.

    cargo build --release && tools/volume-memory.py --sizes 1,8 --systems plain,ca-ssd,combined
"""

import argparse
import json
import os
import pathlib
import re
import signal
import socket
import struct
import subprocess
import tempfile
import time

UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
CHUNK = 1 << 20
MAGIC, REPLY = 0x25609513, 0x67446698


class Client:
    """As much of an NBD client as writing needs."""

    def __init__(self, path: pathlib.Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(str(path))
        self.take(18)
        self.socket.sendall(struct.pack(">I", 3))
        # NBD_OPT_EXPORT_NAME, the volume.
        self.socket.sendall(b"IHAVEOPT" + struct.pack(">II", 1, 0))
        self.take(10)

    def take(self, count: int) -> bytes:
        """So many bytes."""
        got = bytearray()
        while len(got) < count:
            piece = self.socket.recv(count - len(got))
            if not piece:
                raise SystemExit("the server ended the connection")
            got += piece
        return bytes(got)

    def ask(self, kind: int, offset: int, data: bytes) -> None:
        """A request, and its answer."""
        self.socket.sendall(struct.pack(">IHHQQI", MAGIC, 0, kind, 0, offset, len(data)) + data)
        magic, error, _ = struct.unpack(">IIQ", self.take(16))
        if magic != REPLY or error:
            raise SystemExit(f"a request at {offset} failed with {error}")

    def write(self, offset: int, data: bytes) -> None:
        """Writes."""
        self.ask(1, offset, data)

    def flush(self) -> None:
        """A barrier."""
        self.ask(3, 0, b"")


class Server:
    """A server and its memory."""

    def __init__(self, program: str, disk: pathlib.Path, more: list[str], group: pathlib.Path | None = None) -> None:
        for name in ("nbd.sock", "control.sock"):
            (disk / name).unlink(missing_ok=True)
        command = [program, "serve", str(disk), *more]
        if group:
            command = ["sh", "-c", f'echo $$ > {group}/cgroup.procs; exec "$@"', "sh", *command]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        line = self.process.stderr.readline()
        while line and not line.startswith("serving"):
            line = self.process.stderr.readline()
        if not line:
            raise SystemExit(f"the server ended with {self.process.wait()}")

    def status(self, field: str) -> int:
        """A field of its status, in bytes."""
        text = pathlib.Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        return int(re.search(rf"{field}:\s+(\d+) kB", text)[1]) << 10

    def end(self, how: int) -> None:
        """Ends it by a signal."""
        self.process.send_signal(how)
        self.process.wait()
        self.process.stderr.close()


def info(program: str, disk: pathlib.Path) -> tuple[int, int]:
    """The last event of a served volume, and the number of its last checkpoint."""
    told = subprocess.run([program, "info", str(disk), "--json"], check=True, capture_output=True, text=True).stdout
    found = json.loads(told)
    return found["sequence"], found["checkpoint"]


def fill(program: str, disk: pathlib.Path, size: int, share: float, system: str) -> None:
    """Fills a share of the volume; where old versions or encoded values are kept, overwrites half of that twice with
    pages that differ little. Then writes on until a checkpoint is due soon: what happened since is remembered too."""
    client = Client(disk / "nbd.sock")
    end = int(size * share) // CHUNK * CHUNK
    encodes = system in ("combined", "delta-ftl", "compress")
    for offset in range(0, end, CHUNK):
        client.write(offset, os.urandom(CHUNK))
    client.flush()
    base = os.urandom(CHUNK)
    for turn in range(2 if encodes or system == "bvssd" else 0):
        for offset in range(0, end // 2, CHUNK):
            # Every page differs from all others in a few bytes.
            data = bytearray(base)
            for page in range(0, CHUNK, 4096):
                data[page : page + 16] = struct.pack("<QQ", turn + 1, offset + page)
            client.write(offset, bytes(data))
    # From one checkpoint to the next, to know how far they are apart; then nearly as far again.
    offset, seen, apart = 0, [info(program, disk)], None
    while apart is None or info(program, disk)[0] - seen[-1][0] < 0.85 * apart:
        for _ in range(16):
            client.write(offset, os.urandom(CHUNK))
            offset = (offset + CHUNK) % end
        now = info(program, disk)
        if now[1] != seen[-1][1]:
            seen.append(now)
            apart = seen[-1][0] - seen[-2][0] if len(seen) == 3 else apart
    client.flush()


def opened_in(program: str, disk: pathlib.Path) -> tuple[Server, float]:
    """A server, and the seconds until it served."""
    start = time.monotonic()
    return Server(program, disk, []), time.monotonic() - start


def measure(program: str, place: pathlib.Path, gib: float, system: str, share: float) -> list[str]:
    """A row of the table."""
    disk = place / "disk"
    size = int(gib * 1024) << 20
    create = [program, "create", str(disk), "--size", str(size), "--system", system]
    told = subprocess.run(create, check=True, capture_output=True, text=True).stderr
    number, unit = re.search(r"up to ([\d.]+) (\w+) of memory", told).groups()
    need = float(number) * UNITS[unit]
    server = Server(program, disk, [])
    opened = server.status("VmHWM")
    fill(program, disk, size, share, system)
    filled, resident = server.status("VmHWM"), server.status("VmRSS")
    server.end(signal.SIGKILL)
    server, killed = opened_in(program, disk)
    recovered, after = server.status("VmHWM"), server.status("VmRSS")
    server.end(signal.SIGTERM)
    server, closed = opened_in(program, disk)
    server.end(signal.SIGTERM)
    peak = max(opened, filled, recovered)
    shown = [need, opened, filled, resident, recovered, after]
    row = [system, f"{gib:g}", f"{100 * share:.0f} %", *(f"{value / (1 << 20):.0f}" for value in shown)]
    return [*row, f"{peak / need:.2f}", f"{killed:.2f}", f"{closed:.2f}"]


def main() -> None:
    """All rows, each printed when it is known."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="target/release/flashlore")
    parser.add_argument("--directory", default=None, help="where volumes are made")
    parser.add_argument("--sizes", default="1,8", help="GiB")
    parser.add_argument("--systems", default="plain,ca-ssd,combined")
    parser.add_argument("--share", type=float, default=1.0, help="how much of a volume is filled")
    args = parser.parse_args()
    head = ["system", "GiB", "filled", "need", "open", "fill", "resident", "recover", "after", "peak / need"]
    head += ["open after kill, s", "open after end, s"]
    print("| " + " | ".join(head) + " |", flush=True)
    print("|" + "---|" * len(head), flush=True)
    for gib in map(float, args.sizes.split(",")):
        for system in args.systems.split(","):
            with tempfile.TemporaryDirectory(dir=args.directory) as name:
                start = time.monotonic()
                row = measure(args.program, pathlib.Path(name), gib, system, args.share)
                print("| " + " | ".join(row) + f" | <!-- {time.monotonic() - start:.0f} s -->", flush=True)


if __name__ == "__main__":
    main()
