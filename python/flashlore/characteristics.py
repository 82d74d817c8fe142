"""What is known about the locality of a trace, field by field as in `summary.json`.

Pages have 4 KiB. *Values* are contents of pages, told apart by the numbers or digests of the trace. A stack distance is
the number of different values, or pages, accessed since the last access to the same one, itself included. A figure
without meaning for a trace, such as a share of nothing, is `None`, which never means zero.
"""

# Made of the structs of Rust by tools/records.py: change those.

from dataclasses import dataclass

from flashlore.workload import Workload


@dataclass(frozen=True)
class TraceSource:
    """A trace that was looked at."""

    path: str
    """Its path as given."""

    sha256: str
    """SHA-256 of the file as stored."""

    format: str
    """Its format."""

    records: int
    """Records read."""

    clamped: int
    """Records whose time was raised to that of an earlier one."""

    skipped: int
    """Malformed records skipped."""


@dataclass(frozen=True)
class Options:
    """What is looked at, and how closely."""

    slice_ns: int | None
    """Length of a slice of trace time in nanoseconds; without it there are no slices."""

    sample_rate: float
    """Share of the values and of the pages that are followed, above 0 and at most 1. At 1 everything is exact."""

    index_sizes: tuple[int, ...]
    """Sizes of the fingerprint index, in entries, for the misses of popular values."""

    capacities: tuple[int, ...]
    """Capacities in bytes whose protection window is asked for."""


@dataclass(frozen=True)
class Amount:
    """How much of one operation."""

    requests: int
    """Requests."""

    pages: int
    """Pages of 4 KiB touched."""

    bytes: int
    """Bytes, as the trace gives them."""


@dataclass(frozen=True)
class Mix:
    """All operations, and the share of writes among reads and writes."""

    reads: Amount
    """Reads."""

    writes: Amount
    """Writes."""

    trims: Amount
    """Trims."""

    flushes: Amount
    """Flushes."""

    write_share_requests: float | None
    """Share of writes in requests."""

    write_share_pages: float | None
    """Share of writes in pages."""

    write_share_bytes: float | None
    """Share of writes in bytes."""


@dataclass(frozen=True)
class Bucket:
    """How many things measure from `low` to `high`, both included."""

    low: int
    """The least measure."""

    high: int
    """The largest measure."""

    count: int
    """How many things."""


@dataclass(frozen=True)
class SizeSpread:
    """How the sizes of one operation are spread, in bytes."""

    mean: float
    """Mean."""

    p50: int
    """The smallest size that at least 50 % of the requests do not exceed."""

    p90: int
    """The same for 90 %."""

    p99: int
    """The same for 99 %."""

    max: int
    """The largest."""

    histogram: tuple[Bucket, ...]
    """Requests by exact size if there are at most 64 sizes, else by powers of two."""


@dataclass(frozen=True)
class Sizes:
    """Sizes of reads and of writes; absent where there are none."""

    reads: SizeSpread | None
    """Of reads."""

    writes: SizeSpread | None
    """Of writes."""


@dataclass(frozen=True)
class Sequential:
    """How sequential reads and writes are."""

    reads: int
    """Reads that are sequential."""

    writes: int
    """Writes that are sequential."""

    share: float | None
    """Share of the reads and writes."""

    share_of_reads: float | None
    """Share of the reads."""

    share_of_writes: float | None
    """Share of the writes."""

    runs: int
    """Number of runs."""

    mean_run_requests: float | None
    """Mean length of a run in requests."""

    mean_run_bytes: float | None
    """Mean length of a run in bytes."""


@dataclass(frozen=True)
class Footprint:
    """Distinct pages read or written."""

    pages: int
    """Pages read or written."""

    only_read: int
    """Pages read and never written."""

    only_written: int
    """Pages written and never read."""

    both: int
    """Pages read and written."""

    read_first: int
    """Pages whose first access is a read."""


@dataclass(frozen=True)
class Gaps:
    """Gaps between consecutive requests, in nanoseconds."""

    count: int
    """Number of gaps."""

    mean_ns: float
    """Mean."""

    std_ns: float
    """Standard deviation, of these gaps."""

    variation: float | None
    """Standard deviation over mean; absent if all requests come at once."""

    p50_ns: int
    """The smallest gap that at least 50 % of the gaps do not exceed."""

    p90_ns: int
    """The same for 90 %."""

    p99_ns: int
    """The same for 99 %."""

    max_ns: int
    """The largest."""


@dataclass(frozen=True)
class Dispersion:
    """Requests in consecutive windows of one length."""

    window_ns: int
    """Length of a window in nanoseconds."""

    windows: int
    """Complete windows, at least 2."""

    mean: float
    """Mean number of requests in one."""

    index: float
    """Variance over mean of that number: the index of dispersion."""


@dataclass(frozen=True)
class Bursts:
    """Bursts: requests that follow each other within 100 ms."""

    count: int
    """Number of bursts."""

    mean_requests: float | None
    """Mean number of requests in one."""

    mean_gap_ns: float | None
    """Mean gap between the end of one and the begin of the next, in nanoseconds."""


@dataclass(frozen=True)
class Arrivals:
    """How requests arrive."""

    requests: int
    """Requests of all kinds and devices."""

    span_ns: int
    """Time from the first request to the last, in nanoseconds."""

    gaps: Gaps | None
    """Gaps; absent with fewer than 2 requests."""

    dispersion: tuple[Dispersion, ...]
    """For each window length with at least 2 complete windows."""

    peak_second: int
    """The most requests in a window of 1 s, the last incomplete one included."""

    bursts: Bursts
    """Bursts and the gaps between them."""


@dataclass(frozen=True)
class PopularityPoint:
    """A point of the popularity curve."""

    value_share: float
    """Share of the distinct values, most frequent first."""

    access_share: float
    """Share of the accesses that the values up to there make (their number is rounded up)."""


@dataclass(frozen=True)
class Frequency:
    """Values that occur equally often."""

    accesses: int
    """Accesses of each."""

    values: int
    """Number of values."""


@dataclass(frozen=True)
class ClassPopularity:
    """How the accesses of one class fall on values."""

    accesses: int
    """Page accesses with a value."""

    distinct: int
    """Distinct values among them."""

    unique_share: float | None
    """`distinct / accesses`."""

    half_values: int
    """The smallest number of values that make half of the accesses."""

    x50: float | None
    """The same as a share of the distinct values: x50."""

    cdf: tuple[PopularityPoint, ...]
    """Accesses made by the most frequent values, at fixed shares of the values."""

    histogram: tuple[Bucket, ...]
    """How many values occur once, twice, three times, 4 to 7, 8 to 15 times and so on."""

    frequencies: tuple[Frequency, ...]
    """How many values occur how often, most frequent first: the whole distribution."""


@dataclass(frozen=True)
class Popularity:
    """Popularity of values."""

    reads: ClassPopularity
    """Of values read."""

    writes: ClassPopularity
    """Of values written."""


@dataclass(frozen=True)
class CurvePoint:
    """A point of a curve."""

    distance: int
    """A stack distance."""

    within: int
    """Accesses whose distance is at most that."""


@dataclass(frozen=True)
class LocalityCurve:
    """Stack distances of one class of accesses."""

    accesses: int
    """Accesses."""

    first: int
    """First accesses, which have no distance."""

    p50: int | None
    """The smallest distance that at least 50 % of the re-references do not exceed."""

    p90: int | None
    """The same for 90 %."""

    p99: int | None
    """The same for 99 %."""

    all_p50: int | None
    """The smallest distance that at least 50 % of all accesses do not exceed; absent where first accesses are too many.
    """

    all_p90: int | None
    """The same for 90 %."""

    all_p99: int | None
    """The same for 99 %."""

    points: tuple[CurvePoint, ...]
    """The curve at 1 to 16, then at eight distances in each power of two, up to the largest."""


@dataclass(frozen=True)
class Locality:
    """Curves of reads and of writes."""

    reads: LocalityCurve
    """Of reads, among reads."""

    writes: LocalityCurve
    """Of writes, among writes."""


@dataclass(frozen=True)
class MissPoint:
    """Misses of an index of one size."""

    entries: int
    """Entries of the index."""

    plain_misses: int
    """Writes that miss, plain reading."""

    plain_ratio: float
    """Their share of the writes."""

    live_misses: int
    """Writes that miss, live reading."""

    live_ratio: float
    """Their share of the writes."""


@dataclass(frozen=True)
class PopularMisses:
    """Misses of popular values in an index of one size, plain reading."""

    entries: int
    """Entries of the index."""

    writes: int
    """Writes of popular values."""

    first: int
    """Of these, first writes of their value, which miss in any index."""

    again: int
    """Of these, others that miss."""

    miss_share: float | None
    """Share of `writes` that miss: (`first` + `again`) / `writes`."""

    miss_share_without_first: float | None
    """The same without first writes: `again` / (`writes` - `first`)."""


@dataclass(frozen=True)
class Index:
    """The fingerprint index over writes."""

    curve: tuple[MissPoint, ...]
    """Misses at powers of two, from 1 up to the number of distinct values."""

    popular_values: int
    """Number of popular values: the smallest set of values that makes half of the writes."""

    popular: tuple[PopularMisses, ...]
    """Misses of popular values."""


@dataclass(frozen=True)
class Kinds:
    """Page writes with a value, by what they found."""

    writes: int
    """All: `silent` + `new` + `elsewhere` + `reborn`."""

    silent: int
    """The page's content is this value."""

    new: int
    """The value was never written before, and the write is not silent."""

    new_seen_in_read: int
    """Of `new`: the value was seen in a read before."""

    elsewhere: int
    """Another page holds this value now."""

    reborn: int
    """Written before, and no page holds it now."""

    duplicate_same_address: int
    """Writes of values written before whose last write went to this page."""

    duplicate_other_address: int
    """Writes of values written before whose last write went to another page."""


@dataclass(frozen=True)
class Distances:
    """How far overwrites are apart."""

    p50: int
    """The smallest distance that at least 50 % of the overwrites do not exceed."""

    p90: int
    """The same for 90 %."""

    p99: int
    """The same for 99 %."""

    histogram: tuple[Bucket, ...]
    """Overwrites by powers of two; with sampling those of followed pages."""


@dataclass(frozen=True)
class Overwrites:
    """Overwrites of pages."""

    page_writes: int
    """Page writes."""

    overwrites: int
    """Of these, writes of pages written before and not trimmed since."""

    share: float | None
    """Their share."""

    distance: Distances | None
    """Distances in page writes: 1 is the very next page write."""

    time_ns: Distances | None
    """Distances in nanoseconds."""


@dataclass(frozen=True)
class RatioSpread:
    """How shares from 0 to 1 are spread."""

    count: int
    """How many shares."""

    mean: float
    """Their mean."""

    std: float
    """Their standard deviation, of these shares and not estimated for a population."""

    p10: float
    """The smallest share that at least 10 % do not exceed."""

    p50: float
    """The same for 50 %."""

    p90: float
    """The same for 90 %."""

    histogram: tuple[int, ...]
    """How many lie in [0, 0.05), [0.05, 0.1) and so on; the last includes 1."""


@dataclass(frozen=True)
class Compressibility:
    """What pages and their deltas compress to."""

    pages: int
    """Page writes whose bytes are known."""

    zero_pages: int
    """Of these, pages of 4096 zero bytes."""

    zero_share: float | None
    """Their share."""

    delta: RatioSpread | None
    """The page written and the page it replaces, combined by exclusive or; silent writes left out."""

    alone: RatioSpread | None
    """The page written by itself."""

    given: RatioSpread | None
    """The ratios of page writes that the trace or an overlay gives instead of bytes."""


@dataclass(frozen=True)
class Window:
    """How long it takes to write as much as a capacity."""

    capacity_bytes: int
    """The capacity in bytes."""

    mean_ns: float | None
    """At the mean rate, in nanoseconds; absent without a rate."""

    shortest_ns: int | None
    """The least time between two requests that, with what lies between, write that many bytes; absent if the trace
    writes less.
    """


@dataclass(frozen=True)
class Rate:
    """The writing rate."""

    bytes: int
    """Bytes written."""

    bytes_per_hour: float | None
    """Bytes written an hour, over the time from the first request to the last; absent if that is 0."""

    windows: tuple[Window, ...]
    """For each capacity asked for."""


@dataclass(frozen=True)
class Statistics:
    """Everything that is known about a trace or a slice of it."""

    mix: Mix
    """Requests, pages and bytes by operation."""

    sizes: Sizes
    """Sizes of requests."""

    sequential: Sequential
    """Sequential requests."""

    footprint: Footprint
    """Distinct pages."""

    arrivals: Arrivals
    """Gaps and bursts."""

    popularity: Popularity
    """Popularity of values."""

    value_locality: Locality
    """Stack distances of values."""

    page_locality: Locality
    """Stack distances of pages."""

    index: Index
    """Misses of a fingerprint index."""

    kinds: Kinds
    """Kinds of writes."""

    overwrites: Overwrites
    """Overwrites."""

    compressibility: Compressibility | None
    """Compressed sizes, where bytes or ratios are known."""

    rate: Rate
    """Writing rate."""


@dataclass(frozen=True)
class Slice:
    """A slice of trace time with at least one request."""

    number: int
    """Its number: it is the time from `number` to `number + 1` slice lengths."""

    start_ns: int
    """Its begin in nanoseconds of trace time; times within count from there."""

    statistics: Statistics
    """Everything anew, as if nothing had been before."""


@dataclass(frozen=True)
class Characteristics:
    """What is known about the content and address locality of a trace."""

    version: str
    """Version of Flashlore that computed them."""

    sources: tuple[TraceSource, ...]
    """The traces, in the order given."""

    devices: tuple[str, ...]
    """Names of the devices, in order of first appearance."""

    records_left_out: int
    """Records of devices that were not selected."""

    trims_ignored: int
    """Trims that covered no whole page and were left out."""

    workload: Workload | None
    """How the traces became accesses, and where the content came from."""

    options: Options
    """How it was looked at."""

    table_bytes: int
    """Most bytes that tables growing with the trace held, as estimated from their sizes."""

    whole: Statistics
    """Of the whole."""

    slices: tuple[Slice, ...]
    """Of each slice with requests, if slices were asked for."""
