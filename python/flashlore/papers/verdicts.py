"""Verdicts: what became of an aspect of a claim, in a word, a sentence and a look."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from flashlore.figures import theme
from flashlore.report.page import badge

if TYPE_CHECKING:
    from flashlore.papers.document import Aspect, Kind, VerdictName
    from flashlore.report.markup import Html


@dataclass(frozen=True)
class Verdict:
    """The name in the JSON, a word, what it means, the kind of its badge, and its colour in figures."""

    name: VerdictName
    word: str
    meaning: str
    kind: str
    colour: str


ALL: tuple[Verdict, ...] = (
    Verdict(
        "reproduced",
        "reproduced",
        "Every number of the aspect is in its range, and every order holds. Ranges were written down before the run, "
        "and no input was fitted to them. With several seeds the whole 95 % interval is in the range, and an order "
        "holds for every seed.",
        "good",
        theme.BETTER[0],
    ),
    Verdict(
        "holds",
        "holds",
        "The same, of a claim of our own that no paper makes.",
        "good",
        theme.OURS[0],
    ),
    Verdict(
        "fitted",
        "fitted",
        "In the range, but an input was chosen so that it is. It shows that the published figure can come out, not "
        "that it must.",
        "fair",
        theme.CAUSES["unique"][0],
    ),
    Verdict(
        "differs",
        "differs",
        "A number is outside what is accepted, and an experiment that is named with the claim shows why.",
        "bad",
        theme.WORSE[0],
    ),
    Verdict(
        "cause-unknown",
        "cause unknown",
        "A number is outside what is accepted, and no experiment shows why.",
        "bad",
        theme.CAUSES["wear"][0],
    ),
    Verdict(
        "scaled",
        "scaled",
        "The runs are smaller than those that the ranges are meant for: the numbers are shown and not judged.",
        "neutral",
        theme.CAUSES["reborn"][0],
    ),
    Verdict(
        "contradictory",
        "contradictory",
        "The paper contradicts itself: both readings are shown and neither is judged.",
        "neutral",
        theme.CAUSES["map"][0],
    ),
    Verdict(
        "not-judged",
        "not judged",
        "It depends on what is not published, or there is no published value to compare it with. It is shown.",
        "neutral",
        theme.MUTED[0],
    ),
)

OF = {verdict.name: verdict for verdict in ALL}

# The aspects that have verdicts, in the order of the page.
ASPECTS: dict[Aspect, str] = {
    "order": "a sign, or which of several figures is larger.",
    "shape": "how a figure depends on another one.",
    "size": "how large a figure is.",
}

KINDS: dict[Kind, str] = {
    "measured": "the authors measured it.",
    "derived": "it follows from numbers that the authors print.",
    "ours": "no paper claims it; we do.",
}

# Verdicts that say that a claim came out without its inputs being fitted to it.
CAME_OUT: tuple[VerdictName, ...] = ("reproduced", "holds")


def framed(name: VerdictName, text: str | None = None) -> Html:
    """Frame a verdict, or a text about it."""
    return badge(text or OF[name].word, OF[name].kind)
