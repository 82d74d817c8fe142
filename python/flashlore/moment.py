"""Instants: aware datetimes in UTC that are exact to the nanosecond, as volumes count them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Self, SupportsIndex

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_PER_MICROSECOND = 1000


class Time(datetime):
    """An instant of a volume: a datetime in UTC that knows its nanoseconds since 1970.

    It compares, sorts and pickles exactly; its text is that of the command line, which takes it back. What is
    calculated from it is exact to the microsecond, as all datetimes are.

    >>> noon = Time.from_ns(1_767_268_800_000_000_007)
    >>> str(noon)
    '2026-01-01T12:00:00.000000007Z'
    >>> noon.ns
    1767268800000000007
    >>> noon > datetime(2026, 1, 1, 12, tzinfo=UTC)
    True
    """

    # Nanoseconds beyond the microseconds; none in what was calculated.
    _rest: int | None = None

    @classmethod
    def from_ns(cls, ns: int) -> Self:
        """Return the instant so many nanoseconds after the beginning of 1970."""
        micros, rest = divmod(ns, _PER_MICROSECOND)
        whole = _EPOCH + micros * _MICROSECOND
        made = cls.combine(whole.date(), whole.time(), tzinfo=UTC)
        made._rest = rest  # noqa: SLF001 (of this class)
        return made

    @property
    def ns(self) -> int:
        """Nanoseconds since 1970."""
        return nanoseconds(self) + _rest(self)

    def __str__(self) -> str:
        """Return the instant in RFC 3339, with as many digits as it needs."""
        if self._rest is None:
            return super().__str__()
        text = self.replace(tzinfo=None, microsecond=0).isoformat()
        fraction = f"{self.ns % 10**9:09}".rstrip("0")
        return f"{text}.{fraction}Z" if fraction else f"{text}Z"

    def __repr__(self) -> str:
        """Return what makes the same instant."""
        return super().__repr__() if self._rest is None else f"Time.from_ns({self.ns})"

    def __reduce_ex__(self, protocol: SupportsIndex) -> str | tuple[object, ...]:
        """Pickle and copy all nanoseconds."""
        if self._rest is None:
            return super().__reduce_ex__(protocol)
        return type(self).from_ns, (self.ns,)

    def __hash__(self) -> int:
        """Agree with a datetime that is the same instant."""
        return hash(self.ns) if self._rest else super().__hash__()

    def __eq__(self, other: object) -> bool:
        """Compare all nanoseconds; what is no datetime is no instant."""
        return isinstance(other, datetime) and super().__eq__(other) and _rest(self) == _rest(other)

    def __ne__(self, other: object) -> bool:
        """Compare all nanoseconds."""
        return not self == other

    def __lt__(self, other: datetime) -> bool:  # type: ignore[override]  # as that of datetime
        """Compare all nanoseconds."""
        if not isinstance(other, datetime):
            return NotImplemented
        return super().__lt__(other) or (super().__eq__(other) and _rest(self) < _rest(other))

    def __le__(self, other: datetime) -> bool:  # type: ignore[override]  # as that of datetime
        """Compare all nanoseconds."""
        if not isinstance(other, datetime):
            return NotImplemented
        return super().__lt__(other) or (super().__eq__(other) and _rest(self) <= _rest(other))

    def __gt__(self, other: datetime) -> bool:  # type: ignore[override]  # as that of datetime
        """Compare all nanoseconds."""
        return not self <= other

    def __ge__(self, other: datetime) -> bool:  # type: ignore[override]  # as that of datetime
        """Compare all nanoseconds."""
        return not self < other


def nanoseconds(time: datetime) -> int:
    """Return the nanoseconds since 1970 of an aware datetime, exact to the microsecond that it holds."""
    return (time - _EPOCH) // _MICROSECOND * _PER_MICROSECOND


def _rest(time: object) -> int:
    return (time._rest or 0) if isinstance(time, Time) else 0  # noqa: SLF001 (of this module)
