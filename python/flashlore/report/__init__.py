"""Pages that open without a network: `write` makes one of results; `page` is the shell that all of them share."""

from flashlore.report.build import build, write

__all__ = ["build", "write"]
