"""The command `flashlore` of the package, and what the command line asks the package for.

The command line is defined once, in the core. It calls `report` and `sweep` here by name.
"""

import signal
import sys

from flashlore import _core


def main() -> None:
    """Carry out the command line and exit with its status."""
    # The core does not look at Python's signals: an interrupt ends the process, as that of any command, and those
    # commands that must end in order listen for it themselves.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    # Its name is the same however it was called, `python -m flashlore` included.
    sys.exit(_core.command(["flashlore", *sys.argv[1:]]))


def report(results: str, output: str, title: str | None = None) -> None:
    """Write the page of a results directory: `flashlore report RESULTS -o FILE`."""
    from flashlore.report import write  # noqa: PLC0415 - other commands need neither figures nor frames

    write(results, output, title)
