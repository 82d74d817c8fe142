"""Sentences of the page, computed from the results: who wins where, and who loses against doing nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from flashlore.designer import ranking
from flashlore.designer.figures import budget_label
from flashlore.designer.measures import BASELINE
from flashlore.report.table import number

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from flashlore.designer.measures import Metric


def winners(compared: pl.DataFrame, metric: Metric) -> str:
    """Say of how many places each system is the best, alone or with others, and who is the best on each part.

    A place is a capture on a part with a budget.
    """
    places = compared.select(*ranking.PLACE).unique().height
    alone = compared.filter("alone")["system"].value_counts(sort=True, name="count").sort("count", "system").rows()
    said = [f"{system} in {count}" for system, count in reversed(alone)]
    if shared := places - sum(count for _, count in alone):
        said.append(f"several as good as each other in {shared}")
    return f"{metric.title}: of {places} places, {listed(said)}. In the mean {_on_parts(compared, metric)}."


def _on_parts(compared: pl.DataFrame, metric: Metric) -> str:
    """Name the best of the geometric means over captures and budgets, for each part."""
    means = ranking.mean_ratio(compared, "part").sort("ratio", descending=metric.more_is_better, maintain_order=True)
    best = {row["part"]: row for row in reversed(means.to_dicts())}
    said = [
        f"{row['system']} on {part} ({number(row['ratio'], 2)} times {BASELINE})"
        for part, row in ((part, best[part]) for part in compared["part"].unique(maintain_order=True))
    ]
    return listed(said)


def losses(compared: pl.DataFrame, metric: Metric) -> Iterator[str]:
    """Say where a system does worse than the baseline, interval included."""
    worse_than = pl.col("high") < 1 if metric.more_is_better else pl.col("low") > 1
    for (system,), rows in compared.filter(pl.col("system") != BASELINE).group_by("system", maintain_order=True):
        worse = rows.filter(worse_than).sort("ratio", descending=not metric.more_is_better)
        if worse.height:
            most = worse.row(0, named=True)
            where = f"{most['capture']} ({most['part']}, DRAM {budget_label(most['budget'])})"
            yield (
                f"{metric.title}: {system} does worse than {BASELINE} in {worse.height} of {rows.height} places, most "
                f"on {where}: {number(most['ratio'], 3)} times."
            )


def listed(words: Sequence[str]) -> str:
    """Join words as a sentence does.

    >>> listed(["a", "b", "c"]), listed([])
    ('a, b and c', 'none')
    """
    if not words:
        return "none"
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
