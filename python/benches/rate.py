"""How fast a trace is simulated from Python, against the command line of the same build.

Rounds are interleaved, each in a process of its own: the command on a native file, Python on the same file with a
second thread that counts, and Python on the same records in memory. Printed are the best rates and their ratio, how
often the second thread came to its turn, how much memory the records in memory took, how much more each run took
while it lasted (of the two kinds the same, if no run copies its trace), and a hash of the results, which all must
agree on.

    python python/benches/rate.py --requests 10000000 --rounds 3
"""

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import flashlore as fl
import numpy as np
import polars as pl


def main() -> None:
    """Measure, or do one round where that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--profile", default="mail")
    parser.add_argument("--system", default="ca-ssd")
    parser.add_argument("--round", choices=["arrays", "file", "memory"], help=argparse.SUPPRESS)
    parser.add_argument("--trace", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.round == "arrays":
        np.savez(arrays_beside(arguments.trace), **arrays_of(fl.Trace.open(arguments.trace)))
    elif arguments.round:
        emit(one_round(arguments.round, arguments.trace, arguments.system))
    else:
        measure(arguments)


def emit(found: object) -> None:
    """Print JSON."""
    sys.stdout.write(json.dumps(found) + "\n")


def measure(arguments: argparse.Namespace) -> None:
    """Interleave the rounds and compare."""
    with tempfile.TemporaryDirectory() as directory:
        trace = Path(directory) / "trace.parquet"
        synth = ["trace", "synth", arguments.profile, "--requests", str(arguments.requests), "-o", str(trace)]
        subprocess.run([sys.executable, "-m", "flashlore", *synth], check=True, stdout=subprocess.DEVNULL)
        subprocess.run([sys.executable, __file__, "--round", "arrays", "--trace", str(trace)], check=True)
        rounds: dict[str, list[dict[str, Any]]] = {"command": [], "file": [], "memory": []}
        for _ in range(arguments.rounds):
            rounds["command"].append(by_command(trace, arguments.system))
            for kind in ("file", "memory"):
                own = ["--round", kind, "--trace", str(trace), "--system", arguments.system]
                rounds[kind].append(said([sys.executable, __file__, *own]))
    best = {kind: max(found["rate"] for found in of) for kind, of in rounds.items()}
    hashes = {found["hash"] for of in rounds.values() for found in of}
    emit(
        {
            "requests": arguments.requests,
            "best_requests_per_s": best,
            "file_over_command": best["file"] / best["command"],
            "memory_over_command": best["memory"] / best["command"],
            "all_rates": {kind: [round(found["rate"]) for found in of] for kind, of in rounds.items()},
            "second_thread_steps_per_s": [round(found["steps_per_s"]) for found in rounds["file"]],
            "records_mib": [found["records_mib"] for found in rounds["memory"]],
            "run_mib": {kind: [found["run_mib"] for found in rounds[kind]] for kind in ("file", "memory")},
            "hash": sorted(hashes),
        }
    )
    if len(hashes) != 1:
        sys.exit("the results differ")


def said(command: list[str]) -> Any:
    """Return what a process prints as JSON."""
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def by_command(trace: Path, system: str) -> dict[str, Any]:
    """Replay by the command line of the same build."""
    arguments = ["simulate", str(trace), "--system", system, "--json"]
    record = said([sys.executable, "-m", "flashlore", *arguments])["runs"][0]
    return {"rate": record["run"]["requests_per_s"], "hash": identity(record)}


def one_round(kind: str, path: Path, system: str) -> dict[str, Any]:
    """Replay from Python while a second thread counts."""
    trace, records_mib = fl.Trace.open(path), 0.0
    if kind == "memory":
        # In a process that has made nothing else, so that its growth is that of the records.
        arrays = dict(np.load(arrays_beside(path)))
        before = memory_mib("VmRSS")
        trace = fl.Trace.from_arrays(**arrays)
        records_mib = memory_mib("VmRSS") - before
        del arrays
    # The summary is what a run asks for first; it reads the records once.
    trace.summary  # noqa: B018 (kept by the trace)
    steps, ended = 0, threading.Event()

    def count() -> None:
        nonlocal steps
        while not ended.wait(1e-3):
            steps += 1

    counter = threading.Thread(target=count)
    counter.start()
    # The peak is counted anew.
    Path("/proc/self/clear_refs").write_text("5")
    before = memory_mib("VmRSS")
    begun = time.perf_counter()
    run = fl.simulate(trace, system, progress=False)
    seconds = time.perf_counter() - begun
    ended.set()
    counter.join()
    return {
        "rate": run.run.requests_per_s,
        "hash": identity(run.to_dict()),
        "steps_per_s": steps / seconds,
        "records_mib": round(records_mib),
        "run_mib": round(memory_mib("VmHWM") - before),
    }


def arrays_of(trace: fl.Trace) -> dict[str, Any]:
    """Return the records of a trace as arrays of NumPy."""
    frame = trace.to_table().to_polars()
    words = {op.name.lower(): op.value for op in fl.Op}
    columns = {name: frame[name].to_numpy() for name in ("offset", "length", "time")}
    op = frame["op"].replace_strict(words, return_dtype=pl.UInt8).to_numpy()
    return {**columns, "op": op, "content": frame["content"].explode().drop_nulls().to_numpy()}


def arrays_beside(trace: Path) -> Path:
    """Return where the arrays of a trace are."""
    return trace.with_suffix(".npz")


def memory_mib(what: str) -> float:
    """Return what Linux says the process holds (VmRSS), or held at most (VmHWM)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(what)) / 1024


def identity(record: dict[str, Any]) -> str:
    """Hash what must be equal: everything but the names of the trace and the speed."""
    left_out = ("trace", "trace_files", "run")
    kept = {key: value for key, value in record.items() if key not in left_out}
    return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()[:16]


if __name__ == "__main__":
    main()
