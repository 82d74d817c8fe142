"""Runs from Python are those of the command line, bit for bit, and can be interrupted."""

import json
import math
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import flashlore as fl
import numpy as np
import pytest
import tqdm.auto
from flashlore.progress import shown

DEMO = "demo:django-upgrade"


def command(*arguments: str) -> Any:
    done = subprocess.run([sys.executable, "-m", "flashlore", *arguments], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def repeatable(record: dict[str, Any]) -> dict[str, Any]:
    """A record without what differs between two runs of the same."""
    run = {key: value for key, value in record["run"].items() if key == "simulated_s"}
    return {**record, "run": run}


def test_comparison_is_that_of_the_command_line() -> None:
    arguments = ["compare", DEMO, "--systems", "plain,ca-ssd@auto", "--seeds", "2", "--json"]
    settings: fl.Settings = {"host.queue_depth": 8, "host.mode": "closed", "device.gc.policy": "d-choices"}
    for key, value in settings.items():
        arguments += ["--set", f"{key}={value}"]
    expected = command(*arguments)
    found = fl.compare(DEMO, ["plain", fl.System("ca-ssd")], seeds=2, settings=settings, progress=False)
    assert [repeatable(run.to_dict()) for run in found] == [repeatable(run) for run in expected["runs"]]
    found_seeds = json.loads(found.to_json())["seeds"]
    assert [seeds["seeds"] for seeds in found_seeds] == [seeds["seeds"] for seeds in expected["seeds"]]


def test_settings_of_systems_and_devices_are_those_of_the_command_line() -> None:
    expected = command(
        *("simulate", "profile:mail,requests=3000", "--system", "ca-ssd", "--json"),
        *("--set", "dedup.index_entries=1Ki", "--set", "device.gc.policy=fifo", "--set", "host.seed=7"),
    )
    found = fl.simulate(
        fl.Trace.synth("mail", requests=3000),
        fl.System("ca-ssd", {"dedup.index_entries": "1Ki"}),
        fl.Device("auto", {"gc.policy": "fifo"}),
        seed=7,
        progress=False,
    )
    assert repeatable(found.to_dict()) == repeatable(expected["runs"][0])


def test_jobs_change_nothing_and_order_is_kept() -> None:
    runs = [fl.compare([DEMO, "demo:maildir"], ["plain", "ca-ssd"], jobs=jobs, progress=False) for jobs in (1, 3)]
    one, three = ([repeatable(run.to_dict()) for run in found] for found in runs)
    assert one == three
    assert [(run.trace, run.system) for run in runs[0]] == [
        (trace, system) for trace in (DEMO, "demo:maildir") for system in ("plain", "ca-ssd")
    ]


def test_content_models_and_seeds_change_what_they_say() -> None:
    trace = fl.Trace.open(DEMO)
    assert fl.simulate(trace.with_content("distinct"), progress=False).dedup.hits == 0
    assert fl.simulate(trace, progress=False).dedup.hits > 0
    steady = {"device.precondition.overwrite": "once"}
    by_seed = [fl.simulate(trace, settings=steady, seed=seed, progress=False) for seed in (1, 2, 1)]
    first, second, again = (repeatable(run.to_dict()) for run in by_seed)
    assert first == again
    assert first["flash"] != second["flash"]


def test_array_runs_too() -> None:
    trace = fl.Trace.synth("sysbench", requests=500)
    array = fl.simulate(trace, "i-cash", progress=False)
    assert array.array.hdd_ops > 0


@pytest.mark.parametrize(
    ("ask", "error", "sentence"),
    [
        (lambda: fl.System("ca-sd"), fl.ConfigError, 'did you mean "ca-ssd"?'),
        (lambda: fl.System("ca-ssd", {"dedup.index_entry": 3}), fl.ConfigError, "there is no key"),
        (lambda: fl.System("plain", {"dedup.index_entries": 3}), fl.UsageError, "nothing that runs uses this key"),
        (lambda: fl.Device("auto", {"space.over_provisioning": 7}), fl.ConfigError, "device.space.over_provisioning"),
        (lambda: fl.simulate("no-such.fiu"), fl.TraceError, "no-such.fiu: cannot open the file"),
        (lambda: fl.simulate("demo:none"), fl.UsageError, "there is no bundled capture demo:none"),
        (lambda: fl.Trace.synth("male"), fl.ProfileError, "male"),
        (lambda: fl.simulate(DEMO, "plain", "tiny"), fl.ConfigError, "there is no device"),
        (lambda: fl.simulate(DEMO, "bvssd", recovery_check=2, timeline=0.0), fl.UsageError, "timeline"),
        (lambda: fl.simulate(DEMO, "plain", recovery_check=2), fl.UsageError, "history.enabled"),
        (lambda: fl.simulate(DEMO, "plain", settings={"host.warmup": 1.0}), fl.UsageError, "warm"),
        (lambda: fl.simulate(DEMO, "plain", request_log="/no/such/dir/log"), fl.FileError, "/no/such/dir/log"),
        (lambda: fl.compare(DEMO, ["plain", "plain"]), fl.UsageError, "two systems are called plain"),
        (lambda: fl.compare([DEMO, DEMO]), fl.UsageError, f"2 traces are called {DEMO}"),
        (lambda: fl.compare(DEMO, seeds=0), fl.UsageError, "seeds = 0: expected a whole number from 1 to"),
        (lambda: fl.compare(DEMO, seeds=-1), fl.UsageError, "seeds = -1: expected a whole number from 1 to"),
        (lambda: fl.compare(DEMO, jobs=0), fl.UsageError, "jobs = 0: expected a whole number from 1 to"),
        (lambda: fl.simulate(DEMO, "bvssd", recovery_check=-1), fl.UsageError, "recovery_check = -1: expected a whole"),
        (lambda: fl.simulate(DEMO, timeline=math.nan), fl.UsageError, "timeline = nan: expected a duration"),
        (lambda: fl.simulate(DEMO, seed=-1), fl.ConfigError, "host.seed"),
        (lambda: fl.characterize(DEMO, pages_memory=-1), fl.UsageError, "pages_memory = -1"),
        (lambda: fl.compare(DEMO, ["plain@tlc-1t", "ca-ssd"]), fl.UsageError, "--allow-different-devices"),
        (lambda: fl.Trace.open(DEMO, content="zipf"), fl.UsageError, "zipf"),
        (lambda: fl.Trace.open([DEMO, DEMO], join="never"), fl.UsageError, "join"),  # type: ignore[arg-type]
        (lambda: len(fl.Trace.open(DEMO, devices=["nine"])), fl.TraceUsageError, "device 'nine' does not occur"),
    ],
)
def test_bad_input_is_refused_in_the_words_of_the_core(
    ask: Callable[[], object], error: type[Exception], sentence: str
) -> None:
    with pytest.raises(error) as raised:
        ask()
    assert sentence in str(raised.value)
    assert isinstance(raised.value, fl.FlashloreError)


def test_a_device_too_small_is_a_run_that_cannot_begin() -> None:
    with pytest.raises(fl.RunUsageError, match="use a larger device"):
        fl.simulate(fl.Trace.open(DEMO, compact=True), "plain", fl.Device("ca-ssd-4g", {"capacity": "16MiB"}))


def reading(progress: fl.Progress) -> object:
    """Read for minutes: a workload of a hundred million requests."""
    return fl.simulate("profile:mail,scale=20", "ca-ssd", progress=progress)


def preparing(progress: fl.Progress) -> object:
    """Prepare a device for minutes: it is overwritten until it is steady."""
    steady: fl.Settings = {"precondition.fill": 1.0, "precondition.overwrite": "steady"}
    return fl.simulate(DEMO, "ca-ssd", fl.Device("ca-ssd-4g", steady), progress=progress)


def replaying(progress: fl.Progress) -> object:
    """Replay for seconds, on two threads."""
    draw = np.random.default_rng(3)
    requests = 1_000_000
    trace = fl.Trace.from_arrays(
        op=np.ones(requests, dtype=np.uint8),
        offset=draw.integers(0, 100_000, requests) * 4096,
        length=np.full(requests, 4096),
        content=draw.integers(0, 50_000, requests),
    )
    return fl.compare(trace, ["plain", "ca-ssd", "bvssd"], settings=CLOSED, progress=progress)


def in_array(progress: fl.Progress) -> object:
    """Replay on an array for minutes."""
    return fl.simulate("profile:sysbench,requests=60000", "i-cash", settings=CLOSED, progress=progress)


CLOSED: fl.Settings = {"host.mode": "closed", "host.queue_depth": 8}


@pytest.mark.parametrize(
    ("work", "is_time"),
    [
        (reading, lambda _done, total: total == 0),
        (preparing, lambda done, total: total > 0 and done == 0),
        (replaying, lambda done, _total: done > 0),
        (in_array, lambda done, _total: done > 0),
    ],
)
def test_an_interrupt_ends_what_runs_and_another_run_can_follow(
    work: Callable[[fl.Progress], object], is_time: Callable[[int, int], bool]
) -> None:
    now, over = threading.Event(), threading.Event()

    def send() -> None:
        now.wait()
        if not over.is_set():
            os.kill(os.getpid(), signal.SIGINT)

    sender = threading.Thread(target=send)
    told: list[tuple[int, int]] = []

    def progress(done: int, total: int) -> None:
        told.append((done, total))
        if is_time(done, total):
            now.set()

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        sender.start()
        with pytest.raises(KeyboardInterrupt):
            work(progress)
    finally:
        over.set()
        now.set()
        sender.join()
        signal.signal(signal.SIGINT, before)
    done, total = told[-1]
    assert done < total or total == 0
    assert fl.simulate(DEMO, "plain", progress=False).host.requests > 0


def test_other_threads_go_on_while_a_run_lasts() -> None:
    counted = 0
    ended = threading.Event()

    def count() -> None:
        nonlocal counted
        while not ended.is_set():
            counted += 1
            time.sleep(0)

    counter = threading.Thread(target=count)
    counter.start()
    try:
        before = counted
        fl.simulate("profile:mail,requests=200000", "ca-ssd", progress=False)
        during = counted - before
    finally:
        ended.set()
        counter.join()
    assert during > 100


def test_progress_is_told_up_to_the_end() -> None:
    told: list[tuple[int, int]] = []
    run = fl.simulate(DEMO, "plain", progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (run.host.requests, run.host.requests)
    assert told == sorted(told)


def test_what_progress_raises_ends_the_run() -> None:
    def tired(_done: int, _total: int) -> None:
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        fl.simulate("profile:mail,scale=20", "ca-ssd", progress=tired)


def test_a_bar_shows_where_it_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    fl.simulate(DEMO, "plain", progress=True)
    assert "requests" in capsys.readouterr().err
    fl.simulate(DEMO, "plain")
    assert capsys.readouterr().err == ""


def test_a_bar_counts_each_request_once(capsys: pytest.CaptureFixture[str]) -> None:
    class Bar(tqdm.auto.tqdm):  # type: ignore[type-arg]  # none at run time
        """Shows every change."""

        def __init__(self, **named: Any) -> None:
            super().__init__(mininterval=0, **named)

    with patch("tqdm.auto.tqdm", Bar), shown(progress=True) as report:
        assert report is not None
        for done in (10, 30, 60):
            report(done, 100, 0)
    assert re.findall(r"(\d+)%", capsys.readouterr().err) == ["0", "10", "30", "60"]


def test_a_request_log_is_written(tmp_path: Path) -> None:
    log = tmp_path / "requests.csv"
    run = fl.simulate(DEMO, "plain", request_log=log, progress=False)
    assert len(log.read_text().splitlines()) == run.host.requests + 1


def test_a_request_log_does_not_replace_the_trace(tmp_path: Path) -> None:
    trace, link = tmp_path / "one.csv", tmp_path / "log.csv"
    trace.write_text("1,W,0,4096,0\n")
    link.symlink_to(trace)
    with pytest.raises(fl.UsageError, match=r"request_log = .*log\.csv: this is the trace .*one\.csv"):
        fl.simulate(trace, "plain", request_log=link, progress=False)
    assert trace.read_text() == "1,W,0,4096,0\n"


def test_one_system_is_a_comparison_too_and_durations_may_be_numbers() -> None:
    seconds, texts, objects = (
        fl.compare(DEMO, "plain", timeline=width, progress=False)[0].timeline().to_polars()
        for width in (0.1, "100ms", timedelta(seconds=0.1))
    )
    assert seconds.equals(texts)
    assert seconds.equals(objects)


def test_a_file_of_a_system_may_have_an_at_in_its_name(tmp_path: Path) -> None:
    file = tmp_path / "mine@home.toml"
    file.write_text('name = "mine"\nbase = "plain"\n')
    assert fl.simulate(DEMO, str(file), progress=False).system == "mine"


def test_old_versions_are_compared_with_what_was_written() -> None:
    run = fl.simulate(DEMO, "bvssd", recovery_check=3, progress=False)
    assert run.core.recovered is not None
    assert run.core.recovered[1] == 3
