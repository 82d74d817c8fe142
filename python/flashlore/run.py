"""Runs of traces on systems and devices."""

from collections.abc import Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import TypeAlias

from flashlore import _core
from flashlore.errors import UsageError
from flashlore.progress import Progress, shown
from flashlore.results import Results, Run
from flashlore.settings import Duration, Settings, count, duration, texts
from flashlore.system import Device, System
from flashlore.trace import Trace

Column: TypeAlias = str | System | tuple[str | System, str | Device]
"""A system, or a system with a device of its own; `SYSTEM@DEVICE` does too."""

_Spec = tuple[str, list[str]]


def simulate(  # noqa: PLR0913 (each is a question of its own)
    trace: Trace | str | PathLike[str],
    system: str | System = "ca-ssd",
    device: str | Device = "auto",
    *,
    settings: Settings | None = None,
    seed: int | None = None,
    timeline: Duration | None = None,
    recovery_check: int | None = None,
    request_log: str | PathLike[str] | None = None,
    force: bool = False,
    progress: Progress = None,
) -> Run:
    """Replay a trace on one system.

    Args:
        trace: The trace, or what `Trace.open` takes.
        system: A preset, a TOML file, or a `System` with settings of its own.
        device: A preset, a TOML file, or a `Device`; `auto` is sized from the trace.
        settings: Values by key, as `--set` takes them, above those of system and device.
        seed: Seed of all random choices, for `host.seed`; the same seed gives the same run, bit for bit.
        timeline: Width of the stretches of a time line: seconds of simulated time, or a text such as `"1s"`.
        recovery_check: Rewind to so many random instants of the window of old versions after the run, and compare
            every page with what had been written by then; for systems with history.
        request_log: A file for a line of CSV for every request.
        force: Replace a log that is there already.
        progress: `None` shows a bar where somebody sees it, true always, false never; a function is called many times
            a second with the requests done and those to be done.

    The interpreter lock is released while the simulation runs, and an interrupt stops it.

    Raises:
        ConfigError: A name, key or value that does not exist or contradicts another.
        TraceError: A trace that cannot be read.
        RunError: A run that cannot begin or go on.

    >>> run = simulate("demo:maildir", "ca-ssd", progress=False)
    >>> run.dedup.hits > 0
    True

    """
    more = {} if seed is None else {"host.seed": seed}
    outputs = _run(
        [trace],
        [(system, device)],
        {**(settings or {}), **more},
        timeline=timeline,
        recovery_check=recovery_check,
        request_log=request_log,
        force=force,
        progress=progress,
    )
    return outputs[0]


def compare(  # noqa: PLR0913 (each is a question of its own)
    traces: Trace | str | PathLike[str] | Sequence[Trace | str | PathLike[str]],
    systems: str | System | Sequence[Column] = ("plain", "ca-ssd"),
    device: str | Device = "auto",
    *,
    settings: Settings | None = None,
    seeds: int = 1,
    timeline: Duration | None = None,
    jobs: int | None = None,
    progress: Progress = None,
    allow_different_devices: bool = False,
) -> Results:
    """Replay every trace on every system with every seed; runs are spread over the cores.

    Args:
        traces: One trace or several of different names, each replayed by itself.
        systems: Presets, TOML files or `System`s, one or several; each has the common device, unless it comes as a
            pair with a device of its own, or as `SYSTEM@DEVICE`.
        device: The device of the others.
        settings: Values by key, as `--set` takes them, for all runs.
        seeds: Repeat each run with so many seeds, from `host.seed` on.
        timeline: Width of the stretches of a time line: seconds of simulated time, or a text such as `"1s"`.
        jobs: Runs at a time; the cores there are, if it is not said.
        progress: As in `simulate`.
        allow_different_devices: Let the devices of the systems differ.

    The result does not depend on `jobs`. The interpreter lock is released, and an interrupt stops all runs.

    Raises:
        ConfigError: A name, key or value that does not exist or contradicts another.
        TraceError: A trace that cannot be read.
        RunError: A run that cannot begin or go on.

    >>> results = compare("demo:maildir", ["plain", "ca-ssd"], progress=False)
    >>> [run.system for run in results if run.waf_total < 1.1]
    ['ca-ssd']

    """
    several = [traces] if isinstance(traces, Trace | str | PathLike) else list(traces)
    chosen = [systems] if isinstance(systems, str | System) else systems
    columns = [column if isinstance(column, tuple) else (column, device) for column in chosen]
    return _run(
        several,
        columns,
        settings,
        seeds=seeds,
        timeline=timeline,
        jobs=jobs,
        progress=progress,
        different_devices=allow_different_devices,
    )


def _run(  # noqa: PLR0913
    traces: Sequence[Trace | str | PathLike[str]],
    columns: Sequence[tuple[str | System, str | Device]],
    settings: Settings | None,
    *,
    seeds: int = 1,
    timeline: Duration | None = None,
    recovery_check: int | None = None,
    request_log: str | PathLike[str] | None = None,
    force: bool = False,
    jobs: int | None = None,
    progress: Progress = None,
    different_devices: bool = False,
) -> Results:
    opened = [trace if isinstance(trace, Trace) else Trace.open(trace) for trace in traces]
    _refuse_same_names(opened)
    if request_log is not None:
        _refuse_trace(request_log, opened)
    with shown(progress) as report:
        outputs = _core.compare(
            [trace.core for trace in opened],
            [_column(system, device) for system, device in columns],
            settings=texts(settings),
            seeds=count("seeds", seeds, 1, 64),
            different_devices=different_devices,
            timeline=duration("timeline", timeline),
            recovery_check=recovery_check if recovery_check is None else count("recovery_check", recovery_check, 0, 32),
            request_log=request_log,
            force=force,
            jobs=jobs if jobs is None else count("jobs", jobs, 1, 32),
            progress=report,
        )
    return Results([Run.of(output) for output in outputs])


def _column(system: str | System, device: str | Device) -> tuple[_Spec, _Spec]:
    # A file may have it in its name.
    if isinstance(system, str) and "@" in system and not Path(system).exists():
        system, device = system.rsplit("@", 1)
    system = system if isinstance(system, System) else System(system)
    device = device if isinstance(device, Device) else Device(device)
    return (
        (system.preset, texts(system.settings)),
        (device.preset, texts(device.settings, "device.")),
    )


def _refuse_same_names(traces: Sequence[Trace]) -> None:
    """Refuse traces that results could not tell apart: they would be taken for seeds of one run."""
    names = [trace.name for trace in traces]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(
                f"{names.count(name)} traces are called {name}, and results tell traces apart by name: "
                f"compare them one at a time"
            )


def _refuse_trace(log: str | PathLike[str], traces: Sequence[Trace]) -> None:
    """Refuse to write over a trace."""
    for path in (path for trace in traces for path in trace.paths):
        if Path(path).exists() and Path(log).exists() and Path(path).samefile(log):
            raise UsageError(f"request_log = {fspath(log)}: this is the trace {path}; name another file")
