#!/usr/bin/env python3
"""Random writes to a volume whose memory is bounded: what it takes, and what it costs.

A volume is made, filled with pages that all differ, and closed. Then it is served with `--memory` of several shares of
what `create` says it takes, or the least that it needs, and without; each time random pages are written for some time.
The table has the requests a second, and the peaks of the resident memory (VmRSS of /proc/PID/status, asked every 20 ms)
while the volume is opened and while it is written to. Needs fio with the nbd engine, and a release build.

    cargo build --release && tools/memory-limit.py --size 4 --system ca-ssd --shares 101,50,25
"""

import argparse
import importlib.util
import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import threading
import time

SPEC = importlib.util.spec_from_file_location("volume_memory", pathlib.Path(__file__).with_name("volume-memory.py"))
VOLUME_MEMORY = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(VOLUME_MEMORY)


class Sampler(threading.Thread):
    """The peak of a field of a process's status."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.path = pathlib.Path(f"/proc/{pid}/status")
        self.peak = 0
        self.samples: list[int] = []
        self.ends = threading.Event()
        self.start()

    def run(self) -> None:
        while not self.ends.wait(0.02):
            try:
                found = re.search(r"VmRSS:\s+(\d+) kB", self.path.read_text(encoding="ascii"))
            except OSError:
                return
            if found:
                self.samples.append(int(found[1]) << 10)

    def end(self) -> tuple[int, int]:
        """The peak and the median."""
        self.ends.set()
        self.join()
        ordered = sorted(self.samples) or [0]
        return ordered[-1], ordered[len(ordered) // 2]


def main() -> None:
    """All shares, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="target/release/flashlore")
    parser.add_argument("--directory", default=None, help="where the volume is made")
    parser.add_argument("--size", type=float, default=4, help="GiB")
    parser.add_argument("--system", default="ca-ssd")
    parser.add_argument("--shares", default="101,50,25", help="of what is needed, in per cent")
    parser.add_argument("--seconds", type=int, default=30)
    parser.add_argument("--group", type=pathlib.Path, help="an empty memory control group (version 1): its limit is "
                        "set to --memory and a quarter of it")  # fmt: skip
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=args.directory) as name:
        disk = pathlib.Path(name) / "disk"
        size = int(args.size * 1024) << 20
        create = [args.program, "create", str(disk), "--size", str(size), "--system", args.system]
        told = subprocess.run(create, check=True, capture_output=True, text=True).stderr
        number, unit = re.search(r"up to ([\d.]+) (\w+) of memory", told).groups()
        need = float(number) * VOLUME_MEMORY.UNITS[unit]
        number, unit = re.search(r"([\d.]+) (\w+) at least", told).groups()
        least = (int(float(number) * VOLUME_MEMORY.UNITS[unit]) >> 20) + 1
        server = VOLUME_MEMORY.Server(args.program, disk, [])
        client = VOLUME_MEMORY.Client(disk / "nbd.sock")
        for offset in range(0, size, VOLUME_MEMORY.CHUNK):
            client.write(offset, os.urandom(VOLUME_MEMORY.CHUNK))
        client.flush()
        server.end(signal.SIGTERM)
        print(
            "| memory | MiB | seconds to open | peak while opening, MiB | writes a second | median, MiB | peak, MiB |"
        )
        print("|---|---|---|---|---|---|---|", flush=True)
        for share in [None, *map(int, args.shares.split(","))]:
            limit = max(int(need * (share or 100) / 100) >> 20, least)
            more = [] if share is None else ["--memory", f"{limit}MiB"]
            began = time.monotonic()
            if args.group:
                (args.group / "memory.limit_in_bytes").write_text(f"{limit * 5 // 4}M", encoding="ascii")
                (args.group / "memory.max_usage_in_bytes").write_text("0", encoding="ascii")
            server = VOLUME_MEMORY.Server(args.program, disk, more, args.group)
            opening = time.monotonic() - began
            opened = server.status("VmHWM")
            sampler = Sampler(server.process.pid)
            job = ["fio", "--name=j", "--ioengine=nbd", f"--uri=nbd+unix:///?socket={disk}/nbd.sock", "--rw=randwrite",
                   "--bs=4k", "--iodepth=16", f"--size={size}", "--time_based", f"--runtime={args.seconds}",
                   "--norandommap", "--refill_buffers", "--output-format=json"]  # fmt: skip
            done = subprocess.run(job, capture_output=True, text=True, check=True).stdout
            rate = json.loads(done[done.index("{") :])["jobs"][0]["write"]["iops"]
            peak, median = sampler.end()
            server.end(signal.SIGTERM)
            shown = "unbounded" if share is None else f"{share} %"
            cells = [shown, f"{limit}", f"{opening:.1f}", f"{opened >> 20}", f"{rate:.0f}", f"{median >> 20}"]
            print("| " + " | ".join([*cells, f"{peak >> 20}"]) + " |", flush=True)


if __name__ == "__main__":
    main()
