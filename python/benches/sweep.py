"""Measures a sweep on a Dask cluster of two workers against one, and kills a worker and the client meanwhile.

    python python/benches/sweep.py  # 200 cells of 5 s and more on two cores: about a quarter of an hour
    python python/benches/sweep.py --cells 40 --scale 0.1  # the same in small

The cells are one configuration in five sizes of spare space, each with many seeds. Every eighth cell is the *sample*,
which stands for all: measuring one worker's rate on all of them would take twice as long as everything else.

1. One worker runs the sample.
2. Two workers run the sample: the rates are compared on the same cells.
3. Two workers run the whole grid, of which the sample is there already. When a third of it is finished a worker is
   killed (SIGKILL), at two thirds the client; the client's successor goes on. The rate of these cells counts both
   kills. Every cell must be there once, and no finished cell may have run again.
4. Processes of this machine run the sample, or with --whole everything, and must give the same bytes.

The rate of a sample is that from when each worker has finished its first cell until the end: making the trace, once
for a sweep of any size, would count eight times as much as with all cells. That with the kills counts everything. It
ends with status 1 if anything was lost, doubled or different, and prints the rates whatever they are.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
from distributed import Client, LocalCluster
from flashlore import DaskExecutor, Grid, LocalExecutor, Sweep, sweep
from flashlore.sweeps.cell import plan

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SPARE = [0.1, 0.15, 0.2, 0.25, 0.3]
EVERY = 8


def grid(scale: float, seeds: "Sequence[int]") -> Grid:
    """Cells of nearly equal cost: spare space and seeds."""
    return Grid(
        [f"profile:mail,scale={scale}"],
        ["ca-ssd"],
        settings={"device.gc.policy": "d-choices", "device.space.over_provisioning": SPARE},
        seeds=list(seeds),
    )


@contextmanager
def cluster(workers: int) -> "Iterator[Client]":
    """Start workers of one thread each."""
    with (
        LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as local,
        Client(local) as client,
    ):
        yield client


def timed(
    name: str, what: Grid, executor: DaskExecutor | LocalExecutor, out: Path, workers: int
) -> tuple[Sweep, float]:
    """Run a sweep, and tell its rate in cells a second."""
    done = sweep(what, executor, out=out, progress=False, tell=silent)
    ends = sorted(path.stat().st_mtime for path in (out / "cells").glob("*.parquet"))
    rate = (len(ends) - workers) / (ends[-1] - ends[workers - 1])
    print(f"{name}: {len(ends)} cells, {60 * rate:.2f} a minute, {done.sha256}", flush=True)
    return done, rate


def silent(_: str) -> None:
    """Say nothing of the sample, which is there already."""


def finished(out: Path) -> int:
    """Count the rows of single cells; there are too few for batches."""
    return len(list((out / "cells").glob("*.parquet")))


def client_on(address: str, arguments: argparse.Namespace, out: Path) -> "subprocess.Popen[bytes]":
    """Start a client of its own, which can be killed."""
    line = [sys.executable, __file__, "--client", address, "--out", str(out)]
    line += ["--cells", str(arguments.cells), "--scale", str(arguments.scale)]
    return subprocess.Popen(line)


def until(out: Path, count: int, client: "subprocess.Popen[bytes]") -> None:
    """Wait for so many finished cells."""
    while finished(out) < count:
        if client.poll() is not None:
            sys.exit(f"the client ended with status {client.returncode} before {count} cells were finished")
        time.sleep(0.05)


def killed(client: Client, arguments: argparse.Namespace, out: Path, sample: int) -> float:
    """Run the whole grid with both kills, and give the rate of the cells beyond the sample."""
    address = client.scheduler_info()["address"]
    began = time.monotonic()
    first = client_on(address, arguments, out)
    until(out, arguments.cells // 3, first)
    (worker, *_) = client.run(os.getpid).values()
    os.kill(worker, signal.SIGKILL)
    print(f"a worker is killed at {finished(out)} cells", flush=True)
    until(out, 2 * arguments.cells // 3, first)
    first.kill()
    first.wait()
    left = finished(out)
    rows = {path.name: path.stat().st_mtime_ns for path in (out / "cells").glob("*.parquet")}
    print(f"the client is killed at {left} cells", flush=True)
    if client_on(address, arguments, out).wait() != 0:
        sys.exit("the second client failed")
    rate = (arguments.cells - sample) / (time.monotonic() - began)
    again = [name for name, at in rows.items() if (out / "cells" / name).stat().st_mtime_ns != at]
    if again:
        sys.exit(f"{len(again)} finished cells ran again")
    return rate


def check(out: Path, whole: Grid) -> None:
    """Refuse lost and doubled cells."""
    with tempfile.TemporaryDirectory() as folder:
        expected = [cell.key for cell in plan(whole, Path(folder))]
    keys = pl.read_parquet(out / "results.parquet")["cell"].to_list()
    if keys != expected:
        sys.exit(f"{len(keys)} rows of {len(set(keys))} cells, expected {len(expected)}")
    walls = pl.read_parquet(out / "timings.parquet")["run.wall_s"]
    print(f"all {len(keys)} cells are there once; they took {walls.min():.2f} to {walls.max():.2f} s each", flush=True)


def measure(arguments: argparse.Namespace, folder: Path) -> None:
    """Do all of it; see above."""
    seeds = range(1, arguments.cells // len(SPARE) + 1)
    whole, sample = grid(arguments.scale, seeds), grid(arguments.scale, seeds[::EVERY])
    count = len(sample.points())
    with cluster(1) as client:
        one, slow = timed("one worker, sample", sample, DaskExecutor(client), folder / "one", 1)
    with cluster(2) as client:
        two, fast = timed("two workers, sample", sample, DaskExecutor(client), folder / "two", 2)
        beside = killed(client, arguments, folder / "two", count)
        print(f"two workers, the others, with both kills: {60 * beside:.2f} a minute", flush=True)
        check(folder / "two", whole)
        all_of_it = sweep(whole, DaskExecutor(client), out=folder / "two", progress=False, tell=silent)
    here = whole if arguments.whole else sample
    local, _ = timed("local processes", here, LocalExecutor(2), folder / "local", 2)
    same = local.sha256 == (all_of_it.sha256 if arguments.whole else two.sha256) and one.sha256 == two.sha256
    print(f"two workers over one: {fast / slow:.2f} on the same cells, {beside / slow:.2f} with both kills")
    print(f"results of all cells: {all_of_it.sha256}, {'the same' if same else 'NOT the same'} everywhere")
    if not same:
        sys.exit(1)


def main() -> None:
    """Read the flags."""
    parser = argparse.ArgumentParser(description="Measures sweeps on Dask.")
    parser.add_argument("--cells", type=int, default=200, help="a multiple of five, at least 40")
    parser.add_argument("--scale", type=float, default=5.0, help="size of the workload")
    parser.add_argument("--whole", action="store_true", help="run all cells on local processes too")
    parser.add_argument("--client", help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, help="directory of the sweeps, kept afterwards")
    arguments = parser.parse_args()
    if arguments.cells % len(SPARE) or arguments.cells < EVERY * len(SPARE):
        parser.error(f"--cells {arguments.cells}: expected a multiple of five, at least {EVERY * len(SPARE)}")
    if arguments.client:
        seeds = range(1, arguments.cells // len(SPARE) + 1)
        sweep(
            grid(arguments.scale, seeds), DaskExecutor(arguments.client), out=arguments.out, progress=False, tell=silent
        )
    elif arguments.out:
        measure(arguments, arguments.out)
    else:
        with tempfile.TemporaryDirectory(prefix="flashlore-bench-") as folder:
            measure(arguments, Path(folder))


if __name__ == "__main__":
    main()
