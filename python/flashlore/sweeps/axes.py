"""Axes of a grid: the values that a setting takes.

A scalar is a constant, a sequence or a range is an axis. Values stay as they were written: `"128Ki"` is a text, and
means to Flashlore what `--set` makes of it.
"""

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, TypeAlias

from flashlore.errors import UsageError

#: A value of a setting, as `--set` takes it. A list is one value (`device.layout.stripe`), not an axis.
Value: TypeAlias = bool | int | float | str | list[Any]

#: What describes a range.
RANGE_KEYS = {"from", "to", "step", "factor"}
#: More than this on one axis is a slip of the pen.
MOST_VALUES = 100_000

_QUANTITY = re.compile(r"\s*([-+]?[0-9]*\.?[0-9]+(?:[eE][-+]?[0-9]+)?)\s*([A-Za-z%]*)\s*")


def is_range(given: object) -> bool:
    """Whether this mapping describes a range: `{from = 0.05, to = 0.3, step = 0.05}`."""
    return isinstance(given, Mapping) and {"from", "to"} <= set(given)


def axis(given: object, where: str) -> list[Value] | None:
    """Give the values of an axis, or `None` where `given` is a constant.

    Takes lists, tuples, `range`, arrays of NumPy, and mappings that describe a range, both ends included.

    >>> axis({"from": 0.05, "to": 0.2, "step": 0.05}, "here")
    [0.05, 0.1, 0.15, 0.2]
    >>> axis({"from": "16Ki", "to": "128Ki", "factor": 2}, "here")
    ['16Ki', '32Ki', '64Ki', '128Ki']
    >>> axis("greedy", "here") is None
    True
    """
    if isinstance(given, Mapping):
        return _range(given, where)
    if hasattr(given, "tolist"):
        given = given.tolist()
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        return None
    values = [value(item, where) for item in given]
    if not values:
        raise UsageError(f"{where}: the axis is empty, expected a value at least")
    return values


def value(given: Any, where: str) -> Value:
    """Check that `given` is a value that a setting can take; scalars of NumPy become Python's."""
    if hasattr(given, "tolist"):
        given = given.tolist()
    if isinstance(given, list | tuple):
        return [value(item, where) for item in given]
    if isinstance(given, bool | int | float | str):
        return given
    raise UsageError(f"{where}: expected a number, a text, true or false, or a list, found {given!r}")


def text(given: Value) -> str:
    """Write a value as `--set` takes it.

    >>> text(True), text(0.07), text(["channel", "plane"])
    ('true', '0.07', '[channel,plane]')
    """
    if isinstance(given, bool):
        return "true" if given else "false"
    if isinstance(given, list):
        return f"[{','.join(text(item) for item in given)}]"
    return given if isinstance(given, str) else repr(given)


def _range(given: Mapping[str, Any], where: str) -> list[Value]:
    """Both ends included; computed in decimal, so that 0.05 + 0.05 + 0.05 is 0.15."""
    unknown = sorted(set(given) - RANGE_KEYS)
    if unknown or not is_range(given) or ("step" in given) == ("factor" in given):
        found = ", ".join(sorted(given))
        raise UsageError(f"{where}: a range has from, to, and either step or factor; found {found or 'nothing'}")
    (first, unit), (last, last_unit) = (_quantity(given[end], f"{where}: {end}") for end in ("from", "to"))
    if unit != last_unit:
        units = " and ".join(one or "no unit" for one in (unit, last_unit))
        raise UsageError(f"{where}: from and to have different units: {units}")
    name = "step" if "step" in given else "factor"
    by, by_unit = _quantity(given[name], f"{where}: {name}")
    least = 0 if name == "step" else 1
    if by <= least or (name == "factor" and (by_unit or first <= 0)) or by_unit not in ("", unit):
        raise UsageError(f"{where}: {name} = {given[name]!r}: expected a number above {least}, and a range above 0")
    values: list[Value] = []
    at = first
    whole = all(isinstance(given[key], int) for key in ("from", "to", name))
    while at <= last:
        if len(values) == MOST_VALUES:
            raise UsageError(f"{where}: the range has more than {MOST_VALUES:,} values")
        values.append(f"{at.normalize():f}{unit}" if unit else int(at) if whole else float(at))
        at = at + by if name == "step" else at * by
    if not values:
        raise UsageError(f"{where}: the range is empty: from is above to")
    return values


def _quantity(given: object, where: str) -> tuple[Decimal, str]:
    found = _QUANTITY.fullmatch(str(given))
    if isinstance(given, bool) or found is None:
        raise UsageError(f"{where}: expected a number, or one with a unit such as 16Ki, found {given!r}")
    try:
        return Decimal(found[1]), found[2]
    except InvalidOperation:  # pragma: no cover - the pattern lets nothing else through
        raise UsageError(f"{where}: {given!r} is no number") from None
