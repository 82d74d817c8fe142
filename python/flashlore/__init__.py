"""Flashlore: a content-aware flash translation layer to simulate, mount and take back in time."""

from flashlore._core import __version__

__all__ = ["__version__"]
