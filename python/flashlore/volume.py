"""Volumes and arrays: disks in a directory that are deduplicated, compressed and go back in time.

Systems, sizes and promises are those of the command line, and a volume that is made there is used here and the other
way round. Pages have 4 KiB; offsets, lengths and sizes are in bytes and may be any; instants are nanoseconds apart.

>>> import tempfile
>>> directory = tempfile.TemporaryDirectory()
>>> with Volume.create(f"{directory.name}/disk", "16MiB") as disk:
...     disk.write(4096, b"first")
...     kept = disk.snapshot("before")
...     disk.write(4096, b"later")
...     disk.at("before").read(4096, 5), disk.read(4096, 5)
(b'first', b'later')
>>> directory.cleanup()

**Threads.** Any number may use a volume; the interpreter lock is released while it works. Calls that overlap have no
order, but each page holds what one of them left.

**Interrupts.** Ctrl-C ends a read or write between two pieces of 1 MiB; of an interrupted write a part is written.

**Forks.** A child must not use what its parent opened, and is refused; while it lives it also keeps others from
opening it, unless its parent closed it before the fork.
"""

from __future__ import annotations

import errno
import io
import json
import os
import re
import warnings
from datetime import datetime, timedelta
from operator import index
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, SupportsIndex, TypeAlias

from flashlore import _answers, _core
from flashlore.errors import VolumeUsageError
from flashlore.moment import Time, nanoseconds
from flashlore.table import Table
from flashlore.volume_info import (
    ArrayCheck,
    ArrayInfo,
    Cloned,
    Log,
    Mark,
    Purged,
    Recovered,
    Scrubbed,
    Snapshot,
    Unreadable,
    VolumeCheck,
    VolumeInfo,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    from typing_extensions import Buffer

StrPath: TypeAlias = str | os.PathLike[str]
"""A path."""

# What the core reads or writes at once.
_PIECE = 1 << 20
_MOST = 1 << 64


class Disk:
    """What can be read: a volume, a machine of an array, or an instant of a volume."""

    def __init__(
        self,
        opened: _core.Volume,
        position: int,
        at: int | None = None,
        owner: Volume | None = None,
        *,
        allow_missing: bool = False,
    ) -> None:
        """Stand for a disk of an open volume, which is not released before it; users get disks from volumes."""
        self._opened = opened
        self._position = position
        self._number, self._name, self._size = opened.shapes()[position]
        self._at = at
        self._owner = owner
        self._allow_missing = allow_missing

    @property
    def size(self) -> int:
        """Bytes it shows."""
        return self._size

    def read(self, offset: SupportsIndex = 0, length: SupportsIndex | None = None) -> bytes:
        """Return `length` bytes from `offset` on, up to the end by default; what was never written is zeros."""
        first = _whole("offset", offset)
        count = max(self.size - first, 0) if length is None else _whole("length", length)
        return self._opened.read(self._position, self._at, first, count, self._allow_missing)

    def read_into(self, buffer: Buffer, offset: SupportsIndex = 0) -> int:
        """Fill writable contiguous memory, such as an array of NumPy, from `offset` on; return how many bytes."""
        view = _bytes_of("buffer", buffer)
        if view.readonly:
            raise TypeError("buffer: expected memory that can be written to, found some that is read-only")
        first = _whole("offset", offset)
        self._opened.demand(self._position, first, len(view))
        for at, end in _pieces(first, len(view)):
            view[at - first : end - first] = self._opened.read(
                self._position, self._at, at, end - at, self._allow_missing
            )
        return len(view)

    def file(self) -> DiskFile:
        """Return a file object on it, at its first byte."""
        return DiskFile(self)


class Instant(Disk):
    """A volume as it was at an instant. It holds nothing back: once the history begins later, reading fails.

    A snapshot keeps its instant until it is deleted. Where something was purged of it, reading raises a `VolumeError`
    that lists the ranges.
    """

    @property
    def instant(self) -> Time:
        """The instant; what was written at exactly that moment is part of it."""
        return Time.from_ns(self._at or 0)

    def __repr__(self) -> str:
        """Name the volume and the instant."""
        return f"<Instant {self.instant} of {self._owner!r}>"


class LiveDisk(Disk):
    """What can be written, too."""

    def write(self, offset: SupportsIndex, data: Buffer) -> None:
        """Write contiguous bytes at `offset`; they are durable after the next `flush`.

        A page that is written in part keeps the rest. What fails midway has written a part, whole pages of it.
        """
        first = _whole("offset", offset)
        if isinstance(data, bytes):
            self._opened.write(self._position, first, data)
            return
        view = _bytes_of("data", data)
        self._opened.demand(self._position, first, len(view))
        for at, end in _pieces(first, len(view)):
            # A copy: other threads may change the memory meanwhile.
            self._opened.write(self._position, at, bytes(view[at - first : end - first]))

    def trim(self, offset: SupportsIndex, length: SupportsIndex) -> None:
        """Forget the whole pages of a range: they read as zeros. Parts of pages at its ends stay."""
        self._opened.trim(self._position, _whole("offset", offset), _whole("length", length))

    def flush(self) -> None:
        """Make durable whatever was written before, to all disks of an array."""
        self._ask("flush")

    def _ask(self, request: str, **fields: object) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self._opened.ask(json.dumps({"request": request, **fields})))
        return answer


class Machine(LiveDisk):
    """A disk of an array, or the one disk of a volume."""

    @property
    def number(self) -> int:
        """Its number."""
        return self._number

    @property
    def name(self) -> str:
        """Its name as an export and as a file."""
        return self._name

    def __repr__(self) -> str:
        """Name it and its size."""
        return f"<Machine {self.number}, {self.name!r}, {self.size} bytes>"


class Volume(LiveDisk):
    """A volume or an array; of an array, the disk is its first machine.

    Close it, or use it in a `with` block: a checkpoint is taken then, and everything is durable. One that is not
    closed is left as after a crash of the process: flushed writes are safe, others may be lost, and what holds is one
    state that it had. It is released as soon as nothing refers to it any more.

    While another process serves it, requests go there: everything works but `write` and `trim`, which raise a
    `VolumeError`; clients of the server write over NBD or through its mount.
    """

    def __init__(
        self,
        directory: StrPath,
        *,
        direct: bool = False,
        slow_alone: bool = False,
        memory: int | str | None = None,
        index: int | str | None = None,
    ) -> None:
        """Open it, as `Volume.open`."""
        given = [None if size is None else str(size) for size in (memory, index)]
        super().__init__(_core.Volume(os.fspath(directory), direct, slow_alone, *given), 0)
        self._directory = Path(directory)
        self._process = os.getpid()

    @classmethod
    def create(  # noqa: PLR0913 (the flags of the command)
        cls,
        directory: StrPath,
        size: str | int | None = None,
        system: str = "combined",
        *,
        capacity: str | int | None = None,
        min_window: str | timedelta | None = None,
        on_pressure: str | None = None,
        fast: StrPath | None = None,
        slow: StrPath | None = None,
        adopt: StrPath | None = None,
        machines: int | None = None,
        fast_size: str | int | None = None,
        delta_ram: str | int | None = None,
        ordered: bool = False,
        mode: str | None = None,
        strict: bool = False,
        overwrite: bool = False,
    ) -> Self:
        """Make a volume or an array in a directory that holds none, and open it.

        The arguments are the flags of `flashlore create`. Sizes are bytes or texts such as `"100GiB"`.

        Args:
            directory: where; it is made if it is not there.
            size: bytes it shows, each machine of an array; a multiple of 4 KiB. With `adopt` by default those of the
                image.
            system: `plain`, `ca-ssd`, `ca-ssd-trusted`, `compress`, `delta-ftl`, `bvssd`, `combined`, or `i-cash` for
                an array. `bvssd` and `combined` keep a history.
            capacity: bytes of pages it can hold, old versions included; by default the size, and half as much again
                with a history.
            min_window: the window of old versions to keep; by default whatever fits.
            on_pressure: what happens when that window does not fit: `shrink` (the default) or `enospc`.
            fast: the fast medium of an array, a block device or a file, which is made if it is not there.
            slow: its slow medium, likewise.
            adopt: instead of `slow`, a disk image around which the array is made, where it is.
            machines: how many machines it has; 1 by default.
            fast_size: bytes of the fast medium that are used; by default a tenth of the bytes of all machines.
            delta_ram: bytes of RAM for deltas; by default a quarter of those of the fast medium.
            ordered: write blocks home in order, so that the slow medium alone holds an older state.
            mode: `write-back` (the default), or `write-through`: nothing durable depends on the fast medium, and a
                change is acknowledged when it is durable on the slow one.
            strict: let no write of a client reach the fast medium.
            overwrite: use media that hold something, which is lost.

        Raises:
            UsageError: an argument that cannot be used.
            VolumeError: the directory holds a volume already, or the file system refuses.

        """
        if isinstance(min_window, timedelta):
            min_window = f"{min_window // timedelta(microseconds=1)}us"
        values = {
            "size": size,
            "system": system,
            "capacity": capacity,
            "min-window": min_window,
            "on-pressure": on_pressure,
            "fast": fast,
            "slow": slow,
            "adopt": adopt,
            "machines": machines,
            "fast-size": fast_size,
            "delta-ram": delta_ram,
            "mode": mode,
        }
        given = {name: value for name, value in values.items() if value is not None}
        arguments = [f"--{name}={os.fspath(v) if isinstance(v, os.PathLike) else v}" for name, v in given.items()]
        switches = {"ordered": ordered, "strict": strict, "overwrite": overwrite}
        arguments += [f"--{name}" for name, on in switches.items() if on]
        _core.create_volume([*arguments, "--", os.fspath(directory)])
        return cls(directory)

    @classmethod
    def open(
        cls,
        directory: StrPath,
        *,
        direct: bool = False,
        slow_alone: bool = False,
        memory: int | str | None = None,
        index: int | str | None = None,
    ) -> Self:
        """Open the volume or array of a directory; one that a server has is asked through the server.

        What a crash left is recovered.

        Args:
            directory: the directory.
            direct: bypass the page cache.
            slow_alone: of an array whose fast medium is lost read what the slow one holds (made with `ordered`).
            memory: the most memory that a volume takes, bytes or a text such as `"512MiB"`; by default a quarter of the
                machine's, at most 4 GiB, or as much as it needs at least.
            index: how much of it is for the fingerprint index; by default half of what is not needed for its size.

        Raises:
            UsageError: the volume does not work with so little memory.
            VolumeError: there is none, somebody else has it open, it is damaged, or memory is short.

        """
        return cls(directory, direct=direct, slow_alone=slow_alone, memory=memory, index=index)

    @staticmethod
    def check(
        directory: StrPath,
        *,
        quick: bool = False,
        direct: bool = False,
        memory: int | str | None = None,
    ) -> VolumeCheck | ArrayCheck:
        """Check a volume or an array that nobody has open; nothing is written.

        Args:
            directory: the directory.
            quick: do not read the stored pages, only what describes them.
            direct: bypass the page cache.
            memory: the most memory that the check of a volume takes, bytes or a text such as `"512MiB"`; with less of
                it the tables are read more often. By default a quarter of the machine's, at most 4 GiB, or as much as
                it needs at least.

        Raises:
            UsageError: the volume cannot be checked with so little memory.
            VolumeError: it could not be opened either.

        """
        given = None if memory is None else str(memory)
        answer = json.loads(_core.check_volume(os.fspath(directory), direct, quick, given))
        if "superblocks" in answer:
            return _answers.of(VolumeCheck, answer)
        return _answers.of(ArrayCheck, answer)

    @property
    def directory(self) -> Path:
        """Its directory."""
        return self._directory

    @property
    def served(self) -> bool:
        """Whether another process serves it."""
        return self._opened.is_served()

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._opened.is_closed()

    @property
    def machines(self) -> tuple[Machine, ...]:
        """The machines of an array, the first one first; the one disk of a volume."""
        positions = range(len(self._opened.shapes()))
        return tuple(Machine(self._opened, position, owner=self) for position in positions)

    def at(self, when: When, *, allow_missing: bool = False) -> Instant:
        """Return the volume as it was at an instant.

        Args:
            when: what the command line takes (`"10min ago"`, `"2026-01-01T12:00:00Z"`, `"now"`, the name of a snapshot
                or mark), an aware datetime, nanoseconds since 1970, or a snapshot, mark or instant.
            allow_missing: zeros for what was purged, rather than an error.

        Raises:
            VolumeUsageError: no such instant, or one that has not come.
            VolumeError: the history begins later.

        """
        return Instant(self._opened, 0, self.resolve(when).ns, self, allow_missing=allow_missing)

    def resolve(self, when: When) -> Time:
        """Return the instant that `when` names, as `at` takes it."""
        return Time.from_ns(self._ask("resolve", moment=_text(when))["instant"])

    def missing(self, when: When) -> Table:
        """Return what an instant lacks because it was purged: a table of `offset` and `length`, in bytes (uint64)."""
        import polars as pl  # noqa: PLC0415 (slow to import)

        ranges = self._ask("missing", at=_text(when))["ranges"]
        return Table(pl.DataFrame(ranges, {"offset": pl.UInt64, "length": pl.UInt64}, orient="row"))

    def diff(self, a: When, b: When = "now", *, allow_missing: bool = False) -> Table:
        """Return the ranges that differ between two instants: a table of `offset` and `length`, in bytes (uint64).

        The ranges are of whole pages and in order; neighbours are one. Where one of the instants lacks what was
        purged, it is refused, or with `allow_missing` left out: `missing` tells of it.
        """
        import polars as pl  # noqa: PLC0415 (slow to import)

        asked = {"from": _text(a), "to": _text(b), "allow_missing": allow_missing}
        ranges = self._ask("diff", **asked)["ranges"]
        return Table(pl.DataFrame(ranges, {"offset": pl.UInt64, "length": pl.UInt64}, orient="row"))

    def recover(
        self,
        to: When,
        *,
        to_mark: bool = False,
        dry_run: bool = False,
        disconnect: bool = False,
        allow_missing: bool = False,
    ) -> Recovered:
        """Let every page hold again what it held at an instant; everything is durable then.

        It takes as long as pages have changed since, and can be undone: `recover(recovered.before)`.

        Args:
            to: the instant, as `at` takes it.
            to_mark: rather the last mark at that instant or before.
            dry_run: only tell what would change.
            disconnect: drop clients of a server that may write first; it is refused while there are any.
            allow_missing: also where something was purged of that instant; it holds zeros then.

        """
        fields = {"to": _text(to), "mark": to_mark, "dry_run": dry_run, "disconnect": disconnect}
        fields["allow_missing"] = allow_missing
        return _answers.of(Recovered, self._ask("recover", **fields))

    def snapshot(self, name: str, at: When | None = None) -> Snapshot:
        """Keep an instant under a name until the snapshot is deleted: the present, unless `at` says another.

        A name has at most 64 letters, digits, `.`, `_` and `-`, a letter first. Everything so far is durable then.
        """
        answer = self._ask("snapshot-create", name=name, at=None if at is None else _text(at))
        return Snapshot(name, Time.from_ns(answer["instant"]))

    def snapshots(self) -> tuple[Snapshot, ...]:
        """Return the snapshots, oldest first."""
        listed = self._ask("snapshot-list")["snapshots"]
        return tuple(_answers.of(Snapshot, snapshot) for snapshot in listed)

    def delete_snapshot(self, snapshot: When) -> Time:
        """Give a snapshot up, by its name or its instant; return the instant."""
        return Time.from_ns(self._ask("snapshot-delete", snapshot=_text(snapshot))["instant"])

    def mark(self, name: str) -> Mark:
        """Make everything so far durable and remember the instant of the last change; nothing keeps it."""
        return Mark(name, Time.from_ns(self._ask("mark", name=name)["instant"]))

    def log(self, most: int = 20) -> Log:
        """Return what happened in the window: at most so many stretches of changes, snapshots and marks, the latest."""
        return _answers.log_of(self._ask("log", most=_whole("most", most)))

    def info(self) -> VolumeInfo | ArrayInfo:
        """Return the state of the volume, or of the array.

        On a volume what is stored is counted beside whoever writes: near, not exact, while somebody does.
        """
        answer = self._ask("info")
        if answer["answer"] == "info":
            return _answers.of(VolumeInfo, answer)
        return _answers.of(ArrayInfo, answer)

    def purge(
        self,
        *,
        all: bool = False,  # noqa: A002 (the flag's name)
        before: When | None = None,
        offset: SupportsIndex | None = None,
        length: SupportsIndex | None = None,
        erase: bool = False,
    ) -> Purged:
        """Forget old versions: all, those before an instant, or those of the pages of a range.

        What is present stays. A purge of everything moves the start of the history to the last change and ends the
        snapshots that lack something then; one of a range leaves earlier instants, snapshots too, without it.
        `before` leaves snapshots alone. What a protected window holds is not purged.

        Args:
            all: of everything.
            before: forget every instant before this one.
            offset: of pages from this byte on, the first of a page.
            length: so many bytes, of whole pages.
            erase: also from the medium, which may copy most of what is stored.

        """
        if [all, before is not None, offset is not None].count(True) != 1 or (offset is None) != (length is None):
            raise VolumeUsageError("expected either all, or before, or offset and length")
        spans = None if offset is None or length is None else [_whole("offset", offset), _whole("length", length)]
        text = None if before is None else _text(before)
        answer = self._ask("purge", range=spans, before=text, erase=erase)
        return _answers.purged_of(answer)

    def scrub(self) -> Scrubbed:
        """Read every stored page, those of old versions too, and compare them with their checksums."""
        read, found, at = 0, dict[Unreadable, None](), 0
        while at is not None:
            step = self._ask("scrub", **{"from": at})
            read, at = read + step["read"], step["next"]
            # Several values may lie on one page.
            found |= dict.fromkeys(_answers.of(Unreadable, one) for one in step["findings"])
        return Scrubbed(read, tuple(found))

    def clone(self, native: int, machine: int, *, image: StrPath | None = None, overwrite: bool = False) -> Cloned:
        """Fill a machine of an array with what another one holds, and store only short deltas from that.

        Args:
            native: the number of the machine that is compared with.
            machine: the number of the machine that is filled.
            image: fill it with this raw image instead.
            overwrite: fill a machine that holds something, which is lost.

        """
        path = None if image is None else os.path.abspath(image)  # noqa: PTH100 (resolves no links)
        answer = self._ask("clone", native=native, machine=machine, image=path, overwrite=overwrite)
        return _answers.of(Cloned, answer)

    def close(self) -> None:
        """End the use of it: take a checkpoint, so that everything is durable, and let others open it.

        Waits for the calls of other threads; later calls of anybody raise. Closing twice is closing once.
        """
        self._opened.close()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

    def __repr__(self) -> str:
        """Name it and say how it is used."""
        state = "closed" if self.closed else "served" if self.served else "open"
        return f"<Volume {str(self.directory)!r}, {self.size} bytes, {state}>"

    def __del__(self) -> None:
        """Warn of a volume that was not closed."""
        opened = getattr(self, "_opened", None)
        if opened and not (opened.is_closed() or opened.is_served()) and os.getpid() == self._process:
            warnings.warn(f"{self!r} was not closed", ResourceWarning, source=self, stacklevel=2)


When: TypeAlias = str | int | datetime | Snapshot | Mark | Instant
"""What names an instant; see `Volume.at`."""


class DiskFile(io.RawIOBase):
    """A disk as an unbuffered file: it can be read, positioned and, if the disk can, written; its length is fixed.

    `io.BufferedRandom(volume.file())` and `io.BufferedReader(volume.at("1h ago").file())` are the buffered ones.
    """

    def __init__(self, disk: Disk) -> None:
        """Begin at the first byte of a disk."""
        self._disk = disk
        self._position = 0

    @property
    def disk(self) -> Disk:
        """The disk."""
        return self._disk

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def writable(self) -> bool:
        """Return whether it can be written."""
        return isinstance(self._disk, LiveDisk) and self._disk._opened.is_writable()  # noqa: SLF001 (of this module)

    def seekable(self) -> bool:
        """Return that it can be positioned."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a byte, counted from the beginning, the present position or the end; return its number."""
        self._demand_open()
        bases = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._disk.size}
        if whence not in bases:
            raise ValueError(f"whence: expected 0, 1 or 2, found {whence}")
        position = bases[whence] + index(offset)
        if position < 0:
            raise OSError(errno.EINVAL, f"there is no byte {position}")
        self._position = position
        return position

    def tell(self) -> int:
        """Return the number of the byte it is at."""
        self._demand_open()
        return self._position

    def readinto(self, buffer: Buffer, /) -> int:
        """Fill memory as far as there are bytes; return how many."""
        self._demand_open()
        view = _bytes_of("buffer", buffer)
        count = self._disk.read_into(view[: self._left()], min(self._position, self._disk.size))
        self._position += count
        return count

    def readall(self) -> bytes:
        """Return all bytes up to the end."""
        self._demand_open()
        read = self._disk.read(min(self._position, self._disk.size))
        self._position += len(read)
        return read

    def write(self, data: Buffer, /) -> int:
        """Write as many bytes as there is room for; return how many."""
        self._demand_open()
        if not isinstance(self._disk, LiveDisk) or not self.writable():
            raise io.UnsupportedOperation("it cannot be written")
        view = _bytes_of("data", data)
        if len(view) and not self._left():
            raise OSError(errno.ENOSPC, f"the disk has {self._disk.size} bytes")
        view = view[: self._left()]
        self._disk.write(self._position, view)
        self._position += len(view)
        return len(view)

    def flush(self) -> None:
        """Make durable what was written."""
        super().flush()
        disk = self._disk
        # What was closed is durable.
        if isinstance(disk, LiveDisk) and self.writable() and not disk._opened.is_closed():  # noqa: SLF001 (of this module)
            disk.flush()

    def _left(self) -> int:
        return max(self._disk.size - self._position, 0)

    def _demand_open(self) -> None:
        if self.closed:
            raise ValueError("the file is closed")


def _whole(name: str, value: SupportsIndex) -> int:
    number = index(value)
    if not 0 <= number < _MOST:
        raise VolumeUsageError(f"{name}: expected a whole number from 0 to 2^64 - 1, found {number}")
    return number


def _bytes_of(name: str, data: Buffer) -> memoryview:
    try:
        view = memoryview(data)
    except ValueError as error:
        raise VolumeUsageError(f"{name}: {error}; expected contiguous memory, such as a view of bytes") from None
    # References to objects mean nothing on a disk, and those read from there would not be any.
    if "O" in re.sub(":[^:]*:", "", view.format):
        raise VolumeUsageError(f"{name}: expected numbers or bytes, found references to objects")
    if not view.c_contiguous:
        raise VolumeUsageError(f"{name}: expected contiguous memory, found some with gaps or in another order")
    return view.cast("B") if view.nbytes else memoryview(bytearray())


def _pieces(offset: int, length: int) -> Iterator[tuple[int, int]]:
    """Cut a range where the core does, so that no page is written in two."""
    end = offset + length
    while offset < end:
        cut = min((offset // _PIECE + 1) * _PIECE, end)
        yield offset, cut
        offset = cut


def _text(when: When) -> str:
    if isinstance(when, str):
        return when
    if isinstance(when, Snapshot | Mark | Instant):
        return f"ns:{when.instant.ns}"
    if isinstance(when, datetime):
        if when.utcoffset() is None:
            raise VolumeUsageError(f"expected a datetime with a time zone, found {when!r}")
        return f"ns:{when.ns if isinstance(when, Time) else nanoseconds(when)}"
    return f"ns:{index(when)}"
