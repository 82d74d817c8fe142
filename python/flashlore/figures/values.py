"""What a trace is like: popularity of values, stack distances, misses of an index, sizes of requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import altair as alt
import polars as pl

from flashlore.figures import lines
from flashlore.figures.thin import thin

if TYPE_CHECKING:
    from flashlore.figures.theme import Figure, Theme

# Points of a bent line between two of popularity.
_STEPS = 12
# A size in bytes as people say it.
_BYTES = (
    "datum.value >= 1048576 ? format(datum.value / 1048576, '~r') + ' MiB' : format(datum.value / 1024, '~r') + ' KiB'"
)


def _whole(frame: pl.DataFrame) -> pl.DataFrame:
    """Leave out slices: the figures are of the whole trace."""
    return frame.filter(pl.col("slice").is_null()).drop("slice") if "slice" in frame.columns else frame


def _keys(frame: pl.DataFrame, *columns: str) -> list[str]:
    """Name the columns that say whose a row is: these, and the trace where there is one."""
    return ["trace", *columns] if "trace" in frame.columns else list(columns)


def popularity(frame: pl.DataFrame, *, theme: Theme = "light") -> Figure:
    """Draw the share of accesses that the most frequent values make.

    `frame` is popularity.parquet: `class` (read, write), `share_of_values`, `share_of_accesses`.
    """
    table = _between(_whole(frame))
    return lines.draw(
        table,
        lines.log_x(table, "share_of_values", "most frequent values, share of all values", format=".2~p"),
        lines.share_y("their share of accesses", "share_of_accesses"),
        [
            alt.Tooltip("class:N"),
            alt.Tooltip("share_of_values:Q", title="values", format=".3~p"),
            alt.Tooltip("share_of_accesses:Q", title="accesses", format=".1%"),
            alt.Tooltip("accesses_per_value:Q", title="accesses of each, or more", format=",d"),
        ],
        field="class",
        theme=theme,
    )


def _between(frame: pl.DataFrame) -> pl.DataFrame:
    """Add points between those of popularity: values of one frequency make a straight line, which a log axis bends."""
    rows: list[dict[str, Any]] = []
    before: dict[str, Any] = {}
    keys = _keys(frame, "class")
    for row in frame.iter_rows(named=True):
        if before and all(before[key] == row[key] for key in keys):
            x0, x1 = before["share_of_values"], row["share_of_values"]
            y0, y1 = before["share_of_accesses"], row["share_of_accesses"]
            for step in range(1, _STEPS):
                x = x0 * (x1 / x0) ** (step / _STEPS)
                y = y0 + (y1 - y0) * (x - x0) / (x1 - x0) if x1 > x0 else y1
                rows.append({**row, "share_of_values": x, "share_of_accesses": y})
        rows.append(row)
        before = row
    return thin(pl.DataFrame(rows, schema=frame.schema), "share_of_values", "share_of_accesses", keys, log=True)


def stack_distances(
    frame: pl.DataFrame, *, space: Literal["value", "page"] = "value", theme: Theme = "light"
) -> Figure:
    """Draw the share of accesses whose LRU stack distance is at most so many values (or pages).

    `frame` is stack_distance.parquet: `class`, `space`, `distance`, `share_of_accesses`.
    """
    table = _whole(frame).filter(pl.col("space") == space).rename({"share_of_accesses": "share"})
    return lines.draw(
        table,
        lines.log_x(table, "distance", f"different {space}s since the last access of the same one"),
        lines.share_y("accesses no farther away"),
        [
            alt.Tooltip("class:N"),
            alt.Tooltip("distance:Q", format=",d"),
            alt.Tooltip("share:Q", title="no farther", format=".1%"),
        ],
        field="class",
        interpolate="step-after",
        theme=theme,
    )


def miss_ratio(frame: pl.DataFrame, *, theme: Theme = "light") -> Figure:
    """Draw the share of writes that miss an LRU index of fingerprints, by its size.

    `frame` is miss_ratio.parquet: `entries`, `plain_ratio`, `live_ratio`.
    """
    keys = _keys(frame, "entries")
    table = (
        _whole(frame)
        .select(*keys, pl.col("plain_ratio").alias("plain index"), pl.col("live_ratio").alias("live index"))
        .unpivot(index=keys, variable_name="reading", value_name="ratio")
    )
    return lines.draw(
        table,
        lines.log_x(table, "entries", "entries of the index"),
        lines.share_y("writes that miss", "ratio"),
        [
            alt.Tooltip("reading:N"),
            alt.Tooltip("entries:Q", format=",d"),
            alt.Tooltip("ratio:Q", title="miss", format=".2%"),
        ],
        field="reading",
        points=True,
        theme=theme,
    )


def overwrite_distances(frame: pl.DataFrame, *, theme: Theme = "light") -> Figure:
    """Draw the share of overwrites that come within so many page writes of the write before.

    `frame` is overwrite.parquet: `measure`, `high`, `overwrites`; the rows of the measure `page_writes`.
    """
    overwrites, keys = pl.col("overwrites"), _keys(frame, "measure")
    table = (
        _whole(frame)
        .filter(pl.col("measure") == "page_writes")
        .with_columns(
            (overwrites.cum_sum().over(keys) / overwrites.sum().over(keys)).alias("share"),
            pl.lit("write").alias("class"),
        )
        .drop("measure")
    )
    return lines.draw(
        table,
        lines.log_x(table, "high", "page writes since the last write of the page, at most"),
        lines.share_y("overwrites no farther away"),
        [
            alt.Tooltip("low:Q", format=",d", title="from"),
            alt.Tooltip("high:Q", format=",d", title="to"),
            alt.Tooltip("overwrites:Q", format=",d"),
            alt.Tooltip("share:Q", title="no farther", format=".1%"),
        ],
        field="class",
        points=True,
        theme=theme,
    )


def request_sizes(frame: pl.DataFrame, *, theme: Theme = "light") -> Figure:
    """Draw the share of requests that are at most so large.

    `frame` is sizes.parquet: `class`, `low_bytes`, `high_bytes`, `requests`.
    """
    requests, keys = pl.col("requests"), _keys(frame, "class")
    table = _whole(frame).with_columns((requests.cum_sum().over(keys) / requests.sum().over(keys)).alias("share"))
    scale, _ = lines.log_scale(table, "high_bytes")
    low, high = (int(table["high_bytes"].min()), int(table["high_bytes"].max()))  # type: ignore[arg-type]
    ticks = [2**power for power in range(9, 31) if low <= 2**power <= high]
    return lines.draw(
        table,
        alt.X(
            "high_bytes:Q",
            title="size of a request, at most (log)",
            scale=scale,
            axis=alt.Axis(values=ticks, labelExpr=_BYTES),
        ),
        lines.share_y("requests no larger"),
        [
            alt.Tooltip("class:N"),
            alt.Tooltip("high_bytes:Q", format=",d", title="bytes"),
            alt.Tooltip("requests:Q", format=",d"),
            alt.Tooltip("share:Q", title="no larger", format=".1%"),
        ],
        field="class",
        interpolate="step-after",
        points=table.height <= 60,  # noqa: PLR2004 - shapes that do not hide the line
        theme=theme,
    )
