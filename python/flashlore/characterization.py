"""What is known about the locality of a trace: who reads and writes what where, how often, and how soon again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from flashlore import _core
from flashlore._tree import from_tree
from flashlore.settings import Duration, count, duration
from flashlore.table import Table
from flashlore.trace import Trace

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from os import PathLike

    from flashlore.characteristics import Characteristics


class Characterization(Mapping[str, Table]):
    """The statistics of a trace: a record, and tables by name with the columns of the files of `characterize --out`.

    The tables are `popularity`, `stack_distance`, `miss_ratio`, `sizes`, `overwrite` and `arrivals`; one for which the
    trace has nothing has no rows. In rows of a slice of trace time `slice` is its number, in those of the whole it is
    null.
    """

    def __init__(self, core: _core.Characterization) -> None:
        """Hold what the core has found."""
        self.core = core
        self._tables = {name: Table(table) for name, table in core.tables()}

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read a directory that `save` or `trace characterize --out` wrote, or its `summary.json`."""
        return cls(_core.Characterization.load(path))

    def save(self, path: str | PathLike[str], *, force: bool = False) -> None:
        """Write the files of `trace characterize --out` into a directory, which is made if needed."""
        self.core.save(path, force=force)

    @cached_property
    def record(self) -> Characteristics:
        """Everything by field, as in `summary.json`: `found.record.whole.kinds.reborn`."""
        from flashlore.characteristics import Characteristics  # noqa: PLC0415 (many classes, seldom needed)

        return from_tree(Characteristics, self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """Return everything, as in `summary.json`."""
        return dict(json.loads(self.core.to_json()))

    def __getitem__(self, name: str) -> Table:
        """Return the table of this name."""
        return self._tables[name]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of the tables."""
        return iter(self._tables)

    def __len__(self) -> int:
        """Return the number of tables."""
        return len(self._tables)

    def __repr__(self) -> str:
        """Print everything as the command line does."""
        return str(self.core)


def characterize(  # noqa: PLR0913 (each is a question of its own)
    trace: Trace | str | PathLike[str],
    *,
    slice: Duration | None = None,  # noqa: A002 (the word of the command line)
    sample: float = 1.0,
    capacities: str | Sequence[str | int] = (),
    pages: str | PathLike[str] | None = None,
    pages_memory: int = 8 << 30,
) -> Characterization:
    """Look at a trace once, and count.

    Args:
        trace: The trace, or what `Trace.open` takes. Its layout does not matter.
        slice: Give everything anew for each slice of trace time too, such as `"1d"`, or of so many seconds.
        sample: Follow this share of the pages and values only, above 0 and at most 1.
        capacities: How long the trace takes to write this much, such as `"60GiB"`; bytes if it is a number.
        pages: A file with the bytes of the trace's distinct pages, to see how they compress.
        pages_memory: Memory that these may take, in bytes.

    Raises:
        TraceError: A trace that cannot be read.
        UsageError: An option that means nothing.

    >>> found = characterize("demo:maildir", sample=0.5)
    >>> found["popularity"].columns[:2]
    ['class', 'accesses_per_value']
    >>> found.record.whole.mix.writes.pages
    68297

    """
    opened = trace if isinstance(trace, Trace) else Trace.open(trace)
    core = _core.characterize(
        opened.core,
        slice=duration("slice", slice),
        sample=sample,
        capacities=[capacities] if isinstance(capacities, str) else [str(capacity) for capacity in capacities],
        pages=pages,
        pages_memory=count("pages_memory", pages_memory, 0, 64),
    )
    return Characterization(core)
