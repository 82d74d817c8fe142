"""Utilisation of the parts of a device at the end of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt
import polars as pl

from flashlore.figures import lines
from flashlore.figures import theme as themes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from flashlore.figures.theme import Figure, Theme


def utilization_of(records: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """Make the table of busy shares from the records of results.json.

    Its columns are `system`, `trace`, `seed`, `part` (die, channel), `number` and `busy` (share).
    """
    rows = [
        {key: record[key] for key in ("system", "trace", "seed")} | {"part": part, "number": number, "busy": busy}
        for record in records
        for part in ("die", "channel")
        for number, busy in enumerate(record["utilization"][part])
        if part == "die" or any(record["utilization"]["channel"])
    ]
    schema = {"system": pl.String, "trace": pl.String, "seed": pl.Int64, "part": pl.String, "number": pl.Int64}
    return pl.DataFrame(rows, schema={**schema, "busy": pl.Float64})


def utilization(table: pl.DataFrame, *, theme: Theme = "light") -> Figure:
    """Draw the busy share of each die and channel, a mark each, with their mean.

    `table` is that of `utilization_of`: `system`, `trace`, `seed`, `part` (die, channel), `number`, `busy` (share).
    """
    names = lines.series(table)
    # What is above 1 would be drawn outside.
    most = max(1.0, *table["busy"])
    y = alt.Y("system:N", sort=names, title=None)
    shared = alt.Chart().encode(y=y, color=alt.Color("system:N", scale=themes.colours(names), legend=None))
    x = alt.X(
        "busy:Q",
        title="busy share of simulated time",
        scale=alt.Scale(domain=[0, most]),
        axis=alt.Axis(format=".0%", tickCount=5),
    )
    tooltip = [
        alt.Tooltip("system:N"),
        alt.Tooltip("part:N"),
        alt.Tooltip("number:O"),
        alt.Tooltip("busy:Q", format=".1%"),
    ]
    marks = shared.mark_tick(thickness=2.5, size=20, opacity=0.85).encode(x=x, tooltip=tooltip)
    bars = shared.mark_bar(height=4, opacity=0.35).encode(x=alt.X("mean(busy):Q"))
    chart = alt.LayerChart(data=table, layer=[bars, marks]).properties(height=32 * len(names))
    return lines.side_by_side(chart, table, theme)
