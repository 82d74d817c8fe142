"""What is counted: distinct claims by kind, aspect and verdict. Numbers are not, and identities are counted apart."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from flashlore.papers import states, verdicts

if TYPE_CHECKING:
    from collections.abc import Iterable

    from flashlore.papers.document import Aspect, Claim, Item, Kind, Report, VerdictName


def judged(reports: Iterable[Report]) -> list[Claim]:
    """Give the claims that have a verdict, each once. One that has identities alone has none and is no claim here."""
    return [claim for report in reports for claim in report["claims"] if claim["verdicts"]]


def of_kinds(claims: Iterable[Claim]) -> dict[Kind, int]:
    """Count claims by kind; kinds that do not occur are left out."""
    found = Counter(claim["kind"] for claim in claims)
    return {kind: found[kind] for kind in verdicts.KINDS if found[kind]}


def by_verdict(claims: Iterable[Claim], aspect: Aspect, kind: Kind | None = None) -> dict[VerdictName, int]:
    """Count the claims that have a verdict on an aspect, by that verdict."""
    of_kind = (claim for claim in claims if kind in (None, claim["kind"]))
    found = Counter(claim["verdicts"][aspect] for claim in of_kind if aspect in claim["verdicts"])
    return {verdict.name: found[verdict.name] for verdict in verdicts.ALL if found[verdict.name]}


def used(claims: Iterable[Claim]) -> list[VerdictName]:
    """Give the verdicts that occur, in their order."""
    there = {name for claim in claims for name in claim["verdicts"].values()}
    return [verdict.name for verdict in verdicts.ALL if verdict.name in there]


def identities(report: Report) -> tuple[int, list[tuple[Claim, Item]]]:
    """Count the identities of a report, and give those that are broken, each with the claim that it stands with."""
    every = [(claim, item) for claim in report["claims"] for item in claim["items"] if item["aspect"] == "identity"]
    return len(every), [(claim, item) for claim, item in every if states.of(item) is states.BROKEN]


def phrase(counted: dict[Kind, int]) -> str:
    """Say how many claims there are of each kind.

    >>> phrase({"measured": 1, "ours": 2})
    '3 claims (1 measured, 2 ours)'
    """
    total = sum(counted.values())
    kinds = ", ".join(f"{count} {kind}" for kind, count in counted.items())
    return f"{total} claim{'s' * (total != 1)}" + (f" ({kinds})" if kinds else "")
