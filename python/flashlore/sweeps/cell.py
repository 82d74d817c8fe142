"""Cells: points of a grid with everything that decides them known, and what identifies them.

A cell is identified by a hash of the version of Flashlore, the checksums and options of its trace, every value of
system, device and host, and its seed. Two points that come to the same are one cell. What a worker needs to run a cell
is plain data (`Task`), so that it can go to any machine.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypedDict

from flashlore import _core
from flashlore.errors import UsageError
from flashlore.sweeps.axes import Value, text
from flashlore.sweeps.grid import Grid, Part, Point
from flashlore.sweeps.sources import Checksums, File, Item, Source, refuse_unopened, saved, split
from flashlore.system import Device, System

# Exact in floating point, so that no reader of the results rounds a seed.
_SEED_BITS = 53


class Task(TypedDict):
    """What a worker needs to run a cell; plain data."""

    key: str
    version: str
    items: list[dict[str, Any]]
    options: dict[str, Any]
    trace: str
    system: dict[str, str | None]
    device: dict[str, str | None]
    settings: dict[str, str]
    seed: int
    draw: int
    profile: dict[str, str] | None


@dataclass(frozen=True)
class Cell:
    """A cell: its key, how the results name it, and its task."""

    key: str
    system: str
    device: str
    trace: str
    seed: int
    settings: Mapping[str, Value]
    task: Task

    def __str__(self) -> str:
        """Name what makes it this cell, for people."""
        settings = "".join(f", {key}={text(value)}" for key, value in self.settings.items())
        return f"{self.system} on {self.device}, {self.trace}{settings}, seed {self.seed}"


def plan(grid: Grid, folder: Path) -> list[Cell]:
    """Find the cells of a grid, each once, in its order; traces in memory become files of `folder`.

    Raises:
        UsageError: as `Grid.points`; a trace or file that cannot be read; a key or value that does not exist; a setting
            that no cell uses.

    """
    planner = _Planner(folder)
    cells: dict[str, Cell] = {}
    for point in grid.points():
        cell = planner.cell(point, grid.seed)
        cells.setdefault(cell.key, cell)
    planner.refuse_useless()
    return list(cells.values())


@dataclass(frozen=True)
class _Configuration:
    system: str
    device: str
    values: str
    unused: frozenset[str]


class _Planner:
    """Checksums and configurations, each found once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._checksums = Checksums()
        self._configurations: dict[tuple[Part, Part, tuple[str, ...]], _Configuration] = {}
        self._items: dict[Source, tuple[list[Item], File | None]] = {}
        self._whole: dict[tuple[str, Part], Part] = {}
        self._names: dict[str, Part | Source] = {}
        self._useful: set[str] = set()
        self._asked: set[str] = set()

    def cell(self, point: Point, base: int) -> Cell:
        """Find the cell of a point."""
        system, device = self._found("system", point.system), self._found("device", point.device)
        configuration = self._configured(system, device, point.settings)
        settings = {key: value for key, value in point.settings.items() if key not in configuration.unused}
        self._asked |= point.settings.keys()
        self._useful |= settings.keys()
        items, profile = self._items_of(point.trace)
        identity = {
            "trace": [point.trace.name, [_of_bytes(item) for item in items], _of_values(point.trace, profile)],
            "configuration": configuration.values,
        }
        seed = _derived(base, point.repetition, identity) if point.seed is None else point.seed
        draw = _draw(point.trace, seed)
        key = _hash([_core.__version__, identity, seed, *([draw] if draw else [])])
        return Cell(
            key=key,
            system=configuration.system,
            device=configuration.device,
            trace=point.trace.name,
            seed=seed,
            settings=settings,
            task=Task(
                key=key,
                version=_core.__version__,
                items=[asdict(item) for item in items],
                options=point.trace.options(),
                trace=point.trace.name,
                system=asdict(system),
                device=asdict(device),
                settings={key: text(value) for key, value in settings.items()},
                seed=seed,
                draw=draw,
                profile=None if profile is None else asdict(profile),
            ),
        )

    def refuse_useless(self) -> None:
        """Refuse a setting that no system or device of the grid uses: it would be swept in vain."""
        for key in sorted(self._asked - self._useful):
            raise UsageError(f"{key}: nothing in the grid uses this key with the other settings as they are")

    def _configured(self, system: Part, device: Part, settings: Mapping[str, Value]) -> _Configuration:
        texts = tuple(f"{key}={text(value)}" for key, value in settings.items())
        known = (system, device, texts)
        if known not in self._configurations:
            found = _core.configuration(self._path(system), self._path(device), texts)
            unused = frozenset(found["unused"])
            self._configurations[known] = _Configuration(found["system"], found["device"], found["values"], unused)
        return self._configurations[known]

    def _found(self, axis: str, part: Part) -> Part:
        """Take the text of a file along: the worker may not see it."""
        known = (axis, part)
        if known not in self._whole:
            whole = part
            kind: type[System | Device] = System if axis == "system" else Device
            if part.toml is None and part.name not in kind.names() and Path(part.name).is_file():
                loaded = kind.from_file(part.name)
                whole = Part(loaded.name, loaded.to_toml())
            self._refuse_namesake(axis, whole)
            self._whole[known] = whole
        return self._whole[known]

    def _refuse_namesake(self, axis: str, named: Part | Source) -> None:
        """Refuse two that nobody could tell apart in the results."""
        if self._names.setdefault(f"{axis} {named.name}", named) != named:
            raise UsageError(f"{axis}s: two are called {named.name}; give one of them another name")

    def _path(self, part: Part) -> str:
        """Name a system or device so that the core finds it; a text becomes a file."""
        return part.name if part.toml is None else str(write_toml(part.toml, self._folder))

    def _items_of(self, source: Source) -> tuple[list[Item], File | None]:
        """Find the parts of a trace, and the profile whose content is laid over it."""
        if source not in self._items:
            self._refuse_namesake("trace", source)
            profile = self._checksums.profile(source, "traces")
            if source.records is not None:
                items = [saved(source, self._folder)]
            else:
                items = [self._checksums.item(path, "traces") for path in source.paths]
                refuse_unopened(source, "traces")
            self._items[source] = items, profile
        return self._items[source]


def write_toml(toml: str, folder: Path) -> Path:
    """Write the text of a system or device into a file of `folder` that is named by its hash."""
    path = folder / f"{_hash(toml)}.toml"
    if not path.exists():
        path.write_text(toml, encoding="utf-8")
    return path


def grid_hash(cells: Sequence[Cell]) -> str:
    """Hash what the results of these cells look like: the cells, their order, and how they are named."""
    return _hash([[cell.key, cell.system, cell.device, cell.trace, dict(cell.settings)] for cell in cells])


def _of_bytes(item: Item) -> list[Any]:
    """Describe an item, wherever it lies."""
    return [item.before, item.after, [[file.name, file.sha256] for file in item.files]]


def _of_values(source: Source, profile: File | None) -> dict[str, Any]:
    """Describe how a trace is read, wherever the profile of its content lies."""
    options = source.options()
    if profile is not None:
        options["content"] = [profile.name, profile.sha256, split(source.content)[2]]
    return options


def _draw(source: Source, seed: int) -> int:
    """Return the number of a draw: seed 1 draws a workload as it is named, seed N as run N of several seeds has it."""
    return (seed - 1) % (1 << 64) if source.is_drawn else 0


def _derived(base: int, repetition: int, identity: Mapping[str, Any]) -> int:
    return int(_hash([base, repetition, identity]), 16) & ((1 << _SEED_BITS) - 1)


def _hash(value: object) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
