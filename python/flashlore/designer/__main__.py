"""`python -m flashlore.designer`: run the sweep of conditions, and make the page of its results."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import polars as pl

from flashlore.designer import conditions, page
from flashlore.errors import FileError, FlashloreError
from flashlore.sweeps.running import sweep


def main(arguments: list[str] | None = None) -> int:
    """Run a command and give its exit status."""
    parser = argparse.ArgumentParser(prog="python -m flashlore.designer", description=__doc__)
    commands = parser.add_subparsers(required=True)
    run = commands.add_parser("sweep", help="run all cells; interrupted, it goes on")
    run.add_argument("conditions")
    run.add_argument("-o", "--output", required=True, help="directory of the results")
    run.add_argument("--captures", help="directory of the captures; without it those inside the program")
    run.add_argument("--jobs", type=int, help="processes; as many as cores unless said")
    run.add_argument("--force", action="store_true", help="replace results of other conditions")
    run.set_defaults(act=_sweep)
    show = commands.add_parser("page", help="make the page of results")
    show.add_argument("conditions")
    show.add_argument("results", help="directory of the results")
    show.add_argument("-o", "--output", required=True, help="the page")
    show.add_argument("--force", action="store_true", help="replace a page that is there")
    show.set_defaults(act=_page)
    asked = parser.parse_args(arguments)
    try:
        asked.act(asked)
    except FlashloreError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    return 0


def _sweep(asked: argparse.Namespace) -> None:
    grid = conditions.load(asked.conditions).grid(asked.captures)
    done = sweep(grid, out=asked.output, jobs=asked.jobs, force=asked.force, tell=_tell)
    finished, spent = len(done.cells) - len(done.failures), os.times()
    took = spent.user + spent.system + spent.children_user + spent.children_system
    _tell(f"{finished} of {len(done.cells)} cells, {took:.0f} s of processor time")
    if done.failures:
        first = done.failures[0]
        raise FlashloreError(f"{len(done.failures)} cells failed, the first: {first.name}: {first.error}")


def _page(asked: argparse.Namespace) -> None:
    results = Path(asked.results) / "results.parquet"
    if not results.is_file():
        raise FileError(f"there is no {results}: expected the directory of a sweep that has ended")
    page.make(pl.read_parquet(results), conditions.load(asked.conditions)).write(asked.output, force=asked.force)


def _tell(text: str) -> None:
    sys.stderr.write(f"{text}\n")


if __name__ == "__main__":
    sys.exit(main())
