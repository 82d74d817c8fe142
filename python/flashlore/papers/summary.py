"""The summary: how many distinct claims of each paper have which verdict, apart for order, shape and size."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flashlore.papers import counts, numbers, places, verdicts
from flashlore.report.markup import Html, element
from flashlore.report.table import Cell, Column, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flashlore.papers.document import Aspect, Claim, Document, Report
    from flashlore.report.page import Page, Section
    from flashlore.report.table import Value

# How the source of an experiment begins that no paper has.
_OURS = "Flashlore"

_SCALED = (
    "They come from runs that are smaller than those that their ranges are meant for: a number in its range "
    "reproduces nothing, and one outside refutes nothing. They are shown and not judged. Known differences tell of the "
    "whole experiments."
)


def show(page: Page, document: Document, *, several: bool) -> Section:
    """Add the summary of a document."""
    reports = document["papers"]
    section = page.section("Summary")
    claims = counts.judged(reports)
    if any(name == "scaled" for claim in claims for name in claim["verdicts"].values()):
        section.html(element("p", element("strong", "Some claims are scaled. "), _SCALED))
    if claims:
        section.prose(_extent(reports, claims), seeds(reports))
        section.tiles(_tiles(claims))
    if document["failed"]:
        section.html(element("p", element("strong", "Some experiments failed; they are missing below.")))
        section.bullets(f"{places.label(each['paper'])}: {each['error']}" for each in document["failed"])
    for report in reports:
        _paper(section.subsection(f"{places.label(report['paper'])}: claims by verdict"), report)
    if several and claims:
        section.figure(
            numbers.overview(reports),
            title="What became of the claims",
            caption="Distinct claims of each paper by verdict, apart for order, shape and size.",
        )
    _words(section.subsection("What the words mean"), claims)
    return section


def _extent(reports: Sequence[Report], claims: Sequence[Claim]) -> str:
    ours = sum(report["source"].startswith(_OURS) for report in reports)
    papers = len(reports) - ours
    of = [f"{papers} paper{'s' * (papers != 1)}"] * (papers > 0)
    of += [f"{ours} experiment{'s' * (ours != 1)} of our own"] * (ours > 0)
    return (
        f"{counts.phrase(counts.of_kinds(claims))} of {' and '.join(of)}. A claim is one statement and is counted "
        "once, however many numbers it has; it has a verdict for each of order, shape and size that its numbers tell. "
        "What it accepts was written down before the run."
    )


def seeds(reports: Sequence[Report]) -> str:
    """Say with which seeds experiments were run, and what their figures are."""
    found = reports[0]["seeds"]
    if len(found) == 1:
        return f"One seed, {found[0]}: there are no intervals, and a figure of another seed may lie elsewhere."
    return (
        f"{len(found)} seeds, {found[0]} to {found[-1]}: figures are means with 95 % intervals (Student's t), and a "
        "number is inside only if its whole interval is. An order must hold for every seed."
    )


def _tiles(claims: Sequence[Claim]) -> list[tuple[str, str, str]]:
    """Make a tile for each aspect of the papers' claims; ours are in one of their own."""
    published = [claim for claim in claims if claim["kind"] != "ours"]
    ours = [claim for claim in claims if claim["kind"] == "ours"]
    tiles = [_tile(f"{aspect.capitalize()}: reproduced", published, aspect) for aspect in verdicts.ASPECTS]
    tiles += [_tile(f"Our own, {aspect}: hold", ours, aspect) for aspect in verdicts.ASPECTS]
    return [tile for tile in tiles if tile is not None]


def _tile(name: str, claims: Sequence[Claim], aspect: Aspect) -> tuple[str, str, str] | None:
    found = counts.by_verdict(claims, aspect)
    if not found:
        return None
    came_out = sum(found.get(verdict, 0) for verdict in verdicts.CAME_OUT)
    rest = [f"{count} {verdicts.OF[v].word}" for v, count in found.items() if v not in verdicts.CAME_OUT]
    return name, f"{came_out} of {sum(found.values())}", ", ".join(rest)


def _paper(section: Section, report: Report) -> None:
    claims = counts.judged([report])
    section.prose(f"{counts.phrase(counts.of_kinds(claims))}.", identities(report))
    if claims:
        section.table(_table(report, claims))


def identities(report: Report) -> Html:
    """Say whether what must come out does: it checks the program and is counted as no claim."""
    total, broken = counts.identities(report)
    if not total:
        return Html("There are no identities.")
    what = f"{total} identit{'y' if total == 1 else 'ies'}, arithmetic that must come out whatever the workload"
    apart = "They check the program and are not counted as claims."
    if not broken:
        return element("span", f"{what}: all hold. {apart}")
    names = [
        places.link(f"{claim['id']} {item['name']}", places.of_item(report, claim, item)) for claim, item in broken
    ]
    return element(
        "span", f"{what}: ", element("strong", f"{len(broken)} broken, "), places.listed(names), f". {apart}"
    )


def _table(report: Report, claims: Sequence[Claim]) -> Table:
    """Make kinds and aspects by verdicts."""
    used = counts.used(claims)
    columns = [Column("kind"), Column("aspect")]
    columns += [Column(verdicts.OF[v].word, help=verdicts.OF[v].meaning, numbers=True) for v in used]
    columns.append(Column("claims", numbers=True))
    rows: list[list[Value]] = []
    for kind in verdicts.KINDS:
        for aspect in verdicts.ASPECTS:
            found = counts.by_verdict(claims, aspect, kind)
            if found:
                cells = [Cell(str(found[v]), found[v]) if v in found else Cell("", 0) for v in used]
                total = sum(found.values())
                rows.append([kind, aspect, *cells, Cell(str(total), total, strong=True)])
    caption = (
        f"{places.label(report['paper'])}: distinct claims by kind, aspect and verdict. One with numbers of several "
        "aspects stands in several rows"
    )
    return Table(columns, rows, caption, sortable=False, compact=True)


def _words(section: Section, claims: Sequence[Claim]) -> None:
    """Say what verdicts, aspects and kinds mean; scaled is told only where it occurs."""
    used = counts.used(claims)
    told = [verdict for verdict in verdicts.ALL if verdict.name in used or verdict.name != "scaled"]
    section.html(
        element(
            "dl",
            [(element("dt", verdicts.framed(v.name)), element("dd", v.meaning)) for v in told],
            [(element("dt", aspect), element("dd", f"Aspect: {what}")) for aspect, what in verdicts.ASPECTS.items()],
            [(element("dt", kind), element("dd", f"Kind: {what}")) for kind, what in verdicts.KINDS.items()],
            class_="words",
        )
    )
