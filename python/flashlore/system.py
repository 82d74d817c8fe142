"""Systems and devices: what is simulated, by preset or file and with settings."""

from dataclasses import dataclass, field
from os import PathLike, fspath
from pathlib import Path
from typing import Self

from flashlore import _core
from flashlore.settings import Settings, texts


def _as_path(path: str | PathLike[str]) -> str:
    # The core takes for a file what has a separator in it.
    return str(Path(fspath(path)).absolute())


@dataclass(frozen=True)
class System:
    """What an SSD does with content: a preset or a TOML file, with other values of some keys.

    >>> System("ca-ssd", {"dedup.index_entries": "128Ki"}).name
    'ca-ssd'
    """

    preset: str
    """The preset or file."""

    settings: Settings = field(default_factory=dict)
    """Values that differ from it, by key, such as `dedup.index_entries`."""

    def __post_init__(self) -> None:
        """Refuse what does not exist, contradicts itself or is used by nothing."""
        _core.system(self.preset, texts(self.settings))

    @classmethod
    def from_file(cls, path: str | PathLike[str], settings: Settings | None = None) -> Self:
        """Take the system that a TOML file describes."""
        return cls(_as_path(path), settings or {})

    @staticmethod
    def names() -> dict[str, str]:
        """Return the presets, each with a sentence about it.

        >>> "ca-ssd" in System.names()
        True
        """
        return dict(_core.systems())

    @property
    def name(self) -> str:
        """Its name in results."""
        return _core.system(self.preset, texts(self.settings))[0]

    def to_toml(self) -> str:
        """Return the whole of it as commented TOML, which `from_file` takes."""
        return _core.system(self.preset, texts(self.settings))[1]


@dataclass(frozen=True)
class Device:
    """The flash device below: a preset or a TOML file, with other values of some keys.

    `auto` and `auto-…` are sized from each trace. Keys may stand with or without `device.` in front.

    >>> Device("ca-ssd-4g", {"space.over_provisioning": 0.1}).name
    'ca-ssd-4g'
    """

    preset: str = "auto"
    """The preset or file."""

    settings: Settings = field(default_factory=dict)
    """Values that differ from it, by key, such as `space.over_provisioning`."""

    def __post_init__(self) -> None:
        """Refuse what does not exist, contradicts itself or is used by nothing."""
        _core.device(self.preset, texts(self.settings, "device."))

    @classmethod
    def from_file(cls, path: str | PathLike[str], settings: Settings | None = None) -> Self:
        """Take the device that a TOML file describes."""
        return cls(_as_path(path), settings or {})

    @staticmethod
    def names() -> dict[str, str]:
        """Return the presets, each with a sentence about it.

        >>> "auto" in Device.names()
        True
        """
        return dict(_core.devices())

    @property
    def name(self) -> str:
        """Its name in results."""
        return _core.device(self.preset, texts(self.settings, "device."))[0]

    def to_toml(self) -> str:
        """Return the whole of it as commented TOML, which `from_file` takes."""
        return _core.device(self.preset, texts(self.settings, "device."))[1]
