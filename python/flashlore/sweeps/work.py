"""What a worker does: one cell at a time, on this machine or another.

A worker may be told to keep the files of traces in a folder of its own, where the machine does not see the paths of
the client's; which ones it lacks it says before it runs anything.
"""

import json
import tempfile
import threading
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from flashlore import _core
from flashlore.errors import FlashloreError
from flashlore.run import simulate
from flashlore.sweeps.cell import Task, write_toml
from flashlore.sweeps.sources import File, Item, opened, refuse_changed
from flashlore.system import Device, System
from flashlore.trace import Trace

#: Simulations need memory, and the largest memory of a process is one of their figures: one at a time.
_ALONE = threading.Lock()


@dataclass(frozen=True)
class Answer:
    """What a worker says of a cell: its record, or why there is none, or the files it lacks."""

    key: str
    record: dict[str, Any] | None = None
    error: str | None = None
    lacks: tuple[str, ...] = ()
    worker: str = ""


def answer(task: Task, *, worker: str, folder: Path | None = None, send_traces: bool = False) -> Answer:
    """Run a cell. What goes wrong is an answer too.

    Args:
        task: the cell.
        worker: how the results name this worker.
        folder: where files are that were sent to this worker; without it all are at their paths.
        send_traces: whether the files of all traces are sent, and not only those of traces in memory.

    """
    try:
        named = items_of(task)
        items = [_placed(item, folder, send_traces=send_traces) for item in named]
        sent = [item for item, before in zip(items, named, strict=True) if item is not before]
        missing = [file.sha256 for item in sent for file in item.files if not Path(file.path).is_file()]
        if missing:
            return Answer(task["key"], lacks=tuple(missing), worker=worker)
        with _ALONE:
            return Answer(task["key"], record=_record(task, items), worker=worker)
    except FlashloreError as error:
        return Answer(task["key"], error=str(error), worker=worker)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001 - one cell's surprise, a panic of the core too, must not end the sweep
        return Answer(task["key"], error=f"{type(error).__name__}: {error}", worker=worker)


def together(item: Item) -> str:
    """Name the folder of an item's files: side by side under their own names, and apart from those of other traces."""
    return item.files[0].sha256


def _placed(item: Item, folder: Path | None, *, send_traces: bool) -> Item:
    """Let the files of an item be where they were sent to, if they are sent."""
    if folder is None or not (send_traces or item.in_memory) or not item.files:
        return item
    there = folder / together(item)
    return replace(item, files=tuple(replace(file, path=str(there / file.name)) for file in item.files))


def items_of(task: Task) -> list[Item]:
    """Parts of the cell's trace."""
    return [
        Item(item["before"], item["after"], tuple(File(**file) for file in item["files"])) for item in task["items"]
    ]


def _record(task: Task, items: list[Item]) -> dict[str, Any]:
    if task["version"] != _core.__version__:
        raise FlashloreError(f"the worker has Flashlore {_core.__version__}, expected {task['version']}")
    for file in _read_by_name(task, items):
        refuse_changed(file)
    paths = tuple(item.text() for item in items)
    sha256 = tuple(file.sha256 for item in items for file in item.files)
    with tempfile.TemporaryDirectory(prefix="flashlore-cell-") as texts:
        record = simulate(
            _trace(paths, task["trace"], json.dumps([task["options"], task["profile"], task["draw"]]), sha256),
            System(_preset(task["system"], Path(texts))),
            Device(_preset(task["device"], Path(texts))),
            settings=task["settings"],
            seed=task["seed"],
            progress=False,
        ).to_dict()
    _refuse_others(record, items)
    return record


def _read_by_name(task: Task, items: list[Item]) -> list[File]:
    """Name the files whose checksums a record does not have: profiles, and pages beside a trace."""
    profiles = [] if task["profile"] is None else [File(**task["profile"])]
    return profiles + [file for item in items for file in item.files[0 if item.before == "profile:" else 1 :]]


def _preset(part: dict[str, str | None], folder: Path) -> str:
    """Name a system or device so that the core finds it; a text becomes a file."""
    name, toml = part["name"], part["toml"]
    return str(name) if toml is None else str(write_toml(toml, folder))


@lru_cache(maxsize=1)
def _trace(paths: tuple[str, ...], name: str, options: str, _sha256: tuple[str, ...]) -> Trace:
    """Open a trace. The last one stays: cells of one trace follow one another, and two would need twice the memory.

    A worker may outlive a sweep, and a trace may have changed before the next one.
    """
    how, _, draw = json.loads(options)
    return opened(paths, name, how).redrawn(draw)


def _refuse_others(record: dict[str, Any], items: list[Item]) -> None:
    """Refuse a trace that is not the one of which the cell was made."""
    for item, file in zip(items, record["trace_files"], strict=True):
        if item.files and not item.before and file["sha256"] != item.files[0].sha256:
            raise FlashloreError(
                f"{file['path']} has SHA-256 {file['sha256']}, expected {item.files[0].sha256}: the trace has changed"
            )
