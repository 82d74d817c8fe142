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
from flashlore.results import Results, Run
from flashlore.run import compare, simulate
from flashlore.system import Device, System
from flashlore.table import Table
from flashlore.trace import Trace

__all__ = [
    "ConfigError",
    "Device",
    "FileError",
    "FlashloreError",
    "ProfileError",
    "Results",
    "ResultsError",
    "Run",
    "RunError",
    "RunUsageError",
    "System",
    "Table",
    "Trace",
    "TraceError",
    "TraceUsageError",
    "UsageError",
    "VolumeError",
    "VolumeUsageError",
    "__version__",
    "compare",
    "simulate",
]
