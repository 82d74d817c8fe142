"""Verdicts: what became of a number, in a word, a sentence and a look.

A number that must come out whatever the workload (`exact`) and one that a workload with the published statistics must
show (`shape`) both hold in the core's words; here they are told apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from flashlore.figures import theme
from flashlore.report.page import badge

if TYPE_CHECKING:
    from collections.abc import Iterable

    from flashlore.papers.document import Item, Report
    from flashlore.report.markup import Html


@dataclass(frozen=True)
class Verdict:
    """A word, what it means, the kind of its badge, and colour and shape of its points."""

    word: str
    meaning: str
    kind: str
    colour: str
    shape: str


ALL: tuple[Verdict, ...] = (
    Verdict(
        "reproduced",
        "Arithmetic of the paper, or an identity that must hold whatever the workload: it comes out.",
        "good",
        theme.BETTER[0],
        "circle",
    ),
    Verdict(
        "shape",
        "A range or an order that a workload with the published statistics must show, and does. "
        "The traces themselves are not public, so single digits are not expected to agree.",
        "good",
        theme.SHAPE[0],
        "square",
    ),
    Verdict(
        "fitted",
        "In the accepted range, but an input was chosen so that it is. It shows that the published figure can come "
        "out, not that it must.",
        "fair",
        theme.CAUSES["host"][0],
        "triangle-up",
    ),
    Verdict(
        "differs",
        "Not in the accepted range, or not measurable. The known differences say why, as far as it is known.",
        "bad",
        theme.WORSE[0],
        "cross",
    ),
    Verdict(
        "in range, scaled",
        "In a range that is meant for the whole workload, measured on a part of it: shown, not judged.",
        "neutral",
        theme.CAUSES["reborn"][0],
        "circle",
    ),
    Verdict(
        "out of range, scaled",
        "Outside a range that is meant for the whole workload, measured on a part of it: shown, not judged.",
        "neutral",
        theme.CAUSES["gc"][0],
        "cross",
    ),
    Verdict(
        "contradictory",
        "The paper contradicts itself. Both readings are shown.",
        "neutral",
        theme.CAUSES["map"][0],
        "triangle-down",
    ),
    Verdict(
        "not reproducible",
        "It depends on what is not published, or nothing was published to compare it with. The figure is shown.",
        "neutral",
        theme.MUTED[0],
        "triangle-right",
    ),
)

BY_WORD = {verdict.word: verdict for verdict in ALL}

# What a number can at most tell, by its kind, where there is a reason for it.
KINDS = {"fitted": "fitted", "contradictory": "contradictory", "not-reproducible": "not reproducible"}

_WORDS = {
    "fitted": "fitted",
    "differs": "differs",
    "scaled-inside": "in range, scaled",
    "scaled-outside": "out of range, scaled",
    "contradictory": "contradictory",
    "not-reproducible": "not reproducible",
}


def of(item: Item) -> Verdict:
    """Give the verdict on a number."""
    if item["verdict"] == "holds":
        return BY_WORD["reproduced" if item["kind"] == "exact" else "shape"]
    return BY_WORD[_WORDS[item["verdict"]]]


def counts(items: Iterable[Item]) -> dict[str, int]:
    """Count numbers by the word of their verdict, in the order of `ALL`, those that occur."""
    found = [of(item).word for item in items]
    return {verdict.word: found.count(verdict.word) for verdict in ALL if verdict.word in found}


def items(report: Report) -> list[Item]:
    """Give all numbers of a report."""
    return [item for check in report["checks"] for item in check["items"]]


def framed(word: str, text: str | None = None) -> Html:
    """Frame a verdict, or a text about it."""
    return badge(text or word, BY_WORD[word].kind)
