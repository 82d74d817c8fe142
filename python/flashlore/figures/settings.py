"""Results against a setting: amplification against spare space, the protection window, and any other pair.

The frame is that of a sweep: a row a run, a column for each setting, and those of results.parquet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import altair as alt
import polars as pl

from flashlore.figures import lines

if TYPE_CHECKING:
    from flashlore.figures.theme import Figure, Theme

SPARE = "device.space.over_provisioning"


def against(  # noqa: PLR0913 - two axes and their titles
    frame: pl.DataFrame,
    setting: str,
    result: str,
    *,
    x_title: str | None = None,
    y_title: str | None = None,
    log: bool = False,
    theme: Theme = "light",
) -> Figure:
    """Draw a result against a setting, a line a system; of several seeds the mean. `log` is for the setting's axis."""
    table = (
        frame.select("system", "trace", setting, pl.col(result).cast(pl.Float64))
        .drop_nulls()
        .group_by("system", "trace", setting, maintain_order=True)
        .agg(pl.col(result).mean())
        # Points in names are paths to Vega.
        .rename({setting: "setting", result: "result"})
    )
    # Systems, and values that are no numbers, stay in the order of the frame.
    if table["setting"].dtype.is_numeric():
        table = table.sort("setting", maintain_order=True)
    x: alt.X
    if table["setting"].dtype.is_numeric():
        scale, ticks = lines.log_scale(table, "setting") if log else (alt.Scale(zero=False), [])
        share = setting.endswith(("over_provisioning", "fill"))
        label = "format(datum.value, '~%')" if share else lines.COUNT_LABEL
        axis = alt.Axis(labelExpr=label, values=ticks) if ticks else alt.Axis(labelExpr=label, tickCount=6)
        x = alt.X("setting:Q", title=x_title or setting, scale=scale, axis=axis)
    else:
        x = alt.X("setting:O", title=x_title or setting, sort=None, axis=alt.Axis(labelAngle=0))
    return lines.draw(
        table,
        x,
        alt.Y("result:Q", title=y_title or result, axis=alt.Axis(labelExpr=lines.COUNT_LABEL, tickCount=6)),
        [
            alt.Tooltip("system:N"),
            alt.Tooltip("setting", title=x_title or setting),
            alt.Tooltip("result:Q", title=y_title or result, format=",.4~r"),
        ],
        points=True,
        theme=theme,
    )


def amplification(
    frame: pl.DataFrame, *, setting: str = SPARE, result: str = "waf_total", theme: Theme = "light"
) -> Figure:
    """Draw write amplification against spare space."""
    x_title = "spare space, share of raw" if setting == SPARE else None
    return against(frame, setting, result, x_title=x_title, y_title="units programmed for each written", theme=theme)


def protection_window(
    frame: pl.DataFrame, setting: str, *, result: str = "history.window_s", theme: Theme = "light"
) -> Figure:
    """Draw the protection window, in seconds, against a setting."""
    kept = frame.filter(pl.col(result) > 0)
    return against(kept, setting, result, y_title="protection window (s)", theme=theme)
