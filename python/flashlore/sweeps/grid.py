"""Grids: which cells a sweep has, before anybody has looked at a trace or a configuration.

A grid is a product of axes, cells named one by one, and what is excluded. Its points are expanded in the order in
which it is written: trace, system, device, settings, zipped axes, seeds; then the cells named. That order is the order
of the rows of the results, whoever runs the cells.
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from flashlore.errors import UsageError
from flashlore.sweeps.axes import Value, axis, text, value
from flashlore.sweeps.sources import Source, source

#: Names beside the keys of settings that zipped axes, cells and exclusions can have.
AXES = ("trace", "system", "device", "seed")
#: More than this is a slip of the pen.
MOST_POINTS = 200_000
_MOST_SEED = 2**64 - 1


@runtime_checkable
class Configured(Protocol):
    """A system or device of this package."""

    @property
    def name(self) -> str:
        """Its name."""

    def to_toml(self) -> str:
        """Write the whole of it, every value."""


@dataclass(frozen=True)
class Part:
    """A system or device: a preset or file by its name, or one of which the whole text is known."""

    name: str
    toml: str | None = None

    @classmethod
    def of(cls, given: object, where: str) -> "Part":
        """Read what a grid says of a system or device."""
        if isinstance(given, str | Path):
            return cls(str(given))
        if isinstance(given, Configured):
            return cls(given.name, given.to_toml())
        raise UsageError(f"{where}: expected the name of a preset or file, found {given!r}")


@dataclass(frozen=True)
class Point:
    """A combination of values. `seed` is given, or derived later for the repetition with this number."""

    trace: Source
    system: Part
    device: Part
    settings: Mapping[str, Value]
    seed: int | None
    repetition: int


@dataclass(frozen=True)
class Grid:
    """What is swept: every trace on every system and device, with every combination of settings, with every seed.

    Args:
        traces: paths, `Trace`s, or mappings with `path` and options of `Trace.open`; `name` is the trace's in the
            results.
        systems: presets, files, or `System`s.
        devices: presets, files, or `Device`s; `auto` is sized from the trace.
        settings: keys of `--set`. A scalar holds for every cell. A list, a `range`, an array, or a mapping such as
            `{"from": 0.05, "to": 0.3, "step": 0.05}` or `{"from": "16Ki", "to": "1024Ki", "factor": 2}` is an axis.
            A value that is a list itself is written in an axis: `[["channel", "plane"]]`.
        zipped: axes that go in step, several to a mapping; they may have the names `trace`, `system`, `device` and
            `seed` too, in place of those above. Then `traces` merely names traces.
        exclude: cells that are left out: those that have all the values of one of these mappings, where a list is
            any of its values.
        cells: cells named one by one, beside the product: `trace`, `system`, and, if wanted, `device`, `seed` and
            settings. The scalars of `settings` hold for them too, unless they say otherwise.
        seeds: nothing, as `simulate` without a seed; a list, which every configuration runs with; or how many
            seeds are derived for each configuration. Derived seeds depend on `seed`, on the trace and on the
            configuration: no two cells share their random choices, and every executor and order gives the same.
        seed: what derived seeds begin with.

    >>> grid = Grid(["demo:maildir"], ["plain", "ca-ssd"], settings={"host.queue_depth": range(1, 4)})
    >>> len(grid.points())
    6

    """

    traces: Sequence[object] = ()
    systems: Sequence[object] = ()
    devices: Sequence[object] = ("auto",)
    settings: Mapping[str, Any] = field(default_factory=dict)
    zipped: Sequence[Mapping[str, Any]] = ()
    exclude: Sequence[Mapping[str, Any]] = ()
    cells: Sequence[Mapping[str, Any]] = ()
    seeds: int | Sequence[int] | None = None
    seed: int = 0

    def points(self) -> list[Point]:
        """Expand the grid.

        Raises:
            UsageError: an axis without values, one that occurs twice, lists of different lengths in step, a value of
                the wrong type, an exclusion that excludes nothing, or no cell at all.

        """
        points = [*self._product(), *self._named()]
        points = self._without_excluded(points)
        if not points:
            raise UsageError("the grid has no cell: expected traces and systems, or cells")
        return points

    @cached_property
    def _constants(self) -> dict[str, Value]:
        """Settings of every cell."""
        named = {key: given for key, given in self._settings() if axis(given, f"settings.{key}") is None}
        return {key: value(given, f"settings.{key}") for key, given in named.items()}

    def _settings(self) -> Iterator[tuple[str, Any]]:
        seen: set[str] = set()
        for key, given in self.settings.items():
            plain = setting(key, "settings")
            if plain in seen:
                raise UsageError(f"settings.{plain}: the key is there twice")
            seen.add(plain)
            yield plain, given

    def _product(self) -> Iterator[Point]:
        steps = [_in_step(zipped, f"zip {number}") for number, zipped in enumerate(self.zipped, 1)]
        replaced = {name for step in steps for name in step[0]}
        named = {
            name: [{name: one} for one in self._axis(name, given)]
            for name, given in (("trace", self.traces), ("system", self.systems), ("device", self.devices))
            if name not in replaced
        }
        self._refuse_both(replaced)
        if empty := [name for name, axis in named.items() if not axis]:
            # Without traces or systems there are only the cells named; half of them is a mistake.
            if self.systems or steps or (self.traces and not self.cells):
                raise UsageError(f"{empty[0]}s: the axis is empty, expected one at least")
            return
        axes = [*named.values(), *self._swept(steps)]
        axes.append([{}] if "seed" in replaced else self._seeds())
        _refuse_many(axes)
        for combination in itertools.product(*axes):
            yield self._point({name: one for part in combination for name, one in part.items()})

    def _refuse_both(self, replaced: set[str]) -> None:
        """Refuse an axis that stands in step too; traces may, for there they are named."""
        if ("system" in replaced and self.systems) or ("device" in replaced and list(self.devices) != ["auto"]):
            raise UsageError("systems and devices stand in their lists or in zip, not in both")

    def _swept(self, steps: list[list[dict[str, Any]]]) -> Iterator[list[dict[str, Any]]]:
        """Give the axes of settings, then those that go in step."""
        known = {key for key, _ in self._settings()}
        for key, given in self._settings():
            values = axis(given, f"settings.{key}")
            if values is not None:
                yield [{key: one} for one in values]
        for number, step in enumerate(steps, 1):
            for name in step[0]:
                if name in known:
                    raise UsageError(f"zip {number}.{name}: the key is there twice")
                known.add(name)
            yield [self._read(one, f"zip {number}") for one in step]

    def _axis(self, name: str, given: Sequence[object]) -> list[Any]:
        where = f"{name}s"
        if isinstance(given, str):
            raise UsageError(f"{where}: expected a list, found {given!r}")
        if name == "trace":
            return self._sources
        return _distinct([Part.of(one, where) for one in given], where)

    @cached_property
    def _sources(self) -> list[Source]:
        return _distinct([source(one, "traces") for one in self.traces], "traces")

    def _named(self) -> Iterator[Point]:
        for number, given in enumerate(self.cells, 1):
            where = f"cell {number}"
            for name in ("trace", "system"):
                if name not in given:
                    raise UsageError(f"{where}: the key {name} is missing")
            read = self._read({"device": "auto", **given}, where)
            seeds: list[dict[str, Any]] = [{}] if "seed" in read else self._seeds()
            for seed in seeds:
                yield self._point(read | seed)

    def _read(self, given: Mapping[str, Any], where: str) -> dict[str, Any]:
        """Turn the names of traces, systems and devices into what they name."""
        read: dict[str, Any] = {}
        for key, one in given.items():
            if key == "trace":
                by_name = {source.name: source for source in self._sources}
                read[key] = by_name.get(one) if isinstance(one, str) and one in by_name else source(one, where)
            elif key in ("system", "device"):
                read[key] = Part.of(one, where)
            elif key == "seed":
                read[key] = _seed(one, where)
            else:
                read[setting(key, where)] = value(one, f"{where}.{key}")
        return read

    def _seeds(self) -> list[dict[str, Any]]:
        """Seeds of a configuration: given, or numbers of repetitions."""
        if self.seeds is None:
            return [{"seed": 1}]
        if isinstance(self.seeds, int) and not isinstance(self.seeds, bool):
            if not 1 <= self.seeds <= MOST_POINTS:
                raise UsageError(f"seeds = {self.seeds}: expected at least 1, and at most {MOST_POINTS:,}")
            return [{"repetition": number} for number in range(self.seeds)]
        values = axis(self.seeds, "seeds")
        if values is None:
            raise UsageError(f"seeds = {self.seeds!r}: expected a number or a list")
        return [{"seed": _seed(one, "seeds")} for one in values]

    def _point(self, values: dict[str, Any]) -> Point:
        settings = {key: one for key, one in values.items() if key not in (*AXES, "repetition")}
        return Point(
            trace=values["trace"],
            system=values["system"],
            device=values["device"],
            settings=self._constants | settings,
            seed=values.get("seed"),
            repetition=values.get("repetition", 0),
        )

    def _without_excluded(self, points: list[Point]) -> list[Point]:
        rules = [{_plain(key): given for key, given in rule.items()} for rule in self.exclude]
        hits = [0] * len(rules)
        kept = []
        for point in points:
            excluding = [number for number, rule in enumerate(rules) if _matches(point, rule)]
            for number in excluding:
                hits[number] += 1
            if not excluding:
                kept.append(point)
        for number, count in enumerate(hits, 1):
            if count == 0:
                raise UsageError(f"exclude {number}: no cell has these values")
        return kept


def setting(key: str, where: str) -> str:
    """Read the key of a setting in its short form.

    >>> setting("system.dedup.index_entries", "here")
    'dedup.index_entries'
    """
    plain = _plain(key)
    if plain == "host.seed":
        raise UsageError(f"{where}.{key}: seeds are named by seeds, or by seed in zipped axes and cells")
    if "." not in plain:
        raise UsageError(f"{where}.{key}: expected a key of --set, such as dedup.index_entries")
    return plain


def _plain(key: str) -> str:
    return key.removeprefix("system.")


def _in_step(zipped: Mapping[str, Any], where: str) -> list[dict[str, Any]]:
    """Take lists of equal length apart into one mapping for each step."""
    lists: dict[str, list[Any]] = {}
    for key, given in zipped.items():
        if key in AXES and key != "seed":
            found = None if isinstance(given, str) or not isinstance(given, Iterable) else list(given)
            if found == []:
                raise UsageError(f"{where}.{key}: the axis is empty, expected a value at least")
        else:
            found = axis(given, f"{where}.{key}")
        if found is None:
            raise UsageError(f"{where}.{key}: expected a list, found {given!r}")
        lists[_plain(key)] = found
    if not lists:
        raise UsageError(f"{where}: expected lists of equal length, found none")
    lengths = {key: len(found) for key, found in lists.items()}
    if len(set(lengths.values())) > 1:
        found_lengths = ", ".join(f"{key} has {length}" for key, length in lengths.items())
        raise UsageError(f"{where}: axes that go in step have equal lengths; {found_lengths}")
    return [dict(zip(lists, step, strict=True)) for step in zip(*lists.values(), strict=True)]


def _distinct(named: list[Any], where: str) -> list[Any]:
    names = [one.name for one in named]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"{where}: two are called {name}; give one of them another name")
    return named


def _seed(given: object, where: str) -> int:
    if isinstance(given, bool) or not isinstance(given, int) or not 0 <= given <= _MOST_SEED:
        raise UsageError(f"{where}: seed {given!r}: expected a whole number of 64 bits")
    return given


def _refuse_many(axes: list[list[dict[str, Any]]]) -> None:
    count = 1
    for one in axes:
        count *= len(one)
    if count > MOST_POINTS:
        raise UsageError(f"the grid has {count:,} cells, expected at most {MOST_POINTS:,}")


def _matches(point: Point, rule: Mapping[str, Any]) -> bool:
    return bool(rule) and all(_has(point, key, given) for key, given in rule.items())


def _has(point: Point, key: str, given: Any) -> bool:
    wanted = given if isinstance(given, list | tuple) else [given]
    texts = {text(value(one, f"exclude.{key}")) for one in wanted}
    if key == "trace":
        return not texts.isdisjoint({point.trace.name, *point.trace.paths})
    if key in ("system", "device"):
        part = point.system if key == "system" else point.device
        return part.name in texts
    if key == "seed":
        return str(point.seed) in texts
    return key in point.settings and text(point.settings[key]) in texts
