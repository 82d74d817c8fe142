"""Flashlore: a content-aware flash translation layer to simulate, mount and take back in time."""

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
from flashlore.progress import Progress
from flashlore.results import Results, Run
from flashlore.run import compare, simulate
from flashlore.settings import Settings
from flashlore.system import Device, System
from flashlore.table import Table
from flashlore.trace import Op, Summary, Trace

__all__ = [
    "Characterization",
    "ConfigError",
    "Device",
    "FileError",
    "FlashloreError",
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
    "System",
    "Table",
    "Trace",
    "TraceError",
    "TraceUsageError",
    "UsageError",
    "VolumeError",
    "VolumeUsageError",
    "__version__",
    "characterize",
    "compare",
    "simulate",
]
