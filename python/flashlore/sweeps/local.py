"""Cells in processes of this machine.

Each process runs one cell at a time and is spoken to by lines of JSON over its standard input and output, which need
no pickling and no `if __name__ == "__main__"` in the caller's script. It ends when its input does, so that nothing is
left when the caller is killed. A process that dies is replaced, and its cell tried again.
"""

import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import flashlore
from flashlore.errors import UsageError
from flashlore.sweeps.cell import Task
from flashlore.sweeps.executors import ATTEMPTS, Outcome

_LAST_GASP_S = 5.0


@dataclass(frozen=True)
class LocalExecutor:
    """Runs cells in processes of this machine.

    Args:
        jobs: processes at a time; nothing: the cores there are.
        memory: most bytes of memory of each process, beside code and shared memory; a cell that needs more fails.
        attempts: how often a cell is tried whose process dies.

    """

    jobs: int | None = None
    memory: int | None = None
    attempts: int = ATTEMPTS

    def __post_init__(self) -> None:
        """Refuse what cannot work."""
        for name in ("jobs", "memory", "attempts"):
            given = getattr(self, name)
            if given is not None and given < 1:
                raise UsageError(f"{name} = {given}: expected at least 1")

    @contextmanager
    def run(self, tasks: Sequence[Task]) -> Iterator[Iterator[Outcome]]:
        """Run every task; see `Executor`."""
        waiting: queue.SimpleQueue[Task] = queue.SimpleQueue()
        for task in tasks:
            waiting.put(task)
        ended: queue.SimpleQueue[Outcome | Exception] = queue.SimpleQueue()
        count = min(self.jobs or len(os.sched_getaffinity(0)), len(tasks))
        slots = [_Slot(self, waiting, ended) for _ in range(count)]
        try:
            for slot in slots:
                slot.thread.start()
            yield (_taken(ended) for _ in tasks)
        finally:
            for slot in slots:
                slot.stop()
            for slot in slots:
                if slot.thread.ident is not None:
                    slot.thread.join()


def _taken(ended: "queue.SimpleQueue[Outcome | Exception]") -> Outcome:
    outcome = ended.get()
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


class _Slot:
    """A thread with a process, or with one after another if they die."""

    def __init__(
        self,
        executor: LocalExecutor,
        waiting: "queue.SimpleQueue[Task]",
        ended: "queue.SimpleQueue[Outcome | Exception]",
    ) -> None:
        self.thread = threading.Thread(target=self._work, name="flashlore-sweep", daemon=True)
        self._executor = executor
        self._waiting = waiting
        self._ended = ended
        self._process: _Process | None = None
        # Held where a process comes or goes, so that none is started behind a stop.
        self._lock = threading.Lock()
        self._stopping = False

    def stop(self) -> None:
        """End the process, whatever it is at."""
        with self._lock:
            self._stopping = True
            if self._process is not None:
                self._process.kill()

    def _work(self) -> None:
        try:
            while not self._stopping:
                try:
                    task = self._waiting.get_nowait()
                except queue.Empty:
                    break
                outcome = self._run(task)
                if outcome is not None:
                    self._ended.put(outcome)
        except Exception as error:  # noqa: BLE001 - raised where the outcomes are taken
            self._ended.put(error)
        finally:
            with self._lock:
                self._stopping = True
                if self._process is not None:
                    self._process.end()

    def _run(self, task: Task) -> Outcome | None:
        """Run a task, in as many processes as it takes; `None` when told to stop."""
        death = ""
        for _ in range(self._executor.attempts):
            process = self._alive()
            if process is None:
                return None
            answer = process.ask(task)
            if answer is not None:
                return Outcome(task["key"], answer["record"], answer["error"], process.name)
            death = process.death()
        times = f"{self._executor.attempts} times" if self._executor.attempts > 1 else "once"
        return Outcome(task["key"], None, f"its process died {times}: {death}", "")

    def _alive(self) -> "_Process | None":
        with self._lock:
            if self._stopping:
                return None
            if self._process is None or self._process.dead:
                self._process = _Process(self._executor.memory)
            return self._process


class _Process:
    """A process that runs cells (`flashlore.sweeps.worker`)."""

    def __init__(self, memory: int | None) -> None:
        here = str(Path(flashlore.__file__).parents[1])
        path = os.pathsep.join(filter(None, [here, os.environ.get("PYTHONPATH")]))
        # What lies in the present directory is not imported.
        command = [sys.executable, "-P", "-m", "flashlore.sweeps.worker", str(memory or 0)]
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115 (it is closed with the process)
        self._child = subprocess.Popen(  # noqa: S603 (this interpreter, and a module of this package)
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._complaints,
            # Of a death one line is told; a backtrace would hide it.
            env={**os.environ, "PYTHONPATH": path, "RUST_BACKTRACE": "0"},
            # An interrupt from the keyboard goes to the client, which ends its processes.
            process_group=0,
        )
        self.name = f"process {self._child.pid}"
        self.dead = False

    def ask(self, task: Task) -> "dict[str, Any] | None":
        """Have a cell run; `None` when the process dies."""
        try:
            _pipe(self._child.stdin).write(json.dumps(task).encode() + b"\n")
            _pipe(self._child.stdin).flush()
            line = _pipe(self._child.stdout).readline()
        except OSError:
            line = b""
        if line.endswith(b"\n"):
            return dict(json.loads(line))
        self.dead = True
        return None

    def kill(self) -> None:
        """End it at once; a process that has ended already stays as it is."""
        self._child.kill()

    def end(self) -> None:
        """End it and close what is left of it."""
        self.kill()
        self._child.wait()
        for pipe in (self._child.stdin, self._child.stdout):
            with suppress(OSError):
                _pipe(pipe).close()
        self._complaints.close()

    def death(self) -> str:
        """Say how it died, and close what is left of it."""
        with suppress(subprocess.TimeoutExpired):
            # Its output is closed, and its end is near; without killing it the status is its own.
            self._child.wait(_LAST_GASP_S)
        self.kill()
        status = self._child.wait()
        how = f"exit status {status}" if status >= 0 else f"signal {signal.Signals(-status).name}"
        self._complaints.seek(0)
        said = self._complaints.read().decode(errors="replace").splitlines()
        lines = [line for line in said if line.strip() and not line.startswith("note: ")]
        self.end()
        hint = " (the system may have run out of memory)" if status == -signal.SIGKILL else ""
        return f"{how}{hint}{f', {lines[-1]}' if lines else ''}"


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    if pipe is None:  # pragma: no cover - they are asked for when the process is made
        raise RuntimeError("the process has no pipe")
    return pipe
