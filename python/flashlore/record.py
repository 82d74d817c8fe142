"""The record of a run, field by field as in `results.json`.

*Units* are mapping units of 4 KiB, and so are the pages of the host; *flash pages* are those of the device. Latencies
are in microseconds of simulated time. A figure without meaning for a run, such as a mean of nothing, is `None`, which
never means zero.
"""

# Made of the structs of Rust by tools/records.py: change those.

from dataclasses import dataclass

from flashlore.workload import Configuration, Workload


@dataclass(frozen=True)
class TraceFile:
    """A file that was replayed."""

    path: str
    """Its path, as given."""

    sha256: str
    """Its SHA-256 in hexadecimal, of the bytes in the file (compressed if it is)."""

    format: str
    """Its format, given or recognised."""

    records: int
    """Records read from it."""

    clamped: int
    """Records whose time was below that of an earlier one and was raised."""

    skipped: int
    """Malformed records that lenient reading skipped."""


@dataclass(frozen=True)
class Host:
    """What the host asked for."""

    requests: int
    """Requests of all kinds."""

    read_pages: int
    """Units read."""

    write_pages: int
    """Units written."""

    trim_pages: int
    """Units trimmed."""

    bytes: int
    """Bytes of reads and writes, in whole 4 KiB units."""


@dataclass(frozen=True)
class Flash:
    """What the flash device did."""

    page_reads: int
    """Flash pages read."""

    page_programs: int
    """Flash pages programmed."""

    block_erases: int
    """Blocks erased."""

    retired_blocks: int
    """Blocks retired because they have reached their endurance."""


@dataclass(frozen=True)
class Programs:
    """Programmed units by cause.

    `unique`, `duplicate` and `reborn` split `host`, which only the oracle can do (`dedup.oracle`): without it they are
    absent.
    """

    host: int
    """Written whole for the host."""

    unique: int | None
    """Of `host`: content never programmed before."""

    duplicate: int | None
    """Of `host`: content that a valid unit holds at that moment."""

    reborn: int | None
    """Of `host`: content programmed before that no valid unit holds any more."""

    packed: int
    """Units packed with values that the host wrote, encoded."""

    merge: int
    """Encoded values materialized."""

    gc: int
    """Moved by garbage collection."""

    wear: int
    """Moved by wear levelling."""

    map: int
    """Of the map itself."""

    padding: int
    """Left empty in flash pages of several units."""


@dataclass(frozen=True)
class Gc:
    """Garbage collection."""

    victims: int
    """Blocks collected."""

    log_victims: int
    """Of them, those that held packed units."""

    valid_units_moved: int
    """Valid units moved out of them."""

    mean_valid_per_victim: float | None
    """Their ratio."""

    valid_per_victim: tuple[tuple[int, int], ...]
    """Pairs of valid units and victims that held as many, ascending."""


@dataclass(frozen=True)
class MapTraffic:
    """Traffic of the forward map, where a part of it is in RAM."""

    hits: int
    """Accesses to entries in RAM."""

    misses: int
    """Accesses to other entries."""

    reads: int
    """Flash pages read for translation pages."""

    programs: int
    """Translation and journal pages programmed, part of `Programs.map`; copies by collection are in `Programs.gc`."""

    journal_programs: int
    """Those of them that are pages of journals."""

    folds: int
    """Journals folded into their tables."""


@dataclass(frozen=True)
class BufferTraffic:
    """What the write buffer did.

    Units written by the host + `pages_begin` = `write_hits` + `evictions` + `trimmed` + `pages_end`.
    """

    read_hits: int
    """Units read in it."""

    write_hits: int
    """Units written over a page that had not left it: the older version was never programmed."""

    evictions: int
    """Units handed to the translation layer to make room."""

    trimmed: int
    """Units dropped because the host trimmed them."""

    pages_begin: int
    """Units in it, or waiting for a place, when counting began."""

    pages_end: int
    """The same at the end: they are not written."""


@dataclass(frozen=True)
class CacheTraffic:
    """What the read cache did. Units that the host read in a write buffer or write queue are not asked for here."""

    hits: int
    """Units that were here."""

    misses: int
    """Units that were read from flash, or never written."""


@dataclass(frozen=True)
class QueueTraffic:
    """What the write queue did. Units written and trimmed by the host + `changes_begin` = `flushed` + `changes_end`."""

    read_hits: int
    """Units read in it."""

    flushes: int
    """Buckets flushed."""

    flushed: int
    """Changes of one unit in them."""

    requests_per_flush: float | None
    """Their ratio."""

    changes_begin: int
    """Changes in it, or waiting for a place, when counting began."""

    changes_end: int
    """The same at the end: they are not made."""


@dataclass(frozen=True)
class Dedup:
    """Deduplication."""

    hits: int
    """Writes whose content was in the index."""

    misses: int
    """Writes whose content was not."""

    silent: int
    """Hits on the content that the address held already."""

    evictions: int
    """Entries discarded for lack of room."""

    entries: int
    """Entries at the end."""

    paper_bytes: int
    """Bytes that the paper accounts for as many entries."""

    collisions: int
    """Equal fingerprints of different content: refused with verification, wrongly shared without."""

    bypassed: int
    """Writes that were not hashed because deduplication had switched itself off."""

    unsampled: int
    """Writes that were not hashed because the sample chosen for them was not found."""

    scanned: int
    """Stored pages that were read and hashed in idle time."""

    scan_duplicates: int
    """Of them, those that were duplicates and were given up."""

    looked_up: int
    """Stored pages read for their digests, to restore index entries that were discarded."""

    restored: int
    """Of them, those whose entry was restored."""


@dataclass(frozen=True)
class Rewind:
    """What a rewind to an instant takes."""

    pages: int
    """Logical pages that changed since."""

    reads: int
    """Flash pages to be read."""

    decodes: int
    """Values to be decoded."""

    programs: int
    """Units to be programmed, without those that collection moves and those of the log."""


@dataclass(frozen=True)
class History:
    """Old versions of pages."""

    entries: int
    """Entries at the end."""

    window_s: float
    """Length of the window at the end, in simulated seconds."""

    historical_units: int
    """Values that only old versions needed at the end."""

    copied_live: int
    """Units copied by collection that were live."""

    copied_historical: int
    """Units copied by collection that only old versions needed."""

    recorded: int
    """Versions recorded."""

    dropped: int
    """Versions given up that named a value."""

    paper_bytes: int
    """What the paper charges for the entries: 24 bytes each."""

    encoded: int
    """Versions kept as parities, or compressed by themselves where nothing followed."""

    raw: int
    """Versions that were to be kept so, and were not shorter than a page."""

    mean_rc: float | None
    """Mean size of those encoded, as a share of a page."""

    longest_rewind: Rewind
    """What a rewind to the start of the window would take at the end."""

    capacity_bytes: int
    """Bytes that old versions may take at the end, beside what the present needs."""

    estimated_window_s: float | None
    """The window that this would hold at the rate at which the run filled it, in simulated seconds."""

    kept_instants_s: tuple[float, ...]
    """Instants behind the window that can be rewound to as well, in simulated seconds."""

    table_programs: int
    """Flash programs of entries that RAM has no room for, in units."""

    tables_end: int
    """Units that held such entries at the end."""


@dataclass(frozen=True)
class Similar:
    """Deltas from pages that were found by similarity."""

    asked: int
    """Writes to be encoded whose page had nothing to differ from, and whose bytes were known."""

    found: int
    """Of them, those for which a page was found."""

    taken: int
    """Of them, those stored as the delta from it."""

    mean_rc: float | None
    """Mean size of these as a share of a page (R_c)."""


@dataclass(frozen=True)
class Merges:
    """Encoded values materialized, by cause."""

    read_hot: int
    """Their page was read often."""

    write_cold: int
    """It was not written often any more."""

    gc: int
    """Their block, or their base's, was collected."""

    room: int
    """To make room."""

    shared: int
    """Of all, those that shared a value stored already, with deduplication."""


@dataclass(frozen=True)
class Delta:
    """Updates stored as deltas, and what they share with values compressed by themselves: packed pages."""

    candidates: int
    """Writes that were candidates for an encoded form."""

    bypassed: int
    """Of them, those stored whole because encoding did not pay at the time."""

    encoded: int
    """Writes stored as deltas."""

    mean_rc: float | None
    """Mean size of these as a share of a page (R_c)."""

    similar: Similar
    """Bases found by similarity; zeros where they are not looked for."""

    reads: int
    """Host reads of encoded values."""

    double_reads: int
    """Of them, those that read two flash pages."""

    merges: Merges
    """Encoded values materialized, by cause."""

    log_pages: int
    """Flash programs of packed units, those of garbage collection included."""

    repacked: int
    """Encoded values packed anew by collection."""

    values_end: int
    """Encoded values at the end."""

    packs_end: int
    """Packed units in use at the end."""

    pinned_bytes: int
    """Bytes of bases that deltas alone kept alive at the end."""


@dataclass(frozen=True)
class Compress:
    """Values compressed by themselves."""

    encoded: int
    """Writes stored so."""

    mean_ratio: float | None
    """Mean size of these as a share of a page."""


@dataclass(frozen=True)
class Array:
    """An array; zeros on a system that is none.

    Counts are of what was measured, unless they are said to be of the end.
    """

    references: int
    """Virtual blocks that are references, at the end."""

    detached: int
    """Of these, those that have lost their address, at the end."""

    associates: int
    """Virtual blocks that are associates, at the end."""

    independents: int
    """Virtual blocks that are independent, at the end."""

    hdd_ops: int
    """Reads and writes that the disks were asked for; neighbours are one, and so are the parts of a stripe."""

    hdd_reads: int
    """Of these, reads."""

    hdd_writes: int
    """Of these, writes."""

    hdd_read_bytes: int
    """Bytes read from the disks."""

    hdd_written_bytes: int
    """Bytes written to the disks."""

    ios_per_hdd_op: float | None
    """Pages of 4 KiB that the host read and wrote, for each operation of the disks."""

    ssd_reads: int
    """Pages of 4 KiB read from the SSD."""

    ssd_writes: int
    """Pages of 4 KiB written to the SSD."""

    ssd_ops: int
    """Reads and writes that the SSD was asked for; neighbours are one."""

    delta_ram_peak: int
    """Most bytes of RAM that deltas took, in segments of 64 bytes, preparing included."""

    delta_ram: int
    """RAM that they may take, in bytes."""

    deltas: int
    """Contents stored as deltas, of references from themselves too."""

    own_deltas: int
    """Of these, those of references from themselves."""

    alone: int
    """Contents compressed by themselves."""

    mean_delta_bytes: float | None
    """Mean size of a delta, in bytes."""

    mean_alone_bytes: float | None
    """Mean size of a content compressed by itself, in bytes."""

    too_big: int
    """Writes that had a reference and no short delta from it."""

    fills: int
    """Contents copied to the SSD because they were read from the disks."""

    hits: int
    """Accesses to blocks that RAM knew of, or that a cache held."""

    misses: int
    """Other accesses, those of blocks that hold nothing aside."""

    scans: int
    """Scans for similar blocks."""

    scan_associates: int
    """Associates that scans made."""

    same_address: int
    """Associates of blocks with the same address in another machine."""

    demotions: int
    """References that lost their last associate."""

    groups: int
    """Groups of the log written."""

    records_per_group: float | None
    """Records of each, on average."""

    log_blocks: int
    """Blocks of the log written."""

    deltas_per_log_block: float | None
    """Encoded contents in each, on average."""

    cleaned: int
    """Segments of the log cleaned."""

    written_home: int
    """Blocks that went home."""

    shared: int
    """Writes and fills of the SSD saved because it held equal content."""

    processor_busy: float
    """Share of simulated time in which the processor worked for the array."""

    hdd_busy: float
    """Share of simulated time in which a disk worked, the mean over the disks."""

    ssd_energy_j: float
    """Energy of the SSD's reads and writes, in joules, by the constants of the configuration."""

    hdd_energy_j: float
    """Energy of the disks, in joules, by the constant power of the configuration."""

    hdd_model_j: float | None
    """Energy of the disks by their data sheet, in joules, where that is known."""

    verified: int
    """Pages read by the host that were compared with what they should hold."""


@dataclass(frozen=True)
class LatencyStats:
    """Figures of a set of latencies, in microseconds; all but the count are `None` when there is none."""

    count: int
    """Latencies recorded."""

    mean: float | None
    """Mean, exact."""

    std: float | None
    """Standard deviation, exact."""

    p50: float | None
    """Median; percentiles are at most 0.1 % too large."""

    p95: float | None
    """95th percentile."""

    p99: float | None
    """99th percentile."""

    p999: float | None
    """99.9th percentile."""

    p9999: float | None
    """99.99th percentile."""

    max: float | None
    """Maximum, exact."""


@dataclass(frozen=True)
class ResponseByKind:
    """Latencies by kind of request, in microseconds."""

    read: LatencyStats
    """Of reads."""

    write: LatencyStats
    """Of writes."""

    all: LatencyStats
    """Of all requests, trims included."""


@dataclass(frozen=True)
class EraseSpread:
    """Erases per block."""

    min: int
    """Of the least worn block."""

    mean: float
    """Mean over the blocks."""

    max: int
    """Of the most worn block."""

    std: float
    """Standard deviation over the blocks."""

    per_block: tuple[tuple[int, int], ...]
    """Pairs of erases and the blocks that were erased so often, ascending."""


@dataclass(frozen=True)
class Utilization:
    """Busy shares of simulated time, 0 to 1."""

    channel: tuple[float, ...]
    """Of each channel; 0 where each die has its own, whose transfers count with the die."""

    die: tuple[float, ...]
    """Of each die."""

    channel_mean: float | None
    """Mean over the channels."""

    channel_max: float | None
    """Of the busiest channel."""

    die_mean: float | None
    """Mean over the dies."""

    die_max: float | None
    """Of the busiest die."""


@dataclass(frozen=True)
class RunSpeed:
    """The run itself. Only `simulated_s` repeats exactly."""

    wall_s: float
    """Seconds of real time."""

    requests_per_s: float
    """Requests replayed per second of real time."""

    simulated_s: float
    """Seconds of simulated time."""

    peak_rss_bytes: int | None
    """Largest memory of the process so far, in bytes; several runs at once share it."""


@dataclass(frozen=True)
class Arrivals:
    """When requests arrived while the run was measured."""

    span_s: float
    """Simulated seconds from the first to the last."""

    backlog_s: float
    """Simulated seconds from the last to the end of the run: what was outstanding then."""


@dataclass(frozen=True)
class Record:
    """The record of one run."""

    system: str
    """Name of the system."""

    device: str
    """Name of the device."""

    trace: str
    """Name of the trace, or of several joined."""

    seed: int
    """Seed of all random choices."""

    config_hash: str
    """Hash of the configuration without the seed."""

    version: str
    """Version of Flashlore that ran it."""

    trace_files: tuple[TraceFile, ...]
    """The files replayed."""

    workload: Workload
    """How they were read and laid out."""

    host: Host
    """What the host asked for, after the warm-up."""

    flash: Flash
    """What the flash device did, after the warm-up."""

    programs: Programs
    """Programmed units by cause."""

    waf_total: float | None
    """All programmed units over units written by the host; below 1 when writes are shared."""

    waf_gc: float | None
    """Amplification by garbage collection alone: programmed units for the host and for collection over those for the
    host.
    """

    gc: Gc
    """Garbage collection."""

    map: MapTraffic
    """Traffic of a map that is partly in RAM; zeros where all of it is."""

    buffer: BufferTraffic
    """The write buffer; zeros on a device without one."""

    read_cache: CacheTraffic
    """The read cache; zeros on a device without one."""

    queue: QueueTraffic
    """The write queue; zeros on a system without one."""

    dedup: Dedup
    """Deduplication; zeros on a system without it."""

    history: History
    """Old versions; zeros on a system without them."""

    delta: Delta
    """Updates as deltas; zeros on a system without them."""

    compress: Compress
    """Values compressed by themselves; zeros on a system without them."""

    array: Array
    """The array that the device is a part of; zeros on a system that is none.

    Host and responses are then those of the array, all other figures those of its SSD.
    """

    response_us: ResponseByKind
    """From arrival to completion, queueing included."""

    service_us: ResponseByKind
    """From the start of service to completion."""

    erases: EraseSpread
    """Erases per block while the run was measured."""

    utilization: Utilization
    """Busy shares of simulated time."""

    energy_uj: float
    """Energy of the flash operations, in microjoules; 0 when the device publishes none."""

    run: RunSpeed
    """The run itself."""

    configuration: Configuration
    """With `workload`, everything needed to repeat the run, besides the trace."""

    arrivals: Arrivals | None = None
    """When requests arrived; absent in results of versions that did not say it."""

    drawn_from: str | None = None
    """What the workload of the first seed is known by, where that of this seed was drawn anew."""


@dataclass(frozen=True)
class Finding:
    """Something to mind before a number is trusted."""

    id: str
    """What it is; the names stand in docs/results.md and stay."""

    trace: str
    """The trace."""

    systems: tuple[str, ...]
    """The systems."""

    devices: tuple[str, ...]
    """The device of each of them."""

    sentence: str
    """What to know, and what to do about it."""

    numbers: dict[str, float]
    """The numbers behind it."""

    metrics: tuple[str, ...]
    """The metrics it concerns: paths in a record, each with all that lies below it, and `units` for all units
    programmed.
    """

    doubtful: bool
    """Whether the metrics must not be judged by."""
