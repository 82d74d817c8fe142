"""The core, as Rust offers it. Users find it behind the names of `flashlore`."""

from collections.abc import Callable, Sequence
from os import PathLike
from typing import Self, TypeAlias, TypedDict

__version__: str

# A preset or file, and `KEY=VALUE` texts of its own.
_Spec: TypeAlias = tuple[str, Sequence[str]]
# Requests done, requests to be done, pages prepared.
_Progress: TypeAlias = Callable[[int, int, int], object]

def command(arguments: list[str]) -> int:
    """Carry out a command line, whose first argument is the program's name, and give the exit status."""

def systems() -> list[tuple[str, str]]:
    """Return the systems there are, each with a sentence about it."""

def devices() -> list[tuple[str, str]]:
    """Return the devices there are, each with a sentence about it."""

def system(name: str, settings: Sequence[str]) -> tuple[str, str]:
    """Return the name of a system and the whole of it as TOML."""

def device(name: str, settings: Sequence[str]) -> tuple[str, str]:
    """Return the name of a device and the whole of it as TOML."""

def compare(
    traces: Sequence[Trace],
    columns: Sequence[tuple[_Spec, _Spec]],
    *,
    settings: Sequence[str],
    seeds: int,
    different_devices: bool,
    timeline: str | None,
    recovery_check: int | None,
    request_log: str | PathLike[str] | None,
    force: bool,
    jobs: int | None,
    progress: _Progress | None,
) -> list[Output]:
    """Replay every trace on every system with every seed, in this order."""

def save(outputs: Sequence[Output], directory: str | PathLike[str], force: bool) -> None:
    """Write what `--out` writes."""

def load(path: str | PathLike[str]) -> list[Output]:
    """Read a directory of `--out`, a `results.json`, or the output of `--json`."""

def table(outputs: Sequence[Output], name: str) -> Table:
    """Return the table with this name: results, response_cdf, victim_cdf, erase_cdf or timeline."""

def describe(outputs: Sequence[Output]) -> tuple[str, str]:
    """Return the results as the command line prints them: as a table, and as JSON."""

def findings(outputs: Sequence[Output]) -> str:
    """Return what to mind before numbers of these runs are trusted, as JSON."""

def characterize(
    trace: Trace,
    *,
    slice: str | None,  # noqa: A002 (the word of the command line)
    sample: float,
    capacities: Sequence[str],
    pages: str | PathLike[str] | None,
    pages_memory: int,
) -> Characterization:
    """Look at a trace once."""

class Characterization:
    """The statistics of a trace."""

    def to_json(self) -> str:
        """Return everything as JSON, as in `summary.json`."""
    def tables(self) -> list[tuple[str, Table]]:
        """Return the tables by name, those without rows too."""
    def save(self, directory: str | PathLike[str], force: bool) -> None:
        """Write what `--out` writes."""
    @staticmethod
    def load(path: str | PathLike[str]) -> Characterization:
        """Read a directory of `--out`, or its `summary.json`."""

class Configuration(TypedDict):
    """All that decides a run besides its trace, and what does not."""

    system: str
    """Name of the system."""
    device: str
    """Name of the device."""
    values: str
    """Every value of system, device and host, as JSON."""
    unused: list[str]
    """Keys of the settings that the others make useless."""

def configuration(system: str, device: str, settings: Sequence[str]) -> Configuration:
    """Resolve the configuration of a cell of a sweep. A key that it does not use is no error."""

class Output:
    """What one run left."""

    @property
    def has_responses(self) -> bool:
        """Whether the response times are known, and not their percentiles alone."""
    @property
    def has_timeline(self) -> bool:
        """Whether there is a time line."""
    @property
    def recovered(self) -> tuple[int, int, int] | None:
        """Pages compared with what was written, instants, and rewinds to them."""
    def record(self) -> str:
        """Return the record as JSON."""
    def state(self) -> tuple[str, bytes | None, bytes | None]:
        """Return all of it: the record as JSON, response times and time line as Parquet."""
    @staticmethod
    def restore(state: tuple[str, bytes | None, bytes | None]) -> Output:
        """Make it of its state."""

class Table:
    """Columns of equal length; nothing changes them."""

    @staticmethod
    def from_stream(data: object) -> Table:
        """Return the table of anything that offers an Arrow stream."""
    @property
    def columns(self) -> list[str]:
        """Names of the columns in order."""
    def __len__(self) -> int: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Offer the table as an Arrow stream."""

class Trace:
    """One trace, or several that are one."""

    @staticmethod
    def open(
        paths: Sequence[str | PathLike[str]],
        *,
        format: str | None,  # noqa: A002 (the word of the command line)
        lenient: bool,
        coalesce: str | None,
        content: str,
        delta: str | None,
        compact: bool | None,
        devices: Sequence[str],
        join: str | None,
    ) -> Trace:
        """Name traces and make sure that they can be opened."""
    @staticmethod
    def from_arrays(
        op: object, offset: object, length: object, time: object | None, content: object | None, name: str
    ) -> Trace:
        """Take the records that arrays of equal length describe."""
    @staticmethod
    def from_stream(data: object, name: str) -> Trace:
        """Take the records of an Arrow stream with columns of fixed types."""
    def to_table(self) -> Table:
        """Return the records as a table."""
    def with_content(self, model: str) -> Trace:
        """Return the same records with other content."""
    def redrawn(self, number: int) -> Trace | None:
        """Return it with every seed that it is drawn with so much higher, or nothing if nothing of it is drawn."""
    def summary(self) -> str:
        """Return the summary as JSON."""

def create_volume(arguments: list[str]) -> str:
    """Make a volume or an array from the arguments of the command `create`, and return a sentence about it."""

def check_volume(directory: str, direct: bool, quick: bool, memory: str | None) -> str:
    """Check a volume or an array that nobody has open, and return what `check --json` prints."""

class Volume:
    """A volume or an array, open here or served by another process; disks are named by their position."""

    def __new__(cls, directory: str, direct: bool, slow_alone: bool, memory: str | None, index: str | None) -> Self:
        """Open what a directory holds, or connect to whoever serves it."""

    def shapes(self) -> list[tuple[int, str, int]]:
        """Return number, name and bytes of each disk: one of a volume, one a machine of an array."""

    def is_served(self) -> bool:
        """Return whether another process serves it."""

    def is_writable(self) -> bool:
        """Return whether it can be written here."""

    def is_closed(self) -> bool:
        """Return whether it was closed."""

    def ask(self, request: str) -> str:
        """Have a request carried out and return the answer; both are JSON."""

    def demand(self, disk: int, offset: int, length: int) -> None:
        """Refuse a range that does not lie on a disk."""

    def read(self, disk: int, at: int | None, offset: int, length: int, allow_missing: bool) -> bytes:
        """Return bytes of a disk, as they are or were at an instant in nanoseconds since 1970.

        What was purged of it is an error, or zeros if that is allowed.
        """

    def write(self, disk: int, offset: int, data: bytes) -> None:
        """Write bytes."""

    def trim(self, disk: int, offset: int, length: int) -> None:
        """Forget the whole pages of a range."""

    def close(self) -> None:
        """End the use of it, once: everything is durable then. Waits for calls of other threads."""
