"""Points of the lines of distributions: fewer with the same picture, and lines as wide as the figure.

A line of a distribution has as many points as there were different numbers; a figure is a few hundred pixels wide and
high. A point is kept if it lies in another cell than the one before it, of a grid finer than the pixels of a figure.
"""

from __future__ import annotations

import polars as pl

# Cells of the grid in each direction: a line keeps at most twice as many points, and two more. Where there are many
# lines each keeps fewer, so that a figure stays one that a browser draws in a moment.
CELLS = 240
LEAST_CELLS = 60
LINES = 8


def thin(frame: pl.DataFrame, x: str, y: str, by: list[str], *, log: bool = False) -> pl.DataFrame:
    """Leave out points of the lines of a frame that nobody would see.

    Lines are told apart by the columns `by` and ascend in `x` and `y`; `y` is a share. With `log` the axis of `x` is
    logarithmic. First and last point of each line stay, and what is left out is less than one cell away from a point
    that stays.
    """
    if frame.is_empty():
        return frame
    place = pl.col(x).log() if log else pl.col(x).cast(pl.Float64)
    if log:
        frame = frame.filter(pl.col(x) > 0)
    lines = frame.select(by).n_unique()
    cells = max(LEAST_CELLS, CELLS * LINES // max(lines, LINES))
    low, high = frame.select(place.min().alias("low"), place.max().alias("high")).row(0)
    width = (high - low) or 1.0
    column = ((place - low) / width * cells).floor()
    row = (pl.col(y) * cells).floor()
    changed = pl.any_horizontal((cell != cell.shift(1)).fill_null(value=True).over(by) for cell in (column, row))
    last = pl.int_range(pl.len()).over(by) == pl.len().over(by) - 1
    return frame.filter(changed | last)


def widened(frame: pl.DataFrame, x: str, y: str, by: list[str]) -> pl.DataFrame:
    """Let each line of a distribution begin with the first of its trace, at a share of 0, and end with the last.

    A line would begin in the air otherwise, and one whose values are all the same would be a point that nobody sees.
    What is added is true of `x` and `y`; other columns are null there.
    """
    if frame.is_empty():
        return frame
    per_trace = [column for column in by if column == "trace"]
    bounds = (
        (pl.col(x).min().over(per_trace), pl.col(x).max().over(per_trace))
        if per_trace
        else (pl.col(x).min(), pl.col(x).max())
    )
    marked = frame.with_columns(bounds[0].alias("_low"), bounds[1].alias("_high"))
    ends = marked.group_by(by, maintain_order=True).agg(
        pl.col(x).first().alias("_first"),
        pl.col(x).last().alias("_last"),
        pl.col(y).last().alias("_share"),
        pl.col("_low").first(),
        pl.col("_high").first(),
    )
    before = ends.filter(pl.col("_first") > pl.col("_low")).select(
        *by, pl.col("_low").alias(x), pl.lit(0.0).cast(frame.schema[y]).alias(y)
    )
    after = ends.filter(pl.col("_last") < pl.col("_high")).select(
        *by, pl.col("_high").alias(x), pl.col("_share").alias(y)
    )
    joined = pl.concat([before, frame, after], how="diagonal").select(frame.columns)
    order = frame.select(by).unique(maintain_order=True).with_row_index("_line")
    return joined.join(order, on=by, nulls_equal=True).sort(["_line", x], maintain_order=True).drop("_line")


def coarse(frame: pl.DataFrame, by: list[str], rows: int, *joined: pl.Expr) -> pl.DataFrame:
    """Join neighbours of lines that have more than so many rows; `joined` says what becomes of their columns."""
    longest = frame.group_by(by).len()["len"].max()
    if not isinstance(longest, int) or longest <= rows:
        return frame
    each = -(-longest // rows)
    return (
        frame.with_columns((pl.int_range(pl.len()).over(by) // each).alias("_stretch"))
        .group_by(*by, "_stretch", maintain_order=True)
        .agg(*joined)
        .drop("_stretch")
    )
