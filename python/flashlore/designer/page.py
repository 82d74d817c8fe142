"""The page: who wins where, by how much, how to divide the DRAM, how long devices live, what old versions cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

import flashlore
from flashlore.designer import figures, ranking, words
from flashlore.designer.figures import budget_label
from flashlore.designer.measures import AMPLIFICATION, LIFETIME, METRICS, RESPONSE
from flashlore.designer.measures import figures as figures_of_merit
from flashlore.report.page import Page
from flashlore.report.table import Column, Table, number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flashlore.designer.conditions import Conditions
    from flashlore.report.page import Section
    from flashlore.report.table import Value


def make(rows: pl.DataFrame, conditions: Conditions, processor_s: float) -> Page:
    """Make the page of the rows of a sweep, which took so many seconds of a processor."""
    table = figures_of_merit(rows, conditions)
    names = [system.name for system in conditions.systems]
    rivals = table.filter(pl.col("system").is_in(names))
    built = ranking.as_built(rivals)
    page = Page(
        "For the designer of a device",
        subtitle="Who wins on which flash with how much DRAM, on captures with real content.",
        footer=f"Made by Flashlore {flashlore.__version__}. This page asks no network.",
    )
    compared = {metric.column: ranking.against_baseline(built, metric) for metric in METRICS}
    _answer(page.section("Who wins where"), table, conditions, compared, processor_s)
    _amounts(page.section("By how much"), conditions, compared)
    _dram(page.section("How to divide the DRAM"), conditions, rivals, built)
    _lives(page.section("How long a device lives"), conditions, built)
    if conditions.promises:
        _promises(page.section("Old versions: another promise"), table, conditions)
    _basis(page.section("What this rests on"), conditions)
    return page


def _answer(
    section: Section,
    table: pl.DataFrame,
    conditions: Conditions,
    compared: dict[str, pl.DataFrame],
    processor_s: float,
) -> None:
    names = [system.name for system in conditions.systems]
    section.tiles(
        [
            ("Runs", number(table.height), f"{len(conditions.seeds)} seeds each"),
            (
                "Places",
                number(compared[AMPLIFICATION.column].filter("first").height),
                "capture, part and budget of DRAM",
            ),
            ("Processor time", f"{number(processor_s / 60, 2)} min", "of all runs"),
        ]
    )
    section.bullets(words.winners(compared[metric.column], metric) for metric in METRICS)
    section.bullets(words.losses(compared[AMPLIFICATION.column]))
    section.gallery(
        "The best system of each place",
        "Colour: the system with the best mean. Number: its figure over that of plain; of lifetimes more is better. "
        "Pale with ≈: another system is as good within the 95 % interval over the seeds. A system with index has one "
        "division of DRAM for each part and budget, the same for all captures. (drawn): see what this rests on.",
        [(figures.winners(compared[metric.column], names), f"{metric.name} ({metric.unit})") for metric in METRICS],
    )


def _amounts(section: Section, conditions: Conditions, compared: dict[str, pl.DataFrame]) -> None:
    budget = conditions.middle_budget
    names = [system.name for system in conditions.systems]
    section.prose(f"With DRAM of {budget_label(budget)} of the capacity. Bars are 95 % intervals over the seeds.")
    for metric in METRICS:
        here = compared[metric.column].filter(pl.col("budget") == budget)
        part = section.subsection(metric.name.capitalize())
        part.prose(words.gains(compared[metric.column], metric))
        part.gallery(
            metric.name.capitalize(),
            f"{metric.unit}, over plain. {'More' if metric.more_is_better else 'Less'} is better.",
            [
                (figures.ratios(here.filter(pl.col("part") == kind.label), names), kind.label)
                for kind in conditions.parts
            ],
        )


def _dram(section: Section, conditions: Conditions, rivals: pl.DataFrame, built: pl.DataFrame) -> None:
    indexed = [system.name for system in conditions.systems if system.index]
    made = {metric.column: ranking.curves(rivals, metric) for metric in (AMPLIFICATION, RESPONSE)}
    section.bullets(words.divisions(ranking.chosen_splits(rivals), made[AMPLIFICATION.column], indexed))
    section.bullets(words.dram(built))
    for metric in (AMPLIFICATION, RESPONSE):
        panels = [
            (
                figures.divisions(
                    made[metric.column].filter((pl.col("system") == system) & (pl.col("part") == kind.label)), metric
                ),
                f"{system} on {kind.label}",
            )
            for system in indexed
            for kind in conditions.parts
        ]
        section.gallery(
            f"{metric.name.capitalize()} by division",
            "Over plain with the same DRAM, geometric mean of the captures, with 95 % intervals over the seeds. At 0 % "
            "nothing is deduplicated; at 100 % the map cache holds one entry.",
            panels,
        )


def _lives(section: Section, conditions: Conditions, built: pl.DataFrame) -> None:
    names = [system.name for system in conditions.systems]
    budget = conditions.middle_budget
    lives = ranking.lifetimes(built.filter(pl.col("budget") == budget))
    cycles = ", ".join(f"{kind.label} {number(kind.endurance)}" for kind in conditions.parts)
    section.prose(
        f"What the host can write to a device of 1 TB, with DRAM of {budget_label(budget)} of the capacity. Cycles are "
        f"assumed ({cycles}), and lifetimes are proportional to them.",
        "Bar: wear is even, and ends when the mean block has had its cycles. Stroke: the most worn block of the run "
        "decides, which is what wear would come to if it stayed as uneven as in a run this short.",
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
    columns += [Column(f"{metric.name} over plain", numbers=True) for metric in METRICS]
    columns += [Column("window", "s", numbers=True), Column("versions recorded", numbers=True)]
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
    section.table(Table(columns, rows, "Systems that keep old versions, means over the seeds"))


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
