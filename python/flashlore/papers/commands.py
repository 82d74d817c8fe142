"""The command lines that repeat what a page shows, with the flags that it was made with."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flashlore.papers.document import Report

# What stands for all experiments that come with the program.
ALL = "all"

# How many seeds an experiment has if nothing is said, and with --quick.
_SEEDS = 5
_QUICK_SEEDS = 1


class Flags:
    """What the command lines of a page share."""

    def __init__(self, asked: str, *, quick: bool, captures: str | None) -> None:
        """Take what was asked for, whether it was a quick look, and the directory of the captures."""
        self._asked = asked
        self._quick = quick
        self._captures = captures

    def page(self, reports: Sequence[Report]) -> str:
        """Make this page again. All reports were asked for with the same scale and figure, but for a quick look."""
        flags = self._as_run(reports[0])
        return self._line(self._asked, reports[0], flags, captures=self._captures, page="papers.html")

    def paper(self, report: Report, figure: str | None = None) -> str:
        """Repeat a paper as it was run, or one figure of it."""
        name = report["paper"] if self._asked == ALL else self._asked
        flags = self._as_run(report) if figure is None else _reduced(figure, report["scale"])
        captures = None
        if any("capture" in workload["requests"] for workload in report["workloads"]):
            captures = self._captures
        elif _lacks_captures(report, figure):
            # By itself an experiment does not leave out what needs them.
            captures = "captures"
        return self._line(name, report, flags, captures=captures)

    def _as_run(self, report: Report) -> list[str]:
        return ["--quick"] if self._quick else _reduced(next(iter(report["figures"]), None), report["scale"])

    def _line(
        self, paper: str, report: Report, flags: list[str], *, captures: str | None, page: str | None = None
    ) -> str:
        words = ["flashlore", "reproduce", paper, *flags]
        if captures is not None:
            words += ["--captures", captures]
        words += _seeds(report["seeds"], quick="--quick" in flags)
        if page is not None:
            words += ["--report", page]
        return shlex.join(words)


def _seeds(seeds: Sequence[int], *, quick: bool) -> list[str]:
    """Give the flags of the seeds, which follow one another, if they are not what a command takes by itself."""
    first = [] if seeds[0] == 1 else ["--seed", str(seeds[0])]
    default = _QUICK_SEEDS if quick else _SEEDS
    return first if len(seeds) == default else [*first, "--seeds", str(len(seeds))]


def _reduced(figure: str | None, scale: float) -> list[str]:
    """Give the flags of a figure, if it is one, and of a scale."""
    figures = [] if figure is None else ["--figure", figure]
    return [*figures, *([] if scale == 1 else ["--scale", str(scale)])]


def _lacks_captures(report: Report, figure: str | None) -> bool:
    """Tell whether numbers of a paper, or perhaps of a figure of it, were left out for want of captures."""
    left_out = {number["claim"] for number in report["left_out"]}
    # A claim of which nothing was done is not there, and does not say what figures it is of.
    unknown = left_out - {claim["id"] for claim in report["claims"]}
    of_figure = (claim for claim in report["claims"] if figure is None or figure in claim["places"])
    return bool(unknown) or any(claim["id"] in left_out for claim in of_figure)
