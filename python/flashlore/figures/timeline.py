"""Figures over simulated time: amplification, free blocks, response, wear, utilisation, the protection window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import altair as alt
import polars as pl

from flashlore.figures import lines
from flashlore.figures.thin import LINES, coarse

if TYPE_CHECKING:
    from flashlore.figures.theme import Figure, Theme


# Rows of a line that a figure shows; it is hardly wider in pixels.
_ROWS = 400


@dataclass(frozen=True)
class Measure:
    """A measure over time: what it is called, the title of its axis, and what is seen.

    A measure of a whole stretch has a `weight`, the column by which stretches that are joined count in their mean, and
    stands where the stretch begins. One without is of the end of a stretch, and stands there.
    """

    name: str
    axis: str
    caption: str
    log: bool = False
    share: bool = False
    weight: str = ""


MEASURES: dict[str, Measure] = {
    "waf": Measure(
        "Write amplification so far",
        "programmed for each written, so far",
        "Units programmed since the start for each unit that the host wrote since. Below 1, writes were saved.",
    ),
    "programs": Measure(
        "Programs",
        "units programmed a second",
        "Units programmed in each stretch, for the host, by collection and for all else, by its length.",
        weight="width_s",
    ),
    "response_mean_us": Measure(
        "Mean response",
        "mean response time (log)",
        "Of the requests that arrived in each stretch. A line that keeps rising is a queue that grows.",
        log=True,
        weight="requests",
    ),
    "free_blocks": Measure(
        "Free blocks",
        "free blocks",
        "Blocks that could be written at the end of each stretch. Collection begins where they run low.",
    ),
    "erases_mean": Measure("Wear", "mean erases of a block, so far", "Mean erases of a block since counting began."),
    "erases_max": Measure(
        "The most worn block", "most erases of a block, so far", "Erases of the block that was erased most often."
    ),
    "erases_std": Measure(
        "Unevenness of wear",
        "standard deviation of erases, so far",
        "Standard deviation of the erases of blocks. At 0 all blocks are worn alike.",
    ),
    "die_busy": Measure(
        "Utilisation of dies",
        "busy share of dies",
        "Share of each stretch in which dies worked, their mean. At 100 % requests wait for flash.",
        share=True,
        weight="width_s",
    ),
    "channel_busy": Measure(
        "Utilisation of channels",
        "busy share of channels",
        "Share of each stretch in which channels carried data, their mean.",
        share=True,
        weight="width_s",
    ),
    "window_s": Measure(
        "Protection window", "window (s)", "How far back one could have gone at the end of each stretch."
    ),
    "units_in_use": Measure(
        "Units in use",
        "units in use (4 KiB)",
        "Units on flash that hold anything of the present or of old versions, at the end of each stretch.",
    ),
}


def measured(frame: pl.DataFrame) -> pl.DataFrame:
    """Add the measures that follow from columns: amplification so far, and programs a second."""
    by = ["system", "trace", "seed"]
    programs = pl.sum_horizontal("host_programs", "gc_programs", "other_programs")
    so_far, written = (column.cum_sum().over(by) for column in (programs, pl.col("write_pages")))
    return frame.with_columns(
        pl.when(written > 0).then(so_far / written).alias("waf"), (programs / pl.col("width_s")).alias("programs")
    )


def has(frame: pl.DataFrame | None, measure: str) -> bool:
    """Tell whether a time line has values of a measure, of which some is not 0."""
    if frame is None:
        return False
    frame = measured(frame)
    if measure not in frame.columns:
        return False
    return bool(frame[measure].drop_nulls().cast(pl.Float64).abs().sum() > 0)


def with_points(frame: pl.DataFrame, measure: str) -> pl.DataFrame:
    """Leave out the traces in which a measure has no value that can be drawn."""
    drawn = pl.col(measure) > 0
    return measured(frame).filter(drawn.fill_null(value=False).any().over("trace"))


def over_time(frame: pl.DataFrame, measure: str, *, theme: Theme = "light") -> Figure:
    """Draw a column of the time line over simulated time.

    `frame` is timeline: `system`, `trace`, `seed`, `start_s`, `width_s` (seconds), `requests` that arrived, and the
    measure, one of `MEASURES`.

    Raises:
        KeyError: there is no such measure.

    """
    look = MEASURES[measure]
    at = "start_s" if look.weight else "end_s"
    by = ["system", "trace", "seed"]
    table = (
        measured(frame)
        .with_columns((pl.col("start_s") + pl.col("width_s")).alias("end_s"), pl.col(measure).cast(pl.Float64))
        .drop_nulls(measure)
        .select(*by, at, measure, *[look.weight] * bool(look.weight))
    )
    rows = _ROWS if table.select(by).n_unique() <= LINES else _ROWS // 4
    table = coarse(table, by, rows, *_joined(at, measure, look)).select(*by, at, measure)
    scale: Any = alt.Undefined
    if look.log:
        table = table.with_columns(pl.col(measure).clip(lines.LEAST_US))
        scale, ticks = lines.log_scale(table, measure)
        axis = alt.Axis(values=ticks, labelExpr=lines.TIME_LABEL)
    else:
        axis = alt.Axis(tickCount=6, labelExpr=lines.COUNT_LABEL)
        if look.share:
            scale, axis = alt.Scale(domain=[0, max(1.0, *table[measure])]), alt.Axis(format=".0%", tickCount=5)
    return lines.draw(
        table,
        alt.X(f"{at}:Q", title="simulated time (s)", axis=alt.Axis(labelExpr=lines.COUNT_LABEL, tickCount=8)),
        alt.Y(f"{measure}:Q", title=look.axis, scale=scale, axis=axis),
        [
            alt.Tooltip("system:N"),
            alt.Tooltip(f"{at}:Q", title="from (s)" if look.weight else "at (s)", format=",.6~r"),
            alt.Tooltip(f"{measure}:Q", title=look.name, format=".1%" if look.share else ",.4~r"),
        ],
        interpolate="linear",
        theme=theme,
    )


def _joined(at: str, measure: str, look: Measure) -> tuple[pl.Expr, pl.Expr]:
    """Say what becomes of the place and of the values of stretches that are joined."""
    if not look.weight:
        return pl.col(at).last(), pl.col(measure).last()
    weight = pl.col(look.weight)
    return pl.col(at).first(), (pl.col(measure) * weight).sum() / weight.sum()
