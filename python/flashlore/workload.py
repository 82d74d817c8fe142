"""What ran, on what: how files became requests, and the values of all keys."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Reading:
    """How files were read."""

    format: str | None
    """The format that was given; `None` where it was recognised."""

    lenient: bool
    """Whether malformed records were skipped and counted."""

    coalesce_ns: int | None = None
    """How many nanoseconds after its first record those joined with it may have come; `None` if none were joined."""


@dataclass(frozen=True)
class Workload:
    """How files became requests."""

    read: Reading
    """How each was read."""

    join: str
    """How several became one: `sequence` or `timeline`."""

    devices: tuple[str, ...]
    """Names of the devices kept; all when empty."""

    compact: bool
    """Whether pages never touched were left out."""

    content: str | dict[str, Any]
    """Where the content comes from: `from_trace`, or the model it was made by."""

    delta: str | dict[str, Any] | None = None
    """Where the delta ratio R_c of page writes comes from, if there is one."""


@dataclass(frozen=True)
class Configuration:
    """Every value of what ran, by key: with the workload and the files it is all that is needed to repeat the run."""

    device: dict[str, Any]
    """The device, sized."""

    system: dict[str, Any]
    """The content policies."""

    host: dict[str, Any]
    """The host."""
