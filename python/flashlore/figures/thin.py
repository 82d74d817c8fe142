"""Fewer points of distributions, with the same picture.

A line of a distribution has as many points as there were different numbers; a figure is a few hundred pixels wide and
high. A point is kept if it lies in another cell than the one before it, of a grid finer than the pixels of a figure.
"""

from __future__ import annotations

import polars as pl

# Cells of the grid in each direction: a line keeps at most twice as many points, and two more.
CELLS = 240


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
    low, high = frame.select(place.min().alias("low"), place.max().alias("high")).row(0)
    width = (high - low) or 1.0
    column = ((place - low) / width * CELLS).floor()
    row = (pl.col(y) * CELLS).floor()
    changed = pl.any_horizontal((cell != cell.shift(1)).fill_null(value=True).over(by) for cell in (column, row))
    last = pl.int_range(pl.len()).over(by) == pl.len().over(by) - 1
    return frame.filter(changed | last)
