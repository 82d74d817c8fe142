"""Processes of blocks: who they are, waiting for them, ending them. Each block has a session of its own."""

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from pathlib import Path


def until(done: Callable[[], object], limit: float) -> bool:
    """Wait until something is so, at most so many seconds; whether it is."""
    end = time.monotonic() + limit
    while not done():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def _running() -> Iterator[tuple[int, int]]:
    """Number and session of all processes that run."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        if fields[0] != "Z":
            yield int(path.parent.name), int(fields[3])


def session(leader: int) -> set[int]:
    """The processes of a session that run."""
    return {number for number, session in _running() if session == leader}


def command(process: int) -> str:
    try:
        return Path(f"/proc/{process}/cmdline").read_text().replace("\0", " ").strip()
    except OSError:
        return f"process {process}"


def end(processes: AbstractSet[int], grace: float) -> None:
    """Ask processes to end, and do not take no for an answer after so many seconds."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, number)
        if until(lambda: not processes & {number for number, _ in _running()}, grace):
            return
