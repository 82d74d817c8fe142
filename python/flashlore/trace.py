"""Traces: what a host asked a block device for."""

import json
from collections.abc import Sequence
from os import PathLike, fspath
from typing import Any, Literal, Self, TypeAlias

from flashlore import _core

Path: TypeAlias = str | PathLike[str]
Content: TypeAlias = str
"""Where the content of pages comes from: `trace` (its own), `distinct` (every page written is unlike all others),
`zipf:a=EXPONENT,n=VALUES[,seed=SEED]`, `uniform:n=VALUES[,seed=SEED]`, or `profile:NAME[,seed=SEED]`."""


class Trace:
    """Requests of a host in order, and the content of their pages as far as it is known."""

    def __init__(self, core: _core.Trace, name: str) -> None:
        """Wrap what the core holds; `Trace.open` and its like make traces."""
        self.core = core
        self.name = name

    @classmethod
    def open(  # noqa: PLR0913 (each is a question of its own)
        cls,
        path: Path | Sequence[Path],
        *,
        format: str | None = None,  # noqa: A002 (the word of the command line)
        lenient: bool = False,
        content: Content = "trace",
        delta: str | None = None,
        compact: bool | None = None,
        devices: Sequence[str] = (),
        join: Literal["sequence", "timeline"] | None = None,
    ) -> Self:
        """Open a trace, or several that are one.

        A path may be that of a file, `demo:NAME` for a capture in the package, or `profile:NAME[,scale=FACTOR]` for a
        synthetic workload. A file is read when it is needed first.
        """
        paths = [path] if isinstance(path, str | PathLike) else list(path)
        core = _core.Trace.open(
            paths,
            format=format,
            lenient=lenient,
            content=content,
            delta=delta,
            compact=compact,
            devices=devices,
            join=join,
        )
        return cls(core, " + ".join(fspath(path).rsplit("/", 1)[-1] for path in paths))

    def with_content(self, content: Content) -> "Trace":
        """Return the same requests with other content."""
        return Trace(self.core.with_content(content), self.name)

    @property
    def summary(self) -> dict[str, Any]:
        """What is known about the trace."""
        return dict(json.loads(self.core.summary()))

    def __len__(self) -> int:
        """Return the number of requests."""
        return int(self.summary["requests"])

    def __repr__(self) -> str:
        """Name the trace."""
        return f"Trace({self.name!r})"
