"""Flashlore: a content-aware flash translation layer to simulate, mount and take back in time."""

from typing import TYPE_CHECKING, Any

from flashlore._core import __version__
from flashlore.characterization import Characterization, characterize
from flashlore.errors import (
    ConfigError,
    FileError,
    FlashloreError,
    ProfileError,
    ResultsError,
    RunError,
    RunUsageError,
    TraceError,
    TraceUsageError,
    UsageError,
    VolumeError,
    VolumeUsageError,
)
from flashlore.moment import Time
from flashlore.progress import Progress
from flashlore.results import Results, Run
from flashlore.run import compare, simulate
from flashlore.settings import Settings
from flashlore.system import Device, System
from flashlore.table import Table
from flashlore.trace import Op, Summary, Trace
from flashlore.volume import Instant, Machine, Volume

if TYPE_CHECKING:
    from flashlore.characteristics import Characteristics
    from flashlore.sweeps.cluster import DaskExecutor
    from flashlore.sweeps.grid import Grid
    from flashlore.sweeps.local import LocalExecutor
    from flashlore.sweeps.running import Sweep, sweep

__all__ = [
    "Characteristics",
    "Characterization",
    "ConfigError",
    "DaskExecutor",
    "Device",
    "FileError",
    "FlashloreError",
    "Grid",
    "Instant",
    "LocalExecutor",
    "Machine",
    "Op",
    "ProfileError",
    "Progress",
    "Results",
    "ResultsError",
    "Run",
    "RunError",
    "RunUsageError",
    "Settings",
    "Summary",
    "Sweep",
    "System",
    "Table",
    "Time",
    "Trace",
    "TraceError",
    "TraceUsageError",
    "UsageError",
    "Volume",
    "VolumeError",
    "VolumeUsageError",
    "__version__",
    "characterize",
    "compare",
    "simulate",
    "sweep",
]

# Loaded when they are asked for first: they bring libraries along that nothing else needs, or many classes.
_LATER = {
    "Characteristics": "flashlore.characteristics",
    "DaskExecutor": "flashlore.sweeps.cluster",
    "Grid": "flashlore.sweeps.grid",
    "LocalExecutor": "flashlore.sweeps.local",
    "Sweep": "flashlore.sweeps.running",
    "sweep": "flashlore.sweeps.running",
}


def __getattr__(name: str) -> Any:
    """Load what is loaded when it is asked for."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 (as the rest)

    return getattr(import_module(_LATER[name]), name)
