"""A claim of the page: what it says and where, its verdicts by aspect, its numbers, and why they are not judged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flashlore.papers import differences, numbers, places, states, verdicts
from flashlore.report.markup import Html, element, join
from flashlore.report.page import badge
from flashlore.report.table import Cell, Column, Table, number

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from flashlore.papers.document import Claim, Item, Measured, Report, VerdictName
    from flashlore.report.page import Section
    from flashlore.report.table import Value

# Digits of half an interval.
_DIGITS = 2

# The verdict that a standing may at best lead to; what is simply judged has no reason.
_STANDINGS: dict[str, VerdictName] = {
    "fitted": "fitted",
    "contradictory": "contradictory",
    "unjudged": "not-judged",
}


def show(part: Section, report: Report, claim: Claim, place: str) -> None:
    """Show a claim under a figure, a table or a section."""
    part.html(element("h4", f"{claim['id']}: {claim['statement']}", class_="claim", id=places.of_claim(report, claim)))
    part.html(_origin(claim, place))
    part.html(element("p", marks(claim), class_="marks"))
    part.table(_table(report, claim))
    part.bullets(_reasons(claim))
    differences.of_claim(part, report, claim)
    drawn = numbers.panels(claim)
    if drawn:
        part.figures(drawn)


def marks(claim: Claim) -> Html:
    """Give the verdicts of a claim, one for each aspect; one with identities alone has none."""
    found = [(aspect, claim["verdicts"][aspect]) for aspect in verdicts.ASPECTS if aspect in claim["verdicts"]]
    if not found:
        return badge("identities, no claim", "neutral")
    return join(
        [element("span", verdicts.framed(name, f"{aspect}: {verdicts.OF[name].word}"), " ") for aspect, name in found]
    )


def _origin(claim: Claim, place: str) -> Html:
    others = [places.heading(other) for other in claim["places"] if other != place]
    facts: list[str | Html] = [f"{claim['kind'].capitalize()}. {claim['source']}"]
    if others:
        facts.append(f"; also under {', '.join(others)}")
    facts.append(".")
    if claim["quote"]:
        facts += [" ", element("q", claim["quote"])]
    if claim["reading"]:
        facts.append(f" Published values: {claim['reading']}.")
    return element("p", facts, class_="source")


def _table(report: Report, claim: Claim) -> Table:
    items = claim["items"]
    units = {item["unit"] for item in items}
    shared = units.pop() if len(units) == 1 else None
    has_published = any(item["published"] is not None for item in items)
    aspects = {item["aspect"] for item in items}
    columns = [Column("number")]
    columns += [Column("aspect")] * (len(aspects) > 1)
    columns += [Column("published", shared or "", numbers=True)] * has_published
    columns += [Column("measured", shared or "", numbers=True), Column("accepted", numbers=True), Column("state")]
    rows: list[list[Value]] = []
    for item in items:
        behind = f" {item['unit']}" if shared is None and item["unit"] else ""
        row: list[Value] = [element("span", item["name"], id=places.of_item(report, claim, item))]
        row += [item["aspect"]] * (len(aspects) > 1)
        if has_published:
            row.append("" if item["published"] is None else f"{short(item['published'])}{behind}")
        steps = " → ".join(measured(value) for value in item["measured"])
        row += [element("span", f"{steps}{behind}", class_="steps"), item["accepted"], _state(item)]
        rows.append(row)
    what = "published and measured" if has_published else "measured"
    means = ", means with 95 % intervals" if len(report["seeds"]) > 1 else ""
    return Table(columns, rows, f"{claim['id']}: {what}{means}", sortable=False)


def _state(item: Item) -> Cell:
    state, remark = states.of(item), states.remark(item)
    text = badge(state.word, state.kind)
    return Cell(text if remark is None else join([text, element("span", f" {remark}", class_="remark")]))


def measured(value: Measured | None) -> str:
    """Write a mean, with half its interval if there is one.

    >>> measured({"mean": 79.74, "low": 79.4276, "high": 80.0524}), measured({"mean": 3.0, "low": 3.0, "high": 3.0})
    ('79.74 ± 0.31', '3')
    """
    if value is None:
        return number(None)
    if numbers.interval(value) is None:
        return number(value["mean"])
    return f"{number(value['mean'])} ± {number((value['high'] - value['low']) / 2, _DIGITS)}"


def short(value: float) -> str:
    """Write a published number as it was published: without zeros at its end.

    >>> short(8.2), short(47819.0), short(0.599)
    ('8.2', '47,819', '0.599')
    """
    return f"{value:,.10g}"


def _reasons(claim: Claim) -> Iterable[Html]:
    """Say why numbers are not simply judged, each reason once with the names that it is of, if it is not of all."""
    found: dict[tuple[VerdictName, str], list[str]] = {}
    for item in claim["items"]:
        standing = item["standing"]
        if standing["is"] in _STANDINGS:
            reason = _STANDINGS[standing["is"]], standing["because"]
            found.setdefault(reason, []).append(item["name"])
    for (verdict, because), names in found.items():
        of = "" if len(names) == len(claim["items"]) else f" ({', '.join(names)})"
        yield element("span", verdicts.framed(verdict), f"{of}: {because}.")


def contents(report: Report, claims: Sequence[Claim]) -> Html:
    """List claims with their verdicts by aspect, linked to their places."""
    entries = []
    for claim in claims:
        where = ", ".join(places.heading(place, [claim]) for place in claim["places"])
        link = places.link(claim["id"], places.of_claim(report, claim))
        entries.append(element("dt", link, element("span", f"{where}; {claim['kind']}", class_="note")))
        entries.append(element("dd", claim["statement"], element("span", marks(claim), class_="marks")))
    return element("dl", entries, class_="words claims")
