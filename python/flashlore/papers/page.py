"""The sections of the page: a summary of all papers, then a section a paper.

A check belongs to one figure or table or to several; it stands under the first of them, and names the others. What is
known of its differences stands behind the checks that it is about.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from flashlore.papers import markdown, numbers, verdicts
from flashlore.report.markup import Html, element
from flashlore.report.page import Page, command
from flashlore.report.table import Cell, Column, Table, number

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from flashlore.papers.document import Check, Difference, Document, Item, Report
    from flashlore.report.page import Section

# What stands for all experiments that come with the program.
_ALL = "all"

# What the experiments are called in a few words; one that is not here has its own name.
LABELS = {
    "ca-ssd": "CA-SSD",
    "delta-ftl": "DeltaFTL",
    "bvssd": "BVSSD",
    "i-cash": "I-CASH",
    "i-cash-control": "I-CASH, its control",
    "combined": "Everything combined",
}

# How the source of an experiment begins that no paper has.
_OURS = "Flashlore"

_SCALED = (
    "They come from runs that are smaller than those that their accepted ranges are meant for: one in its range "
    "reproduces nothing, and one outside refutes nothing. They are shown and not judged. Known differences tell of the "
    "whole experiments with seed 1."
)


def make(document: Document, *, asked: str = _ALL, quick: bool = False, captures: str | None = None) -> Page:
    """Make the page of a document: of one paper or of several, with those that failed.

    Args:
        document: what `flashlore reproduce all --json` prints.
        asked: what was asked for: `all`, the name of an experiment, or its file.
        quick: whether it is a quick look, which the commands repeat.
        captures: the directory of the captures, which the commands name.

    """
    reports = document["papers"]
    flags = _Flags(asked, quick=quick, captures=captures)
    several = len(reports) + len(document["failed"]) > 1
    title = "Published and measured" if several else f"{label(reports[0])}: published and measured"
    page = Page(title, subtitle=_subtitle(reports), footer=_footer(reports))
    _summary(page, document, flags, several=several)
    for report in reports:
        _paper(page.section(label(report)), report, flags)
    return page


def label(report: Report) -> str:
    """Name an experiment for people."""
    return LABELS.get(report["paper"], report["paper"])


class _Flags:
    """What the command lines of a page share."""

    def __init__(self, asked: str, *, quick: bool, captures: str | None) -> None:
        self._asked = asked
        self._quick = quick
        self._captures = captures

    def page(self, reports: Sequence[Report]) -> str:
        """Make this page again. All reports were asked for with the same scale and figure, but for a quick look."""
        flags = self._as_run(reports[0])
        return self._line(self._asked, reports[0], flags, captures=self._captures, page="papers.html")

    def paper(self, report: Report, figure: str | None = None) -> str:
        """Repeat a paper as it was run, or one figure of it."""
        name = report["paper"] if self._asked == _ALL else self._asked
        flags = self._as_run(report) if figure is None else _reduced(figure, report["scale"])
        captures = None
        if any("capture" in workload["requests"] for workload in report["workloads"]):
            captures = self._captures
        elif _lacks_captures(report, figure):
            # By itself an experiment does not leave out what needs them.
            captures = "captures"
        return self._line(name, report, flags, captures=captures)

    def _as_run(self, report: Report) -> list[str]:
        return ["--quick"] if self._quick else _reduced(next(iter(report["figures"]), None), report["scale"])

    def _line(
        self, paper: str, report: Report, flags: list[str], *, captures: str | None, page: str | None = None
    ) -> str:
        words = ["flashlore", "reproduce", paper, *flags]
        if captures is not None:
            words += ["--captures", captures]
        if report["seed"] != 1:
            words += ["--seed", str(report["seed"])]
        if page is not None:
            words += ["--report", page]
        return shlex.join(words)


def _reduced(figure: str | None, scale: float) -> list[str]:
    """Give the flags of a figure, if it is one, and of a scale."""
    figures = [] if figure is None else ["--figure", figure]
    return [*figures, *([] if scale == 1 else ["--scale", str(scale)])]


def _lacks_captures(report: Report, figure: str | None) -> bool:
    """Tell whether numbers of a paper, or perhaps of a figure of it, were left out for want of captures."""
    left_out = {number["check"] for number in report["left_out"]}
    # A check of which nothing was done is not there, and does not say what figures it is of.
    unknown = left_out - {check["id"] for check in report["checks"]}
    of_figure = (check for check in report["checks"] if figure is None or figure in check["figures"])
    return bool(unknown) or any(check["id"] in left_out for check in of_figure)


def _subtitle(reports: Sequence[Report]) -> str:
    if not reports:
        return "No experiment came to its end."
    seeds = ", ".join(dict.fromkeys(str(report["seed"]) for report in reports))
    return f"Experiments of papers, repeated in simulation and judged number by number. Seed {seeds}."


def _footer(reports: Sequence[Report]) -> str:
    versions = ", ".join(dict.fromkeys(report["version"] for report in reports))
    return f"Made by Flashlore {versions}. This page holds its data and its programs, and asks no network."


def _summary(page: Page, document: Document, flags: _Flags, *, several: bool) -> None:
    reports = document["papers"]
    section = page.section("Summary")
    everything = [item for report in reports for item in verdicts.items(report)]
    if any(verdicts.of(item).word.endswith("scaled") for item in everything):
        section.html(element("p", element("strong", "Some numbers are scaled. "), _SCALED))
    if everything:
        section.prose(_extent_of_all(reports, everything))
        section.tiles(_tiles(everything))
    if several:
        _failures(section, document)
    if several and everything:
        counts = {label(report): verdicts.counts(verdicts.items(report)) for report in reports}
        section.table(_matrix(reports))
        section.figure(
            numbers.overview({name: found for name, found in counts.items() if found}),
            title="What became of the numbers",
            caption="Of all numbers of each paper, the share with each verdict.",
        )
    section.subsection("What the verdicts mean").html(_words(everything))
    if reports:
        again = section.subsection("To repeat it")
        again.command(flags.page(reports))


def _extent_of_all(reports: Sequence[Report], items: Sequence[Item]) -> str:
    checks = sum(len(report["checks"]) for report in reports)
    ours = sum(report["source"].startswith(_OURS) for report in reports)
    papers = len(reports) - ours
    of = [f"{papers} paper{'s' * (papers != 1)}"] * (papers > 0)
    of += [f"{ours} experiment{'s' * (ours != 1)} of our own"] * (ours > 0)
    return (
        f"{number(checks)} claims with {number(len(items))} numbers of {' and '.join(of)}. What each claim accepts was "
        "written down beside it; kind, range and figure alone decide its verdict."
    )


def _failures(section: Section, document: Document) -> None:
    failed = document["failed"]
    if failed:
        section.html(element("p", element("strong", "Some experiments failed; they are missing below.")))
        section.bullets(f"{LABELS.get(each['paper'], each['paper'])}: {each['error']}" for each in failed)


def _tiles(items: Sequence[Item]) -> list[tuple[str, str, str]]:
    counts = verdicts.counts(items)

    def tile(name: str, words: Iterable[str], remark: str) -> tuple[str, str, str]:
        return name, number(sum(counts.get(word, 0) for word in words)), remark

    tiles = [
        tile("Hold", ["reproduced", "shape"], "in the accepted range"),
        tile("Fitted", ["fitted"], "in range by an input that was chosen"),
        tile("Differ", ["differs"], "with what is known of the reason"),
        tile("Not judged", ["contradictory", "not reproducible"], "the papers leave open what would be right"),
    ]
    if any(word.endswith("scaled") for word in counts):
        tiles.append(tile("Scaled", ["in range, scaled", "out of range, scaled"], "too small to be judged"))
    return tiles


def _matrix(reports: Sequence[Report]) -> Table:
    words = verdicts.counts([item for report in reports for item in verdicts.items(report)])
    columns = [Column("paper")]
    # Short heads: there may be eight of them.
    columns += [Column(word.replace(" range", ""), help=verdicts.BY_WORD[word].meaning, numbers=True) for word in words]
    columns += [Column("all", numbers=True)]
    rows: list[list[str | Cell]] = []
    for report in reports:
        items = verdicts.items(report)
        counts = verdicts.counts(items)
        cells = [Cell(str(counts[word]), counts[word]) if word in counts else Cell("", 0) for word in words]
        rows.append([label(report), *cells, Cell(str(len(items)), len(items), strong=True)])
    return Table(columns, rows, "Numbers of each paper, by what became of them", sortable=False)


def _words(items: Sequence[Item]) -> Html:
    """Say what each verdict means; those that do not occur are left out, but for the five of a whole experiment."""
    there = verdicts.counts(items)
    told = [v for v in verdicts.ALL if v.word in there or not v.word.endswith("scaled")]
    return element(
        "dl",
        [(element("dt", verdicts.framed(v.word)), element("dd", v.meaning)) for v in told],
        class_="words",
    )


def _paper(section: Section, report: Report, flags: _Flags) -> None:
    section.html(element("p", element("strong", report["title"]), f". {report['source']}."))
    _extent(section, report)
    if report["calibration"] is not None:
        _calibration(section, report)
    if report["checks"]:
        section.html(_contents(report))
    told: set[str] = set()
    for figure, checks in grouped(report["checks"]).items():
        part = section.subsection(heading(figure, checks))
        for check in checks:
            _check(part, report, check, figure)
        about = [d for d in report["differences"] if d["title"] not in told and _concerns(d, checks)]
        told.update(difference["title"] for difference in about)
        for difference in about:
            _difference(part, difference)
        part.details("To repeat it", command(flags.paper(report, figure)))
    general = [difference for difference in report["differences"] if difference["title"] not in told]
    if general:
        rest = section.subsection("What else is known")
        for difference in general:
            _difference(rest, difference)
    if report["sensitivity"] is not None:
        _sensitivity(section.subsection("With other settings"), report)
    _provenance(section.subsection("Where it comes from"), report, flags)


def grouped(checks: Sequence[Check]) -> dict[str, list[Check]]:
    """Put checks under the first figure of each, in the order in which those appear."""
    groups: dict[str, list[Check]] = {}
    for check in checks:
        groups.setdefault(check["figures"][0], []).append(check)
    return groups


def heading(figure: str, checks: Sequence[Check]) -> str:
    """Name a figure, a table or a section of a paper; a word stands for a group of our own.

    >>> heading("table2", []), heading("7a", []), heading("3.5", []), heading("sysbench", [])
    ('Table 2', 'Figure 7a', 'Section 3.5', 'Sysbench')
    """
    if match := re.fullmatch(r"table(\d+)", figure):
        return f"Table {match[1]}"
    if re.fullmatch(r"\d+\.\d+", figure) or any(check["source"] == f"Section {figure}" for check in checks):
        return f"Section {figure}"
    return f"Figure {figure}" if figure[:1].isdigit() else figure[:1].upper() + figure[1:]


def _concerns(difference: Difference, checks: Sequence[Check]) -> bool:
    return any(check["id"] in difference["checks"] for check in checks)


def _extent(section: Section, report: Report) -> None:
    """Say what part of the experiment was done."""
    if report["scale"] != 1 or report["figures"]:
        figures = f"figures {', '.join(report['figures'])}" if report["figures"] else "all figures"
        section.prose(f"Done here: {figures}, workloads at no more than {report['scale']:g} of their size.")
    if report["left_out"]:
        checks = ", ".join(dict.fromkeys(number["check"] for number in report["left_out"]))
        section.prose(
            f"Left out for want of captures: {len(report['left_out'])} numbers, of the checks {checks}. "
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
            f", published {short(found['target'])}.{state}",
        )
    )


def _contents(report: Report) -> Html:
    """List the checks with their verdicts."""
    entries = []
    for figure, checks in grouped(report["checks"]).items():
        for check in checks:
            counts = verdicts.counts(check["items"])
            marks = [
                element("span", " ", verdicts.framed(word, f"{count} {word}" if count > 1 else word))
                for word, count in counts.items()
            ]
            link = element("a", check["id"], href=f"#{_place(report, check)}")
            entries.append(element("dt", link, element("span", heading(figure, checks), class_="note")))
            entries.append(element("dd", check["claim"], element("span", marks, class_="marks")))
    return element("dl", entries, class_="words checks")


def _place(report: Report, check: Check) -> str:
    """Name the place of a check in the page."""
    return f"check-{report['paper']}-{check['id']}".lower()


def _check(part: Section, report: Report, check: Check, figure: str) -> None:
    others = [heading(other, []) for other in check["figures"] if other != figure]
    also = f"; also {', '.join(others)}" if others else ""
    part.html(element("h4", f"{check['id']}: {check['claim']}", class_="claim", id=_place(report, check)))
    part.html(element("p", f"{check['source']}{also}", class_="source"))
    part.table(_table(check))
    reasons = dict.fromkeys((verdicts.KINDS.get(i["kind"]), i["reason"]) for i in check["items"])
    part.bullets(
        element("span", verdicts.framed(word), f" because {reason}.") for word, reason in reasons if word and reason
    )
    drawn = numbers.panels(check)
    if drawn:
        part.figures(drawn)


def _table(check: Check) -> Table:
    units = {item["unit"] for item in check["items"]}
    shared = units.pop() if len(units) == 1 else None
    has_published = any(item["published"] is not None for item in check["items"])
    columns = [Column("number"), Column("measured", shared or "", numbers=True), Column("accepted", numbers=True)]
    if has_published:
        columns.insert(1, Column("published", shared or "", numbers=True))
    rows: list[list[str]] = []
    for item in check["items"]:
        behind = f" {item['unit']}" if shared is None and item["unit"] else ""
        steps = " → ".join(number(value) for value in item["measured"])
        row: list[str] = [
            item["name"],
            element("span", f"{steps}{behind}", class_="steps"),
            item["accepted"],
            verdicts.framed(verdicts.of(item).word),
        ]
        if has_published:
            row.insert(1, "" if item["published"] is None else f"{short(item['published'])}{behind}")
        rows.append(row)
    caption = f"{check['id']}: {'published and measured' if has_published else 'measured'}"
    return Table([*columns, Column("verdict")], rows, caption, sortable=False)


def short(value: float) -> str:
    """Write a published number as it was published: without zeros at its end.

    >>> short(8.2), short(47819.0), short(0.599)
    ('8.2', '47,819', '0.599')
    """
    return f"{value:,.10g}"


def _difference(part: Section, difference: Difference) -> None:
    part.details(f"Known: {difference['title']}", markdown.blocks(difference["text"]))


def _sensitivity(section: Section, report: Report) -> None:
    found = report["sensitivity"]
    assert found is not None  # noqa: S101 - the caller looked
    section.prose("Runs repeated with something changed that is not published, or that was chosen.")
    for name in dict.fromkeys(table for table, _ in found["columns"]):
        chosen = [place for place, (table, _) in enumerate(found["columns"]) if table == name]
        columns = [Column("changed"), *(Column(found["columns"][place][1], numbers=True) for place in chosen)]
        rows = [[variant, *(values[place] for place in chosen)] for variant, values in found["rows"]]
        section.details(name, Table(columns, rows, f"{name}, with other settings", compact=True).html())


def _provenance(section: Section, report: Report, flags: _Flags) -> None:
    facts = [
        ("Flashlore", report["version"]),
        ("seed", str(report["seed"])),
        ("scale", f"at most {report['scale']:g}"),
        ("figures", ", ".join(report["figures"]) or "all"),
        ("runs", number(len(report["configurations"]))),
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
