"""Sentences of the page, computed from the results: who wins where, what DRAM is worth, what old versions cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from flashlore.designer import ranking
from flashlore.designer.figures import budget_label
from flashlore.designer.measures import AMPLIFICATION, BASELINE
from flashlore.report.table import number

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from flashlore.designer.measures import Metric


def winners(compared: pl.DataFrame, metric: Metric) -> str:
    """Say of how many places each system is the best, alone or with others.

    A place is a capture on a part with a budget.
    """
    places = compared.select(*ranking.PLACE).unique().height
    alone = compared.filter("alone")["system"].value_counts(sort=True).rows()
    shared = places - sum(count for _, count in alone)
    said = [f"{system} in {count}" for system, count in alone]
    if shared:
        said.append(f"several as good as each other in {shared}")
    return f"{metric.name.capitalize()}: of {places} places, {_listed(said)}."


def losses(compared: pl.DataFrame) -> Iterator[str]:
    """Say where a system does worse than the baseline, interval included."""
    for (system,), rows in compared.filter(pl.col("system") != BASELINE).group_by("system", maintain_order=True):
        worse = rows.filter(pl.col("low") > 1)
        if worse.height:
            most = worse.sort("ratio").row(-1, named=True)
            where = f"{most['capture']} ({most['part']}, DRAM {budget_label(most['budget'])})"
            yield (
                f"{system} does worse than {BASELINE} in {worse.height} of {rows.height} places, most on {where}: "
                f"{number(most['ratio'], 3)} times."
            )


def gains(compared: pl.DataFrame, metric: Metric) -> str:
    """Say what each system comes to on each part, over all captures and budgets."""
    means = ranking.mean_ratio(compared, "part")
    said = []
    for (system,), rows in means.filter(pl.col("system") != BASELINE).group_by("system", maintain_order=True):
        values = ", ".join(f"{number(row['ratio'], 3)} on {row['part']}" for row in rows.iter_rows(named=True))
        said.append(f"{system} {values}")
    return f"{metric.name.capitalize()} over {BASELINE}, geometric mean of captures and budgets: {'; '.join(said)}."


def divisions(splits: pl.DataFrame, curves: pl.DataFrame, systems: Sequence[str]) -> Iterator[str]:
    """Say which division of DRAM is the best for each system, and what the worst one costs."""
    for system in systems:
        found = splits.filter(pl.col("system") == system)
        for (budget,), rows in found.group_by("budget", maintain_order=True):
            shares = {f"{share:.0%}" for share in rows["split"]}
            where = shares.pop() if len(shares) == 1 else _by_part(rows)
            here = curves.filter((pl.col("system") == system) & (pl.col("budget") == budget))
            worst = here.group_by("part").agg((pl.col("ratio").max() / pl.col("ratio").min()).alias("factor"))
            factor = worst["factor"].max()
            yield (
                f"{system}, DRAM {budget_label(int(str(budget)))}: {where} for the index; the worst division programs "
                f"{number(float(str(factor)), 3)} times as much."
            )


def _by_part(rows: pl.DataFrame) -> str:
    return _listed([f"{row['split']:.0%} on {row['part']}" for row in rows.iter_rows(named=True)])


def dram(built: pl.DataFrame) -> Iterator[str]:
    """Say what the smallest budget costs against the largest, for each system."""
    budgets = sorted(built["budget"].unique().to_list())
    if len(budgets) == 1:
        return
    most, least = budgets[0], budgets[-1]
    for (system,), rows in built.group_by("system", maintain_order=True):
        means = rows.group_by("part", "budget", maintain_order=True).agg(
            pl.col(AMPLIFICATION.column).log().mean().exp()
        )
        wide = means.pivot(on="budget", index="part", values=AMPLIFICATION.column)
        costs = wide.select("part", (pl.col(str(least)) / pl.col(str(most))).alias("factor"))
        said = ", ".join(f"{number(row['factor'], 3)} on {row['part']}" for row in costs.iter_rows(named=True))
        yield f"{system} programs with DRAM {budget_label(least)} against {budget_label(most)}: times {said}."


def _listed(words: Sequence[str]) -> str:
    """Join words as a sentence does.

    >>> _listed(["a", "b", "c"]), _listed([])
    ('a, b and c', 'none')
    """
    if not words:
        return "none"
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
