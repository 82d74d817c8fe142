"""Known differences: what is known of a claim that came out otherwise, and the experiments that show the cause."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flashlore.papers import markdown, places
from flashlore.report.markup import Html, element, escape, join
from flashlore.report.table import Column, Table, number

if TYPE_CHECKING:
    from collections.abc import Iterable

    from flashlore.papers.document import Claim, Difference, Evidence, Report
    from flashlore.report.page import Section
    from flashlore.report.table import Value

# How names of experiments begin.
_VARIANT = "variant "
_ITEM = "item "


def of_claim(part: Section, report: Report, claim: Claim) -> None:
    """Tell of the differences of a claim: whole under the first of their claims on the page, as links elsewhere."""
    for difference in report["differences"]:
        if claim["id"] not in difference["claims"]:
            continue
        first = next(each["id"] for each in _in_order(report) if each["id"] in difference["claims"])
        if claim["id"] == first:
            show(part, report, difference)
        else:
            place = places.of_difference(report, difference)
            part.html(element("p", "Known: ", places.link(difference["title"], place), f" (with {first})"))


def _in_order(report: Report) -> Iterable[Claim]:
    """Give the claims in the order of the page."""
    for place, claims in places.grouped(report["claims"]).items():
        yield from (claim for claim in claims if claim["places"][0] == place)


def show(part: Section, report: Report, difference: Difference) -> None:
    """Tell of a difference, which experiments show its cause, and what they do with the numbers that are outside."""
    found = list(_evidence(report, difference))
    moving = {each["by"] for _, each in found if each["moves"]}
    shown_by = [experiment(report, by) for by in difference["shown_by"] if by in moving]
    cause: list[str | Html] = []
    if shown_by:
        cause = ["Shown by ", places.listed(shown_by), "."]
    elif difference["shown_by"] and not found:
        cause = ["Shown by experiments that were not run here."]
    elif difference["claims"]:
        cause = ["No experiment here shows the cause."]
    part.html(
        element(
            "div",
            element("p", element("strong", f"Known: {difference['title']} "), cause),
            element(
                "details",
                element("summary", "What is known"),
                markdown.blocks(difference["text"]),
                [_moved(found).html()] if found else [],
            ),
            id=places.of_difference(report, difference),
            class_="known",
        )
    )


def _evidence(report: Report, difference: Difference) -> Iterable[tuple[Claim, Evidence]]:
    """Give what the experiments of a difference do with the claims that it is about."""
    for claim in report["claims"]:
        if claim["id"] in difference["claims"]:
            yield from ((claim, each) for each in claim["evidence"] if each["by"] in difference["shown_by"])


def _moved(found: Iterable[tuple[Claim, Evidence]]) -> Table:
    rows: list[list[Value]] = [
        [
            f"{claim['id']} {each['item']}",
            _steps(each["before"]),
            _named(each["by"]),
            _steps(each["after"]),
            "inside" if each["inside"] else "nearer" if each["moves"] else "not nearer",
        ]
        for claim, each in found
    ]
    columns = [
        Column("outside"),
        Column("as defined", numbers=True),
        Column("experiment"),
        Column("there", numbers=True),
        Column(""),
    ]
    caption = "What the experiments do with the numbers that are outside, first seed; nearer by a quarter of the way"
    return Table(columns, rows, caption, sortable=False)


def _steps(values: Iterable[float]) -> str:
    return " → ".join(number(value) for value in values)


def _named(by: str) -> str:
    return by.removeprefix(_VARIANT).removeprefix(_ITEM)


def experiment(report: Report, by: str) -> Html:
    """Name an experiment that shows a cause, linked to what came out of it."""
    if by.startswith(_VARIANT):
        place = places.of_setting(report, _named(by))
        text = f"the setting {_quoted(_named(by))}"
        return escape(text) if place is None else places.link(text, place)
    name, _, item = _named(by).partition("/")
    claims = (claim for claim in report["claims"] if claim["id"] == name)
    return join(places.link(f"{name} {_quoted(item)}", places.of_claim(report, claim)) for claim in claims)


def _quoted(text: str) -> str:
    return f"\N{LEFT DOUBLE QUOTATION MARK}{text}\N{RIGHT DOUBLE QUOTATION MARK}"
