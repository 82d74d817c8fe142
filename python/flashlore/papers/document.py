"""The JSON of `flashlore reproduce all --json`, as far as the page shows it."""

from __future__ import annotations

from typing import Literal, NotRequired, TypeAlias, TypedDict

Kind: TypeAlias = Literal["measured", "derived", "ours"]
# What a number tells of a claim; an identity tells nothing of it and is a check of the program.
Aspect: TypeAlias = Literal["order", "shape", "size", "identity"]
VerdictName: TypeAlias = Literal[
    "reproduced", "holds", "fitted", "differs", "cause-unknown", "scaled", "contradictory", "not-judged"
]

# `is` is a word of Python.
Standing = TypedDict(
    "Standing", {"is": Literal["judged", "fitted", "contradictory", "unjudged"], "because": NotRequired[str]}
)
Standing.__doc__ = "Whether a number is judged, and why not simply so."


class Measured(TypedDict):
    """Mean over the seeds and its 95 % interval; of a single seed all three are the value."""

    mean: float
    low: float
    high: float


class Item(TypedDict):
    """A number of a claim, or an order of several: what was published, measured and accepted."""

    name: str
    aspect: Aspect
    standing: Standing
    published: float | None
    measured: list[Measured | None]
    accepted: str
    within: list[float] | None
    unit: str
    # Whether the whole interval is accepted, or the order holds for every seed; absent where nothing is accepted.
    inside: bool | None
    # Whether a run of it is smaller than the one that the range is meant for.
    scaled: bool


class Evidence(TypedDict):
    """What an experiment that a known difference names does with a number that is outside, of the first seed."""

    # `variant NAME` or `item CLAIM/NAME`.
    by: str
    aspect: Aspect
    item: str
    # Its figures as they are defined, and those of the experiment; several for an order.
    before: list[float]
    after: list[float]
    # Whether they are nearer to what is accepted by a quarter of the way at least, and whether they are inside.
    moves: bool
    inside: bool


class Claim(TypedDict):
    """A statement, with the figures, tables or sections that make it."""

    id: str
    places: list[str]
    kind: Kind
    statement: str
    quote: str | None
    source: str
    reading: str
    verdicts: dict[Aspect, VerdictName]
    items: list[Item]
    evidence: list[Evidence]


class Difference(TypedDict):
    """A known difference: a sentence, paragraphs in Markdown, and what shows it. Without claims it is about all."""

    claims: list[str]
    title: str
    # `variant NAME` or `item CLAIM/NAME`.
    shown_by: list[str]
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
    """Runs with something changed, of the first seed; the first row has nothing changed."""

    # The largest factor on the workloads of the other rows, if they are smaller than those of the claims.
    scale: float | None
    # Table and head of each column.
    columns: list[list[str]]
    # What is changed, with the figures of the columns.
    rows: list[tuple[str, list[float | None]]]
    # The aspects of claims all of whose judged numbers are repeated.
    claims: list[tuple[str, Aspect]]
    # What is changed, with whether those are inside.
    inside: list[tuple[str, list[bool]]]


class LeftOut(TypedDict):
    """A number that was not done for want of a capture."""

    claim: str
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
    seeds: list[int]
    calibration: Calibrated | None
    profiles: dict[str, str]
    claims: list[Claim]
    # Figures and tables that claim nothing measurable, and why.
    without_claim: dict[str, str]
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
