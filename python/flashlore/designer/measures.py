"""From the rows of the sweep to figures of merit: a row a run, with its capture, part, budget and division of DRAM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from flashlore.designer.conditions import INDEX_ENTRY, UNIT

if TYPE_CHECKING:
    from flashlore.designer.conditions import Conditions

# The system that others are compared with. It gives all DRAM to its map cache.
BASELINE = "plain"


@dataclass(frozen=True)
class Metric:
    """A figure of merit: its column, its name, its unit, and whether more of it is better."""

    column: str
    name: str
    unit: str
    more_is_better: bool = False

    @property
    def title(self) -> str:
        """Its name at the begin of a sentence; a percentile stays as it is."""
        return self.name if self.name.startswith("p9") else self.name.capitalize()


AMPLIFICATION = Metric("amplification", "write amplification", "units programmed for each written")
RESPONSE = Metric("p999_ms", "p99.9 response", "ms")
LIFETIME = Metric("lifetime_tb", "lifetime", "host TB on a device of 1 TB", more_is_better=True)
ENERGY = Metric("energy_j", "energy", "J for each GB the host writes")
METRICS = (AMPLIFICATION, RESPONSE, LIFETIME, ENERGY)
# The lifetime if the most worn block of the run decides, and wear stays as uneven as there.
WORST = "worst_tb"

_ENTRIES = "dedup.index_entries"
_CACHE = "device.map.cache_bytes"


def figures(rows: pl.DataFrame, conditions: Conditions) -> pl.DataFrame:
    """Give a row a run: trace, capture, part, budget, system, split, seed, and the figures of merit."""
    parts = pl.DataFrame(
        [
            (part.name, part.label, part.endurance, part.read_uj, part.program_uj, part.erase_uj)
            for part in conditions.parts
        ],
        schema=["device.part", "part", "endurance", "read_uj", "program_uj", "erase_uj"],
        orient="row",
    )
    captures = pl.DataFrame([(c.name, c.label) for c in conditions.captures], schema=["trace", "capture"], orient="row")
    written = pl.col("host.write_pages") * UNIT
    # Device capacities that the host has written when a block has been erased as often as it may be.
    fills = pl.col("endurance") * written / pl.col("capacity")
    energy_uj = (
        pl.col("flash.page_reads") * pl.col("read_uj")
        + pl.col("flash.page_programs") * pl.col("program_uj")
        + pl.col("flash.block_erases") * pl.col("erase_uj")
    )
    return (
        _placed(rows, conditions)
        .join(parts, on="device.part", how="left", maintain_order="left")
        .join(captures, on="trace", how="left", maintain_order="left")
        .select(
            "trace",
            "capture",
            "part",
            "budget",
            "system",
            "split",
            "seed",
            pl.col("waf_total").alias(AMPLIFICATION.column),
            (pl.col("response_us.all.p999") / 1e3).alias(RESPONSE.column),
            (fills / pl.col("erases.mean")).alias(LIFETIME.column),
            (fills / pl.col("erases.max")).alias(WORST),
            (energy_uj / 1e6 / (written / 1e9)).alias(ENERGY.column),
            pl.col("history.window_s").alias("window_s"),
            pl.col("history.entries").alias("versions"),
        )
    )


def _placed(rows: pl.DataFrame, conditions: Conditions) -> pl.DataFrame:
    """Say which budget a row had, how it was divided, and how many bytes the host could write to.

    The largest budget of the baseline is a known share of the capacity, all of it in the map cache.
    """
    largest = min(conditions.budgets)
    capacity = (
        rows.filter(pl.col("system") == BASELINE)
        .group_by("trace")
        .agg((pl.col(_CACHE).max() * largest).alias("capacity"))
    )
    if _ENTRIES not in rows.columns:
        rows = rows.with_columns(pl.lit(0).alias(_ENTRIES))
    index = pl.col(_ENTRIES).fill_null(0) * INDEX_ENTRY
    dram = index + pl.col(_CACHE)
    return (
        rows.join(capacity, on="trace", how="left", maintain_order="left")
        .with_columns((pl.col("capacity") / dram).log().alias("budget"), (index / dram).alias("split"))
        .with_columns(
            # The logarithm of a budget is far from that of another one, whatever was rounded.
            _nearest("budget", [(pl.lit(budget).log(), budget) for budget in conditions.budgets]),
            _nearest("split", [(pl.lit(split), split) for split in conditions.splits]),
        )
    )


def _nearest(column: str, known: list[tuple[pl.Expr, float]]) -> pl.Expr:
    """Round a column to the nearest of these."""
    distances = pl.concat_list([(pl.col(column) - place).abs() for place, _ in known])
    return distances.list.arg_min().replace_strict(dict(enumerate(value for _, value in known))).alias(column)
