"""The directory of a sweep: what is finished, what failed, and the results.

    sweep.json            what was swept and with which version, and the hash of the results once they are whole
    lock                  held by the client that works here
    cells/KEY.parquet     the row of a finished cell
    batches/HASH.parquet  rows of many of them
    failures/KEY.json     why a cell failed
    results.parquet       all rows of the grid in its order, once every cell has been tried
    timings.parquet       what differs from run to run: wall time, memory, worker

Every file is written beside its place, made durable and renamed, so that it is there whole or not at all. A cell is
finished when its row is: it stays so whatever dies. Cells are told apart by their keys, and of a key one row counts,
though a kill between the writing of a batch and the removal of its cells leaves two. A file that cannot be read after
all is removed, and its cells run again. The results are made anew from the rows each time.
"""

import fcntl
import hashlib
import io
import json
import os
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn, Self

import polars as pl

from flashlore import output
from flashlore.errors import FlashloreError, UsageError
from flashlore.sweeps import frames
from flashlore.sweeps.cell import Cell, grid_hash

#: Layout of the directory.
FORMAT = 1
#: So many rows of single cells become a batch.
BATCH = 512
#: Pauses between attempts to lock a directory that is in use: 1023 ms together.
PAUSES_S = tuple(2**doubled / 1000 for doubled in range(10))


@dataclass(frozen=True)
class Failure:
    """Why a cell failed, as a sentence."""

    cell: str
    name: str
    error: str


class Store:
    """A sweep's directory, locked as long as this is open."""

    def __init__(self, directory: Path, warn: Callable[[str], None], *, batch: int = BATCH) -> None:
        """Make the directory if need be, lock it and look at what is there.

        Raises:
            UsageError: the directory is another client's, another version's, or holds something else.
            FlashloreError: the directory cannot be made or read.

        """
        self.directory = directory
        self._warn = warn
        self._batch = batch
        try:
            _refuse_other(directory)
            for part in ("cells", "batches", "failures"):
                (directory / part).mkdir(parents=True, exist_ok=True)
            self._lock = _locked(directory)
            try:
                self._look()
            except BaseException:
                os.close(self._lock)
                raise
        except OSError as error:
            raise FlashloreError(f"cannot use {directory}: {output.reason(error)}") from error

    def _look(self) -> None:
        self._manifest = _manifest(self.directory)
        self._begun = self._manifest
        for left in self.directory.glob("**/.flashlore-*.new"):
            left.unlink()
        self._single = self._singles()
        self._batched = self._batches()
        self.failures = self._failed()

    def __enter__(self) -> Self:
        """Nothing more: it is locked."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Unlock the directory, which a child that is being started may have open."""
        fcntl.flock(self._lock, fcntl.LOCK_UN)
        os.close(self._lock)

    def finished(self) -> set[str]:
        """Keys of the cells whose rows are here."""
        return set(self._single) | set(self._batched)

    def begin(self, cells: Sequence[Cell], description: Mapping[str, Any], *, force: bool) -> bool:
        """Say what is swept from now on, and whether the directory was of another grid.

        Results of another grid stay, and `sweep.json` describes them, until those of this one are complete.

        Raises:
            UsageError: there are results of another grid, and they are not to be replaced.

        """
        grid = grid_hash(cells)
        other: bool = self._manifest.get("grid", grid) != grid
        has_results = (self.directory / "results.parquet").exists()
        if other and has_results and not force:
            raise UsageError(
                f"{self.directory} holds the results of another grid: name another directory, or replace them with "
                "--force (force=True in Python), which keeps the finished cells"
            )
        self._begun = {"format": FORMAT, **description, "grid": grid, "cells": len(cells)}
        if self._manifest.get("grid") != grid and not has_results:
            self._write_manifest(self._begun)
        return other

    def add(self, key: str, record: Mapping[str, Any], circumstances: Mapping[str, Any]) -> None:
        """Keep the row of a finished cell. When this returns it is durable."""
        path = self.directory / "cells" / f"{key}.parquet"
        _write_frame(path, frames.row(key, record, circumstances))
        self._single[key] = path
        self._forgive(key)
        if len(self._single) >= self._batch:
            self._fold()

    def fail(self, failure: Failure) -> None:
        """Keep why a cell failed."""
        path = self.directory / "failures" / f"{failure.cell}.json"
        _write(path, json.dumps(asdict(failure), indent=2).encode())
        self.failures[failure.cell] = failure

    def rows(self, keys: set[str]) -> pl.DataFrame:
        """Rows of these cells, in no order, each once."""
        batches = {path for key, path in self._batched.items() if key in keys and key not in self._single}
        singles = [path for key, path in self._single.items() if key in keys]
        found = [pl.read_parquet(path) for path in [*singles, *sorted(batches)]]
        whole = frames.together(found)
        if whole.is_empty():
            return whole
        return whole.filter(pl.col(frames.KEY).is_in(list(keys))).unique(subset=frames.KEY, keep="first")

    def finish(self, cells: Sequence[Cell]) -> str:
        """Write the results of these cells and give the SHA-256 of `results.parquet`."""
        results, timings = frames.results(cells, self.rows({cell.key for cell in cells}))
        path = self.directory / "results.parquet"
        _write_frame(path, results)
        _write_frame(self.directory / "timings.parquet", timings)
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        self._write_manifest({**self._begun, "finished": len(results), "sha256": digest})
        return digest

    def _write_manifest(self, manifest: dict[str, Any]) -> None:
        _write(self.directory / "sweep.json", json.dumps(manifest, indent=2).encode())
        self._manifest = manifest

    def _forgive(self, key: str) -> None:
        if self.failures.pop(key, None) is not None:
            (self.directory / "failures" / f"{key}.json").unlink(missing_ok=True)

    def _fold(self) -> None:
        """Make one file of the rows of single cells, so that a large sweep is not a large number of files."""
        whole = frames.together([pl.read_parquet(path) for path in self._single.values()])
        name = hashlib.blake2b("".join(sorted(self._single)).encode(), digest_size=16).hexdigest()
        path = self.directory / "batches" / f"{name}.parquet"
        _write_frame(path, whole)
        for key, single in self._single.items():
            single.unlink()
            self._batched[key] = path
        self._single = {}

    def _singles(self) -> dict[str, Path]:
        found = {path.stem: path for path in sorted((self.directory / "cells").glob("*.parquet"))}
        return {key: path for key, path in found.items() if self._keys(path) == [key]}

    def _batches(self) -> dict[str, Path]:
        paths = sorted((self.directory / "batches").glob("*.parquet"))
        return {key: path for path in paths for key in self._keys(path) or []}

    def _keys(self, path: Path) -> list[str] | None:
        """Keys of the rows of a file, or `None` where it was damaged and is gone now.

        A file that the system does not let us read is not damaged.
        """
        try:
            keys = pl.read_parquet(path).get_column(frames.KEY).to_list()
        except pl.exceptions.PolarsError:
            self._warn(f"{path} is damaged; its cells run again")
            path.unlink()
            return None
        return keys

    def _failed(self) -> dict[str, Failure]:
        failures = {}
        for path in sorted((self.directory / "failures").glob("*.json")):
            try:
                failure = Failure(**json.loads(path.read_bytes()))
            except (ValueError, TypeError):
                self._warn(f"{path} is damaged; its cell runs again")
                path.unlink()
            else:
                failures[failure.cell] = failure
        done = set(self._single) | set(self._batched)
        return {key: failure for key, failure in failures.items() if key not in done}


def _refuse_other(directory: Path) -> None:
    """Refuse a directory of something else, whose files would be overwritten."""
    ours = {"sweep.json", "lock", "cells", "batches", "failures"}
    if directory.is_dir() and not (directory / "sweep.json").exists():
        for path in sorted(directory.iterdir()):
            if path.name not in ours and not path.name.startswith(".flashlore-"):
                raise UsageError(f"{directory} is no directory of a sweep: it holds {path.name}; name another one")


def _locked(directory: Path) -> int:
    """Lock the directory; the system unlocks it when the process ends, however it ends.

    A child that a killed client was starting has the lock until it runs its own program, so a locked directory is
    tried again for about a second.
    """
    path = directory / "lock"
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        if not _comes_free(lock):
            _refuse_second(directory, lock)
        os.truncate(lock, 0)
        os.write(lock, f"process {os.getpid()} on {socket.gethostname()}".encode())
    except BaseException:
        os.close(lock)
        raise
    return lock


def _comes_free(lock: int) -> bool:
    for pause in PAUSES_S:
        if _taken(lock):
            return True
        time.sleep(pause)
    return _taken(lock)


def _refuse_second(directory: Path, lock: int) -> NoReturn:
    holder = os.read(lock, 200).decode(errors="replace").strip() or "another process"
    raise UsageError(f"{directory} is in use by {holder}; a directory takes one sweep at a time")


def _taken(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _manifest(directory: Path) -> dict[str, Any]:
    path = directory / "sweep.json"
    if not path.exists():
        return {}
    try:
        manifest = json.loads(path.read_bytes())
        known = manifest["format"]
    except (ValueError, KeyError, TypeError):
        raise UsageError(f"{path}: expected the description of a sweep, found something else") from None
    if known != FORMAT:
        raise UsageError(f"{path}: the directory has format {known}, expected {FORMAT}")
    return dict(manifest)


def _write_frame(path: Path, frame: pl.DataFrame) -> None:
    # Through memory: the library gives an error of its own for a full disk, without what the system said.
    content = io.BytesIO()
    frame.write_parquet(content, compression="zstd")
    _write(path, content.getvalue())


def _write(path: Path, content: bytes) -> None:
    with output.whole(path, force=True) as beside:
        beside.write_bytes(content)
