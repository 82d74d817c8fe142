"""Traces: what a host asked a block device for."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, replace
from enum import IntEnum
from operator import index
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, TypeAlias

from flashlore import _core
from flashlore._tree import from_tree
from flashlore.errors import UsageError
from flashlore.settings import count
from flashlore.table import Table
from flashlore.workload import Workload  # noqa: TC001 (the types of fields are read)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import polars as pl
    from typing_extensions import Buffer

Path: TypeAlias = str | PathLike[str]
Content: TypeAlias = str
"""Where the content of pages comes from: `trace` (its own), `distinct` (every page written is unlike all others),
`zipf:a=EXPONENT,n=VALUES[,seed=SEED]`, `uniform:n=VALUES[,seed=SEED]`, or `profile:NAME[,seed=SEED]`."""


class _Array(Protocol):
    """An array of NumPy, which offers its buffer without saying so in its types before Python 3.12."""

    @property
    def __array_interface__(self) -> dict[str, Any]: ...


if TYPE_CHECKING:
    Numbers: TypeAlias = Buffer | _Array


class Op(IntEnum):
    """What a request asks for."""

    READ = 0
    WRITE = 1
    TRIM = 2
    FLUSH = 3


class Trace:
    """Requests of a host in order, and the content of their pages as far as it is known.

    Nothing changes a trace. It keeps one workload made of its records, which runs share: a text is parsed once, a
    native file is streamed by each run, records in memory are read where they are. Runs on a device that demands
    another layout replace it.
    """

    def __init__(
        self, core: _core.Trace, name: str, opened: _Opened | None = None, content: Content = "trace", draw: int = 0
    ) -> None:
        """Hold what the core has; `Trace.open` and its like make traces."""
        self.core = core
        self.name = name
        self._opened = opened
        self._content = content
        self._draw = draw

    @classmethod
    def open(  # noqa: PLR0913 (each is a question of its own)
        cls,
        path: Path | Sequence[Path],
        *,
        format: str | None = None,  # noqa: A002 (the word of the command line)
        lenient: bool = False,
        coalesce: str | None = None,
        content: Content = "trace",
        delta: str | None = None,
        compact: bool | None = None,
        devices: Sequence[str] = (),
        join: Literal["sequence", "timeline"] | None = None,
    ) -> Self:
        """Open a trace, or several that are one.

        Args:
            path: A file, `demo:NAME` for a capture in the package, `profile:NAME[,scale=FACTOR]` for a synthetic
                workload, or a list of these. Files are opened now, and read when they are needed first.
            format: The format; it is recognised by content if it is not said.
            lenient: Skip malformed records and count them, instead of stopping at the first.
            coalesce: Join records that were one request, as those of a trace with a record for each page: of one
                device and operation, at adjacent addresses, and at most this long after the first, such as `100us`,
                or `0s` for records of the same time.
            content: Where the content of pages comes from.
            delta: Where the delta ratio R_c of page writes comes from: `trace`, or
                `gaussian:mean=MEAN,std=DEVIATION[,seed=SEED]`. Only systems that read it take a trace that has it.
            compact: Leave out pages that are never touched; where it is not said, devices decide.
            devices: Names of the trace's devices to keep; all when empty.
            join: How several traces become one: one after another (`sequence`), or merged by their times
                (`timeline`).

        Raises:
            TraceError: A file that cannot be opened, or fits no format.
            UsageError: Arguments that mean nothing.

        >>> Trace.open("demo:maildir").summary.counts.writes.pages
        68297

        """
        paths = [fspath(path)] if isinstance(path, str | PathLike) else [fspath(one) for one in path]
        opened = _Opened(tuple(paths), format, lenient, coalesce, content, delta, compact, tuple(devices), join)
        return cls(opened.open(), opened.name, opened, content)

    @classmethod
    def synth(
        cls,
        profile: str,
        *,
        scale: float = 1.0,
        requests: int | None = None,
        seed: int | None = None,
        content: Content = "trace",
    ) -> Self:
        """Make the synthetic workload of a profile: a preset such as `mail`, or a TOML file.

        Args:
            profile: The preset or file.
            scale: Factor on requests, footprint, duration and gaps.
            requests: So many requests instead of the profile's number.
            seed: Seed of every draw.
            content: Where the content of pages comes from; `trace` is the profile's own.

        >>> len(Trace.synth("mail", requests=1000))
        1000

        """
        settings = {"scale": (scale, 1.0), "requests": (requests, None), "seed": (seed, None)}
        given = [f",{name}={value}" for name, (value, default) in settings.items() if value != default]
        return cls.open(f"profile:{profile}{''.join(given)}", content=content)

    @classmethod
    def from_arrays(  # noqa: PLR0913 (each is a column)
        cls,
        *,
        op: Numbers | Iterable[str | int],
        offset: Numbers,
        length: Numbers,
        time: Numbers | None = None,
        content: Numbers | None = None,
        name: str = "arrays",
    ) -> Self:
        """Make a trace of arrays of NumPy, or of anything with a buffer, one item a request.

        The arrays are read once and not kept: the trace has 33 bytes a record and 4 bytes a page with content.

        Args:
            op: Shape (n,): numbers of `Op` in a buffer, or words (`read`, `write`, `trim`, `flush` or their first
                letters) in anything that can be iterated over.
            offset: Shape (n,), whole numbers: first byte of the request; 0 for a flush.
            length: Shape (n,), whole numbers: bytes, above 0, at most 1 GiB for a read or write; 0 for a flush.
            time: Shape (n,), whole numbers: nanoseconds on any clock. Times count from the first; one below an
                earlier one is raised to it. Without times all requests arrive at once, which a closed loop
                (`host.mode = "closed"`) does not look at.
            content: Shape (m,), whole numbers: one for each 4 KiB of every write, or of every read and write, counted
                from the first byte of the request, in order. Equal numbers are equal content.
            name: Name of the trace in results.

        Raises:
            UsageError: Arrays of other types or lengths.
            TraceError: A record that breaks a rule, named by its number from 1.

        >>> import array
        >>> trace = Trace.from_arrays(
        ...     op=["write", "write", "read"],
        ...     offset=array.array("q", [0, 4096, 0]),
        ...     length=array.array("q", [4096, 8192, 4096]),
        ...     content=array.array("Q", [7, 7, 9]),
        ... )
        >>> trace.summary.content.distinct_written
        2

        """
        core = _core.Trace.from_arrays(
            _native("op", op) if _has_numbers(op) else _numbers(op),  # type: ignore[arg-type]
            _native("offset", offset),
            _native("length", length),
            None if time is None else _native("time", time),
            None if content is None else _native("content", content),
            name,
        )
        return cls(core, name)

    @classmethod
    def from_frame(cls, frame: object, *, name: str = "frame") -> Self:
        """Make a trace of a frame of Polars, pandas or pyarrow, one row a request.

        The columns are those of `from_arrays`: `op`, `offset` and `length`, and if they are there `time`, which may
        hold dates or durations too, and `content`, a list for each row with a number for each 4 KiB, or null. Others
        are not looked at.

        >>> import polars as pl
        >>> frame = pl.DataFrame({"op": ["write", "read"], "offset": [0, 0], "length": [4096, 4096]})
        >>> len(Trace.from_frame(frame))
        2

        """
        return cls(_core.Trace.from_stream(_canonical(frame), name), name)

    def with_content(self, content: Content) -> Trace:
        """Return the same requests with other content: records in memory are shared, files are read again."""
        opened = self._opened and replace(self._opened, content=content)
        core = self.core.with_content(content) if opened is None else opened.open()
        return Trace(core, self.name, opened, content).redrawn(self._draw)

    def redrawn(self, number: int) -> Trace:
        """Return the trace as run `number` of several seeds has it: every seed that it is drawn with is so much higher.

        Profiles, content that is laid over a trace and assumed delta ratios are drawn. Where nothing is, it is
        the same trace.

        >>> Trace.synth("mail", requests=1000).redrawn(1).paths
        ('profile:mail,requests=1000',)

        """
        core = self.core.redrawn(count("number", number, 0, 64)) if number else None
        return (
            self
            if core is None
            else Trace(core, self.name, self._opened, self._content, (self._draw + number) % (1 << 64))
        )

    @property
    def paths(self) -> tuple[str, ...]:
        """The files, captures and profiles it was opened from; none where its records are in memory."""
        return () if self._opened is None else self._opened.paths

    @property
    def summary(self) -> Summary:
        """What is known about the trace before it is replayed, in the layout that was asked for, or else compact."""
        return from_tree(Summary, json.loads(self.core.summary()))

    def to_table(self) -> Table:
        """Return the records: `time` (ns from the first), `op`, `offset` and `length` (bytes), `content`.

        `content` is a list of numbers, one for each 4 KiB from the first byte of the record on, or null. It is the
        trace's own, whatever content was laid over it.
        """
        return Table(self.core.to_table())

    def __len__(self) -> int:
        """Return the number of requests."""
        return self.summary.requests

    def __repr__(self) -> str:
        """Name the trace."""
        return f"Trace({self.name!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle where a file is and how it is read, or the records."""
        if self._opened is not None:
            return _reopened, (self._opened, self._draw)
        return _restored, (self.to_table().to_polars(), self.name, self._content, self._draw)


@dataclass(frozen=True)
class _Opened:
    """How a trace was opened."""

    paths: tuple[str, ...]
    format: str | None
    lenient: bool
    coalesce: str | None
    content: str
    delta: str | None
    compact: bool | None
    devices: tuple[str, ...]
    join: str | None

    @property
    def name(self) -> str:
        return " + ".join(path.rsplit("/", 1)[-1] for path in self.paths)

    def open(self) -> _core.Trace:
        return _core.Trace.open(
            self.paths,
            format=self.format,
            lenient=self.lenient,
            coalesce=self.coalesce,
            content=self.content,
            delta=self.delta,
            compact=self.compact,
            devices=self.devices,
            join=self.join,
        )


def _reopened(opened: _Opened, draw: int) -> Trace:
    return Trace(opened.open(), opened.name, opened, opened.content).redrawn(draw)


def _restored(frame: pl.DataFrame, name: str, content: str, draw: int) -> Trace:
    return Trace.from_frame(frame, name=name).with_content(content).redrawn(draw)


def _has_numbers(data: object) -> bool:
    """Whether it is a buffer of numbers; arrays of texts and objects hold words."""
    try:
        view = memoryview(data)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    return view.format[-1] not in "wO"


def _native(name: str, data: object) -> object:
    """Refuse numbers in the byte order of other machines, which the core would read as if they were in its own."""
    try:
        view = memoryview(data)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        # The core says what it is.
        return data
    if view.format[0] in (">!" if sys.byteorder == "little" else "<"):
        raise UsageError(f"{name} is an array of the type {view.format!r}, expected the byte order of this machine")
    # Some arrays without items have no memory, and no type that can be looked at.
    return data if view.nbytes else b""


def _numbers(ops: Iterable[str | int]) -> bytes:
    return bytes(_number(op) for op in ops)


def _number(op: str | int) -> int:
    try:
        number = _WORDS[op.lower()] if isinstance(op, str) else index(op)
    except (KeyError, TypeError):
        number = -1
    if not 0 <= number <= _MOST_OP:
        raise UsageError(f"op is {op!r}, expected read, write, trim or flush, or a number from 0 to 3")
    return number


# What fits the column of the core, which refuses those that are no operation by the number of their record.
_MOST_OP = 255
_WORDS = {word: op.value for op in Op for word in (op.name.lower(), op.name[0].lower())}


def _canonical(frame: object) -> pl.DataFrame:
    """Give the columns the types that the core takes; nothing is rounded."""
    import polars as pl  # noqa: PLC0415 (slow to import)

    found = frame if isinstance(frame, pl.DataFrame) else pl.DataFrame(Table(frame))
    if missing := [name for name in ("op", "offset", "length") if name not in found.columns]:
        raise UsageError(f"the frame has no column {missing[0]}, expected op, offset and length")
    given = [name for name in ("op", "offset", "length", "time") if name in found.columns]
    if nulls := [name for name in given if found[name].null_count()]:
        raise UsageError(f"the column {nulls[0]} has nulls, expected a value for each record")
    try:
        columns = [_ops(found["op"]), *(_whole(found[name]).cast(pl.UInt64) for name in ("offset", "length"))]
        if "time" in found.columns:
            columns.append(_times(found["time"]))
        if "content" in found.columns and found.schema["content"] != pl.Null:
            columns.append(_contents(found["content"]))
    except pl.exceptions.PolarsError as error:
        raise UsageError(f"the frame cannot be taken as records: {str(error).splitlines()[0]}") from None
    return pl.DataFrame(columns)


def _ops(column: pl.Series) -> pl.Series:
    import polars as pl  # noqa: PLC0415 (slow to import)

    if column.dtype.is_integer():
        return column.cast(pl.UInt8)
    if column.dtype not in (pl.String, pl.Categorical, pl.Enum, pl.Null):
        raise UsageError(f"the column op is of {column.dtype}, expected words or whole numbers")
    words = column.cast(pl.String).str.to_lowercase()
    numbers = words.replace_strict(_WORDS, default=None, return_dtype=pl.UInt8)
    for wrong in column.filter(numbers.is_null()).head(1):
        raise UsageError(f"op is {wrong!r}, expected read, write, trim or flush, or a number from 0 to 3")
    return numbers


def _whole(column: pl.Series, expected: str = "whole numbers") -> pl.Series:
    """Refuse what would be rounded; a column without rows may have no type."""
    if column.dtype.is_integer() or column.is_empty():
        return column
    raise UsageError(f"the column {column.name} is of {column.dtype}, expected {expected}")


def _times(column: pl.Series) -> pl.Series:
    import polars as pl  # noqa: PLC0415 (slow to import)

    if column.dtype in (pl.Datetime, pl.Date):
        return column.dt.epoch("ns")
    if column.dtype == pl.Duration:
        return column.dt.total_nanoseconds()
    return _whole(column, "nanoseconds as whole numbers, dates or durations").cast(pl.Int64)


def _contents(column: pl.Series) -> pl.Series:
    import polars as pl  # noqa: PLC0415 (slow to import)

    if column.dtype not in (pl.List, pl.Array):
        raise UsageError(f"the column content is of {column.dtype}, expected lists of whole numbers")
    lists = column.cast(pl.List(column.dtype.inner))  # type: ignore[attr-defined]  # lists and arrays have it
    numbers = lists.filter(lists.list.len() > 0).explode()
    if numbers.null_count():
        raise UsageError("the column content has nulls within its lists, expected a number for each 4 KiB")
    _whole(numbers, "lists of whole numbers")
    return lists.cast(pl.List(pl.UInt64))


@dataclass(frozen=True)
class ReadStats:
    """What happened while a trace was read."""

    records: int
    """Records given out."""

    coalesced: int
    """Records that became part of the one before them, when asked for."""

    clamped: int
    """Records whose time was below that of an earlier one and was raised."""

    largest_step_back_ns: int
    """The largest such step back, in nanoseconds."""

    passed_over: int
    """Events that are no requests."""

    skipped: int
    """Malformed records that lenient reading skipped."""

    skipped_messages: tuple[str, ...]
    """What was wrong with the first of them."""


@dataclass(frozen=True)
class Source:
    """One of the traces that became a workload."""

    path: str
    """Its path or name."""

    format: str
    """Its format."""

    compression: str
    """How the file is compressed."""

    stored_bytes: int
    """Size of the file, in bytes."""

    sha256: str
    """SHA-256 of the file as stored, or of what stands for one."""

    read: ReadStats
    """How it was read."""


@dataclass(frozen=True)
class OpCount:
    """Count of one operation."""

    requests: int
    """Requests."""

    pages: int
    """Units of 4 KiB touched, each as often as it is."""

    bytes: int
    """Bytes as the trace gives them."""


@dataclass(frozen=True)
class OpCounts:
    """Counts by operation."""

    reads: OpCount
    """Reads."""

    writes: OpCount
    """Writes."""

    trims: OpCount
    """Trims that cover at least one whole unit."""

    flushes: OpCount
    """Flushes."""


@dataclass(frozen=True)
class TraceDevice:
    """A device of the trace."""

    name: str
    """Its name."""

    number: int
    """Its number in records."""

    first_lpn: int
    """Its first page in the workload."""

    lpn_count: int
    """Pages it takes there."""

    footprint_units: int
    """Distinct units of it read or written."""


@dataclass(frozen=True)
class ContentCounts:
    """Counts of the trace's own content, in pages with content; zeros where other content was laid over it."""

    distinct_values: int
    """Distinct values read or written."""

    pages_written: int
    """Pages written with content."""

    distinct_written: int
    """Distinct values written; the other page writes are duplicates."""

    silent: int
    """Page writes of the value that the page holds already."""

    pages_read: int
    """Pages read with content."""

    reads_differing: int
    """Page reads that return something else than the trace wrote there."""


@dataclass(frozen=True)
class Summary:
    """What is known about a trace before it is replayed. Units are mapping units of 4 KiB."""

    inputs: tuple[Source, ...]
    """Where it comes from, in the order given."""

    requests: int
    """Number of requests."""

    counts: OpCounts
    """Requests, pages and bytes by operation."""

    span_ns: int
    """Time of the last request, in nanoseconds."""

    footprint_units: int
    """Distinct units read or written."""

    lpn_count: int
    """One more than the largest page that any request touches: what a device must offer, in units."""

    devices: tuple[TraceDevice, ...]
    """The devices in the order in which they lie in the workload."""

    records_left_out: int
    """Records of devices that were not asked for."""

    trims_ignored: int
    """Trims that covered no whole unit and were dropped."""

    trim_units_ignored: int
    """Units that trims covered in part and left alone."""

    options: Workload
    """How the records became requests."""

    has_content: bool
    """Whether any request carries content."""

    value_ids: int
    """All numbers of values are below this one."""

    rated_pages: int
    """Pages written with a delta ratio R_c."""

    content: ContentCounts
    """Counts of the trace's own content."""
