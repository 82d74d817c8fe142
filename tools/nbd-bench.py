#!/usr/bin/env python3
"""A served volume against nbdkit's file plugin, in interleaved pairs.

Both serve from files in one directory, through the page cache, and make durable what is flushed. Each pair runs a job
on one server and then on the other, in an order that alternates. Printed are the medians, the median of the ratios of
pairs and its 95 % interval (order statistics: no distribution is assumed). Needs nbdkit, fio with the nbd engine, and
a release build.

    cargo build --release && tools/nbd-bench.py --pairs 9 --systems plain,combined --duplicates 0,50,90
"""

import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

# Name: fio's rw, block size, depth, more options.
JOBS = {
    "sequential write 1 MiB, depth 4": ("write", "1m", 4, []),
    "sequential read 1 MiB, depth 4": ("read", "1m", 4, []),
    "random read 4 KiB, depth 1": ("randread", "4k", 1, []),
    "random read 4 KiB, depth 32": ("randread", "4k", 32, []),
    "random write 4 KiB, depth 1": ("randwrite", "4k", 1, []),
    "random write 4 KiB, depth 32": ("randwrite", "4k", 32, []),
    "random write 4 KiB, flush after each": ("randwrite", "4k", 1, ["--fsync=1"]),
}


def interval(values: list[float]) -> tuple[float, float]:
    """The 95 % interval of the median, by order statistics; the extremes if there are too few values."""
    ordered, count = sorted(values), len(values)
    covered, low = 0.0, 0
    for rank in range(count // 2):
        covered += math.comb(count, rank) / 2**count
        if 2 * covered <= 0.05:
            low = rank + 1
    return ordered[low], ordered[count - 1 - low]


def run_job(uri: str, job: str, args: argparse.Namespace, seed: int, duplicates: int) -> dict:
    """One job; requests a second and the 99.9th percentile in microseconds."""
    rw, block, depth, more = JOBS[job]
    command = [
        "fio", "--name=j", "--ioengine=nbd", f"--uri={uri}", f"--rw={rw}", f"--bs={block}", f"--iodepth={depth}",
        f"--size={args.size}m", "--time_based", f"--runtime={args.seconds}", f"--randseed={seed}", "--norandommap",
        "--refill_buffers", f"--dedupe_percentage={duplicates}", "--percentile_list=50:99:99.9",
        "--output-format=json", *more,
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    result = json.loads(done.stdout[done.stdout.index("{") :])["jobs"][0]
    side = result["read"] if result["read"]["io_bytes"] else result["write"]
    return {"rate": side["iops"], "p999": side["clat_ns"]["percentile"]["99.900000"] / 1000}


class Server:
    """A server on a Unix socket, filled once."""

    def __init__(self, command: list[str], socket: pathlib.Path, export: str) -> None:
        self.process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        self.uri = f"nbd+unix:///{export}?socket={socket}"
        while not socket.exists():
            time.sleep(0.05)
            if self.process.poll() is not None:
                raise SystemExit(f"{command[0]} ended with status {self.process.returncode}")

    def fill(self, args: argparse.Namespace, duplicates: int) -> None:
        """Writes all that the jobs touch, once."""
        subprocess.run(
            ["fio", "--name=f", "--ioengine=nbd", f"--uri={self.uri}", "--rw=write", "--bs=1m", "--iodepth=4",
             f"--size={args.size}m", f"--dedupe_percentage={duplicates}", "--refill_buffers", "--end_fsync=1",
             "--output=/dev/null"],
            check=True,
        )  # fmt: skip

    def end(self) -> None:
        """Ends it as an administrator would."""
        self.process.terminate()
        self.process.wait()


def compare(system: str, duplicates: int, args: argparse.Namespace) -> list[dict]:
    """All jobs on one system and on nbdkit."""
    with tempfile.TemporaryDirectory(dir=args.directory) as name:
        place = pathlib.Path(name)
        program = str(args.program)
        create = [program, "create", str(place / "disk"), "--size", f"{args.volume}MiB", "--system", system]
        subprocess.run(create, check=True, stderr=subprocess.DEVNULL)
        ours = Server([program, "serve", str(place / "disk")], place / "disk" / "nbd.sock", "")
        with (place / "image").open("wb") as image:
            image.truncate(args.volume << 20)
        socket = place / "kit.sock"
        theirs = Server(["nbdkit", "-f", "-U", str(socket), "file", str(place / "image")], socket, "")
        rows = []
        try:
            for server in (ours, theirs):
                server.fill(args, duplicates)
            for job in args.jobs:
                pairs = []
                for pair in range(args.pairs):
                    order = (ours, theirs) if pair % 2 == 0 else (theirs, ours)
                    found = {server: run_job(server.uri, job, args, 1000 + pair, duplicates) for server in order}
                    pairs.append((found[ours], found[theirs]))
                ratios = [a["rate"] / b["rate"] for a, b in pairs]
                low, high = interval(ratios)
                rows.append({
                    "system": system,
                    "duplicates": duplicates,
                    "job": job,
                    "ours": statistics.median(a["rate"] for a, _ in pairs),
                    "nbdkit": statistics.median(b["rate"] for _, b in pairs),
                    "ratio": statistics.median(ratios),
                    "low": low,
                    "high": high,
                    "p999_us": statistics.median(a["p999"] for a, _ in pairs),
                    "nbdkit_p999_us": statistics.median(b["p999"] for _, b in pairs),
                })  # fmt: skip
                show(rows[-1])
        finally:
            ours.end()
            theirs.end()
    return rows


def show(row: dict) -> None:
    """One row as a line of a table in Markdown."""
    print(
        f"| {row['system']} | {row['duplicates']} % | {row['job']} | {row['ours']:,.0f} | {row['nbdkit']:,.0f} "
        f"| {row['ratio']:.2f} ({row['low']:.2f} to {row['high']:.2f}) "
        f"| {row['p999_us'] / 1000:.2f} | {row['nbdkit_p999_us'] / 1000:.2f} |",
        flush=True,
    )


def main() -> None:
    """Runs what the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=9, help="pairs of runs a job")
    parser.add_argument("--seconds", type=int, default=3, help="seconds a run")
    parser.add_argument("--size", type=int, default=1024, help="MiB that the jobs touch")
    parser.add_argument("--volume", type=int, default=2048, help="MiB of the volume and of the file")
    parser.add_argument("--systems", default="plain,combined", help="systems, comma between them")
    parser.add_argument("--duplicates", default="0", help="percentages of duplicates, comma between them")
    parser.add_argument("--jobs", default="", help="parts of the names of jobs, comma between them; all without")
    parser.add_argument("--directory", default=None, help="where the files lie")
    parser.add_argument("--program", type=pathlib.Path, default=pathlib.Path("target/release/flashlore"))
    parser.add_argument("--json", type=pathlib.Path, default=None, help="also write the rows here")
    args = parser.parse_args()
    parts = [part for part in args.jobs.split(",") if part]
    args.jobs = [job for job in JOBS if not parts or any(part in job for part in parts)]
    if not os.access(args.program, os.X_OK):
        raise SystemExit(f"{args.program} is not there: cargo build --release")
    print("| system | duplicates | job | requests/s | nbdkit | ratio (95 %) | p99.9 ms | nbdkit p99.9 ms |")
    print("|---|---|---|---|---|---|---|---|")
    rows = []
    for system in args.systems.split(","):
        for duplicates in args.duplicates.split(","):
            rows += compare(system, int(duplicates), args)
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
