"""Response times: their distribution, and its percentiles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import altair as alt
import polars as pl

from flashlore.figures import lines
from flashlore.figures.thin import thin, widened

if TYPE_CHECKING:
    from flashlore.figures.theme import Figure, Theme

Kind = Literal["read", "write", "all"]
PERCENTILES = {"p50": "50 %", "p95": "95 %", "p99": "99 %", "p999": "99.9 %", "p9999": "99.99 %"}


def response_cdf(frame: pl.DataFrame, *, kind: Kind = "all", theme: Theme = "light") -> Figure:
    """Draw the share of requests answered within a time, on a log axis.

    `frame` is response_cdf: `system`, `trace`, `seed`, `kind`, `response_us` (microseconds), `share` (of requests).
    Without rows of the kind nothing is drawn. Times below a microsecond count as one.
    """
    by = ["system", "trace", "seed"]
    chosen = frame.filter(pl.col("kind") == kind).select(*by, pl.col("response_us").clip(lines.LEAST_US), "share")
    chosen = chosen.unique([*by, "response_us"], keep="last", maintain_order=True)
    chosen = widened(thin(chosen, "response_us", "share", by, log=True), "response_us", "share", by)
    what = {"all": "requests", "read": "reads", "write": "writes"}[kind]
    return lines.draw(
        chosen,
        lines.log_x(chosen, "response_us", "response time", labelExpr=lines.TIME_LABEL),
        lines.share_y(f"{what} answered within it"),
        [
            alt.Tooltip("system:N"),
            alt.Tooltip("response_us:Q", title="response (µs)", format=",.4~r"),
            alt.Tooltip("share:Q", title="within it", format=".2%"),
        ],
        interpolate="step-after",
        theme=theme,
    )


def response_percentiles(runs: pl.DataFrame, *, kind: Kind = "all", theme: Theme = "light") -> Figure:
    """Draw the percentiles of response times on a log axis; of several seeds the mean.

    `runs` is the frame of records: `system`, `trace`, `response_us.all.p50` and so on (microseconds; below 1 is 1).
    """
    long = (
        runs.select("system", "trace", *(pl.col(f"response_us.{kind}.{key}").alias(key) for key in PERCENTILES))
        .unpivot(index=["system", "trace"], variable_name="percentile", value_name="response_us")
        .drop_nulls()
        .group_by("system", "trace", "percentile", maintain_order=True)
        .agg(pl.col("response_us").mean().clip(lines.LEAST_US))
        .with_columns(pl.col("percentile").replace(PERCENTILES))
    )
    scale, ticks = lines.log_scale(long, "response_us", margin=0.06)
    return lines.draw(
        long,
        alt.X(
            "percentile:O",
            title="of the requests, this share was answered within",
            sort=list(PERCENTILES.values()),
            axis=alt.Axis(labelAngle=0),
        ),
        alt.Y(
            "response_us:Q",
            title="response time (log)",
            scale=scale,
            axis=alt.Axis(values=ticks, labelExpr=lines.TIME_LABEL),
        ),
        [
            alt.Tooltip("system:N"),
            alt.Tooltip("percentile:O", title="share"),
            alt.Tooltip("response_us:Q", title="response (µs)", format=",.4~r"),
        ],
        points=True,
        theme=theme,
    )
