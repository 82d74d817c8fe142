"""Files that the package writes: each is there whole or not at all, and what was there before is not lost.

A file is written beside its place, made durable and renamed when it is complete. What fails before leaves the old file
as it was. The core does the same for what it writes (`flashlore_trace::output`), with the same words.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from flashlore.errors import FileError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator


def refuse_existing(path: Path, *, force: bool) -> None:
    """Refuse a file that is there already, unless it is empty or to be replaced.

    Raises:
        UsageError: it is there.

    """
    if not force and path.is_file() and path.stat().st_size:
        raise UsageError(f"{path} exists already: name another file, or replace it with --force (force=True in Python)")


@contextmanager
def whole(path: Path, *, force: bool) -> Iterator[Path]:
    """Give the place where a file is to be written; at the end of the block the file gets its name.

    What is no file, such as /dev/stdout, is written as it is.

    Raises:
        UsageError: a file is there that is to stay.
        FileError: there is no room, or the system refuses; the message says what it said.

    """
    refuse_existing(path, force=force)
    beside: Path | None = None
    try:
        if path.exists() and not path.is_file():
            yield path
            return
        # Behind a link lies what is meant.
        place = path.resolve()
        handle, name = tempfile.mkstemp(dir=place.parent, prefix=".flashlore-", suffix=".new")
        beside = Path(name)
        with os.fdopen(handle):
            yield beside
            os.fsync(handle)
        # A file of this kind is for its owner alone; results are as readable as any other file.
        mask = os.umask(0)
        os.umask(mask)
        beside.chmod(0o666 & ~mask)
        refuse_existing(path, force=force)
        beside.replace(place)
        beside = None
        _sync(place.parent)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise FileError(f"cannot write {path}: {reason(error)}") from error
    finally:
        if beside is not None:
            with suppress(OSError):
                beside.unlink()


def reason(error: BaseException) -> str:
    """Say why something failed, in one line, with the file if the system named one."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror if error.filename is None else f"{error.strerror}: {os.fspath(error.filename)}"
    lines = str(error).splitlines()
    return lines[0] if lines else type(error).__name__


def _sync(folder: Path) -> None:
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
