"""The measures that a report sets side by side, and what each means in plain words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from flashlore.report.groups import at
from flashlore.report.markup import Html, element
from flashlore.report.table import NARROW, Cell, Column, Table, Value, durations, number, percent

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from flashlore.report.groups import Group


# Systems that stand side by side without scrolling.
_FEW = 5


@dataclass(frozen=True)
class Measure:
    """A column of the comparison: its path in a record, its name and unit, and its meaning.

    `times` are microseconds in records, and are shown in one unit for all systems. `better` is -1 where less is better,
    1 where more is, 0 where neither. A measure whose figures are all 0 or have no meaning is left out, unless `always`.
    """

    path: str
    name: str
    meaning: str
    unit: str = ""
    better: int = 0
    show: Callable[[float | None], str] = number
    times: bool = False
    always: bool = False


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value * 100:.1f}{NARROW}%"


MEASURES: tuple[Measure, ...] = (
    Measure(
        "units",
        "Units programmed",
        "Mapping units of 4 KiB that were written to flash for any reason: what wears the device.",
        better=-1,
        always=True,
    ),
    Measure(
        "waf_total",
        "Write amplification",
        "Units programmed for each unit that the host wrote. Above 1 the device writes more than it was asked to, "
        "because collection moves data; below 1 it saved more writes (shared or packed) than it added.",
        better=-1,
        always=True,
    ),
    Measure(
        "waf_gc",
        "Amplification of collection alone",
        "How hard collection works for what reaches the flash: units programmed for the host and by collection, over "
        "those for the host. At least 1.",
        better=-1,
    ),
    Measure(
        "flash.block_erases",
        "Block erases",
        "Blocks erased. Flash endures a limited number for each block.",
        better=-1,
        always=True,
    ),
    Measure(
        "gc.mean_valid_per_victim",
        "Valid units per victim",
        "Units that collection had to move, on average, before it could erase a block. 0 would be free.",
        better=-1,
    ),
    Measure(
        "response_us.all.mean",
        "Mean response",
        "From the arrival of a request to its completion, time in queues included.",
        better=-1,
        times=True,
    ),
    Measure(
        "response_us.all.p99",
        "99 % response",
        "99 of 100 requests were answered at least this fast; the others waited longer.",
        better=-1,
        times=True,
    ),
    Measure("response_us.read.mean", "Mean read", "Mean response of reads.", better=-1, times=True),
    Measure("response_us.write.mean", "Mean write", "Mean response of writes.", better=-1, times=True),
    Measure(
        "erases.max",
        "Most worn block",
        "Erases of the block that was erased most often. Far above the mean, wear is uneven.",
        better=-1,
    ),
    Measure(
        "utilization.die_mean",
        "Dies busy",
        "Share of simulated time in which dies worked, their mean. Near 100 % requests wait for flash.",
        show=_share,
    ),
    Measure("energy_uj", "Energy", "Of flash reads, programs and erases.", unit="J", better=-1),
    Measure(
        "dedup.hits",
        "Duplicates found",
        "Writes whose content was stored already, and that programmed nothing.",
        better=1,
    ),
    Measure("delta.encoded", "Stored as deltas", "Writes stored as the delta from an older page.", better=1),
    Measure(
        "delta.mean_rc",
        "Mean R_c",
        "Mean size of these deltas, as a share of a page. Smaller packs more into one page.",
        better=-1,
    ),
    Measure("compress.encoded", "Stored compressed", "Writes stored compressed by themselves.", better=1),
    Measure(
        "history.window_s",
        "Protection window",
        "How far back from the end of the run every state of the device can be had again.",
        unit="s",
        better=1,
    ),
    Measure("history.historical_units", "Old values kept", "Units that hold values which only old versions need."),
    Measure(
        "array.ios_per_hdd_op",
        "Pages per disk operation",
        "Pages that the host read and wrote for each operation of the disks. More means that the SSD and RAM answered "
        "more by themselves.",
        better=1,
    ),
    Measure("array.ssd_writes", "Written to the SSD", "Units written to the SSD of an array.", better=-1),
    Measure("array.mean_delta_bytes", "Mean delta", "Mean size of a delta of I-CASH.", unit="B", better=-1),
    Measure("array.hdd_energy_j", "Energy of the disks", "The disks' power, all the time.", unit="J", better=-1),
)


def used(groups: Sequence[Group]) -> list[Measure]:
    """Choose the measures that say something about these runs."""
    return [measure for measure in MEASURES if measure.always or any(_value(group, measure) for group in groups)]


def comparison(groups: Sequence[Group], caption: str) -> Table:
    """Set the systems on one trace side by side, with the change against the first of them."""
    measures = used(groups)
    if len(groups) <= _FEW:
        return _upright(groups, measures, caption)
    columns = [Column("System")]
    columns += [Column(measure.name, measure.unit, measure.meaning, numbers=True) for measure in measures]
    base = groups[0]
    rows = [
        [
            Cell(group.system, strong=True),
            *(_cell(group, base, measure, _largest(groups, measure)) for measure in measures),
        ]
        for group in groups
    ]
    return Table(columns, rows, caption)


def _upright(groups: Sequence[Group], measures: Sequence[Measure], caption: str) -> Table:
    """Set few systems side by side: a row a measure, a column a system."""
    columns = [Column("Measure"), *(Column(group.system, numbers=True) for group in groups)]
    rows: list[list[Value]] = [
        [_headed(measure), *(_cell(group, groups[0], measure, _largest(groups, measure)) for group in groups)]
        for measure in measures
    ]
    return Table(columns, rows, caption, sortable=False, compact=len(groups) == 1)


def _headed(measure: Measure) -> Html:
    unit = element("span", f" ({measure.unit})", class_="unit") if measure.unit else None
    return element("span", measure.name, unit, title=measure.meaning)


def meanings(measures: Sequence[Measure]) -> Html:
    """Say what each measure means."""
    return element(
        "dl",
        [[element("dt", measure.name), element("dd", measure.meaning)] for measure in measures],
        class_="words",
    )


def _value(group: Group, measure: Measure) -> float | None:
    estimate = group.get(measure.path)
    return None if estimate is None else estimate.mean * _scale(measure)


def _largest(groups: Sequence[Group], measure: Measure) -> float:
    """Give the largest value of a measure, which decides the unit of all."""
    return max((abs(value) for group in groups if (value := _value(group, measure)) is not None), default=0.0)


def _scale(measure: Measure) -> float:
    return 1e-6 if measure.path == "energy_uj" else 1.0


def _cell(group: Group, base: Group, measure: Measure, largest: float) -> Cell:
    estimate, first = group.get(measure.path), base.get(measure.path)
    room = None if group is base else ""
    if estimate is None or not _has(group, measure):
        return Cell("-", note=room)
    scale = _scale(measure)
    show = durations(largest) if measure.times else measure.show
    text = show(estimate.mean * scale)
    if estimate.half is not None and len(group.records) > 1:
        half = estimate.half * scale
        text += f" ± {number(half, 2) if measure.show is number and not measure.times else show(half)}"
    if group is base or first is None or first.mean <= 0 or measure.show is _share:
        return Cell(text, estimate.mean, room)
    change = estimate.mean / first.mean - 1
    if change and (group.doubts(measure.path) or base.doubts(measure.path)):
        return Cell(text, estimate.mean, f"{percent(change)} ?")
    kind = ""
    if measure.better and change and estimate.apart(first):
        kind = "better" if change * measure.better > 0 else "worse"
    return Cell(text, estimate.mean, percent(change), kind)


def _has(group: Group, measure: Measure) -> bool:
    """Tell whether a system has what a measure is about: 0 duplicates mean nothing where nobody looks for any."""
    part = measure.path.split(".")[0]
    if part == "array":
        return at(group.record, "configuration.system.array.kind") not in (None, "none")
    return at(group.record, f"configuration.system.{part}.enabled") is not False
