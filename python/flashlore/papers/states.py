"""What became of a single number, in a word.

A number is no claim: its word says where it lies. The verdict stands with the claim.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flashlore.papers.document import Item


@dataclass(frozen=True)
class State:
    """How a number is called, and the kind of its badge."""

    word: str
    kind: str


INSIDE = State("inside", "good")
FITTED = State("inside, fitted", "fair")
OUTSIDE = State("outside", "bad")
INSIDE_SCALED = State("inside, scaled", "neutral")
OUTSIDE_SCALED = State("outside, scaled", "neutral")
SHOWN = State("shown", "neutral")
HOLDS = State("identity holds", "good")
BROKEN = State("identity broken", "bad")


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
