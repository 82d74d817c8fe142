"""Flashlore: a content-aware flash translation layer to simulate, mount and take back in time."""

from flashlore._core import __version__
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
from flashlore.results import Results, Run
from flashlore.run import compare, simulate
from flashlore.system import Device, System
from flashlore.table import Table
from flashlore.trace import Trace
from flashlore.volume import Instant, Machine, Volume

__all__ = [
    "ConfigError",
    "Device",
    "FileError",
    "FlashloreError",
    "Instant",
    "Machine",
    "ProfileError",
    "Results",
    "ResultsError",
    "Run",
    "RunError",
    "RunUsageError",
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
    "compare",
    "simulate",
]
