"""From records to rows and frames.

A row has a column for each number and text of a record, named by its path as in `results.parquet` of `--out`; lists
and the configuration are left out. What depends on the machine and the hour is kept apart, so that the results of a
grid are the same bytes wherever and in whatever order its cells ran.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from flashlore.sweeps.axes import Value, text
from flashlore.sweeps.cell import Cell

#: Columns of a record that differ from run to run.
MEASURED = ("run.wall_s", "run.requests_per_s", "run.peak_rss_bytes")
#: Columns of a row that say how the cell was run.
CIRCUMSTANCES = ("worker", "ended")
#: Columns that name a cell, first in every table.
NAMES = ("system", "device", "trace", "seed")
#: The column of the key of a cell, last in every table.
KEY = "cell"

_LARGEST = 2**63 - 1


def flatten(record: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, int | float | str | None]]:
    """Give the numbers and texts of a record by their paths.

    >>> dict(flatten({"host": {"bytes": 4096, "on": True}, "waf_total": None, "die": [1], "configuration": {"a": 1}}))
    {'host.bytes': 4096, 'host.on': 'true', 'waf_total': None}
    """
    for name, value in record.items():
        if isinstance(value, Mapping):
            if path or name != "configuration":
                yield from flatten(value, f"{path}{name}.")
        elif isinstance(value, bool):
            yield f"{path}{name}", text(value)
        elif not isinstance(value, list):
            yield f"{path}{name}", value


def row(key: str, record: Mapping[str, Any], circumstances: Mapping[str, Any]) -> pl.DataFrame:
    """Make the one row of a finished cell. Names are not in it: they are the grid's."""
    flat = {name: value for name, value in flatten(record) if name not in NAMES}
    return pl.DataFrame([{KEY: key, **flat, **circumstances}], infer_schema_length=None)


def together(frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Put rows one below the other; a column that a frame lacks is null in its rows."""
    return pl.concat(frames, how="diagonal_relaxed", rechunk=True) if frames else pl.DataFrame()


def results(cells: Sequence[Cell], rows: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Make the table of the results, and that of how they came about, in the order of the cells.

    Both depend on the cells and their rows alone, and not on the order of the rows.
    """
    if rows.is_empty():
        rows = pl.DataFrame({KEY: []}, schema={KEY: pl.String})
    names = _names(cells, set(rows.columns))
    joined = names.join(rows, on=KEY, how="inner", maintain_order="left")
    apart = [*MEASURED, *CIRCUMSTANCES]
    leading = [name for name in names.columns if name != KEY]
    figures = sorted(set(joined.columns) - {*leading, KEY, *apart})
    # A column without any value has the type that `--out` gives it.
    typed = joined.with_columns(pl.col(pl.Null).cast(pl.Int64))
    timings = [name for name in apart if name in typed.columns]
    return typed.select(*leading, *figures, KEY), typed.select(*NAMES, *timings, KEY)


def _names(cells: Sequence[Cell], figures: set[str]) -> pl.DataFrame:
    """Columns that name the cells: system, device, trace, seed, and a column for each setting."""
    wide = any(cell.seed > _LARGEST for cell in cells)
    columns: dict[str, pl.Series] = {
        "system": pl.Series([cell.system for cell in cells], dtype=pl.String),
        "device": pl.Series([cell.device for cell in cells], dtype=pl.String),
        "trace": pl.Series([cell.trace for cell in cells], dtype=pl.String),
        "seed": pl.Series([cell.seed for cell in cells], dtype=pl.UInt64 if wide else pl.Int64),
    }
    for key in dict.fromkeys(key for cell in cells for key in cell.settings):
        # A figure keeps its name; the setting has its long one, which `--set` takes as well.
        columns[f"system.{key}" if key in figures else key] = _column([cell.settings.get(key) for cell in cells])
    columns[KEY] = pl.Series([cell.key for cell in cells], dtype=pl.String)
    return pl.DataFrame(columns)


def _column(values: Sequence[Value | None]) -> pl.Series:
    """Numbers where all values are numbers, else the texts that `--set` takes."""
    present = [value for value in values if value is not None]
    if any(isinstance(value, bool | str | list) for value in present):
        return pl.Series([None if value is None else text(value) for value in values], dtype=pl.String)
    if any(isinstance(value, float) for value in present):
        return pl.Series(values, dtype=pl.Float64)
    if any(abs(value) > _LARGEST for value in present if isinstance(value, int)):
        return pl.Series([None if value is None else text(value) for value in values], dtype=pl.String)
    return pl.Series(values, dtype=pl.Int64)
