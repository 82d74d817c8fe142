"""The command `flashlore` of the package, and what the command line asks the package for.

The command line is defined once, in the core. It calls `report`, `sweep` and `papers` here by name.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING, Any

from flashlore import _core

if TYPE_CHECKING:
    from flashlore.papers.document import Document


def main() -> None:
    """Carry out the command line and exit with its status."""
    # The core does not look at Python's signals: an interrupt ends the process, as that of any command, and those
    # commands that must end in order listen for it themselves.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    # Its name is the same however it was called, `python -m flashlore` included.
    sys.exit(_core.command(["flashlore", *sys.argv[1:]]))


def report(results: str, output: str, *, force: bool, title: str | None = None) -> None:
    """Write the page of a results directory: `flashlore report RESULTS -o FILE`."""
    from flashlore.report import write  # noqa: PLC0415 - other commands need neither figures nor frames

    write(results, output, title, force=force)


def sweep(**flags: Any) -> None:
    """Run the sweep of a file (`flashlore sweep`). An interrupt stops everything and says how to go on.

    `flags` are those of `sweeps.command.run`.
    """
    from flashlore.sweeps import command  # noqa: PLC0415 (slow to import)

    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        command.run(**flags)
    except KeyboardInterrupt as interrupt:
        sys.stderr.write(f"{interrupt or 'interrupted; the same command goes on from here'}\n")
        # Whoever started the command learns that it was interrupted.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)


def papers(  # noqa: PLR0913 (the flags of the command)
    *, document: Document, asked: str, output: str, quick: bool, force: bool, captures: str | None
) -> None:
    """Write the page of `flashlore reproduce --report`.

    Args:
        document: what `flashlore reproduce all --json` prints.
        asked: what was asked for: `all`, the name of an experiment, or its file.
        output: where the page goes.
        quick: whether it was a quick look.
        force: whether a page that is there is replaced.
        captures: the directory of the captures, if there was one.

    Raises:
        UsageError: a page is there already.
        FileError: the page could not be written.

    """
    from flashlore.papers import make  # noqa: PLC0415 - figures are heavy, and few commands draw any

    make(document, asked=asked, quick=quick, captures=captures).write(output, force=force)
