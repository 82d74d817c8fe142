"""What runs leave: records, distributions and time lines."""

import html
import json
from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Self, overload

from flashlore import _core
from flashlore._tree import from_tree
from flashlore.errors import ResultsError
from flashlore.record import Finding, Record
from flashlore.table import Table

if TYPE_CHECKING:
    from flashlore.figures import Tables


class Run(Record):
    """The record of one run, with its distributions."""

    core: _core.Output
    """What the core holds of it."""

    @classmethod
    def of(cls, output: _core.Output) -> Self:
        """Make the run of what the core holds of it."""
        run = from_tree(cls, json.loads(output.record()))
        object.__setattr__(run, "core", output)
        return run

    def response_cdf(self) -> Table:
        """Return the response times: `kind` of request, `response_us` (microseconds), `share` of requests not above.

        The columns `system`, `device`, `trace` and `seed` come first, as in all tables of results.
        """
        return Results([self]).response_cdf()

    def victim_cdf(self) -> Table:
        """Return what victims held: `valid_units`, `victims` that held so many, `share` of victims not above."""
        return Results([self]).victim_cdf()

    def erase_cdf(self) -> Table:
        """Return how worn blocks are: `erases`, `blocks` erased so often, `share` of blocks not above."""
        return Results([self]).erase_cdf()

    def timeline(self) -> Table:
        """Return what happened in each stretch of simulated time, if the run was asked for it."""
        return Results([self]).timeline()

    def to_dict(self) -> dict[str, Any]:
        """Return the record as in `results.json`."""
        return dict(json.loads(self.core.record()))

    def to_json(self) -> str:
        """Return the record as JSON."""
        return self.core.record()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the record and the tables."""
        return _restored, (self.core.state(),)

    def __repr__(self) -> str:
        """Say what ran on what."""
        return f"Run({self.trace!r} with system {self.system!r} on device {self.device!r}, seed {self.seed})"


def _restored(state: tuple[str, bytes | None, bytes | None]) -> Run:
    return Run.of(_core.Output.restore(state))


class Results(Sequence[Run]):
    """Runs, in the order trace, system, seed."""

    def __init__(self, runs: Sequence[Run]) -> None:
        """Hold `runs`."""
        self._runs = tuple(runs)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read a directory that `save` or `--out` wrote, a `results.json`, or the output of `--json`."""
        return cls([Run.of(output) for output in _core.load(path)])

    def save(self, path: str | PathLike[str], *, force: bool = False) -> None:
        """Write the files that `--out` writes into a directory, which is made if needed: all of them or none.

        Raises:
            UsageError: the directory holds results already, and they are not to be replaced (`force`).
            FileError: it cannot be written.

        """
        self._demand_responses()
        _core.save(self._outputs(), path, force=force)

    def findings(self) -> list[Finding]:
        """Return what to mind before numbers are trusted, as tables and reports tell it.

        >>> from flashlore import simulate
        >>> run = simulate("demo:maildir", "plain", settings={"host.limit": 100}, progress=False)
        >>> [finding.id for finding in Results([run]).findings()]
        ['saturated', 'no-erase', 'few-requests']

        """
        return [from_tree(Finding, tree) for tree in json.loads(_core.findings(self._outputs()))]

    def runs(self) -> Table:
        """Return a row for each run, and a column for each number and text of its record, named by its path.

        Lists and the configuration are left out.
        """
        return self._table("results")

    def response_cdf(self) -> Table:
        """Return the response times: `kind` of request, `response_us` (microseconds), `share` of requests not above."""
        self._demand_responses()
        return self._table("response_cdf")

    def victim_cdf(self) -> Table:
        """Return what victims held: `valid_units`, `victims` that held so many, `share` of victims not above."""
        return self._table("victim_cdf")

    def erase_cdf(self) -> Table:
        """Return how worn blocks are: `erases`, `blocks` erased so often, `share` of blocks not above."""
        return self._table("erase_cdf")

    def timeline(self) -> Table:
        """Return what happened in each stretch of simulated time."""
        if not any(run.core.has_timeline for run in self._runs):
            raise ResultsError("no run has a time line; expected runs that were asked for one with timeline=")
        return self._table("timeline")

    def to_json(self) -> str:
        """Return what `--json` prints."""
        return _core.describe(self._outputs())[1]

    def tables(self) -> "Tables":
        """Return the tables as frames of Polars, in the shape that `flashlore.figures` takes."""
        from flashlore.figures import Tables  # noqa: PLC0415 (runs need neither figures nor frames)

        with TemporaryDirectory() as folder:
            if all(run.core.has_responses for run in self._runs):
                place = Path(folder)
                self.save(place)
            else:
                place = Path(folder, "results.json")
                place.write_text(self.to_json(), encoding="utf-8")
            return replace(Tables.load(place), path=None)

    def report(self, path: str | PathLike[str], title: str | None = None, *, force: bool = False) -> None:
        """Write the page of these results, which opens without a network: `flashlore report`.

        Raises:
            UsageError: a page is there already, and it is not to be replaced (`force`).
            FileError: it cannot be written.

        """
        from flashlore import report  # noqa: PLC0415 (as above)

        report.write(self.tables(), path, title, force=force)

    def _repr_html_(self) -> str:
        """Set the systems side by side, in a notebook."""
        return f"<pre>{html.escape(repr(self))}</pre>"

    def _demand_responses(self) -> None:
        if lacking := [run for run in self._runs if not run.core.has_responses]:
            raise ResultsError(
                f"{lacking[0]} was read without its response times; expected a directory that `save` or --out wrote"
            )

    def _table(self, name: str) -> Table:
        return Table(_core.table(self._outputs(), name))

    def _outputs(self) -> list[_core.Output]:
        return [run.core for run in self._runs]

    def __len__(self) -> int:
        """Return the number of runs."""
        return len(self._runs)

    @overload
    def __getitem__(self, index: int) -> Run: ...
    @overload
    def __getitem__(self, index: slice) -> "Results": ...
    def __getitem__(self, index: int | slice) -> "Run | Results":
        """Return a run, or some of them."""
        found = self._runs[index]
        return found if isinstance(found, Run) else Results(found)

    def __repr__(self) -> str:
        """Set the systems side by side, as the command line does."""
        return _core.describe(self._outputs())[0]
