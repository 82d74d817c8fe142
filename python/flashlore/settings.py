"""Settings, durations and counts, as the command line takes them."""

import math
from collections.abc import Mapping
from datetime import timedelta
from operator import index
from typing import SupportsIndex, TypeAlias

from flashlore.errors import UsageError

Value: TypeAlias = str | int | float | bool | list[str] | list[int] | list[float]
"""The value of a key: sizes, durations and shares are texts with units (`"128Ki"`, `"400us"`) or plain numbers."""

Settings: TypeAlias = Mapping[str, Value]
"""Values by key: `device.…`, `host.…`, or a section of a system such as `dedup.index_entries`."""

Duration: TypeAlias = str | float | timedelta
"""A duration: a text with a unit (`"1s"`, `"400us"`), seconds, or a `timedelta`."""


def texts(settings: Settings | None, prefix: str = "") -> list[str]:
    """Return `KEY=VALUE` texts; keys get `prefix` in front unless they have it.

    >>> texts({"space.capacity": "4GiB", "gc.low": 0.05}, "device.")
    ['device.space.capacity=4GiB', 'device.gc.low=0.05']
    """
    return [
        f"{key if key.startswith(prefix) else prefix + key}={_text(value)}" for key, value in (settings or {}).items()
    ]


def duration(name: str, given: Duration | None) -> str | None:
    """Return a duration as the command line takes it, exact to the nanosecond.

    >>> duration("timeline", 0.25), duration("timeline", timedelta(milliseconds=5))
    ('250000000ns', '5000000ns')
    """
    if given is None or isinstance(given, str):
        return given
    if isinstance(given, timedelta):
        return f"{given // timedelta(microseconds=1) * 1000}ns"
    if not math.isfinite(given):
        raise UsageError(f"{name} = {given}: expected a duration such as '1s', or seconds")
    return f"{round(given * 1e9)}ns"


def count(name: str, given: SupportsIndex, least: int, bits: int) -> int:
    """Return a whole number that is at least `least` and has so many bits at most."""
    number = index(given)
    if not least <= number < 1 << bits:
        raise UsageError(f"{name} = {number}: expected a whole number from {least} to 2^{bits} - 1")
    return number


def _text(value: Value) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{', '.join(map(_text, value))}]"
    return str(value)
