"""The JSON of `flashlore reproduce all --json`, as far as the page shows it."""

from __future__ import annotations

from typing import TypedDict


class Item(TypedDict):
    """A number of a check, or an order of several: what was published, measured and accepted."""

    name: str
    kind: str
    reason: str | None
    published: float | None
    measured: list[float | None]
    accepted: str
    within: list[float] | None
    unit: str
    verdict: str


class Check(TypedDict):
    """A claim, with the figures, tables or sections that make it."""

    id: str
    figures: list[str]
    claim: str
    source: str
    items: list[Item]


class Difference(TypedDict):
    """A known difference: a sentence, and paragraphs in Markdown. Without checks it is about all of them."""

    checks: list[str]
    title: str
    text: str


class Calibrated(TypedDict):
    """An input that was searched until a published figure came out, with all that was tried."""

    setting: str
    value: float
    figure: str
    target: float
    reached: float
    within_tolerance: bool
    tried: list[list[float]]


class Sensitivity(TypedDict):
    """Figures with something changed: table and head of each column, name and values of each row."""

    columns: list[list[str]]
    rows: list[tuple[str, list[float | None]]]


class LeftOut(TypedDict):
    """A number that was not done for want of a capture."""

    check: str
    name: str


class Workload(TypedDict):
    """What was replayed: `requests` names a `profile`, a `capture`, or what is `given`."""

    requests: dict[str, str]


class Report(TypedDict):
    """What came out of one experiment."""

    paper: str
    title: str
    source: str
    version: str
    scale: float
    figures: list[str]
    seed: int
    calibration: Calibrated | None
    profiles: dict[str, str]
    checks: list[Check]
    left_out: list[LeftOut]
    differences: list[Difference]
    sensitivity: Sensitivity | None
    configurations: dict[str, str]
    workloads: list[Workload]


class Failure(TypedDict):
    """An experiment that has no report, and why."""

    paper: str
    error: str


class Document(TypedDict):
    """All experiments of a command."""

    papers: list[Report]
    failed: list[Failure]
