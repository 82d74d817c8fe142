"""The directory of a sweep loses nothing and has nothing twice, wherever a kill comes."""

import errno
import fcntl
import os
import resource
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import polars as pl
import pytest
from flashlore.errors import FileError, FlashloreError, UsageError
from flashlore.sweeps.cell import Cell, Task
from flashlore.sweeps.store import Failure, Store
from hypothesis import given, settings
from hypothesis import strategies as st


def cells(count: int) -> list[Cell]:
    return [cell(number) for number in range(count)]


def cell(number: int) -> Cell:
    key = f"{number * 2654435761 % 2**32:08x}"
    task = Task(
        key=key,
        version="",
        items=[],
        options={},
        trace="t",
        system={},
        device={},
        settings={},
        seed=number,
        profile=None,
    )
    values = {"gc.window": number} if number % 3 else {}
    return Cell(key, "ca-ssd", "auto", "t", number, values, task)


def record(number: int) -> dict[str, Any]:
    """A record, whose figures are absent, whole or broken as they may be."""
    return {
        "system": "ca-ssd",
        "waf_total": [None, 1.5, 2.0][number % 3],
        "gc": {"victims": number, "valid_per_victim": [[0, 1]]},
        "never": None,
        "workload": {"compact": True},
        "run": {"wall_s": 0.1 * number},
    }


class Killed(BaseException):
    """The process is gone."""


@contextmanager
def killed_after(operations: int) -> Iterator[None]:
    """Let the process be killed before or after some renaming or removal of a file."""
    left = operations

    def counted(real: Callable[..., Any]) -> Callable[..., Any]:
        def operation(*arguments: Any, **named: Any) -> Any:
            nonlocal left
            left -= 1
            if left == 0:
                raise Killed
            done = real(*arguments, **named)
            left -= 1
            if left == 0:
                raise Killed
            return done

        return operation

    # What a kill leaves the system has; only a power cut asks what was made durable.
    with (
        patch.object(Path, "replace", counted(Path.replace)),
        patch.object(Path, "unlink", counted(Path.unlink)),
        patch("os.fsync"),
    ):
        yield


def quiet(text: str) -> None:
    raise AssertionError(text)


def undisturbed(count: int) -> bytes:
    with TemporaryDirectory() as folder, Store(Path(folder), quiet) as store:
        store.begin(cells(count), {}, force=True)
        for one in cells(count):
            store.add(one.key, record(one.seed), {"worker": "a"})
        store.finish(cells(count))
        return (Path(folder) / "results.parquet").read_bytes()


@settings(max_examples=25)
@given(
    count=st.integers(1, 9),
    order=st.randoms(use_true_random=False),
    kills=st.lists(st.integers(1, 12), max_size=4),
    batch=st.integers(2, 4),
)
def test_kills_lose_nothing_and_double_nothing(count: int, order: Any, kills: list[int], batch: int) -> None:
    grid = cells(count)
    with TemporaryDirectory() as folder:
        durable: set[str] = set()
        for kill in [*kills, 10**9]:
            try:
                with Store(Path(folder), quiet, batch=batch) as store, killed_after(kill):
                    store.begin(grid, {}, force=True)
                    assert durable <= store.finished()
                    todo = [one for one in grid if one.key not in store.finished()]
                    order.shuffle(todo)
                    for one in todo:
                        if order.random() < 0.3:
                            store.fail(Failure(one.key, str(one), "no luck"))
                        store.add(one.key, record(one.seed), {"worker": "b"})
                        durable.add(one.key)
                    store.finish(grid)
            except Killed:
                continue
            assert not store.failures
        assert (Path(folder) / "results.parquet").read_bytes() == undisturbed(count)
        rows = pl.read_parquet(Path(folder) / "results.parquet")
        assert rows["cell"].to_list() == [one.key for one in grid]


def test_rows_have_the_columns_of_out_and_the_settings() -> None:
    with TemporaryDirectory() as folder, Store(Path(folder), quiet) as store:
        store.begin(cells(3), {}, force=True)
        for one in reversed(cells(3)):
            store.add(one.key, record(one.seed), {"worker": "a", "ended": "now"})
        store.finish(cells(3))
        results = pl.read_parquet(Path(folder) / "results.parquet")
        timings = pl.read_parquet(Path(folder) / "timings.parquet")
    keys = [one.key for one in cells(3)]
    assert results.to_dict(as_series=False) == {
        "system": ["ca-ssd"] * 3,
        "device": ["auto"] * 3,
        "trace": ["t"] * 3,
        "seed": [0, 1, 2],
        "gc.window": [None, 1, 2],
        "gc.victims": [0, 1, 2],
        "never": [None] * 3,
        "waf_total": [None, 1.5, 2.0],
        "workload.compact": ["true"] * 3,
        "cell": keys,
    }
    assert results.schema["never"] == pl.Int64
    assert timings.columns == ["system", "device", "trace", "seed", "run.wall_s", "worker", "ended", "cell"]
    assert timings["run.wall_s"].to_list() == [0.0, 0.1, 0.2]


def test_a_setting_with_the_name_of_a_figure_has_its_long_name() -> None:
    one = Cell("k", "s", "d", "t", 1, {"gc.victims": "many"}, cell(0).task)
    with TemporaryDirectory() as folder, Store(Path(folder), quiet) as store:
        store.begin([one], {}, force=True)
        store.add("k", record(5), {})
        store.finish([one])
        row = pl.read_parquet(Path(folder) / "results.parquet").row(0, named=True)
    assert (row["system.gc.victims"], row["gc.victims"]) == ("many", 5)


@pytest.mark.parametrize("damage", [b"", b"PAR1", b"PAR1\0\0\0\0PAR1"])
def test_a_damaged_row_runs_again(damage: bytes, tmp_path: Path) -> None:
    told: list[str] = []
    with Store(tmp_path, quiet) as store:
        store.begin(cells(2), {}, force=True)
        for one in cells(2):
            store.add(one.key, record(one.seed), {})
    (tmp_path / "cells" / f"{cells(2)[1].key}.parquet").write_bytes(damage)
    with Store(tmp_path, told.append) as store:
        assert store.finished() == {cells(2)[0].key}
    assert "is damaged; its cells run again" in told[0]


def test_a_row_that_cannot_be_read_now_is_not_removed(tmp_path: Path) -> None:
    with Store(tmp_path, quiet) as store:
        store.add(cell(1).key, record(1), {})
    (row,) = (tmp_path / "cells").iterdir()
    with (
        patch("polars.read_parquet", side_effect=PermissionError(errno.EACCES, "Permission denied", str(row))),
        pytest.raises(FlashloreError, match=r"cannot use .*: Permission denied: .*parquet"),
    ):
        Store(tmp_path, quiet)
    with Store(tmp_path, quiet) as store:
        assert store.finished() == {cell(1).key}


@contextmanager
def cramped() -> Iterator[None]:
    """Let the system refuse to write more than 16 bytes into a file, as it refuses to on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (16, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_is_named_and_what_is_there_stays(tmp_path: Path) -> None:
    full = OSError(errno.ENOSPC, "No space left on device")
    with Store(tmp_path, quiet) as store:
        store.add(cell(1).key, record(1), {})
        for failing in (
            patch("os.fsync", side_effect=full),
            cramped(),
        ):
            said = r"cannot write .*\.parquet: (No space left on device|File too large)$"
            with failing, pytest.raises(FileError, match=said):
                store.add(cell(2).key, record(2), {})
        assert store.finished() == {cell(1).key}
    assert [path.name for path in tmp_path.glob("**/*.*")] == [f"{cell(1).key}.parquet"]


def test_a_setting_larger_than_a_column_is_a_text() -> None:
    few = [Cell(f"k{number}", "s", "d", "t", 1, {"a.b": number}, cell(0).task) for number in (1, 2**64 - 1)]
    with TemporaryDirectory() as folder, Store(Path(folder), quiet) as store:
        for one in few:
            store.add(one.key, record(5), {})
        store.finish(few)
        assert pl.read_parquet(Path(folder) / "results.parquet")["a.b"].to_list() == ["1", "18446744073709551615"]


def test_two_clients_cannot_have_one_directory(tmp_path: Path) -> None:
    with (
        Store(tmp_path, quiet),
        pytest.raises(UsageError, match=r"is in use by process \d+ on .*; a directory takes one sweep at a time"),
    ):
        Store(tmp_path, quiet)
    with Store(tmp_path, quiet):
        pass


@contextmanager
def child_with(lock: int) -> Iterator[subprocess.Popen[bytes]]:
    """A child that has the lock open, as any has until it runs its own program."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, pass_fds=[lock]) as child:
        yield child


def test_a_directory_that_is_given_up_is_not_held_by_a_child_that_starts(tmp_path: Path) -> None:
    store = Store(tmp_path, quiet)
    never = AssertionError("there is no reason to wait")
    with child_with(store._lock), patch("time.sleep", side_effect=never):  # noqa: SLF001 (what every child inherits)
        store.__exit__(None, None, None)
        with Store(tmp_path, quiet):
            pass


def test_a_directory_left_to_a_child_that_starts_is_waited_for(tmp_path: Path) -> None:
    # A client that is killed closes its files and gives nothing up.
    killed = os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(killed, fcntl.LOCK_EX)
    pauses: list[float] = []
    with child_with(killed) as child:
        os.close(killed)

        def pause(seconds: float) -> None:
            pauses.append(seconds)
            if len(pauses) == 3:
                child.communicate()

        with patch("time.sleep", pause), Store(tmp_path, quiet):
            assert len(pauses) == 3


def test_a_directory_in_use_is_waited_for_about_a_second(tmp_path: Path) -> None:
    pauses: list[float] = []
    with Store(tmp_path, quiet), patch("time.sleep", pauses.append), pytest.raises(UsageError, match="is in use by"):
        Store(tmp_path, quiet)
    assert sum(pauses) == pytest.approx(1.023)


def test_a_directory_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "results.parquet").write_bytes(b"precious")
    with pytest.raises(UsageError, match=r"is no directory of a sweep: it holds results\.parquet"):
        Store(tmp_path, quiet)
    assert [path.name for path in tmp_path.iterdir()] == ["results.parquet"]


@pytest.mark.parametrize("manifest", ["{", "[]", '{"format": 99}'])
def test_a_description_of_something_else_is_refused(manifest: str, tmp_path: Path) -> None:
    (tmp_path / "sweep.json").write_text(manifest)
    with pytest.raises(UsageError, match="expected"):
        Store(tmp_path, quiet)
