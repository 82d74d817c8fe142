"""Victims of collection: how much of a block was still valid when it was chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING

import altair as alt

from flashlore.figures import lines
from flashlore.figures.thin import thin, widened

if TYPE_CHECKING:
    import polars as pl

    from flashlore.figures.theme import Figure, Theme


def valid_per_victim(frame: pl.DataFrame, *, theme: Theme = "light") -> Figure:
    """Draw the share of victims with at most so many valid units. The farther left, the less there is to move.

    `frame` is victim_cdf: `system`, `trace`, `seed`, `valid_units`, `victims` with so many, `share` of victims.
    """
    by = ["system", "trace", "seed"]
    table = widened(thin(frame.drop("device", strict=False), "valid_units", "share", by), "valid_units", "share", by)
    return lines.draw(
        table,
        alt.X(
            "valid_units:Q", title="valid units in a victim", axis=alt.Axis(format=",d", tickMinStep=1, tickCount=10)
        ),
        lines.share_y("victims with no more"),
        [
            alt.Tooltip("system:N"),
            alt.Tooltip("valid_units:Q", format=",d", title="valid units"),
            alt.Tooltip("victims:Q", format=",d"),
            alt.Tooltip("share:Q", title="with no more", format=".1%"),
        ],
        interpolate="step-after",
        theme=theme,
    )
