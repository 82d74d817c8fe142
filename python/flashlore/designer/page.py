"""The page: who wins where, by how much, how to divide the DRAM, how long devices live, what old versions cost."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import polars as pl

import flashlore
from flashlore.designer import figures, ranking, words
from flashlore.designer.figures import budget_label
from flashlore.designer.measures import AMPLIFICATION, BASELINE, LIFETIME, METRICS, RESPONSE
from flashlore.designer.measures import figures as figures_of_merit
from flashlore.report.page import Page
from flashlore.report.table import Column, Table, number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flashlore.designer.conditions import Conditions
    from flashlore.report.page import Section
    from flashlore.report.table import Value


def make(rows: pl.DataFrame, conditions: Conditions) -> Page:
    """Make the page of the rows of a sweep."""
    table = figures_of_merit(rows, conditions)
    names = [system.name for system in conditions.systems]
    rivals = table.filter(pl.col("system").is_in(names))
    built = ranking.as_built(rivals)
    compared = {metric.column: ranking.against_baseline(built, metric) for metric in METRICS}
    page = Page(
        "For the designer of a device",
        subtitle="Who wins on which flash with how much DRAM, on captures with real content.",
        footer=f"Made by Flashlore {flashlore.__version__}. This page asks no network.",
    )
    _answer(page.section("Who wins where"), table, conditions, compared)
    _amounts(page.section("By how much"), conditions, compared)
    _dram(page.section("How to divide the DRAM"), conditions, rivals, built)
    _lives(page.section("How long a device lives"), conditions, built)
    if conditions.promises:
        _promises(page.section("Old versions: another promise"), table, conditions)
    _basis(page.section("What this rests on"), conditions)
    return page


def _answer(section: Section, table: pl.DataFrame, conditions: Conditions, compared: dict[str, pl.DataFrame]) -> None:
    names = [system.name for system in conditions.systems]
    places = compared[AMPLIFICATION.column].filter("first").height
    section.tiles(
        [
            ("Runs", number(table.height), f"{len(conditions.seeds)} seeds each"),
            ("Places", number(places), "a capture on a part with a budget of DRAM"),
        ]
    )
    for title, figures_of in _kinds(compared, conditions):
        section.prose(f"{title}:")
        section.bullets(words.winners(figures_of[metric.column], metric) for metric in METRICS)
    best = section.subsection("The best system of each place")
    best.prose(
        "Colour: the system with the best mean. Number: its figure over that of plain; of lifetimes more is better. "
        "Pale with ≈: another system is as good within the 95 % interval over the seeds. A system with index has one "
        "division of DRAM for each part and budget, the same for all captures. (drawn): see what this rests on."
    )
    for metric in METRICS:
        chart = figures.winners(compared[metric.column], names)
        best.figure(chart, title=f"Best {metric.name}", caption=f"{metric.unit}, over plain")
    worse = section.subsection("Worse than doing nothing")
    worse.prose("Intervals included, on all captures:")
    worse.bullets(loss for metric in METRICS for loss in words.losses(compared[metric.column], metric))


def _kinds(compared: dict[str, pl.DataFrame], conditions: Conditions) -> list[tuple[str, dict[str, pl.DataFrame]]]:
    """Give the results of the captures with bytes, then those of all; once if all are alike."""
    known = [capture.label for capture in conditions.captures if capture.bytes]
    if len(known) in (0, len(conditions.captures)):
        return [("On all captures", compared)]
    measured = {column: frame.filter(pl.col("capture").is_in(known)) for column, frame in compared.items()}
    return [("On the captures with bytes", measured), ("On all captures, those with drawn sizes included", compared)]


def _amounts(section: Section, conditions: Conditions, compared: dict[str, pl.DataFrame]) -> None:
    budget = conditions.middle_budget
    names = [system.name for system in conditions.systems]
    for title, figures_of in _kinds(compared, conditions):
        section.table(_means(figures_of, title))
    section.prose(f"Below: each capture with DRAM of {budget_label(budget)}; bars are 95 % intervals over the seeds.")
    for metric in METRICS:
        here = compared[metric.column].filter(pl.col("budget") == budget)
        section.gallery(
            metric.title,
            f"{metric.unit}, over plain. {'More' if metric.more_is_better else 'Less'} is better.",
            [
                (figures.ratios(here.filter(pl.col("part") == kind.label), names), kind.label)
                for kind in conditions.parts
            ],
        )


def _means(compared: dict[str, pl.DataFrame], title: str) -> Table:
    """Make systems and parts by figures of merit."""
    means = {metric.column: ranking.mean_ratio(compared[metric.column], "part") for metric in METRICS}
    values = {
        (row["part"], row["system"], column): row["ratio"]
        for column, frame in means.items()
        for row in frame.iter_rows(named=True)
    }
    places = means[AMPLIFICATION.column].filter(pl.col("system") != BASELINE).select("part", "system").rows()
    rows: list[Sequence[Value]] = [
        [system, part, *(number(values[part, system, metric.column], 3) for metric in METRICS)]
        for part, system in places
    ]
    columns = [Column("system"), Column("part"), *(Column(metric.name, numbers=True) for metric in METRICS)]
    return Table(columns, rows, f"{title}: over plain, geometric means of captures and budgets", compact=True)


def _dram(section: Section, conditions: Conditions, rivals: pl.DataFrame, built: pl.DataFrame) -> None:
    indexed = [system.name for system in conditions.systems if system.index]
    made = {metric.column: ranking.curves(rivals, metric) for metric in (AMPLIFICATION, RESPONSE)}
    section.table(_divisions(ranking.divisions(rivals, made[AMPLIFICATION.column]), conditions))
    if len(conditions.budgets) > 1:
        section.table(_worth(ranking.worth_of_dram(built), conditions))
    for metric in (AMPLIFICATION, RESPONSE):
        section.gallery(
            f"{metric.title} by division",
            "Over plain with the same DRAM, geometric mean of the captures, with 95 % intervals over the seeds. At 0 % "
            "nothing is deduplicated; at 100 % the map cache holds one entry.",
            [
                (
                    figures.divisions(
                        made[metric.column].filter((pl.col("system") == system) & (pl.col("part") == kind.label)),
                        metric,
                    ),
                    f"{system} on {kind.label}",
                )
                for system in indexed
                for kind in conditions.parts
            ],
        )


def _divisions(found: pl.DataFrame, conditions: Conditions) -> Table:
    """Make the best division of each system, and what others cost."""
    by_place = {(row["system"], row["part"], row["budget"]): row for row in found.iter_rows(named=True)}
    places = itertools.product(
        (system.name for system in conditions.systems if system.index),
        (part.label for part in conditions.parts),
        conditions.budgets,
    )
    rows: list[Sequence[Value]] = [
        [
            row["system"],
            row["part"],
            budget_label(row["budget"]),
            f"{row['split']:.0%}",
            number(row["even"], 3),
            number(row["worst"], 3),
        ]
        for row in (by_place[place] for place in places)
    ]
    columns = [
        Column("system"),
        Column("part"),
        Column("DRAM", help="as a share of the capacity"),
        Column("for the index", numbers=True, help="of the divisions tried, that with the least amplification"),
        Column("half and half programs", numbers=True, help="times the best division"),
        Column("the worst programs", numbers=True, help="times the best division"),
    ]
    return Table(columns, rows, "The best division of DRAM over all captures, and others against it", compact=True)


def _worth(found: pl.DataFrame, conditions: Conditions) -> Table:
    """Make what each system programs with the least DRAM, against the most."""
    least, most = budget_label(max(conditions.budgets)), budget_label(min(conditions.budgets))
    labels = [kind.label for kind in conditions.parts]
    wide = found.pivot(on="part", index="system", values="factor")
    rows: list[Sequence[Value]] = [
        [row["system"], *(number(row[label], 3) for label in labels)] for row in wide.iter_rows(named=True)
    ]
    columns = [Column("system"), *(Column(label, numbers=True) for label in labels)]
    return Table(columns, rows, f"Programs with DRAM {least} over those with {most}, geometric mean", compact=True)


def _lives(section: Section, conditions: Conditions, built: pl.DataFrame) -> None:
    names = [system.name for system in conditions.systems]
    budget = conditions.middle_budget
    lives = ranking.lifetimes(built.filter(pl.col("budget") == budget))
    cycles = ", ".join(f"{kind.label} {number(kind.endurance)}" for kind in conditions.parts)
    section.prose(
        f"What the host can write to a device of 1 TB, with DRAM of {budget_label(budget)} of the capacity. Cycles are "
        f"assumed ({cycles}), and lifetimes are proportional to them.",
        "Bar: wear is even, and the end comes when the mean block has had its cycles. Stroke: the most worn block of "
        "the run decides, as if wear stayed as uneven as in a run this short.",
    )
    section.gallery(
        "Lifetime",
        LIFETIME.unit,
        [
            (figures.lifetimes(lives.filter(pl.col("part") == kind.label), names, LIFETIME), kind.label)
            for kind in conditions.parts
        ],
    )


def _promises(section: Section, table: pl.DataFrame, conditions: Conditions) -> None:
    budget = conditions.middle_budget
    promising = [rival.name for rival in conditions.promises]
    section.prose(
        "These systems keep superseded versions in the spare space and go back to any instant of a window. That is "
        "more than the others promise, so they are not ranked with them. They answer writes from a queue of 1 MiB in "
        f"RAM that is not in the budget: response times mean something else. DRAM {budget_label(budget)}."
    )
    here = ranking.against_plain_of(table.filter(pl.col("budget") == budget), promising)
    columns = [Column("capture"), Column("part"), Column("system")]
    columns += [Column(metric.name, numbers=True, help="over plain") for metric in METRICS]
    columns += [Column("window", "s", numbers=True), Column("versions", numbers=True, help="kept at the end")]
    rows: list[Sequence[Value]] = [
        [
            row["capture"],
            row["part"],
            row["system"],
            *(number(row[metric.column], 3) for metric in METRICS),
            number(row["window_s"], 3),
            number(round(row["versions"])),
        ]
        for row in here.iter_rows(named=True)
    ]
    section.table(Table(columns, rows, "Systems that keep old versions: figures over plain, means over the seeds"))


def _basis(section: Section, conditions: Conditions) -> None:
    section.bullets(conditions.notes)
    rows: list[Sequence[Value]] = [
        [kind.label, kind.name, kind.endurance, kind.read_uj, kind.program_uj, kind.erase_uj]
        for kind in conditions.parts
    ]
    columns = [
        Column("part"),
        Column("part set"),
        Column("endurance", "cycles", numbers=True),
        Column("page read", "uJ", numbers=True),
        Column("page program", "uJ", numbers=True),
        Column("block erase", "uJ", numbers=True),
    ]
    section.table(Table(columns, rows, "Assumptions about the parts", sortable=False, compact=True))
