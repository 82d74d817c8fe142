"""Who is best: systems compared seed by seed on the same capture, part and budget.

What is compared is the ratio of two systems, with the interval of its logarithm over the seeds (Student's t, 95 %). A
system is among the best if that interval, against the one with the best mean, reaches 1. A system with an index has one
division of DRAM for each part and budget, the one with the least amplification over all captures (geometric mean): a
device is built once, whatever is written to it.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from flashlore.designer.measures import AMPLIFICATION, BASELINE, LIFETIME, METRICS, WORST

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from flashlore.designer.measures import Metric

# Two-sided 95 % points of Student's t by degrees of freedom.
_T = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262}
PLACE = ("trace", "capture", "part", "budget")


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds, with its interval; of one seed all three are the same."""

    mean: float
    low: float
    high: float


def ratio(values: Sequence[float], others: Sequence[float]) -> Estimate:
    """Estimate a ratio from pairs, one for each seed.

    >>> ratio([2.0, 4.0], [1.0, 2.0])
    Estimate(mean=2.0, low=2.0, high=2.0)
    """
    logs = [math.log(value / other) for value, other in zip(values, others, strict=True)]
    mean = statistics.fmean(logs)
    half = _T[len(logs) - 1] * statistics.stdev(logs) / math.sqrt(len(logs)) if len(logs) > 1 else 0.0
    return Estimate(math.exp(mean), math.exp(mean - half), math.exp(mean + half))


def chosen_splits(table: pl.DataFrame) -> pl.DataFrame:
    """Choose the division of DRAM of each system: for each part and budget the one with the least amplification."""
    return (
        table.group_by("part", "budget", "system", "split", maintain_order=True)
        .agg(pl.col(AMPLIFICATION.column).log().mean())
        .sort(AMPLIFICATION.column, maintain_order=True)
        .group_by("part", "budget", "system", maintain_order=True)
        .first()
        .select("part", "budget", "system", "split")
    )


def as_built(table: pl.DataFrame) -> pl.DataFrame:
    """Keep the rows of each system with its chosen division of DRAM."""
    return table.join(chosen_splits(table), on=["part", "budget", "system", "split"], how="semi", maintain_order="left")


def against_baseline(table: pl.DataFrame, metric: Metric) -> pl.DataFrame:
    """Give, for each place and system of `as_built`, the ratio to the baseline, and whether it is among the best.

    Columns: those of `PLACE`, `system`, `mean` (of the figure itself), `ratio`, `low`, `high`, `best`, `alone` (the
    only one among the best).
    """
    rows = [row for place, group in table.group_by(PLACE, maintain_order=True) for row in _place(place, group, metric)]
    return pl.DataFrame(rows, infer_schema_length=None)


def _place(place: tuple[object, ...], group: pl.DataFrame, metric: Metric) -> Iterator[dict[str, object]]:
    values = {
        str(system): rows.sort("seed")[metric.column].to_list()
        for (system,), rows in group.group_by("system", maintain_order=True)
    }
    means = {system: statistics.fmean(found) for system, found in values.items()}
    first = (max if metric.more_is_better else min)(means, key=means.__getitem__)
    best = {system for system, found in values.items() if _as_good(ratio(found, values[first]), metric)} | {first}
    for system, found in values.items():
        estimate = ratio(found, values[BASELINE])
        yield {
            **dict(zip(PLACE, place, strict=True)),
            "system": system,
            "mean": means[system],
            "ratio": estimate.mean,
            "low": estimate.low,
            "high": estimate.high,
            "best": system in best,
            "first": system == first,
            "alone": best == {system},
        }


def _as_good(against: Estimate, metric: Metric) -> bool:
    """Say whether a ratio to the best does not tell the two apart."""
    return against.high >= 1 if metric.more_is_better else against.low <= 1


def mean_ratio(compared: pl.DataFrame, *keys: str) -> pl.DataFrame:
    """Give the geometric mean of the ratios to the baseline over the captures, for each system and these keys."""
    return compared.group_by(*keys, "system", maintain_order=True).agg(pl.col("ratio").log().mean().exp())


def curves(table: pl.DataFrame, metric: Metric) -> pl.DataFrame:
    """Give what divisions of DRAM come to, over the baseline with the same DRAM: geometric means over the captures.

    Columns: `part`, `budget`, `system`, `split`, `ratio`, `low`, `high`, the interval over the seeds.
    """
    keys = ["trace", "part", "budget", "seed"]
    base = table.filter(pl.col("system") == BASELINE).select(*keys, pl.col(metric.column).alias("base"))
    logs = (
        table.join(base, on=keys, how="left", maintain_order="left")
        .group_by("part", "budget", "system", "split", "seed", maintain_order=True)
        .agg((pl.col(metric.column) / pl.col("base")).log().mean().exp().alias("ratio"))
    )
    rows = []
    for (part, budget, system, split), seeds in logs.group_by("part", "budget", "system", "split", maintain_order=True):
        found = ratio(seeds["ratio"].to_list(), [1.0] * len(seeds))
        place = {"part": part, "budget": budget, "system": system, "split": split}
        rows.append({**place, "ratio": found.mean, "low": found.low, "high": found.high})
    return pl.DataFrame(rows, infer_schema_length=None).sort("split", maintain_order=True)


def divisions(table: pl.DataFrame, made: pl.DataFrame) -> pl.DataFrame:
    """Give the chosen division of each system with an index, and what others program, in times of it.

    `made` is `curves` of the amplification. Columns: `part`, `budget`, `system`, `split`, `even` (of the division
    nearest to half and half), `worst`.
    """
    keys = ["part", "budget", "system"]
    others = made.group_by(keys, maintain_order=True).agg(
        (pl.col("ratio").sort_by((pl.col("split") - 0.5).abs()).first() / pl.col("ratio").min()).alias("even"),
        (pl.col("ratio").max() / pl.col("ratio").min()).alias("worst"),
    )
    return chosen_splits(table).join(others, on=keys, how="left")


def worth_of_dram(built: pl.DataFrame) -> pl.DataFrame:
    """Give what each system programs with the least DRAM over what it does with the most.

    Columns: `system`, `part`, `factor`, a geometric mean over captures and seeds.
    """
    logs = built.group_by("system", "part", "budget", maintain_order=True).agg(
        pl.col(AMPLIFICATION.column).log().mean()
    )
    in_order = pl.col(AMPLIFICATION.column).sort_by("budget")
    return logs.group_by("system", "part", maintain_order=True).agg(
        (in_order.last() - in_order.first()).exp().alias("factor")
    )


def lifetimes(built: pl.DataFrame) -> pl.DataFrame:
    """Give lifetimes of `as_built` in host TB: even wear with its interval, and by the most worn block.

    Columns: those of `PLACE`, `system`, `even`, `low`, `high`, `worst`.
    """
    rows = []
    for (*place, system), runs in built.group_by(*PLACE, "system", maintain_order=True):
        even = ratio(runs[LIFETIME.column].to_list(), [1.0] * len(runs))
        rows.append(
            {
                **dict(zip(PLACE, place, strict=True)),
                "system": system,
                "even": even.mean,
                "low": even.low,
                "high": even.high,
                "worst": runs[WORST].log().mean(),
            }
        )
    return pl.DataFrame(rows, infer_schema_length=None).with_columns(pl.col("worst").exp())


def against_plain_of(table: pl.DataFrame, systems: Sequence[str]) -> pl.DataFrame:
    """Give these systems' figures over the baseline's, means over the seeds; what it lacks as it is.

    Columns: those of `PLACE`, `system`, a ratio for each figure of merit, `window_s`, `versions`.
    """
    columns = [metric.column for metric in METRICS]
    means = table.group_by(*PLACE, "system", maintain_order=True).agg(
        *(pl.col(column).log().mean().exp() for column in columns), pl.col("window_s").mean(), pl.col("versions").mean()
    )
    base = means.filter(pl.col("system") == BASELINE).select(*PLACE, *(pl.col(c).alias(f"{c} of it") for c in columns))
    return (
        means.filter(pl.col("system").is_in(systems))
        .join(base, on=PLACE, how="left", maintain_order="left")
        .with_columns(pl.col(column) / pl.col(f"{column} of it") for column in columns)
    )
