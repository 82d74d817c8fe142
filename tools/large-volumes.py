#!/usr/bin/env python3
"""Volumes as large as a tebibyte whose data are elided: what they take, how long they open, and how fast they are.

For each system and size a volume is made and all of it written, in order. Then for each `--memory` (MiB) its
fingerprint index is filled, which has a size of its own, and it is opened after a clean end, read and written at
random for some time in each of four ways (two threads, 4 KiB, addresses drawn uniformly or as YCSB draws them, zipf
.99), closed; opened again, written at random, killed, and opened once more. The table has the seconds until the first
page was read after a clean end and after the kill, with the events that had to be replayed then; the peak of the
resident memory (VmHWM) of all this; requests a second with the 99.9th percentile of their times and the share of looks
at tables that had to read; and what a check of all tables took (seconds, and peak in MiB). Of the medium there is what
no page of data says: records, tables, journal.

    cargo build --release -p flashlore-volume --example large
    tools/large-volumes.py --directory DIR --sizes 4,64 --systems plain,ca-ssd,combined --memory 512,1024,4096

With `--group` (an empty memory control group of version 1) the limit of that is set to the memory of each run and a
quarter of it, for pages of files that the kernel keeps for the process: what takes more is ended by the kernel.
"""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys

JOBS = ["read-uniform", "read-zipf", "write-uniform", "write-zipf"]
MIB = 1 << 20


class Program:
    """The example `large`, in its control group."""

    def __init__(self, path: str, group: pathlib.Path | None, changes: int) -> None:
        self.path = path
        self.group = group
        self.changes = ["--changes", str(changes)] if changes else []

    def run(self, *arguments: object, limit: int | None = None) -> dict | str:
        """What it tells of a run within so many MiB; or its last words, if it ended otherwise."""
        command = [self.path, *map(str, arguments), *self.changes]
        if self.group:
            # A limit below what is charged already would be refused.
            (self.group / "memory.force_empty").write_text("0", encoding="ascii")
            bytes_allowed = -1 if limit is None else limit * MIB * 5 // 4
            (self.group / "memory.limit_in_bytes").write_text(str(bytes_allowed), encoding="ascii")
            command = ["sh", "-c", f'echo $$ > {self.group}/cgroup.procs; exec "$@"', "sh", *command]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        lines = done.stdout.splitlines()
        if lines:
            return json.loads(lines[-1])
        return (done.stderr.strip().splitlines() or [f"ended with {done.returncode}"])[-1]


def shown(run: dict, killed: dict, reopened: dict, checked: dict | str) -> list[str]:
    """The cells of a row."""
    peaks = [told["open_peak"] for told in (run, killed, reopened)]
    peaks += [job["peak"] for told in (run, killed, reopened) for job in told["jobs"]]
    cells = [f"{run['open_seconds']:.2f}", f"{reopened['open_seconds']:.2f} ({reopened['events']:,})"]
    cells.append(f"{max(peaks) >> 20:,}")
    for job in run["jobs"]:
        asked = job["hits"] + job["misses"]
        cells.append(f"{job['rate']:,.0f} ({job['p999_ms']:.1f}; {100 * job['misses'] / max(asked, 1):.0f} %)")
    if isinstance(checked, str):
        return [*cells, checked]
    clean = "" if checked["clean"] else ", not clean"
    return [*cells, f"{checked['check_seconds']:.0f}; {checked['check_peak'] >> 20:,}{clean}"]


def main() -> None:
    """All systems and sizes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="target/release/examples/large")
    parser.add_argument("--directory", type=pathlib.Path, required=True, help="where volumes are made")
    parser.add_argument("--sizes", default="4,64", help="GiB")
    parser.add_argument("--systems", default="plain,ca-ssd,combined")
    parser.add_argument("--memory", default="512,1024,4096", help="MiB")
    parser.add_argument("--seconds", type=int, default=20, help="of each job")
    parser.add_argument("--changes", type=int, default=0, help="words in which an overwrite differs; 0 for all")
    parser.add_argument("--group", type=pathlib.Path)
    parser.add_argument("--keep", action="store_true", help="keep the volumes, and use those that are there")
    args = parser.parse_args()
    program = Program(args.program, args.group, args.changes)
    head = ["system", "GiB", "memory", "opens in, s", "after a kill, s (events)", "peak, MiB"]
    head += [*(job.replace("-", " ") + ", 1/s (p99.9 ms; misses)" for job in JOBS), "check, s; MiB"]
    print("| " + " | ".join(head) + " |\n|" + "---|" * len(head), flush=True)
    for system in args.systems.split(","):
        for size in map(int, args.sizes.split(",")):
            volume = args.directory / f"{system}-{size}"
            if not (args.keep and (volume / "filled").exists()):
                filled = program.run("fill", volume, size, system)
                if isinstance(filled, str):
                    raise SystemExit(f"{system} of {size} GiB: {filled}")
                print(f"{system} of {size} GiB: {json.dumps(filled)}", file=sys.stderr, flush=True)
                (volume / "filled").write_text(json.dumps(filled), encoding="ascii")
            for memory in map(int, args.memory.split(",")):
                first = [system, str(size), f"{memory} MiB"]
                settled = program.run("settle", volume, memory, limit=memory)
                print(f"{' '.join(first)}: {json.dumps(settled)}", file=sys.stderr, flush=True)
                run = program.run("run", volume, memory, args.seconds, ",".join(JOBS), limit=memory)
                if isinstance(run, str):
                    print("| " + " | ".join([*first, run]) + " |", flush=True)
                    continue
                killed = program.run("kill", volume, memory, args.seconds, limit=memory)
                reopened = program.run("run", volume, memory, 1, "read-uniform", limit=memory)
                checked = program.run("check", volume, memory, limit=memory)
                for told in (killed, reopened):
                    if isinstance(told, str):
                        raise SystemExit(f"{system} of {size} GiB within {memory} MiB: {told}")
                cells = shown(run, killed, reopened, checked)
                print("| " + " | ".join([*first, *cells]) + " |", flush=True)
            if not args.keep:
                shutil.rmtree(volume)


if __name__ == "__main__":
    main()
