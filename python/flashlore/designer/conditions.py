"""The conditions of the evaluation, read from TOML, and the cells of the sweep that follow from them.

A budget is bytes of DRAM for a device, a share of its capacity. A system with a fingerprint index divides it between
index and map cache; the others give all of it to the map cache.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flashlore.errors import FileError, UsageError
from flashlore.sweeps.grid import Grid
from flashlore.system import Device, System
from flashlore.trace import Trace

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from os import PathLike

# Bytes of a mapping unit.
UNIT = 4096
# Bytes of an index entry with MD5, as CA-SSD counts them and `dedup.paper_bytes` does.
INDEX_ENTRY = 28
# Bytes of the largest map entry, that of a system that stores deltas: the least that a map cache can hold.
MAP_ENTRY = 13


@dataclass(frozen=True)
class Capture:
    """A trace with content; `bytes` says whether the pages themselves are known, or their digests alone."""

    name: str
    bytes: bool = False

    @property
    def label(self) -> str:
        """Its name in figures, which says whether sizes are drawn."""
        return self.name if self.bytes else f"{self.name} (drawn)"


@dataclass(frozen=True)
class Part:
    """A kind of flash: the part set, and what it does not say.

    Endurance in cycles; energy in microjoules of a flash page read, a flash page programmed and a block erased.
    """

    name: str
    label: str
    endurance: int
    read_uj: float
    program_uj: float
    erase_uj: float
    settings: Mapping[str, Any]


@dataclass(frozen=True)
class Rival:
    """A system of the comparison. With `split` it has this share of DRAM for its index, and no other."""

    name: str
    preset: str
    settings: Mapping[str, Any]
    index: bool = False
    split: float | None = None

    def system(self) -> System:
        """Make the system, with its name."""
        return System(self.preset, {"name": self.name, **self.settings})

    def splits(self, splits: Sequence[float]) -> Sequence[float]:
        """Give the shares of the index that it runs with."""
        if not self.index:
            return [0.0]
        return splits if self.split is None else [self.split]


@dataclass(frozen=True)
class Conditions:
    """All conditions. `promises` are systems that keep old versions, which are shown apart.

    `notes` are sentences about what the results rest on.
    """

    seeds: Sequence[int]
    budgets: Sequence[int]
    splits: Sequence[float]
    settings: Mapping[str, Any]
    captures: Sequence[Capture]
    parts: Sequence[Part]
    systems: Sequence[Rival]
    promises: Sequence[Rival]
    notes: Sequence[str] = ()

    @property
    def middle_budget(self) -> int:
        """The budget that figures of one budget show."""
        return sorted(self.budgets)[len(self.budgets) // 2]

    def grid(self, captures: str | PathLike[str] | None) -> Grid:
        """Make the sweep. Without the directory of the captures it has those inside the program, without bytes.

        Raises:
            UsageError: a setting that does not exist, or no capture at all.
            TraceError: a capture that cannot be read.

        """
        found = list(self._found(captures))
        if not found:
            raise UsageError("no capture is inside the program: --captures names the directory of the captures")
        cells = [
            {"trace": capture.name, **cell}
            for capture, path in found
            for cell in self._cells(capture.bytes and captures is not None, Trace.open(path).summary.footprint_units)
        ]
        return Grid(
            traces=[{"path": path, "name": capture.name} for capture, path in found], cells=cells, seeds=self.seeds
        )

    def _found(self, captures: str | PathLike[str] | None) -> Iterator[tuple[Capture, str]]:
        for capture in self.captures:
            if captures is not None:
                yield capture, str(Path(captures) / f"{capture.name}.fiu.xz")
            elif capture.name in DEMOS:
                yield capture, f"demo:{capture.name}"

    def _cells(self, has_bytes: bool, footprint: int) -> Iterator[dict[str, Any]]:  # noqa: FBT001 (of the capture)
        """Give the cells of a capture that touches so many units."""
        capacity = footprint * UNIT / _utilization()
        content = {"codec.ratio": "codec"} if has_bytes else {}
        for part in self.parts:
            for budget in self.budgets:
                for rival in (*self.systems, *self.promises):
                    for split in rival.splits(self.splits):
                        yield {
                            "system": rival.system(),
                            "device.part": part.name,
                            **self.settings,
                            **part.settings,
                            **(content if rival.name != "plain" else {}),
                            **_divided(int(capacity / budget), split, index=rival.index),
                        }


# The captures inside the program.
DEMOS = ("sqlite-tpcb", "sqlite-bytes", "maildir", "django-upgrade")


def _utilization() -> float:
    """Read which share of its capacity a device that is sized from the trace gives to it."""
    return float(tomllib.loads(Device("auto").to_toml())["auto"]["utilization"])


def _divided(dram: int, split: float, *, index: bool) -> dict[str, Any]:
    """Divide bytes of DRAM; an index without any is switched off.

    >>> _divided(1000, 0.5, index=True)
    {'device.map.cache_bytes': 500, 'dedup.index_entries': 17}
    >>> _divided(1000, 1.0, index=True)
    {'device.map.cache_bytes': 13, 'dedup.index_entries': 35}
    >>> _divided(1000, 0.0, index=True)
    {'device.map.cache_bytes': 1000, 'dedup.enabled': False}
    """
    for_index = int(dram * split)
    made: dict[str, Any] = {"device.map.cache_bytes": max(dram - for_index, MAP_ENTRY)}
    if not index:
        return made
    return made | ({"dedup.index_entries": max(for_index // INDEX_ENTRY, 1)} if split > 0 else {"dedup.enabled": False})


def load(path: str | PathLike[str]) -> Conditions:
    """Read conditions.

    Raises:
        FileError: a file that cannot be read.
        UsageError: a file that is no TOML, or that lacks something or has too much.

    """
    try:
        tree = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: {error}") from error
    try:
        return of(tree)
    except (KeyError, TypeError) as error:
        raise UsageError(f"{path}: {error}") from error


def of(tree: Mapping[str, Any]) -> Conditions:
    """Make conditions of a tree of TOML."""

    def settled(table: Mapping[str, Any]) -> dict[str, Any]:
        return {**table, "settings": dict(_flat(table.get("settings", {})))}

    return Conditions(
        seeds=tree["seeds"],
        budgets=tree["budgets"],
        splits=tree["splits"],
        settings=dict(_flat(tree["settings"])),
        captures=[Capture(**table) for table in tree["capture"]],
        parts=[Part(**settled(table)) for table in tree["part"]],
        systems=[Rival(**settled(table)) for table in tree["system"]],
        promises=[Rival(**settled(table)) for table in tree.get("promise", ())],
        notes=tree.get("notes", ()),
    )


def _flat(table: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{path}{key}.")
        else:
            yield f"{path}{key}", value
