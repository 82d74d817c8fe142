"""Cells on a Dask cluster.

Cells are plain data and depend on nothing, so that Dask runs them again by itself where a worker dies. No more are
handed over than there are workers: a worker simulates one at a time, and a cell that kills its worker drags no
neighbour along. Traces are found at their paths, which the workers must see; or their files are sent, once to each
worker that lacks them, and kept in its local directory.
"""

import hashlib
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flashlore import _core
from flashlore.errors import FlashloreError, UsageError
from flashlore.sweeps.cell import Task
from flashlore.sweeps.executors import ATTEMPTS, Outcome
from flashlore.sweeps.sources import File
from flashlore.sweeps.work import Answer, answer, items_of, together

if TYPE_CHECKING:
    from distributed import Client, Worker

#: Files are sent in pieces, so that nobody holds a whole one.
_PIECE = 32 * 2**20
#: A cell that still lacks files when they were sent so often never gets them.
_MOST_SENDS = 5
_CONNECT_S = 30
#: How often the number of workers is asked for.
_COUNT_S = 1.0
_POLL_S = 0.01


@dataclass(frozen=True)
class DaskExecutor:
    """Runs cells on a Dask cluster.

    Args:
        client: a `distributed.Client`, or the address of a scheduler, or the path of its scheduler file; nothing: a
            cluster of processes on this machine, which ends with the sweep.
        jobs: workers of the cluster on this machine; nothing: the cores there are.
        send_traces: whether the files of traces are sent to the workers, which then need not see their paths.
        attempts: how often a cell is tried whose worker dies, on the cluster of this machine. Other schedulers have
            `distributed.scheduler.allowed-failures`, which is that number less one.

    """

    client: "Client | str | None" = None
    jobs: int | None = None
    send_traces: bool = False
    attempts: int = ATTEMPTS

    def __post_init__(self) -> None:
        """Refuse what cannot work."""
        for name in ("jobs", "attempts"):
            given = getattr(self, name)
            if given is not None and given < 1:
                raise UsageError(f"{name} = {given}: expected at least 1")

    @contextmanager
    def run(self, tasks: Sequence[Task]) -> Iterator[Iterator[Outcome]]:
        """Run every task; see `Executor`."""
        with ExitStack() as stack:
            client = self._connected(stack)
            _refuse_strangers(client)
            batch = _Batch(client, tasks, send_traces=self.send_traces)
            stack.callback(batch.cancel)
            yield batch.outcomes()

    def _connected(self, stack: ExitStack) -> "Client":
        try:
            from distributed import Client, LocalCluster  # noqa: PLC0415 (an extra, and slow)
        except ImportError as error:
            raise FlashloreError("a sweep on Dask needs dask.distributed: pip install 'flashlore[dask]'") from error
        client: Client
        if isinstance(self.client, Client):
            return self.client
        if self.client is None:
            import dask  # noqa: PLC0415 (an extra, and slow)

            with dask.config.set({"distributed.scheduler.allowed-failures": self.attempts - 1}):
                cluster = LocalCluster(n_workers=self.jobs, threads_per_worker=1, dashboard_address=None)
            stack.enter_context(cluster)
            client = stack.enter_context(Client(cluster))
            return client
        try:
            where = {"scheduler_file": self.client} if Path(self.client).is_file() else {"address": self.client}
            client = stack.enter_context(Client(**where, timeout=_CONNECT_S))
        except Exception as error:
            # A file that names no scheduler ends in an assertion without words.
            why = str(error) or "it is no scheduler file and no address"
            raise FlashloreError(f"no Dask scheduler answers at {self.client}: {why}") from error
        return client


class _Batch:
    """The cells of a sweep on a cluster."""

    def __init__(self, client: "Client", tasks: Sequence[Task], *, send_traces: bool) -> None:
        from distributed import as_completed  # noqa: PLC0415 (an extra, and slow)

        self._client = client
        self._waiting = iter(tasks)
        self._send_traces = send_traces
        self._running: dict[Any, Task] = {}
        self._sends: dict[str, int] = {}
        self._ended = as_completed(with_results=True, raise_errors=False)
        self._workers = 1
        self._counted_at = float("-inf")

    def outcomes(self) -> Iterator[Outcome]:
        """Hand over cells while there are any, and give their outcomes."""
        self._fill()
        while self._running:
            while not self._ended.has_ready():
                # Workers may come while all cells are long.
                time.sleep(_POLL_S)
                self._fill()
            future, result = next(self._ended)
            outcome = self._outcome(future, result)
            self._fill()
            if outcome is not None:
                yield outcome

    def cancel(self) -> None:
        """Give up what has not ended; a cell in the middle of its run ends unheard."""
        if self._running and self._client.status == "running":
            with suppress(OSError):
                self._client.cancel(list(self._running))

    def _fill(self) -> None:
        now = time.monotonic()
        if now - self._counted_at > _COUNT_S:
            self._counted_at = now
            # A scheduler that is gone is noticed by what runs there.
            with suppress(OSError):
                self._workers = max(1, len(self._client.nthreads()))
        while len(self._running) < self._workers and (task := next(self._waiting, None)) is not None:
            self._submit(task)

    def _submit(self, task: Task, worker: str | None = None) -> None:
        future = self._client.submit(
            _run_here,
            task,
            send_traces=self._send_traces,
            key=f"flashlore-{task['key']}-{uuid.uuid4().hex}",
            workers=worker,
            allow_other_workers=worker is not None,
            pure=False,
        )
        self._running[future] = task
        self._ended.add(future)

    def _outcome(self, future: Any, result: Any) -> Outcome | None:
        """How a cell ended; `None` where it is tried again."""
        task = self._running.pop(future)
        if isinstance(result, Answer):
            if result.lacks:
                return self._send(task, result)
            return Outcome(task["key"], result.record, result.error, result.worker)
        if future.status == "error":
            return Outcome(task["key"], None, _sentence(result[1]), "")
        if self._client.status != "running":
            raise FlashloreError("the Dask scheduler is gone")
        # The scheduler forgot it, as happens when it comes back.
        self._submit(task)
        return None

    def _send(self, task: Task, told: Answer) -> Outcome | None:
        """Send the files that a worker lacks, and try again there."""
        sends = self._sends[task["key"]] = self._sends.get(task["key"], 0) + 1
        if sends > _MOST_SENDS:
            return Outcome(task["key"], None, f"its traces were sent {_MOST_SENDS} times and never arrived", "")
        try:
            for item in items_of(task):
                for file in item.files:
                    if file.sha256 in told.lacks:
                        self._send_file(together(item), file, told.worker)
        except FileNotFoundError as error:
            return Outcome(task["key"], None, f"{error.filename} is gone", "")
        except OSError:
            # The worker went away meanwhile; another one will say what it lacks.
            self._counted_at = float("-inf")
        self._submit(task, told.worker)
        return None

    def _send_file(self, folder: str, file: File, worker: str) -> None:
        token = uuid.uuid4().hex
        with Path(file.path).open("rb") as opened:
            while piece := opened.read(_PIECE):
                self._client.run(_receive, folder, file.name, token, piece, workers=[worker])
        self._client.run(_received, folder, file.name, token, file.sha256, workers=[worker])


def _run_here(task: Task, *, send_traces: bool) -> Answer:
    """Run a cell on the worker that this is called on."""
    from distributed import get_worker  # noqa: PLC0415 (an extra, and slow)

    worker = get_worker()
    return answer(task, worker=worker.address, folder=_folder(worker), send_traces=send_traces)


def _folder(worker: "Worker") -> Path:
    return Path(worker.local_directory) / "flashlore-traces"


def _receive(folder: str, name: str, token: str, piece: bytes, *, dask_worker: "Worker") -> None:
    """Append a piece to a file that is being sent to this worker."""
    there = _folder(dask_worker) / folder
    there.mkdir(parents=True, exist_ok=True)
    with (there / f"{name}.{token}").open("ab") as file:
        file.write(piece)


def _received(folder: str, name: str, token: str, sha256: str, *, dask_worker: "Worker") -> None:
    """Put a file that has been sent into its place, if it arrived as it is."""
    there = _folder(dask_worker) / folder
    beside = there / f"{name}.{token}"
    with beside.open("rb") as file:
        whole = hashlib.file_digest(file, "sha256").hexdigest() == sha256
    if whole:
        beside.replace(there / name)
    else:
        beside.unlink()


def _version() -> str:
    return _core.__version__


def _refuse_strangers(client: "Client") -> None:
    """Refuse workers that lack this package or have another version of it."""
    try:
        versions: dict[str, str] = client.run(_version)
    except Exception as error:
        raise FlashloreError(f"a worker of the cluster cannot run Flashlore: {error}") from error
    for worker, version in sorted(versions.items()):
        if version != _core.__version__:
            raise FlashloreError(f"worker {worker} has Flashlore {version}, expected {_core.__version__}")


def _sentence(error: BaseException) -> str:
    from distributed.scheduler import KilledWorker  # noqa: PLC0415 (an extra, and slow)

    if isinstance(error, KilledWorker):
        times = error.allowed_failures + 1
        return f"its worker died {times} times, the last at {error.last_worker.address}"
    return f"{type(error).__name__}: {error}"
