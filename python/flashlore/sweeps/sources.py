"""Traces of a grid: where they are, how they are read, and what identifies them.

A trace whose records are in memory becomes a file for the time of the sweep, which goes to workers elsewhere by itself.

A source with files is identified by the SHA-256 of each, so that a cell is another one when the trace has changed and
the same one when it has merely moved. Captures and profiles inside the program are identified by their names and the
version of Flashlore.
"""

import hashlib
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import Any, Self

from flashlore.errors import FileError, FlashloreError, UsageError
from flashlore.trace import Trace

#: What the names of traces begin with that are no files.
_INSIDE = ("demo:", "profile:")
# What stands before the path of a file of records that were in memory.
_RECORDS = "records:"


@dataclass(frozen=True)
class Source:
    """A trace of a grid. The options are those of `Trace.open`; `name` is its name in the results.

    Several `paths` are joined as `join` says and are one trace.
    """

    paths: tuple[str, ...]
    name: str
    format: str | None = None
    lenient: bool = False
    coalesce: str | None = None
    content: str = "trace"
    delta: str | None = None
    compact: bool | None = None
    devices: tuple[str, ...] = ()
    join: str | None = None
    records: Trace | None = None

    @classmethod
    def at(cls, *paths: str, name: str | None = None, **options: Any) -> Self:
        """Name a trace by its path or paths.

        >>> Source.at("traces/mail.fiu.xz").name
        'mail.fiu.xz'
        """
        if not all(paths) or not paths:
            raise UsageError("a trace has no path, expected one at least")
        return cls(paths=paths, name=name or " + ".join(label(path) for path in paths), **options)

    def options(self) -> dict[str, Any]:
        """All but paths, name and records, as `Trace.open` takes it."""
        return {field.name: getattr(self, field.name) for field in fields(self)[2:-1]}

    @property
    def is_drawn(self) -> bool:
        """Whether seeds decide what is replayed."""
        by_profile = any(path.startswith("profile:") for path in self.paths)
        by_model = self.content not in ("trace", "distinct") or self.delta not in (None, "trace")
        return by_profile or by_model

    @property
    def profile(self) -> str:
        """The file of the profile whose content is laid over the trace, if there is one."""
        return split(self.content)[1] if self.content.startswith("profile:") else ""


@dataclass(frozen=True)
class File:
    """A file that a trace needs, and the SHA-256 of its bytes."""

    path: str
    sha256: str

    @property
    def name(self) -> str:
        """Its name without folder."""
        return Path(self.path).name


@dataclass(frozen=True)
class Item:
    """One path of a source: `before` + path of the first file + `after`; without files it is `before`."""

    before: str
    after: str = ""
    files: tuple[File, ...] = ()

    @property
    def in_memory(self) -> bool:
        """Whether it holds the records of a trace that no path names."""
        return self.before == _RECORDS

    def text(self) -> str:
        """Give the path."""
        return f"{self.before}{self.files[0].path}{self.after}" if self.files else self.before


def label(path: str) -> str:
    """Name of a trace by its path: the file's without folder.

    >>> label("profile:shapes/mail.toml,scale=4"), label("demo:maildir"), label("a/b.csv")
    ('profile:mail.toml,scale=4', 'demo:maildir', 'b.csv')
    """
    before, middle, after = split(path)
    return f"{before}{Path(middle).name}{after}" if middle else path


def split(path: str) -> tuple[str, str, str]:
    """Text before the file's path, the path (empty where there is no file), and text after it.

    >>> split("profile:shapes/mail.toml,scale=4")
    ('profile:', 'shapes/mail.toml', ',scale=4')
    >>> split("profile:mail")
    ('profile:mail', '', '')
    """
    if not path.startswith(_INSIDE):
        return "", path, ""
    kind, _, rest = path.partition(":")
    name, comma, options = rest.partition(",")
    # The presets have neither in their names.
    if kind == "profile" and ("/" in name or "." in name):
        return "profile:", name, comma + options
    return path, "", ""


def below(path: str, folder: Path) -> str:
    """Let a relative path begin at a folder.

    >>> below("one.csv", Path("/traces")), below("profile:mail", Path("/traces"))
    ('/traces/one.csv', 'profile:mail')
    """
    before, middle, after = split(path)
    return f"{before}{folder / middle}{after}" if middle else path


class Checksums:
    """Items of paths, each file read once."""

    def __init__(self) -> None:
        """Know nothing yet."""
        self._known: dict[str, Item] = {}

    def item(self, path: str, where: str) -> Item:
        """Find the files of a path and read their checksums.

        Raises:
            FileError: a file that is not there or cannot be read.
            UsageError: a path that cannot be one.

        """
        if path not in self._known:
            before, middle, after = split(path)
            files = tuple(_checked(file, where) for file in _files(middle)) if middle else ()
            self._known[path] = Item(before, after, files)
        return self._known[path]

    def profile(self, source: Source, where: str) -> File | None:
        """Read the checksum of the profile whose content is laid over a trace.

        Raises:
            FileError: a file that is not there or cannot be read.
            UsageError: a path that cannot be one.

        """
        return _checked(Path(source.profile).absolute(), where) if source.profile else None


def refuse_unopened(source: Source, where: str) -> None:
    """Refuse a trace whose name or options mean nothing. One that cannot be read is a failure of its own cells.

    Raises:
        UsageError: as `Trace.open`.

    """
    try:
        Trace.open(source.paths, **source.options())
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from error
    except FlashloreError:
        pass


def refuse_changed(file: File) -> None:
    """Refuse a file that is not the one of which a cell was made.

    Raises:
        FlashloreError: it has other bytes, or cannot be read.

    """
    try:
        about = Path(file.path).stat()
        found = _sha256(file.path, about.st_mtime_ns, about.st_size)
    except OSError as error:
        raise FileError(f"cannot read {file.path}: {error.strerror}") from error
    if found != file.sha256:
        raise FlashloreError(f"{file.path} has SHA-256 {found}, expected {file.sha256}: the trace has changed")


@lru_cache(maxsize=64)
def _sha256(path: str, _changed_ns: int, _size: int) -> str:
    """Read a checksum once, as long as nobody writes to the file."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def saved(source: Source, folder: Path) -> Item:
    """Write the records of a trace in memory into a file of `folder`; equal records are equal bytes."""
    if source.records is None:
        raise ValueError(f"{source.name} has paths")
    part = Path(tempfile.mkdtemp(dir=folder)) / "records.parquet"
    source.records.to_table().to_polars().rechunk().write_parquet(part)
    return Item(_RECORDS, files=(_checked(part, "traces"),))


def opened(paths: Sequence[str], name: str, options: Mapping[str, Any]) -> Trace:
    """Open what the texts of items name."""
    path = paths[0]
    if not path.startswith(_RECORDS):
        return Trace.open(paths, **options)
    import polars as pl  # noqa: PLC0415 (workers without records need none)

    frame = pl.read_parquet(path.removeprefix(_RECORDS))
    return Trace.from_frame(frame, name=name).with_content(options["content"])


def _files(path: str) -> list[Path]:
    """Name the trace and, if there is one beside it, the file of its pages: its name up to the first dot."""
    main = Path(path).absolute()
    if not main.name:
        return [main]
    pages = main.with_name(main.name.split(".")[0] + ".pages.zst")
    return [main, pages] if pages.is_file() and pages != main else [main]


def _checked(path: Path, where: str) -> File:
    try:
        with path.open("rb") as file:
            return File(str(path), hashlib.file_digest(file, "sha256").hexdigest())
    except OSError as error:
        raise FileError(f"{where}: cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise UsageError(f"{where}: {str(path)!r} is no path: {error}") from error


def source(given: object, where: str) -> Source:
    """Read what a grid says of a trace: a path, or a mapping with `path` and options.

    Raises:
        UsageError: an option that does not exist, or a value of the wrong type.

    """
    if isinstance(given, Source):
        return given
    if isinstance(given, str | Path):
        return Source.at(str(given))
    if isinstance(given, Trace):
        return _of_trace(given)
    if isinstance(given, Mapping):
        return _described(given, where)
    raise UsageError(f"{where}: expected the path of a trace, found {given!r}")


def _of_trace(given: Trace) -> Source:
    """Take a trace by its paths, or else by its records."""
    opened = given._opened  # noqa: SLF001 (one package)
    if opened is None:
        return Source((), given.name, content=given._content, records=given)  # noqa: SLF001 (one package)
    return Source.at(*opened.paths, **{field.name: getattr(opened, field.name) for field in fields(opened)[1:]})


def _described(given: Mapping[str, Any], where: str) -> Source:
    expected: dict[str, type | tuple[type, ...]] = {
        "path": (str, list, Path),
        "name": str,
        "format": str,
        "lenient": bool,
        "coalesce": str,
        "content": str,
        "delta": str,
        "compact": bool,
        "devices": list,
        "join": str,
    }
    for key, found in given.items():
        if key not in expected:
            raise UsageError(f"{where}: there is no key {key!r}, expected one of {', '.join(expected)}")
        if not isinstance(found, expected[key]):
            raise UsageError(f"{where}: {key} = {found!r}: expected {_kind(expected[key])}")
    if "path" not in given:
        raise UsageError(f"{where}: the key path is missing")
    options = dict(given)
    path = options.pop("path")
    paths: Iterable[object] = path if isinstance(path, list) else [path]
    devices = tuple(str(device) for device in options.pop("devices", ()))
    return Source.at(*(str(one) for one in paths), devices=devices, **options)


def _kind(expected: type | tuple[type, ...]) -> str:
    names = {str: "a text", bool: "true or false", list: "a list"}
    first = expected[0] if isinstance(expected, tuple) else expected
    return names[first]
