"""Names of experiments, figures and tables for people, and the places of a page that can be linked to."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from flashlore.report.markup import Html, element, join

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flashlore.papers.document import Claim, Difference, Item, Report

# What the experiments are called in a few words; one that is not here has its own name.
LABELS = {
    "ca-ssd": "CA-SSD",
    "delta-ftl": "DeltaFTL",
    "bvssd": "BVSSD",
    "i-cash": "I-CASH",
    "i-cash-control": "I-CASH, its control",
    "combined": "Everything combined",
}


def label(paper: str) -> str:
    """Name an experiment for people."""
    return LABELS.get(paper, paper)


def heading(place: str, claims: Sequence[Claim] = ()) -> str:
    """Name a figure, a table or a section of a paper; a word stands for a group of our own.

    >>> heading("table2"), heading("7a"), heading("3.5"), heading("section4"), heading("sysbench")
    ('Table 2', 'Figure 7a', 'Section 3.5', 'Section 4', 'Sysbench')
    """
    if match := re.fullmatch(r"table(\d+)", place):
        return f"Table {match[1]}"
    if match := re.fullmatch(r"section(\d+)", place):
        return f"Section {match[1]}"
    sources = (claim["source"].lower() for claim in claims)
    if re.fullmatch(r"\d+(\.\d+)+", place) or f"section {place}".lower() in sources:
        return f"Section {place}"
    return f"Figure {place}" if place[:1].isdigit() else place[:1].upper() + place[1:]


def grouped(claims: Sequence[Claim]) -> dict[str, list[Claim]]:
    """Put claims under all their places. They are shown under the first and named under the others."""
    groups: dict[str, list[Claim]] = {claim["places"][0]: [] for claim in claims}
    for claim in claims:
        for place in claim["places"]:
            groups.setdefault(place, []).append(claim)
    return groups


def of_claim(report: Report, claim: Claim) -> str:
    """Name the place of a claim in the page."""
    return f"claim-{report['paper']}-{claim['id']}".lower()


def of_item(report: Report, claim: Claim, item: Item) -> str:
    """Name the place of a number in the page."""
    index = next(index for index, each in enumerate(claim["items"], start=1) if each is item)
    return f"{of_claim(report, claim)}-{index}"


def of_setting(report: Report, name: str) -> str | None:
    """Name the place of a row of the table of settings, if it was run."""
    names = [row for row, _ in report["sensitivity"]["rows"]] if report["sensitivity"] else []
    return f"setting-{report['paper']}-{names.index(name) + 1}" if name in names else None


def of_difference(report: Report, difference: Difference) -> str:
    """Name the place of a known difference in the page."""
    return f"difference-{report['paper']}-{report['differences'].index(difference) + 1}"


def link(text: str, place: str) -> Html:
    """Link to a place of the page."""
    return element("a", text, href=f"#{place}")


def listed(parts: Sequence[Html]) -> Html:
    """Put parts behind one another with commas."""
    return join([part if not index else join([", ", part]) for index, part in enumerate(parts)])
