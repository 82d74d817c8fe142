"""`flashlore sweep`: a sweep from a file, its results on standard output, everything else on standard error."""

import json
import os
import sys
from typing import TYPE_CHECKING, Any

import polars as pl

from flashlore.errors import FileError, FlashloreError
from flashlore.output import reason
from flashlore.sweeps.cluster import DaskExecutor
from flashlore.sweeps.frames import NAMES
from flashlore.sweeps.local import LocalExecutor
from flashlore.sweeps.running import Sweep, sweep

if TYPE_CHECKING:
    from flashlore.sweeps.executors import Executor

#: Figures in the table, if they are there; the others are in `results.parquet`.
_FIGURES = ("waf_total", "programs.host", "programs.gc", "response_us.all.mean", "response_us.all.p99", "erases.mean")
#: From here on digits behind the point say nothing, and thousands stand apart.
_LARGE = 1000
#: More rows than a screen has say nothing.
_MOST_ROWS = 40
_MOST_FAILURES = 10


def run(  # noqa: PLR0913 (the flags of the command)
    file: str,
    output: str | None,
    scheduler: str | None,
    jobs: int | None,
    memory: int | None,
    *,
    send_traces: bool,
    retry_failed: bool,
    force: bool,
    as_json: bool,
) -> None:
    """Run the sweep of a file and print its results.

    Raises:
        FlashloreError: cells that failed, after the results of the others have been printed.

    """
    executor: Executor = (
        LocalExecutor(jobs, memory) if scheduler is None else DaskExecutor(scheduler, send_traces=send_traces)
    )
    done = sweep(file, executor, out=output, retry_failed=retry_failed, force=force, tell=_tell)
    _print(_json(done) if as_json else _table(done))
    for failure in done.failures[:_MOST_FAILURES]:
        _tell(f"failed: {failure.name}: {failure.error}")
    if len(done.failures) > _MOST_FAILURES:
        _tell(f"and {len(done.failures) - _MOST_FAILURES} more: {done.out / 'failures'}")
    if done.failures:
        again = "" if retry_failed else "; --retry-failed tries them again"
        raise FlashloreError(f"{len(done.failures)} of {len(done.cells)} cells failed{again}")


def _print(text: str) -> None:
    """Print results; that nobody reads them is no failure, as with the other commands."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        # What is left must not be written at the end of the process either.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
        if not isinstance(error, BrokenPipeError):
            raise FileError(f"cannot write the output: {reason(error)}") from error


def _tell(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def _json(done: Sweep) -> str:
    frame = done.frame()
    tree: dict[str, Any] = {
        "directory": str(done.out),
        "cells": len(done.cells),
        "finished": len(frame),
        "reused": done.reused,
        "failed": [{"cell": one.cell, "name": one.name, "error": one.error} for one in done.failures],
        "sha256": done.sha256,
        "rows": frame.to_dicts(),
    }
    return json.dumps(tree, indent=2) + "\n"


def _table(done: Sweep) -> str:
    frame = done.frame()
    settings = {key for cell in done.cells for key in cell.settings}
    leading = [name for name in frame.columns if name in NAMES or name.removeprefix("system.") in settings]
    # What is the same everywhere is said once.
    same = [name for name in leading if frame[name].n_unique() == 1]
    shown = frame.select(
        *(name for name in leading if name not in same), *(name for name in _FIGURES if name in frame.columns)
    )
    lines = [f"{name}: {frame[name][0]}" for name in same if frame[name][0] is not None]
    if len(shown) and shown.columns:
        lines += ["", *_aligned(shown.head(_MOST_ROWS))]
    if len(shown) > _MOST_ROWS:
        lines.append(f"and {len(shown) - _MOST_ROWS} more")
    reused = f", {done.reused} of them before" if done.reused else ""
    lines += ["", f"{len(frame)} of {len(done.cells)} cells are finished{reused}: {done.out / 'results.parquet'}"]
    return "\n".join(lines).lstrip("\n") + "\n"


def _aligned(frame: pl.DataFrame) -> list[str]:
    """Write a table with columns of equal width, numbers to the right."""
    columns = []
    for series in frame:
        texts = [series.name, *(_written(value) for value in series)]
        width = max(map(len, texts))
        columns.append([one.rjust(width) if series.dtype.is_numeric() else one.ljust(width) for one in texts])
    return ["  ".join(line).rstrip() for line in zip(*columns, strict=True)]


def _written(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < _LARGE else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
