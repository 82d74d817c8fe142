"""Grids from TOML.

Paths in a file begin at its folder. Everything that is wrong is refused with the file and the key.
"""

import difflib
import tomllib
from collections.abc import Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from flashlore.errors import FileError, UsageError
from flashlore.sweeps.axes import is_range
from flashlore.sweeps.grid import AXES, Grid
from flashlore.sweeps.sources import below

# The keys of a file, the fields of `Grid` they become, and what they hold.
_KEYS: dict[str, tuple[str, str]] = {
    "traces": ("traces", "a list"),
    "systems": ("systems", "a list"),
    "devices": ("devices", "a list"),
    "settings": ("settings", "a table"),
    "zip": ("zipped", "tables: [[zip]]"),
    "exclude": ("exclude", "tables: [[exclude]]"),
    "cell": ("cells", "tables: [[cell]]"),
    "seeds": ("seeds", "a number or a list"),
    "seed": ("seed", "a whole number"),
}


def load_grid(path: str | PathLike[str]) -> Grid:
    """Read a grid from a TOML file, and refuse what cannot be expanded.

    Raises:
        UsageError: a file that is no TOML, a key that does not exist, or a bad value; the message names file and key.
        FileError: a file that cannot be read.

    """
    file = Path(path)
    try:
        with file.open("rb") as opened:
            tree = tomllib.load(opened)
        grid = _grid(tree, file.absolute().parent)
        grid.points()
    except OSError as error:
        raise FileError(f"cannot read {file}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, UsageError) as error:
        raise UsageError(f"{file}: {error}") from error
    return grid


def _grid(tree: Mapping[str, Any], folder: Path) -> Grid:
    fields: dict[str, Any] = {}
    for key, given in tree.items():
        if key not in _KEYS:
            raise UsageError(f"there is no key {key!r}{_meant(key)}")
        field, kind = _KEYS[key]
        if not _fits(kind, given):
            raise UsageError(f"{key}: expected {kind}, found {given!r}")
        fields[field] = given
    named = [trace.get("name") for trace in tree.get("traces", ()) if isinstance(trace, dict)]
    names = {name for name in named if isinstance(name, str)}
    place = _Place(folder, names)
    for field in ("traces", "systems", "devices"):
        if field in fields:
            fields[field] = [place.named(field[:-1], one) for one in fields[field]]
    fields["settings"] = _once(_flat(fields.get("settings", {})))
    for field in ("zipped", "cells"):
        fields[field] = [place.table(table) for table in fields.get(field, ())]
    fields["exclude"] = [place.either(table) for table in fields.get("exclude", ())]
    return Grid(**fields)


class _Place:
    """Lets the paths of a file begin at its folder."""

    def __init__(self, folder: Path, names: set[str]) -> None:
        self._folder = folder
        self._names = names

    def named(self, axis: str, given: Any) -> Any:
        """Place a trace, a system or a device; what is no path stays as it is."""
        if axis == "trace" and isinstance(given, dict) and "path" in given:
            path = given["path"]
            several = [self.named("trace", one) for one in path] if isinstance(path, list) else [path]
            placed = {**given, "path": several if isinstance(path, list) else self.named("trace", path)}
            content = given.get("content")
            if isinstance(content, str) and content.startswith("profile:"):
                placed["content"] = below(content, self._folder)
            return placed
        if not isinstance(given, str) or given in self._names:
            return given
        is_file = axis == "trace" or given.endswith(".toml") or "/" in given
        return below(given, self._folder) if is_file else given

    def table(self, table: Mapping[str, Any]) -> dict[str, Any]:
        """Place what a table names."""
        return {key: self._all(key, given) for key, given in _once(_flat(table)).items()}

    def either(self, table: Mapping[str, Any]) -> dict[str, Any]:
        """As `table`, where names stand for what is named elsewhere: as written there, or placed."""
        placed = {}
        for key, given in _once(_flat(table)).items():
            if key in AXES[:3]:
                wanted = given if isinstance(given, list) else [given]
                placed[key] = [*wanted, *(self.named(key, one) for one in wanted)]
            else:
                placed[key] = given
        return placed

    def _all(self, key: str, given: Any) -> Any:
        if key not in AXES[:3]:
            return given
        return [self.named(key, one) for one in given] if isinstance(given, list) else self.named(key, given)


def _flat(table: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """Give the keys of a table in full, whether they were quoted or made tables of their own."""
    for key, given in table.items():
        if isinstance(given, dict) and not is_range(given) and key != "trace":
            yield from _flat(given, f"{path}{key}.")
        else:
            yield f"{path}{key}", given


def _once(keys: Iterator[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse a key that is there twice, in two ways of writing it."""
    table: dict[str, Any] = {}
    for key, given in keys:
        if key in table:
            raise UsageError(f"{key}: the key is there twice")
        table[key] = given
    return table


def _fits(kind: str, given: object) -> bool:
    if kind.startswith("tables"):
        return isinstance(given, list) and all(isinstance(table, dict) for table in given)
    kinds: dict[str, type | tuple[type, ...]] = {
        "a list": list,
        "a table": dict,
        "a number or a list": (int, list),
        "a whole number": int,
    }
    return isinstance(given, kinds[kind]) and not isinstance(given, bool)


def _meant(key: str) -> str:
    near = difflib.get_close_matches(key, _KEYS, 1)
    return f" (did you mean {near[0]!r}?)" if near else f", expected one of {', '.join(_KEYS)}"
