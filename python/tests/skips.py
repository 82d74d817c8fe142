"""How a test says that it cannot run here, and what continuous integration makes of that: a plugin of pytest.

With `CI=true` a skip is a failure unless `.ci/skips.txt` lists its name with a reason. One by `skipif`, by
`importorskip` or of a whole file has no name, and always fails there. `FLASHLORE_SKIPS` names a file to which each
accepted skip is appended. The tests of Rust do the same (`crates/testkit`).
"""

import os
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import pytest

LIST = Path(__file__).parents[2] / ".ci" / "skips.txt"


@dataclass(frozen=True)
class Skip:
    """Why something cannot run here: a name, which the list may hold, and what is missing."""

    name: str
    what: str


def skip(name: str, what: str) -> NoReturn:
    """End a test that cannot run here."""
    pytest.skip(f"{name}: {what}")


def listed() -> set[str]:
    """The names of skips that continuous integration accepts."""
    lines = LIST.read_text(encoding="utf-8").splitlines()
    return {line.split(": ")[0] for line in lines if line.strip() and not line.startswith("#")}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if not hasattr(report, "wasxfail"):
        _judge(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    _judge(report)
    return report


def _judge(report: pytest.TestReport | pytest.CollectReport) -> None:
    if not report.skipped:
        return
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    reason = reason.removeprefix("Skipped: ")
    if os.environ.get("CI") == "true" and reason.split(": ")[0] not in listed():
        report.outcome = "failed"
        report.longrepr = (
            f"this test cannot run here: {reason}. In continuous integration that is a failure: install what is "
            "missing (.ci/run has the packages), or, where a machine cannot have it, list the name of the skip with a "
            "reason in .ci/skips.txt"
        )
    elif log := os.environ.get("FLASHLORE_SKIPS"):
        # Processes append at the same time: one write keeps a line whole.
        with Path(log).open("a", encoding="utf-8") as told:
            told.write(" ".join(reason.split()) + "\n")
