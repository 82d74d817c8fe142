"""Runs that belong together: one system on one trace, with all its seeds, and what its figures are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flashlore.figures.tables import Tables


@dataclass(frozen=True)
class Estimate:
    """A figure of a run; over several seeds their mean, with half the width of its 95 % interval."""

    mean: float
    half: float | None = None

    def apart(self, other: Estimate) -> bool:
        """Tell whether the intervals of two estimates leave each other free."""
        return abs(self.mean - other.mean) > (self.half or 0.0) + (other.half or 0.0)


@dataclass(frozen=True)
class Group:
    """All seeds of one system on one trace."""

    system: str
    trace: str
    records: Sequence[Mapping[str, Any]]
    estimates: Mapping[str, Any] | None
    findings: Sequence[Mapping[str, Any]] = ()

    def doubts(self, path: str) -> bool:
        """Tell whether a finding about these runs says that a metric must not be judged by."""
        return any(
            path == metric or path.startswith(f"{metric}.")
            for finding in self.findings
            if finding["doubtful"]
            for metric in finding["metrics"]
        )

    @property
    def record(self) -> Mapping[str, Any]:
        """The first of them; what does not hang on the seed is the same in all."""
        return self.records[0]

    def get(self, path: str) -> Estimate | None:
        """Give the figure with a path such as `response_us.all.mean`, or none where it has no meaning."""
        if path == "units":
            return self._units()
        if self.estimates is not None:
            found = at(self.estimates, path)
            if isinstance(found, Mapping) and found.get("mean") is not None:
                return Estimate(float(found["mean"]), found.get("ci95"))
            return None
        value = at(self.record, path)
        return Estimate(float(value)) if isinstance(value, int | float) else None

    def _units(self) -> Estimate | None:
        """All units programmed: the amplification times what the host wrote."""
        waf, written = self.get("waf_total"), self.get("host.write_pages")
        if waf is None or written is None:
            return None
        if self.estimates is None:
            causes = ("host", "packed", "merge", "gc", "wear", "map", "padding")
            return Estimate(float(sum(self.record["programs"][cause] for cause in causes)))
        half = None if waf.half is None else waf.half * written.mean
        return Estimate(waf.mean * written.mean, half)


def at(tree: Mapping[str, Any], path: str) -> Any:
    """Give what stands at a path of a record, or none.

    >>> at({"a": {"b": 1}}, "a.b"), at({"a": 1}, "a.b")
    (1, None)
    """
    found: Any = tree
    for key in path.split("."):
        if not isinstance(found, Mapping):
            return None
        found = found.get(key)
    return found


def groups(tables: Tables) -> dict[str, list[Group]]:
    """Group the runs of results: for each trace its systems, in the order in which they ran."""
    found: dict[str, dict[tuple[str, str], list[Mapping[str, Any]]]] = {}
    for record in tables.records:
        key = (record["system"], record["config_hash"])
        found.setdefault(record["trace"], {}).setdefault(key, []).append(record)
    estimates = {(item["system"], item["trace"], item["config_hash"]): item["estimates"] for item in tables.seeds}

    def about(system: str, trace: str) -> list[Mapping[str, Any]]:
        return [item for item in tables.findings if item["trace"] == trace and system in item["systems"]]

    return {
        trace: [
            Group(
                system,
                trace,
                records,
                estimates.get((system, trace, mark)) if len(records) > 1 else None,
                about(system, trace),
            )
            for (system, mark), records in systems.items()
        ]
        for trace, systems in found.items()
    }
