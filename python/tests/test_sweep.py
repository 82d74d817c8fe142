"""Sweeps come to the same, whoever runs their cells and whatever is killed meanwhile."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import flashlore
import polars as pl
import pytest
from flashlore import DaskExecutor, FlashloreError, Grid, LocalExecutor, Sweep, UsageError, sweep
from flashlore.sweeps import command as sweep_command
from flashlore.sweeps.cell import Task
from flashlore.sweeps.executors import Outcome
from flashlore.sweeps.work import answer

# Clusters leave sockets to the collector when a worker is killed.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")

COUNT = 12
LONG_S = 600.0


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace that keeps a cell busy for some milliseconds."""
    path = tmp_path_factory.mktemp("traces") / "busy.csv"
    lines = [f"1,W,{number * 7919 % 3000 * 4096},8192,{number * 100}\n" for number in range(6_000)]
    path.write_text("".join(lines))
    return path


@pytest.fixture(scope="module")
def grid(trace: Path) -> Grid:
    return Grid(
        [{"path": str(trace), "content": "distinct"}],
        ["plain", "ca-ssd"],
        settings={"device.space.over_provisioning": {"from": 0.1, "to": 0.35, "step": 0.05}},
    )


@pytest.fixture(scope="module")
def undisturbed(grid: Grid, tmp_path_factory: pytest.TempPathFactory) -> str:
    return sweep(grid, Inline(), out=tmp_path_factory.mktemp("undisturbed") / "out").sha256


class Inline:
    """Runs cells here, backwards; may refuse some of them, and stop after some."""

    def __init__(self, refuse: Callable[[Task], bool] = lambda _: False, stop_after: int = 10**9) -> None:
        self.ran: list[str] = []
        self._refuse = refuse
        self._stop_after = stop_after

    @contextmanager
    def run(self, tasks: Sequence[Task]) -> Iterator[Iterator[Outcome]]:
        yield (self._outcome(task) for task in reversed(tasks))

    def _outcome(self, task: Task) -> Outcome:
        if len(self.ran) == self._stop_after:
            raise KeyboardInterrupt
        self.ran.append(task["key"])
        if self._refuse(task):
            return Outcome(task["key"], None, "no luck", "here")
        told = answer(task, worker="here")
        return Outcome(task["key"], told.record, told.error, "here")


def until(happened: Callable[[], object]) -> None:
    end = time.monotonic() + LONG_S
    while not happened():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.005)


def rows(out: Path) -> int:
    return len(list((out / "cells").glob("*.parquet")))


def children(process: int) -> list[int]:
    tasks = Path(f"/proc/{process}/task").glob("*/children")
    return [int(child) for task in tasks for child in task.read_text().split()]


def command(*arguments: object, **named: Any) -> "subprocess.Popen[str]":
    environment = {**os.environ, "PYTHONPATH": str(Path(flashlore.__file__).parents[1])}
    line = [sys.executable, "-m", "flashlore", "sweep", *map(str, arguments)]
    return subprocess.Popen(line, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **named)


def interrupted(
    file: Path, out: Path, least: int, how: signal.Signals, *options: object, **named: Any
) -> tuple[int, list[int], str]:
    """A sweep of a file that gets a signal when so many cells are finished: its return code, its processes, its words.

    A sweep that is done before anybody looks, as happens on a busy machine, is begun anew.
    """
    for _ in range(100):
        client = command(file, "-o", out, *options, **named)
        until(lambda poll=client.poll: rows(out) >= least or poll() is not None)
        workers = children(client.pid)
        client.send_signal(how)
        _, complaint = client.communicate(timeout=LONG_S)
        if client.returncode != 0:
            return client.returncode, workers, complaint
        shutil.rmtree(out)
    raise AssertionError("no sweep lasts long enough to be interrupted")


@pytest.fixture
def file(trace: Path, tmp_path: Path) -> Path:
    """The grid of the fixture `grid` as a file."""
    path = tmp_path / "spare.toml"
    path.write_text(f"""
        traces = [{{ path = "{trace}", content = "distinct" }}]
        systems = ["plain", "ca-ssd"]

        [settings]
        device.space.over_provisioning = {{ from = 0.1, to = 0.35, step = 0.05 }}
        """)
    return path


def test_rows_are_those_of_simulate(grid: Grid, tmp_path: Path) -> None:
    done = sweep(grid, Inline(), out=tmp_path / "out")
    frame = done.frame()
    assert len(frame) == COUNT == len(done.cells)
    trace = flashlore.Trace.open(grid.traces[0]["path"], content="distinct")  # type: ignore[index]
    settings = {"device.space.over_provisioning": 0.1}
    run = flashlore.simulate(trace, "ca-ssd", settings=settings, seed=1, progress=False)
    measured = ["run.wall_s", "run.requests_per_s", "run.peak_rss_bytes"]
    expected = flashlore.Results([run]).runs().to_polars().drop(measured)
    row = frame.filter(pl.col("system") == "ca-ssd", pl.col("device.space.over_provisioning") == 0.1)
    assert row.select(expected.columns).to_dicts() == expected.to_dicts()
    assert done.timings().columns[4:7] == measured


def test_cells_run_with_their_seeds(tmp_path: Path) -> None:
    steady: dict[str, Any] = {"device.precondition.overwrite": "once"}
    done = sweep(Grid([in_memory()], ["plain"], settings=steady, seeds=[1, 2]), Inline(), out=tmp_path / "out")
    runs = [flashlore.simulate(in_memory(), "plain", settings=steady, seed=seed, progress=False) for seed in (1, 2)]
    assert done.frame()["programs.gc"].to_list() == [run.programs.gc for run in runs]
    assert runs[0].programs.gc != runs[1].programs.gc


def test_seeds_draw_workloads_anew_as_a_comparison_does(tmp_path: Path) -> None:
    profile, systems = "profile:mail,requests=2000", ["plain", "ca-ssd"]
    done = sweep(Grid([profile], systems, seeds=[3, 1, 2]), Inline(), out=tmp_path / "out").frame()
    swept = {(row["system"], row["seed"]): row["programs.host"] for row in done.to_dicts()}
    compared = flashlore.compare(profile, systems, seeds=3, progress=False)
    assert swept == {(run.system, run.seed): run.programs.host for run in compared}
    assert len({swept["ca-ssd", seed] for seed in (1, 2, 3)}) > 1


def test_processes_give_the_same_bytes(grid: Grid, undisturbed: str, tmp_path: Path) -> None:
    done = sweep(grid, out=tmp_path / "out", jobs=2)
    assert (done.sha256, done.failures, done.reused) == (undisturbed, (), 0)


def test_processes_import_nothing_from_where_they_are_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "queue.py").write_text("raise SystemExit('not this one')")
    monkeypatch.chdir(tmp_path)
    assert sweep(Grid([in_memory()], ["plain"]), LocalExecutor(1), out="out").failures == ()


def test_a_killed_process_is_replaced(grid: Grid, undisturbed: str, tmp_path: Path) -> None:
    killed: list[int] = []
    # Other tests of this process have children too, such as the one that drives a browser.
    others = set(children(os.getpid()))

    def kill(out: Path) -> None:
        until(lambda: rows(out) >= 2)
        # On a busy machine the sweep may be done.
        for child in [child for child in children(os.getpid()) if child not in others][:1]:
            os.kill(child, signal.SIGKILL)
            killed.append(child)

    for number in range(100):
        out = tmp_path / str(number)
        killer = threading.Thread(target=kill, args=[out])
        killer.start()
        done = sweep(grid, LocalExecutor(2), out=out)
        killer.join()
        assert (done.sha256, done.failures) == (undisturbed, ())
        if killed:
            return
    raise AssertionError("no sweep lasts long enough to be killed")


def test_a_cell_that_needs_too_much_memory_fails_alone(trace: Path, tmp_path: Path) -> None:
    source = {"path": str(trace), "content": "distinct"}
    cells = [{"trace": "busy.csv", "system": "plain", "device": "tlc-1t"}]
    grid = Grid([source], ["plain"], cells=cells)
    done = sweep(grid, LocalExecutor(1, memory=256 * 2**20, attempts=2), out=tmp_path / "out")
    assert len(done.frame()) == 1
    (failure,) = done.failures
    assert failure.name.startswith("plain on tlc-1t, ")
    assert failure.error.startswith("its process died 2 times: signal SIGABRT, memory allocation of ")


def test_a_killed_client_leaves_what_is_finished(grid: Grid, undisturbed: str, file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    _, workers, _ = interrupted(file, out, 3, signal.SIGKILL, "--jobs", 2, start_new_session=True)
    until(lambda: not any(Path(f"/proc/{child}/cmdline").exists() for child in workers))
    assert workers
    before = rows(out)
    again = Inline()
    done = sweep(grid, again, out=out)
    assert (done.sha256, done.reused, len(again.ran)) == (undisturbed, before, COUNT - before)


def test_interrupts_say_how_to_go_on(grid: Grid, undisturbed: str, file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    code, _, complaint = interrupted(file, out, 1, signal.SIGINT, "--jobs", 1)
    assert code == -signal.SIGINT
    assert f"of {COUNT} cells are finished in {out}; the same sweep goes on from there" in complaint
    assert sweep(grid, Inline(), out=out).sha256 == undisturbed


@pytest.mark.parametrize("stop_after", [0, 1, 5, COUNT - 1])
def test_finished_cells_are_not_run_again(grid: Grid, undisturbed: str, stop_after: int, tmp_path: Path) -> None:
    first = Inline(stop_after=stop_after)
    with pytest.raises(KeyboardInterrupt, match=f"{stop_after} of {COUNT} cells are finished"):
        sweep(grid, first, out=tmp_path / "out")
    second = Inline()
    done = sweep(grid, second, out=tmp_path / "out")
    assert done.sha256 == undisturbed
    assert sorted(first.ran + second.ran) == sorted(cell.key for cell in done.cells)


def test_failures_stay_apart_until_they_are_retried(grid: Grid, undisturbed: str, tmp_path: Path) -> None:
    def refuse(task: Task) -> bool:
        return task["system"]["name"] == "plain"

    done = sweep(grid, Inline(refuse), out=tmp_path / "out")
    assert [failure.error for failure in done.failures] == ["no luck"] * 6
    assert done.frame()["system"].unique().to_list() == ["ca-ssd"]
    same = Inline()
    assert len(sweep(grid, same, out=tmp_path / "out").failures) == 6
    assert same.ran == []
    again = sweep(grid, Inline(), out=tmp_path / "out", retry_failed=True)
    assert (again.sha256, again.failures, again.reused) == (undisturbed, (), 6)


def test_a_larger_grid_takes_over_what_is_there(grid: Grid, undisturbed: str, tmp_path: Path) -> None:
    smaller = Grid(grid.traces, ["ca-ssd"], settings={"device.space.over_provisioning": [0.2, 0.1, 0.9]})
    told: list[str] = []
    few = sweep(smaller, Inline(), out=tmp_path / "out", tell=told.append)
    runner = Inline()
    before = few.frame()
    with pytest.raises(UsageError, match="holds the results of another grid"):
        sweep(grid, runner, out=tmp_path / "out", tell=told.append)
    assert few.frame().equals(before)
    done = sweep(grid, runner, out=tmp_path / "out", force=True, tell=told.append)
    assert (done.sha256, done.reused, len(runner.ran)) == (undisturbed, 2, COUNT - 2)
    assert "was of another grid" in "".join(told)
    back = Inline()
    assert sweep(smaller, back, out=tmp_path / "out", force=True, tell=told.append).sha256 == few.sha256
    assert back.ran == []


def test_a_trace_that_changes_meanwhile_is_a_failure(tmp_path: Path) -> None:
    trace = tmp_path / "one.csv"
    trace.write_text("1,W,0,4096,0\n")

    def change(_: Task) -> bool:
        trace.write_text("1,W,4096,4096,0\n")
        return False

    done = sweep(Grid([str(trace)], ["plain"]), Inline(change), out=tmp_path / "out")
    assert "the trace has changed" in done.failures[0].error


def test_a_worker_that_outlives_a_sweep_reads_what_the_next_one_means(tmp_path: Path) -> None:
    trace = tmp_path / "one.csv"
    programs = []
    for writes in (1, 2):
        trace.write_text("1,W,0,4096,0\n" * writes)
        done = sweep(Grid([str(trace)], ["plain"]), Inline(), out=tmp_path / "out", force=True, tell=lambda _: None)
        assert done.failures == ()
        programs += done.frame()["programs.host"].to_list()
    assert programs == [1, 2]


@pytest.mark.parametrize("how", ["made", "laid over", "beside"])
def test_files_that_change_meanwhile_are_failures(how: str, tmp_path: Path) -> None:
    mail = (Path(__file__).parents[2] / "crates/synth/profiles/mail.toml").read_text()
    file = tmp_path / ("one.pages.zst" if how == "beside" else "mine.toml")
    file.write_text(mail)
    trace: Any = {
        "made": f"profile:{file},requests=100",
        "laid over": {"path": str(tmp_path / "one.csv"), "content": f"profile:{file}"},
        "beside": str(tmp_path / "one.csv"),
    }[how]
    (tmp_path / "one.csv").write_text("1,W,0,4096,0\n")

    def change(_: Task) -> bool:
        file.write_text(mail.replace("light_writes = 25", "light_writes = 24"))
        return False

    done = sweep(Grid([trace], ["plain"]), Inline(change), out=tmp_path / "out")
    assert "the trace has changed" in done.failures[0].error


def test_a_panic_of_the_core_is_a_failure_of_its_cell(grid: Grid, tmp_path: Path) -> None:
    class Panic(BaseException):
        """As PyO3 raises it."""

    with patch("flashlore.sweeps.work.simulate", side_effect=Panic("index out of bounds")):
        done = sweep(grid, Inline(), out=tmp_path / "out")
    assert {failure.error for failure in done.failures} == {"Panic: index out of bounds"}
    assert len(done.failures) == COUNT


def test_a_trace_without_a_path_here_is_a_failure_of_its_cells(grid: Grid, tmp_path: Path) -> None:
    bad = tmp_path / "bad.csv"
    bad.write_text("this is no trace\n")
    both = Grid([*grid.traces, str(bad)], ["plain"])
    done = sweep(both, Inline(), out=tmp_path / "out")
    assert len(done.frame()) == 1
    assert str(bad) in done.failures[0].error


def in_memory() -> flashlore.Trace:
    offsets = array("q", [number * 7919 % 300 * 4096 for number in range(1000)])
    lengths = array("q", [4096] * 1000)
    values = array("Q", [number % 250 for number in range(1000)])
    return flashlore.Trace.from_arrays(op=["write"] * 1000, offset=offsets, length=lengths, content=values, name="mine")


def test_traces_in_memory_are_known_by_their_records(tmp_path: Path) -> None:
    few = Grid([in_memory()], ["plain"])
    done = sweep(few, LocalExecutor(1), out=tmp_path / "out")
    assert done.failures == ()
    expected = flashlore.simulate(in_memory(), "plain", seed=1, progress=False)
    assert done.frame().row(0, named=True)["programs.gc"] == expected.programs.gc
    assert done.frame()["trace"].to_list() == ["mine"]
    more = Grid([in_memory()], ["plain", "ca-ssd"])
    assert sweep(more, LocalExecutor(1), out=tmp_path / "out", force=True, tell=lambda _: None).reused == 1


def test_opened_traces_are_shared_by_path(grid: Grid, trace: Path, tmp_path: Path) -> None:
    runner = Inline()
    sweep(grid, runner, out=tmp_path / "out")
    opened = flashlore.Trace.open(trace, content="distinct")
    again = Inline()
    sweep(Grid([opened], grid.systems, settings=grid.settings), again, out=tmp_path / "out")
    assert (len(runner.ran), again.ran) == (COUNT, [])


class TestCommand:
    def test_it_prints_a_table(self, file: Path, undisturbed: str, tmp_path: Path) -> None:
        client = command(file, "--jobs", 2, cwd=tmp_path)
        table, complaints = client.communicate(timeout=LONG_S)
        assert (client.returncode, complaints) == (0, "")
        assert "waf_total" in table
        assert f"{COUNT} of {COUNT} cells are finished: spare/results.parquet" in table
        client = command(file, "--json", cwd=tmp_path)
        printed, _ = client.communicate(timeout=LONG_S)
        tree = json.loads(printed)
        assert (tree["sha256"], tree["reused"], len(tree["rows"])) == (undisturbed, COUNT, COUNT)

    def test_failures_are_told_and_end_with_1(self, tmp_path: Path) -> None:
        (tmp_path / "bad.csv").write_text("this is no trace\n")
        file = tmp_path / "bad.toml"
        file.write_text('traces = ["bad.csv", "demo:maildir"]\nsystems = ["plain"]')
        client = command(file, cwd=tmp_path)
        table, complaints = client.communicate(timeout=LONG_S)
        assert client.returncode == 1
        assert "1 of 2 cells are finished" in table
        assert "failed: plain on auto, bad.csv, seed 1: " in complaints
        assert "error: 1 of 2 cells failed; --retry-failed tries them again" in complaints

    def test_mistakes_end_with_2_before_anything_runs(self, tmp_path: Path) -> None:
        file = tmp_path / "wrong.toml"
        file.write_text('traces = ["demo:maildir"]\nsystems = ["plain"]\n[settings]\ngc.polcy = ["x"]')
        client = command(file, cwd=tmp_path)
        _, complaints = client.communicate(timeout=LONG_S)
        assert client.returncode == 2
        assert complaints.startswith(f"error: {file}: ")
        assert "gc.polcy" in complaints
        assert not (tmp_path / "wrong").exists()


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """A client of a cluster of two workers."""
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


class TestDask:
    def test_a_cluster_gives_the_same_bytes(self, client: Any, grid: Grid, undisturbed: str, tmp_path: Path) -> None:
        done = sweep(grid, client, out=tmp_path / "out")
        assert (done.sha256, done.failures) == (undisturbed, ())
        assert done.timings()["worker"].n_unique() == 2

    def test_traces_are_sent_once_to_each_worker(
        self, client: Any, grid: Grid, undisturbed: str, trace: Path, tmp_path: Path
    ) -> None:
        done = sweep(grid, DaskExecutor(client, send_traces=True), out=tmp_path / "out")
        assert (done.sha256, done.failures) == (undisturbed, ())
        # Sent as it is: a worker cannot import this file.
        folders = client.run(lambda dask_worker: dask_worker.local_directory)
        held = [[path.name for path in Path(folder).glob("flashlore-traces/*/*")] for folder in folders.values()]
        assert held == [[trace.name]] * 2

    def test_records_in_memory_go_by_themselves(self, client: Any, tmp_path: Path) -> None:
        grid = Grid([in_memory()], ["plain", "ca-ssd"], settings={"device.space.over_provisioning": [0.3, 0.4]})
        done = sweep(grid, client, out=tmp_path / "out")
        assert done.failures == ()
        assert done.sha256 == sweep(grid, Inline(), out=tmp_path / "here").sha256

    def test_a_killed_worker_costs_nothing(self, client: Any, grid: Grid, undisturbed: str, tmp_path: Path) -> None:
        processes = client.run(os.getpid)

        def kill() -> None:
            until(lambda: rows(tmp_path / "out") >= 2)
            os.kill(min(processes.values()), signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        done = sweep(grid, DaskExecutor(client, send_traces=True), out=tmp_path / "out")
        killer.join()
        assert (done.sha256, done.failures) == (undisturbed, ())


def test_a_scheduler_that_does_not_answer_is_named(grid: Grid, tmp_path: Path) -> None:
    with pytest.raises(FlashloreError, match="no Dask scheduler answers at nonsense://x"):
        sweep(grid, DaskExecutor("nonsense://x"), out=tmp_path / "out")


def test_a_file_that_names_no_scheduler_is_named(grid: Grid, tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text("{}")
    with pytest.raises(FlashloreError, match=r"answers at .*s\.json: it is no scheduler file"):
        sweep(grid, DaskExecutor(str(tmp_path / "s.json")), out=tmp_path / "out")


def test_results_that_nobody_reads_are_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    reads, writes = os.pipe()
    os.close(reads)
    with os.fdopen(writes, "w") as nobody:
        monkeypatch.setattr(sys, "stdout", nobody)
        sweep_command._print("a table\n")  # noqa: SLF001 (what the command prints)


def test_executors_refuse_what_cannot_work(grid: Grid, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="jobs = 0"):
        LocalExecutor(0)
    with pytest.raises(UsageError, match="executor = 'spark'"):
        sweep(grid, "spark", out=tmp_path)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="out is missing"):
        sweep(grid)


def test_a_sweep_says_what_it_is(grid: Grid, tmp_path: Path) -> None:
    done: Sweep = sweep(grid, Inline(), out=tmp_path / "out")
    assert repr(done) == f"Sweep(12 cells in '{tmp_path / 'out'}')"
