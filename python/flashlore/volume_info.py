"""What volumes and arrays answer: the answers of the control socket, field by field as `--json` prints them.

Sizes are in bytes, pages and blocks have 4 KiB, and instants are of `Time` where `--json` has nanoseconds since 1970.
"""

# Made of the structs of Rust by tools/records.py: change those.

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from flashlore.moment import Time


@dataclass(frozen=True)
class Saved:
    """Bytes saved against storing each page whole."""

    dedup: int
    """By sharing equal pages."""

    delta: int
    """By storing deltas."""

    compression: int
    """By compressing."""


@dataclass(frozen=True)
class IndexInfo:
    """What the fingerprint index of a volume knows, by which equal pages are found."""

    entries: int
    """Values that it names. Others are found only behind one of these."""

    most_entries: int
    """How many it has room for."""

    memory: int
    """Bytes of memory that it takes."""

    misses: int
    """Pages written since the volume was opened whose content was not found."""

    doubtful_misses: int
    """Of them, those that a larger index might have found."""


@dataclass(frozen=True)
class TablesInfo:
    """What is in memory of the tables of a volume that are read and changed a page at a time."""

    memory: int
    """Bytes that their pages take."""

    most_memory: int
    """The most that they may take."""

    hits: int
    """Rows that were in memory when they were asked for, since the volume was opened."""

    misses: int
    """Pages that had to be read for others."""

    written_for_room: int
    """Pages that had changed and were written to make room for others."""


@dataclass(frozen=True)
class HistoryInfo:
    """How far back a volume goes."""

    oldest: Time
    """The oldest instant that can be read and rewound to."""

    newest: Time
    """The last change."""

    entries: int
    """Changes of pages that are remembered."""

    most_entries: int
    """The most of them."""

    snapshots: int
    """How many snapshots there are."""

    least_window: int
    """The least window that is kept, in nanoseconds."""

    protected: bool
    """Whether writes fail rather than that it becomes shorter."""

    missing: int
    """Bytes that the oldest instant lacks because they were purged."""


@dataclass(frozen=True)
class Unreadable:
    """A stored page that cannot be read."""

    unit: int | None
    """The unit it lies on; of an array the block, counted through all machines.

    Nothing where a page of the tables of a volume cannot be read, so that nobody knows.
    """

    why: str
    """What does not hold."""

    addresses: tuple[int, ...]
    """The pages that cannot be read until they are written again."""


@dataclass(frozen=True)
class Failures:
    """What failed beneath a volume or an array since it was opened."""

    count: int
    """How much."""

    at: Time
    """When something failed last."""

    last: str
    """What it was, as a sentence."""


class Clients(NamedTuple):
    """Who uses what is served."""

    writers: int
    """Clients that may write."""

    readers: int
    """Clients that only read."""


@dataclass(frozen=True)
class VolumeInfo:
    """The state of a volume."""

    system: str
    """What is done with content."""

    size: int
    """Bytes it shows."""

    logical: int
    """Bytes of pages that hold something."""

    stored: int
    """Bytes that they and their old versions take, encoded values counted with their length."""

    capacity: int
    """Bytes that can be stored."""

    saved: Saved
    """Bytes saved."""

    kept: int
    """Bytes of what old versions alone need, each value counted as a whole page: what encoding saves on them is in
    `saved`, so that it may be more than `stored`.
    """

    index: IndexInfo | None
    """What the fingerprint index knows; nothing if equal pages are not stored once."""

    tables: TablesInfo
    """What is in memory of its tables."""

    history: HistoryInfo | None
    """How far back it goes; nothing if it keeps no history."""

    sequence: int
    """Number of the last event."""

    durable: int
    """Everything up to this event is durable."""

    waiting: int
    """Events that are not durable yet."""

    epoch: int
    """How often it was opened."""

    closed: bool
    """Whether whoever used it before this opening closed it; else it was killed, or is a copy of one in use."""

    checkpoint: int
    """Number of the last checkpoint."""

    failure: str | None
    """Why it is read-only, if it is."""

    findings: tuple[Unreadable, ...]
    """Stored pages known to be unreadable."""

    failures: Failures | None
    """What failed since it was opened, if anything did."""

    clients: Clients | None
    """Who uses it, if it is served."""

    clock: tuple[Time, Time]
    """The time of the volume, and what the clock of the machine shows."""

    warnings: tuple[str, ...]
    """What somebody should know, each a sentence."""


@dataclass(frozen=True)
class MachineInfo:
    """A virtual machine of an array."""

    number: int
    """Its number."""

    name: str
    """Its name as an export and as a file."""

    size: int
    """Bytes it shows."""

    logical: int
    """Bytes of blocks that hold something."""


@dataclass(frozen=True)
class TrafficInfo:
    """Operations on a medium since the array was opened."""

    medium: str
    """`fast` or `slow`."""

    reads: int
    """Reads."""

    read_bytes: int
    """Bytes read."""

    writes: int
    """Writes."""

    written_bytes: int
    """Bytes written."""

    syncs: int
    """Syncs."""


@dataclass(frozen=True)
class ElementInfo:
    """What the element of an open array holds and did."""

    references: int
    """Virtual blocks that others are deltas from."""

    detached: int
    """Of these, those without an address."""

    associates: int
    """Virtual blocks that are deltas from a reference."""

    independents: int
    """All other virtual blocks."""

    virtual_blocks: int
    """Virtual blocks there can be."""

    delta_ram: int
    """Bytes of RAM for deltas in use."""

    delta_ram_peak: int
    """The most that were."""

    delta_ram_limit: int
    """The most there can be."""

    fast_used: int
    """Bytes of data blocks on the fast medium in use."""

    fast_limit: int
    """Bytes of all of them."""

    frozen_used: int
    """Bytes of frozen places in use: data blocks that left the fast medium, or may leave it at once."""

    frozen_limit: int
    """Bytes of all of them."""

    dirty: int
    """Bytes of blocks that are not at home."""

    dirty_target: int
    """Above so many bytes blocks go home ahead."""

    log_free: int
    """Bytes of the log that can be written."""

    log_limit: int
    """Bytes of the log."""

    away: int
    """Blocks that are not at home, with ordered write-back."""

    most_away: int
    """The most blocks that may be away; 0 without ordered write-back."""

    waiting: int
    """Blocks whose present content is not durable yet."""

    epoch: int
    """How often it was opened."""

    checkpoint: int
    """Number of the last checkpoint."""

    memory: int
    """Bytes of memory that its tables hold."""

    traffic: tuple[TrafficInfo, ...]
    """Operations on the fast and the slow medium."""

    counters: dict[str, int]
    """What it did since it was opened, by names."""


@dataclass(frozen=True)
class ArrayInfo:
    """The state of an array."""

    system: str
    """What is done with content."""

    fast: Path
    """The fast medium."""

    slow: Path
    """The slow medium."""

    image: int | None
    """Bytes of the disk image around which it was made, at the begin of the slow medium."""

    mode: str
    """`write-back` or `write-through`."""

    strict: bool
    """Whether no write of a client reaches the fast medium."""

    machines: tuple[MachineInfo, ...]
    """The virtual machines, the first one first."""

    closed: bool
    """Whether whoever used it before this opening closed it; else it was killed, or is of copies of one in use."""

    element: ElementInfo | None
    """What the element says; nothing if the slow medium alone is open."""

    failure: str | None
    """Why it is read-only, if it is."""

    failures: Failures | None
    """What failed since it was opened, if anything did."""

    clients: Clients | None
    """Who uses it, if it is served."""


@dataclass(frozen=True)
class Changes:
    """Changes of pages with less than a second between them."""

    first: Time
    """The first change."""

    last: Time
    """The last one."""

    pages: int
    """How many changes."""


@dataclass(frozen=True)
class Snapshot:
    """An instant that is kept."""

    name: str | None
    """Its name, if it has one."""

    instant: Time
    """The instant."""


@dataclass(frozen=True)
class Mark:
    """An instant that was durable when it was marked; nothing keeps it."""

    name: str
    """Its name."""

    instant: Time
    """The instant."""


@dataclass(frozen=True)
class Purge:
    """A purge of old versions."""

    instant: Time
    """When it was."""

    range: tuple[int, int] | None
    """First byte and number of bytes that earlier instants lack since then; none if everything was purged."""


@dataclass(frozen=True)
class ClockReading:
    """What the clock of the machine showed where it did not go with the time of the volume."""

    instant: Time
    """The time of the volume."""

    wall: Time
    """What the clock showed."""

    unproven: int
    """Nanoseconds without a change before, of which only that clock knows: the machine had been started anew."""


@dataclass(frozen=True)
class Log:
    """What happened."""

    oldest: Time
    """The oldest instant that can be read and rewound to."""

    newest: Time
    """The last change."""

    entries: tuple[Changes | Snapshot | Mark | Purge | ClockReading, ...]
    """Oldest first."""


@dataclass(frozen=True)
class Recovered:
    """A rewind to an instant."""

    instant: Time
    """The instant that was rewound to."""

    changed: int
    """Pages that hold something else now, or would."""

    before: Time
    """The instant just before: a rewind to it undoes this one."""

    missing: tuple[tuple[int, int], ...]
    """What was purged and holds zeros now, or would: first byte and number of bytes."""


@dataclass(frozen=True)
class Purged:
    """What a purge did."""

    ended: tuple[Snapshot, ...]
    """The snapshots that ended, because they lacked something then."""

    oldest: Time
    """The oldest instant that can be read and rewound to now."""

    blocks: int | None
    """Blocks erased from the medium; none unless that was asked for."""

    copied: int | None
    """Pages copied out of them."""

    left: int | None
    """Blocks that were left, because something in them that is needed cannot be read: they may hold what was purged."""


@dataclass(frozen=True)
class Cloned:
    """How the blocks of a clone are stored."""

    zeros: int
    """Blocks stored as nothing: they are zeros."""

    deltas: int
    """Blocks stored as deltas."""

    delta_bytes: int
    """Bytes of these."""

    compressed: int
    """Blocks compressed by themselves."""

    compressed_bytes: int
    """Bytes of these."""

    whole: int
    """Blocks stored whole."""


@dataclass(frozen=True)
class Scrubbed:
    """What reading every stored page found."""

    read: int
    """Stored pages read."""

    findings: tuple[Unreadable, ...]
    """Those that cannot be read."""


@dataclass(frozen=True)
class VolumeCheck:
    """What a check of a volume that nobody has open found."""

    clean: bool
    """Whether everything holds."""

    closed: bool
    """Whether whoever used it last closed it; else it was killed, or is a copy of one in use."""

    mapped: int
    """Pages that hold something."""

    stored: int
    """Values stored for them and for old versions."""

    superblocks: int
    """Copies of the superblock that hold, of two."""

    events_to_replay: int
    """What an opening would replay."""

    findings: tuple[Unreadable, ...]
    """Stored pages that cannot be read."""

    errors: tuple[str, ...]
    """Things that must not be, each a sentence."""


@dataclass(frozen=True)
class ArrayFinding:
    """A block of an array that does not hold."""

    machine: int
    """The number of its machine."""

    block: int
    """The block."""

    why: str
    """What is wrong."""


@dataclass(frozen=True)
class ArrayCheck:
    """What a check of an array that nobody has open found."""

    clean: bool
    """Whether everything holds."""

    closed: bool
    """Whether whoever used it last closed it; else it was killed, or its media are copies of one in use."""

    mapped: int
    """Blocks that hold something."""

    findings: tuple[ArrayFinding, ...]
    """Blocks that cannot be read, or are not what they were recorded as."""

    errors: tuple[str, ...]
    """Invariants that do not hold, each a sentence."""
