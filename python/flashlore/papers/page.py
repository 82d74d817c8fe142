"""The sections of the page: a summary of all papers, then a section a paper.

A claim belongs to one figure or table or to several; it is shown under the first of them and named under the others.
What is known of its difference stands with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flashlore.papers import claims, differences, places, sensitivity, summary, verdicts
from flashlore.papers.commands import ALL, Flags
from flashlore.report.markup import element
from flashlore.report.page import Page, command
from flashlore.report.table import Column, Table, number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flashlore.papers.document import Document, Report
    from flashlore.report.page import Section


def make(document: Document, *, asked: str = ALL, quick: bool = False, captures: str | None = None) -> Page:
    """Make the page of a document: of one paper or of several, with those that failed.

    Args:
        document: what `flashlore reproduce all --json` prints.
        asked: what was asked for: `all`, the name of an experiment, or its file.
        quick: whether it is a quick look, which the commands repeat.
        captures: the directory of the captures, which the commands name.

    """
    reports = document["papers"]
    flags = Flags(asked, quick=quick, captures=captures)
    several = len(reports) + len(document["failed"]) > 1
    title = "Published and measured" if several else f"{places.label(reports[0]['paper'])}: published and measured"
    page = Page(title, subtitle=_subtitle(reports), footer=_footer(reports))
    section = summary.show(page, document, several=several)
    if reports:
        section.subsection("To repeat it").command(flags.page(reports))
    for report in reports:
        _paper(page.section(places.label(report["paper"])), report, flags)
    return page


def _subtitle(reports: Sequence[Report]) -> str:
    if not reports:
        return "No experiment came to its end."
    return "Experiments of papers, repeated in simulation and judged claim by claim."


def _footer(reports: Sequence[Report]) -> str:
    versions = ", ".join(dict.fromkeys(report["version"] for report in reports))
    return f"Made by Flashlore {versions}. This page holds its data and its programs, and asks no network."


def _paper(section: Section, report: Report, flags: Flags) -> None:
    section.html(element("p", element("strong", report["title"]), f". {report['source']}."))
    _extent(section, report)
    if report["calibration"] is not None:
        _calibration(section, report)
    if report["claims"]:
        section.html(claims.contents(report, report["claims"]))
    for place, here in places.grouped(report["claims"]).items():
        _place(section.subsection(places.heading(place, here)), report, place, flags)
    general = [difference for difference in report["differences"] if not difference["claims"]]
    if general:
        rest = section.subsection("What else is known")
        for difference in general:
            differences.show(rest, report, difference)
    if report["without_claim"]:
        _without_claim(section.subsection("Nothing measurable"), report)
    if report["sensitivity"] is not None:
        sensitivity.show(section.subsection("With other settings"), report, report["sensitivity"])
    _provenance(section.subsection("Where it comes from"), report, flags)


def _place(part: Section, report: Report, place: str, flags: Flags) -> None:
    """Show the claims of a figure, a table or a section, and link to those that are shown elsewhere."""
    here = places.grouped(report["claims"])[place]
    for claim in here:
        if claim["places"][0] == place:
            claims.show(part, report, claim, place)
    elsewhere = [claim for claim in here if claim["places"][0] != place]
    if elsewhere:
        links = [places.link(claim["id"], places.of_claim(report, claim)) for claim in elsewhere]
        part.html(element("p", "Shown elsewhere, and about this as well: ", places.listed(links), "."))
    part.details("To repeat it", command(flags.paper(report, place)))


def _extent(section: Section, report: Report) -> None:
    """Say what part of the experiment was done."""
    if report["scale"] != 1 or report["figures"]:
        figures = f"figures {', '.join(report['figures'])}" if report["figures"] else "all figures"
        section.prose(f"Done here: {figures}, workloads at no more than {report['scale']:g} of their size.")
    if report["left_out"]:
        ids = ", ".join(dict.fromkeys(number["claim"] for number in report["left_out"]))
        section.prose(
            f"Left out for want of captures: {len(report['left_out'])} numbers, of the claims {ids}. "
            "With --captures and the directory of the captures they are done."
        )


def _calibration(section: Section, report: Report) -> None:
    found = report["calibration"]
    assert found is not None  # noqa: S101 - the caller looked
    state = "" if found["within_tolerance"] else " That is not within the tolerance of the search."
    section.html(
        element(
            "p",
            verdicts.framed("fitted"),
            " One input is not published and was searched, then frozen for all runs: ",
            element("code", f"{found['setting']} = {found['value']:.4f}"),
            f" gives {number(found['reached'])} for ",
            element("code", found["figure"]),
            f", published {claims.short(found['target'])}.{state}",
        )
    )


def _without_claim(section: Section, report: Report) -> None:
    section.prose("Figures and tables of the paper that claim nothing which can be measured here.")
    entries = [
        (element("dt", places.heading(place)), element("dd", why)) for place, why in report["without_claim"].items()
    ]
    section.html(element("dl", entries, class_="words"))


def _provenance(section: Section, report: Report, flags: Flags) -> None:
    facts = [
        ("Flashlore", report["version"]),
        ("seeds", ", ".join(map(str, report["seeds"]))),
        ("scale", f"at most {report['scale']:g}"),
        ("figures", ", ".join(report["figures"]) or "all"),
        ("configurations", number(len(report["configurations"]))),
    ]
    section.html(element("dl", [(element("dt", k), element("dd", v)) for k, v in facts], class_="words"))
    section.command(flags.paper(report))
    if report["calibration"] is not None:
        tried: list[list[str | float]] = [
            [f"{value:.4f}", reached] for value, reached in report["calibration"]["tried"]
        ]
        columns = [Column(report["calibration"]["setting"]), Column("gives", numbers=True)]
        section.details("The calibration", Table(columns, tried, "Values tried, in their order", compact=True).html())
    _hashes(section, "Profiles of the workloads", "profile", report["profiles"])
    _hashes(section, "Configurations of the runs", "run", report["configurations"])


def _hashes(section: Section, title: str, what: str, hashes: dict[str, str]) -> None:
    if hashes:
        rows = [[name, element("code", found)] for name, found in hashes.items()]
        table = Table([Column(what), Column("hash")], rows, f"{title}, by hash", compact=True, sortable=False)
        section.details(f"{title} ({len(hashes)})", table.html())
