"""What runs the cells of a sweep, as the sweep sees it."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from flashlore.sweeps.cell import Task

#: A cell whose worker dies is tried so often.
ATTEMPTS = 3


@dataclass(frozen=True)
class Outcome:
    """How a cell ended: with the record of its run, or with the sentence that says why there is none."""

    key: str
    record: dict[str, Any] | None
    error: str | None
    worker: str


class Executor(Protocol):
    """Runs cells somewhere."""

    def run(self, tasks: Sequence[Task]) -> AbstractContextManager[Iterator[Outcome]]:
        """Run every task and give each one's outcome as it ends, in any order.

        At the end of the block nothing runs any more, whether all outcomes were taken or not. A cell that fails is an
        outcome. What raises an exception ends the sweep.
        """
