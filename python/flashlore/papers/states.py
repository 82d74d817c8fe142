"""What became of a single number: a word, the kind of its badge, and colour and shape of its points.

A number is no claim. Its word says where it lies, and the verdict stands with the claim.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from flashlore.figures import theme

if TYPE_CHECKING:
    from flashlore.papers.document import Item


@dataclass(frozen=True)
class State:
    """How a number is called and looks."""

    word: str
    kind: str
    colour: str
    shape: str


INSIDE = State("inside", "good", theme.BETTER[0], "circle")
FITTED = State("inside, fitted", "fair", theme.CAUSES["unique"][0], "triangle-up")
OUTSIDE = State("outside", "bad", theme.WORSE[0], "cross")
INSIDE_SCALED = State("inside, scaled", "neutral", theme.CAUSES["reborn"][0], "circle")
OUTSIDE_SCALED = State("outside, scaled", "neutral", theme.CAUSES["gc"][0], "cross")
SHOWN = State("shown", "neutral", theme.MUTED[0], "triangle-right")
HOLDS = State("identity holds", "good", theme.OURS[0], "square")
BROKEN = State("identity broken", "bad", theme.CAUSES["wear"][0], "triangle-down")

ALL = (INSIDE, FITTED, OUTSIDE, INSIDE_SCALED, OUTSIDE_SCALED, SHOWN, HOLDS, BROKEN)


def of(item: Item) -> State:
    """Say what became of a number."""
    standing = item["standing"]["is"]
    inside = item["inside"] is True
    if item["aspect"] == "identity":
        return HOLDS if inside else BROKEN
    if item["inside"] is None or standing not in ("judged", "fitted"):
        return SHOWN
    if item["scaled"]:
        return INSIDE_SCALED if inside else OUTSIDE_SCALED
    if not inside:
        return OUTSIDE
    return FITTED if standing == "fitted" else INSIDE


def remark(item: Item) -> str | None:
    """Say why a number is not inside whose mean looks as if it were, or that there is none."""
    found = [measured for measured in item["measured"] if measured is not None]
    if len(found) < len(item["measured"]):
        return "not measurable"
    if of(item) not in (OUTSIDE, OUTSIDE_SCALED, BROKEN):
        return None
    means = [measured["mean"] for measured in found]
    if item["within"] is not None:
        low, high = item["within"]
        return "the interval leaves the range" if low <= means[0] <= high else None
    return "not for every seed" if all(after <= before for before, after in pairwise(means)) else None
