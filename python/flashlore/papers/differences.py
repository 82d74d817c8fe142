"""Known differences: what is known of a claim that came out otherwise, and the experiments that show the cause."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from flashlore.papers import markdown, places
from flashlore.report.markup import Html, element, escape, join

if TYPE_CHECKING:
    from collections.abc import Iterable

    from flashlore.papers.document import Claim, Difference, Report
    from flashlore.report.page import Section

# How names of experiments begin.
_VARIANT = "variant "
_ITEM = "item "
# What stands in the name of an item for each of the traces.
_TRACE = "{trace}"


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
    """Tell of a difference, and which experiments show its cause."""
    shown_by = [experiment(report, difference, each) for each in difference["shown_by"]]
    cause: list[str | Html] = []
    if shown_by:
        cause = ["Shown by ", places.listed(shown_by), "."]
    elif difference["claims"]:
        cause = ["No experiment here shows the cause."]
    part.html(
        element(
            "div",
            element("p", element("strong", f"Known: {difference['title']} "), cause),
            element("details", element("summary", "What is known"), markdown.blocks(difference["text"])),
            id=places.of_difference(report, difference),
            class_="known",
        )
    )


def experiment(report: Report, difference: Difference, shown_by: str) -> Html:
    """Name an experiment that shows a cause, linked to what came out of it."""
    if shown_by.startswith(_VARIANT):
        name = shown_by.removeprefix(_VARIANT)
        found = _named(f"the setting {_quoted(name)}", places.of_setting(report, name))
        return join([found, _moved(report, difference, name)])
    text = shown_by.removeprefix(_ITEM)
    names = "|".join(re.escape(name) for name in _traces(report))
    wanted = re.escape(text).replace(re.escape(_TRACE), f"({names})")
    items = [
        _named(f"{claim['id']} {_quoted(item['name'])}", places.of_item(report, claim, item))
        for claim in report["claims"]
        for item in claim["items"]
        if re.fullmatch(wanted, f"{claim['id']}/{item['name']}")
    ]
    if items:
        return places.listed(items)
    # Traces may be called otherwise than their workloads; the claim has the numbers all the same.
    claims = (claim for claim in report["claims"] if text.startswith(f"{claim['id']}/") and _TRACE in text)
    return _named(text, next((places.of_claim(report, claim) for claim in claims), None))


def _traces(report: Report) -> list[str]:
    """Give the names that traces mostly have: those of profiles and captures."""
    requests = (workload["requests"] for workload in report["workloads"])
    return [*report["profiles"], *(each["capture"] for each in requests if "capture" in each)]


def _moved(report: Report, difference: Difference, setting: str) -> str:
    """Say which claims of a difference are inside under a setting, as far as the table of settings has them."""
    found = report["sensitivity"]
    inside = dict(found["inside"]).get(setting) if found else None
    if not found or inside is None:
        return ""
    about = [
        f"{claim} {aspect} {'inside' if is_inside else 'outside'} there"
        for (claim, aspect), is_inside in zip(found["claims"], inside, strict=True)
        if claim in difference["claims"]
    ]
    return f" ({', '.join(about)})" if about else ""


def _named(text: str, place: str | None) -> Html:
    return escape(f"{text} (not run here)") if place is None else places.link(text, place)


def _quoted(text: str) -> str:
    return f"\N{LEFT DOUBLE QUOTATION MARK}{text}\N{RIGHT DOUBLE QUOTATION MARK}"
