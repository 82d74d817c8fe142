"""Settings, as `--set` takes them on the command line."""

from collections.abc import Mapping
from typing import TypeAlias

Value: TypeAlias = str | int | float | bool | list[str] | list[int] | list[float]
"""The value of a key: sizes, durations and shares are texts with units (`"128Ki"`, `"400us"`) or plain numbers."""

Settings: TypeAlias = Mapping[str, Value]
"""Values by key: `device.…`, `host.…`, or a section of a system such as `dedup.index_entries`."""


def texts(settings: Settings | None, prefix: str = "") -> list[str]:
    """Return `KEY=VALUE` texts; keys get `prefix` in front unless they have it.

    >>> texts({"space.capacity": "4GiB", "gc.low": 0.05}, "device.")
    ['device.space.capacity=4GiB', 'device.gc.low=0.05']
    """
    return [
        f"{key if key.startswith(prefix) else prefix + key}={_text(value)}" for key, value in (settings or {}).items()
    ]


def _text(value: Value) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{', '.join(map(_text, value))}]"
    return str(value)
