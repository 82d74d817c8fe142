"""Objects of what volumes and arrays answer as JSON."""

from typing import Any, TypeVar

from flashlore._tree import from_tree
from flashlore.moment import Time
from flashlore.volume_info import Changes, ClockReading, Log, Mark, Purge, Purged, Snapshot

T = TypeVar("T")


def of(kind: type[T], answer: dict[str, Any]) -> T:
    """Make an object of an answer as JSON, which also says what it is."""
    return from_tree(kind, answer, more=True)


_WHAT: dict[str, type[Changes | Snapshot | Mark | Purge | ClockReading]] = {
    "changes": Changes,
    "snapshot": Snapshot,
    "mark": Mark,
    "purge": Purge,
    "clock": ClockReading,
}


def purged_of(answer: dict[str, Any]) -> Purged:
    """Make an object of the answer to a purge as JSON."""
    erased = answer["erased"] or {"blocks": None, "copied": None, "left": None}
    ended = tuple(of(Snapshot, snapshot) for snapshot in answer["ended"])
    return Purged(ended=ended, oldest=Time.from_ns(answer["oldest"]), **erased)


def log_of(answer: dict[str, Any]) -> Log:
    """Make a log of an answer as JSON, whose entries say what they are."""
    entries = tuple(of(_WHAT[entry["what"]], entry) for entry in answer["entries"])
    return Log(Time.from_ns(answer["oldest"]), Time.from_ns(answer["newest"]), entries)
