"""The figures of the page: who wins where, by how much, what a division of DRAM does, and how long devices live."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt
import polars as pl

from flashlore.figures import lines, theme

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flashlore.designer.measures import Metric
    from flashlore.figures.theme import Figure

# Height in pixels of a capture in a map of winners, and of a system of a capture in other figures.
_CELL = 38
_SYSTEM = 9
# Room for the name of a capture.
_LABEL = 170
_LEGEND = alt.Legend(symbolSize=100, symbolStrokeWidth=0)


def budget_label(budget: int) -> str:
    """Name a budget of DRAM, a share of the capacity."""
    return f"1/{budget}"


def winners(compared: pl.DataFrame, systems: Sequence[str]) -> Figure:
    """Draw a map of captures by parts and budgets: the colour is the best system, the number its ratio to the baseline.

    Where others are as good within the intervals, the colour is pale and the number has a sign before it.
    """
    won = compared.filter("first").with_columns(
        pl.format("{} {}", "part", pl.col("budget").map_elements(budget_label, pl.String)).alias("where"),
        pl.when("alone").then(1.0).otherwise(0.55).alias("strength"),
        pl.format(
            "{}{}",
            pl.when("alone").then(pl.lit("")).otherwise(pl.lit("≈ ")),
            pl.col("ratio").map_elements(lambda ratio: f"{ratio:.2g}", pl.String),
        ).alias("said"),
    )
    x = alt.X(
        "where:N",
        title="part, and DRAM as a share of the capacity",
        sort=None,
        axis=alt.Axis(labelAngle=0, labelOverlap=False),
    )
    y = alt.Y("capture:N", title=None, sort=None, axis=alt.Axis(labelLimit=_LABEL))
    tooltip = [
        alt.Tooltip("capture:N"),
        alt.Tooltip("where:N", title="part, DRAM"),
        alt.Tooltip("system:N", title="best"),
        alt.Tooltip("mean:Q", format=",.4~r"),
        alt.Tooltip("ratio:Q", title="over plain", format=".3~r"),
        alt.Tooltip("low:Q", title="interval from", format=".3~r"),
        alt.Tooltip("high:Q", title="to", format=".3~r"),
        alt.Tooltip("alone:N", title="clear of the others"),
    ]
    base = alt.Chart().encode(x=x, y=y, tooltip=tooltip)
    cells = base.mark_rect(stroke=theme.GROUND[0], strokeWidth=2).encode(
        color=lines.colour(list(systems), legend=_LEGEND), opacity=alt.Opacity("strength:Q", scale=None, legend=None)
    )
    text = base.mark_text(fontSize=11, fontWeight=600, color=theme.GROUND[0]).encode(text="said:N")
    height = _CELL * won["capture"].n_unique()
    return theme.dress(alt.LayerChart(data=won, layer=[cells, text]).properties(height=height))


def ratios(compared: pl.DataFrame, systems: Sequence[str]) -> Figure:
    """Draw the ratios to the baseline with their intervals: a row a capture, in it a point a system."""
    names = list(systems)
    scale, ticks = lines.log_scale(_ends(compared), "ratio", margin=0.04)
    y = alt.Y("capture:N", title=None, sort=None, axis=alt.Axis(labelLimit=_LABEL, grid=True))
    x = alt.X("ratio:Q", title="over plain (log)", scale=scale, axis=alt.Axis(values=ticks, format="~g"))
    base = alt.Chart().encode(
        y=y, yOffset=alt.YOffset("system:N", sort=names), color=lines.colour(names, legend=_LEGEND), tooltip=_tooltip()
    )
    spans = base.mark_rule(strokeWidth=2).encode(x=alt.X("low:Q", scale=scale), x2="high:Q")
    points = base.mark_point(filled=True, size=60, opacity=1).encode(
        x=x, shape=alt.Shape("system:N", scale=theme.shapes(names), legend=_LEGEND)
    )
    one = alt.Chart().mark_rule(strokeDash=[3, 3], color=theme.AXIS[0]).encode(x=alt.X(datum=1.0, scale=scale))
    height = _SYSTEM * len(names) * compared["capture"].n_unique()
    return theme.dress(alt.LayerChart(data=compared, layer=[one, spans, points]).properties(height=height))


def _ends(compared: pl.DataFrame) -> pl.DataFrame:
    """Give the ends of all intervals, for an axis that shows them."""
    return pl.concat([compared.select(pl.col(end).alias("ratio")) for end in ("low", "high")])


def _tooltip() -> list[alt.Tooltip]:
    return [
        alt.Tooltip("capture:N"),
        alt.Tooltip("system:N"),
        alt.Tooltip("mean:Q", format=",.4~r"),
        alt.Tooltip("ratio:Q", title="over plain", format=".3~r"),
        alt.Tooltip("low:Q", title="interval from", format=".3~r"),
        alt.Tooltip("high:Q", title="to", format=".3~r"),
    ]


def divisions(curves: pl.DataFrame, metric: Metric) -> Figure:
    """Draw a figure of merit against the share of DRAM that the index has: a line a budget, intervals over the seeds.

    `curves` is `ranking.curves` of one system and part.
    """
    table = curves.with_columns(pl.col("budget").map_elements(budget_label, pl.String))
    names = lines.series(table, "budget")
    legend = _LEGEND if len(names) > 1 else None
    x = alt.X(
        "split:Q", title="share of the DRAM for the index", axis=alt.Axis(format=".0%", values=[0, 0.25, 0.5, 0.75, 1])
    )
    base = alt.Chart().encode(
        x=x,
        color=lines.colour(names, "budget", legend),
        tooltip=[
            alt.Tooltip("budget:N", title="DRAM"),
            alt.Tooltip("split:Q", title="for the index", format=".0%"),
            alt.Tooltip("ratio:Q", title="over plain", format=".3~r"),
            alt.Tooltip("low:Q", title="interval from", format=".3~r"),
            alt.Tooltip("high:Q", title="to", format=".3~r"),
        ],
    )
    scale, ticks = lines.log_scale(_ends(table), "ratio", margin=0.05)
    y = alt.Y("ratio:Q", title=f"{metric.name} over plain (log)", scale=scale, axis=alt.Axis(values=ticks, format="~g"))
    line = base.mark_line().encode(y=y, strokeDash=alt.StrokeDash("budget:N", scale=theme.dashes(names), legend=legend))
    points = base.mark_point(filled=True, size=60, opacity=1).encode(
        y=y, shape=alt.Shape("budget:N", scale=theme.shapes(names), legend=legend)
    )
    spans = base.mark_rule(strokeWidth=2).encode(y=alt.Y("low:Q", scale=scale), y2="high:Q")
    return theme.dress(alt.LayerChart(data=table, layer=[line, spans, points]))


def lifetimes(lives: pl.DataFrame, systems: Sequence[str], metric: Metric) -> Figure:
    """Draw lifetimes as bars, a row a capture, in it a bar a system; a stroke is that of the most worn block."""
    names = list(systems)
    y = alt.Y("capture:N", title=None, sort=None, axis=alt.Axis(labelLimit=_LABEL))
    offset = alt.YOffset("system:N", sort=names)
    tooltip = [
        alt.Tooltip("capture:N"),
        alt.Tooltip("system:N"),
        alt.Tooltip("even:Q", title="even wear, TB", format=",.4~r"),
        alt.Tooltip("low:Q", title="interval from", format=",.4~r"),
        alt.Tooltip("high:Q", title="to", format=",.4~r"),
        alt.Tooltip("worst:Q", title="most worn block, TB", format=",.4~r"),
    ]
    base = alt.Chart().encode(y=y, yOffset=offset, tooltip=tooltip)
    x: Any = alt.X("even:Q", title=metric.unit, axis=alt.Axis(labelExpr=lines.COUNT_LABEL, tickCount=5))
    bars = base.mark_bar(height=_SYSTEM - 2).encode(x=x, color=lines.colour(names, legend=_LEGEND))
    spans = base.mark_rule(strokeWidth=1.5, color=theme.MUTED[0]).encode(x="low:Q", x2="high:Q")
    worst = base.mark_tick(thickness=3, size=_SYSTEM + 1, color=theme.WORSE[0]).encode(x="worst:Q")
    height = (_SYSTEM + 1) * len(names) * lives["capture"].n_unique()
    return theme.dress(alt.LayerChart(data=lives, layer=[bars, spans, worst]).properties(height=height))
