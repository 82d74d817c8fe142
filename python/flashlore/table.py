"""Tables: columns of equal length, made by the core and handed to other libraries without a copy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flashlore import _core

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa


class Table:
    """Columns of equal length, which nothing changes.

    Any library that takes Arrow data through `__arrow_c_stream__` takes a table: `polars.DataFrame(table)`,
    `pyarrow.table(table)`, `duckdb.sql("from table")`. Where values are absent they are null.
    """

    def __init__(self, data: object) -> None:
        """Hold what `data`, which offers an Arrow stream, has."""
        self.core = data if isinstance(data, _core.Table) else _core.Table.from_stream(data)

    @property
    def columns(self) -> list[str]:
        """Names of the columns, in order."""
        return self.core.columns

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.core)

    def __repr__(self) -> str:
        """Name the columns and count the rows."""
        return f"Table({len(self)} rows: {', '.join(self.columns)})"

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Offer the table as an Arrow stream; the columns keep their types, whatever schema is asked for."""
        return self.core.__arrow_c_stream__(requested_schema)

    def to_polars(self) -> pl.DataFrame:
        """Return a frame of Polars."""
        import polars as pl  # noqa: PLC0415 (slow to import)

        return pl.DataFrame(self)

    def to_arrow(self) -> pa.Table:
        """Return a table of pyarrow, which must be installed."""
        import pyarrow as pa  # noqa: PLC0415 (not always there)

        return pa.table(self)

    def to_pandas(self) -> pd.DataFrame:
        """Return a frame of pandas; it and pyarrow must be installed."""
        frame: pd.DataFrame = self.to_arrow().to_pandas()
        return frame
