"""What can go wrong. Messages are the core's: they name file, line or field, what was found and what was expected."""


class FlashloreError(Exception):
    """Everything that Flashlore raises on purpose."""


class UsageError(FlashloreError, ValueError):
    """Other arguments or settings would help: the command exits with 2 where this is raised."""


class ConfigError(UsageError):
    """A name, key or value of a system, device or host that cannot be used."""


class ProfileError(UsageError):
    """A profile of synthetic workloads that cannot be used."""


class TraceError(FlashloreError):
    """A trace that cannot be read."""


class TraceUsageError(TraceError, UsageError):
    """A trace that cannot be laid out as asked."""


class RunError(FlashloreError):
    """A run that cannot begin or go on."""


class RunUsageError(RunError, UsageError):
    """A run that cannot begin with this trace, system and device."""


class ResultsError(FlashloreError):
    """Results that cannot be written or read, or that lack what was asked for."""


class FileError(FlashloreError, OSError):
    """A file or directory that cannot be used."""


class VolumeError(FlashloreError):
    """A volume that cannot be made, opened or used."""


class VolumeUsageError(VolumeError, UsageError):
    """A volume that cannot be used like this."""
