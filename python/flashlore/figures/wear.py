"""Wear: how often blocks were erased, at the end and over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import altair as alt
import polars as pl

from flashlore.figures import lines
from flashlore.figures import theme as themes
from flashlore.figures.thin import thin, widened

if TYPE_CHECKING:
    from flashlore.figures.theme import Figure, Theme


def wear_distribution(frame: pl.DataFrame, *, theme: Theme = "light") -> Figure:
    """Draw the share of blocks erased at most so often. A steep line is even wear.

    `frame` is erase_cdf: `system`, `trace`, `seed`, `erases`, `blocks` with so many, `share` of blocks with no more.
    """
    by = ["system", "trace", "seed"]
    table = widened(thin(frame.drop("device", strict=False), "erases", "share", by), "erases", "share", by)
    return lines.draw(
        table,
        alt.X("erases:Q", title="erases of a block", axis=alt.Axis(format=",d", tickMinStep=1, tickCount=10)),
        lines.share_y("blocks erased no more often"),
        [
            alt.Tooltip("system:N"),
            alt.Tooltip("erases:Q", format=",d"),
            alt.Tooltip("blocks:Q", format=",d", title="blocks with so many"),
            alt.Tooltip("share:Q", title="no more", format=".1%"),
        ],
        interpolate="step-after",
        theme=theme,
    )


def wear_spread(runs: pl.DataFrame, *, theme: Theme = "light") -> Figure:
    """Draw the least, mean and most erases of a block; for results without their distribution. Means over seeds.

    `runs` is the frame of records: `erases.min`, `erases.mean`, `erases.max`, in erases.
    """
    names = lines.series(runs)
    table = runs.group_by("system", "trace", maintain_order=True).agg(
        *(pl.col(f"erases.{key}").cast(pl.Float64).mean().alias(key) for key in ("min", "mean", "max"))
    )
    y = alt.Y("system:N", sort=names, title=None)
    tooltip = [alt.Tooltip("system:N"), *(alt.Tooltip(f"{key}:Q", format=",.2~f") for key in ("min", "mean", "max"))]
    shared = alt.Chart().encode(
        y=y, color=alt.Color("system:N", scale=themes.colours(names), legend=None), tooltip=tooltip
    )
    x = alt.X("min:Q", title="erases of a block: least, mean, most", axis=alt.Axis(tickCount=8, tickMinStep=1))
    ranges = shared.mark_bar(height=5, opacity=0.45, cornerRadius=2).encode(x=x, x2="max:Q")
    means = shared.mark_point(filled=True, size=110, opacity=1).encode(
        x="mean:Q", shape=alt.Shape("system:N", scale=themes.shapes(names), legend=None)
    )
    chart = alt.LayerChart(data=table, layer=[ranges, means]).properties(height=34 * len(names))
    return lines.side_by_side(chart, table, theme)
