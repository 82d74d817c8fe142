"""Sweeps: the cells of a grid, run by an executor, kept in a directory."""

import datetime as dt
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

import polars as pl

from flashlore import _core
from flashlore.errors import UsageError
from flashlore.sweeps.cell import Cell, plan
from flashlore.sweeps.cluster import DaskExecutor
from flashlore.sweeps.executors import Executor, Outcome
from flashlore.sweeps.grid import Grid
from flashlore.sweeps.local import LocalExecutor
from flashlore.sweeps.reading import load_grid
from flashlore.sweeps.store import Failure, Store

if TYPE_CHECKING:
    from distributed import Client

Runner: TypeAlias = "Executor | Client | Literal['local', 'dask'] | None"
"""What runs the cells: processes of this machine (nothing, or `local`), a Dask cluster of this machine (`dask`), the
cluster of a `distributed.Client`, or an executor."""

Tell: TypeAlias = Callable[[str], None]


@dataclass(frozen=True)
class Sweep:
    """A sweep that has been run: its cells, what failed, and where the results are."""

    out: Path
    """The directory."""

    cells: Sequence[Cell]
    """The cells of the grid, in its order."""

    reused: int
    """Cells that had been finished before."""

    failures: Sequence[Failure]
    """The cells that failed, in the order of the grid."""

    sha256: str
    """SHA-256 of `results.parquet`."""

    def frame(self) -> pl.DataFrame:
        """Return the results: a row for each finished cell, in the order of the grid.

        Columns: `system`, `device`, `trace`, `seed`; the settings, named as in `--set`; the figures of the record,
        named as in `results.parquet` of `--out`; `cell`, the key of the cell.
        """
        return pl.read_parquet(self.out / "results.parquet")

    def timings(self) -> pl.DataFrame:
        """Return what differs from run to run.

        Columns: those that name the cell; `run.wall_s` in seconds, `run.requests_per_s`, `run.peak_rss_bytes`;
        `worker`, and `ended` in UTC.
        """
        return pl.read_parquet(self.out / "timings.parquet")

    def __repr__(self) -> str:
        """Say how it went."""
        failed = f", {len(self.failures)} failed" if self.failures else ""
        return f"Sweep({len(self.cells)} cells in {str(self.out)!r}{failed})"


def sweep(  # noqa: PLR0913 (each is a question of its own)
    grid: Grid | str | PathLike[str],
    executor: Runner = None,
    *,
    out: str | PathLike[str] | None = None,
    jobs: int | None = None,
    retry_failed: bool = False,
    force: bool = False,
    progress: bool | None = None,
    tell: Tell = warnings.warn,
) -> Sweep:
    """Run the cells of a grid that have not been run, and put the results of all of them together.

    What is finished stays finished: the same call goes on where a killed one was, and a larger grid in the same
    directory runs what is new in it. The results do not depend on the executor, on the order in which cells end, or
    on interruptions.

    Args:
        grid: a `Grid`, or the path of a TOML file with one.
        executor: what runs the cells; by default processes of this machine.
        out: directory of the results; by default that of a file's name without `.toml`, here.
        jobs: cells at a time on this machine; by default as many as there are cores.
        retry_failed: whether cells that failed before are tried again.
        force: whether results of another grid in the directory are replaced; its finished cells are kept.
        progress: whether a bar is shown; by default where somebody sees it.
        tell: gets sentences about what was found in the directory.

    Raises:
        UsageError: a grid that cannot be expanded, a directory in use, one of something else, or one with results of
            another grid that are to stay.
        FlashloreError: a directory that cannot be written, a cluster that does not answer.
        KeyboardInterrupt: after everything has stopped; it says how many cells are finished.

    """
    where = _directory(grid, out)
    expanded = grid if isinstance(grid, Grid) else load_grid(grid)
    runner = _executor(executor, jobs)
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="flashlore-sweep-"))
        try:
            cells = plan(expanded, Path(folder))
        except UsageError as error:
            raise error if isinstance(grid, Grid) else UsageError(f"{os.fspath(grid)}: {error}") from error
        store = stack.enter_context(Store(where, tell))
        if store.begin(cells, {"flashlore": _core.__version__}, force=force):
            tell(f"{where} was of another grid; the cells that are there already are not run again")
        done = store.finished()
        retried = done if retry_failed else done | store.failures.keys()
        todo = [cell for cell in cells if cell.key not in retried]
        reused = sum(cell.key in done for cell in cells)
        _run(store, runner, cells, todo, progress=progress)
        sha256 = store.finish(cells)
        failures = tuple(store.failures[cell.key] for cell in cells if cell.key in store.failures)
    return Sweep(where, tuple(cells), reused, failures, sha256)


def _directory(grid: Grid | str | PathLike[str], out: str | PathLike[str] | None) -> Path:
    if out is not None:
        return Path(out)
    if isinstance(grid, Grid):
        raise UsageError("out is missing: expected the directory of the results")
    path = Path(grid)
    if path.suffix != ".toml":
        raise UsageError(f"{path}: a directory for the results is missing, and the file's name gives none")
    return Path(path.stem)


def _executor(given: Runner, jobs: int | None) -> Executor:
    if given is None or given == "local":
        return LocalExecutor(jobs)
    if given == "dask":
        return DaskExecutor(jobs=jobs)
    if jobs is not None:
        raise UsageError(f"jobs = {jobs}: the executor given has its own number")
    if isinstance(given, str):
        raise UsageError(f"executor = {given!r}: expected local, dask, a Client or an executor")
    # Whoever has a client has imported its library; nobody else needs it.
    distributed = sys.modules.get("distributed")
    if distributed is not None and isinstance(given, distributed.Client):
        return DaskExecutor(given)
    return cast("Executor", given)


def _run(
    store: Store, executor: Executor, cells: Sequence[Cell], todo: Sequence[Cell], *, progress: bool | None
) -> None:
    """Run what is to be done; each outcome is kept before the next is taken."""
    if not todo:
        return
    names = {cell.key: str(cell) for cell in todo}
    with ExitStack() as stack:
        bar = stack.enter_context(_bar(len(cells), len(cells) - len(todo), progress=progress))
        failed = 0
        try:
            outcomes = stack.enter_context(executor.run([cell.task for cell in todo]))
            for outcome in outcomes:
                failed += _keep(store, names, outcome)
                bar.set_postfix(failed=failed, refresh=False)
                bar.update()
        except KeyboardInterrupt:
            done = store.finished()
            finished = sum(cell.key in done for cell in cells)
            raise KeyboardInterrupt(
                f"interrupted: {finished} of {len(cells)} cells are finished in {store.directory}; "
                "the same sweep goes on from there"
            ) from None


def _keep(store: Store, names: dict[str, str], outcome: Outcome) -> bool:
    """Keep an outcome, and say whether it is a failure."""
    if outcome.record is None:
        store.fail(Failure(outcome.key, names[outcome.key], outcome.error or "it failed without a reason"))
        return True
    ended = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
    store.add(outcome.key, outcome.record, {"worker": outcome.worker, "ended": ended})
    return False


def _bar(total: int, initial: int, *, progress: bool | None) -> Any:
    from tqdm.auto import tqdm  # noqa: PLC0415 (slow to import)
    from tqdm.std import tqdm as terminal  # noqa: PLC0415

    # A notebook is no terminal and shows bars all the same.
    in_notebook = tqdm.__mro__[1] is not terminal
    disable = not progress if progress is not None else (False if in_notebook else None)
    return tqdm(total=total, initial=initial, unit=" cells", disable=disable, dynamic_ncols=True)
