#!/usr/bin/env python3
"""Write what came out into the READMEs of papers: `tools/paper-tables.py RESULTS.json`.

RESULTS.json is what `flashlore reproduce all --json` prints, of whole workloads. In each README that has the marks,
what stands between them is written anew: how many claims there are, the verdicts by aspect, and every claim.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from flashlore.papers import counts, places, sensitivity, verdicts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flashlore.papers.document import Claim, Report

BEGIN = "<!-- The verdicts, which tools/paper-tables.py writes. -->"
END = "<!-- End of the verdicts. -->"
NUMBERS = {1: "One seed, so without intervals", 3: "Three seeds", 5: "Five seeds"}


def main() -> None:
    """Write them; a report of scaled workloads is refused."""
    results = json.loads(Path(sys.argv[1]).read_text())
    for report in results["papers"]:
        readme = Path("papers", report["paper"], "README.md")
        if not readme.exists() or BEGIN not in readme.read_text():
            continue
        if report["scale"] < 1.0 or report["figures"]:
            sys.exit(f"{report['paper']}: expected all of its figures on whole workloads")
        before, rest = readme.read_text().split(BEGIN)
        _, after = rest.split(END)
        readme.write_text(f"{before}{BEGIN}\n\n{told(report)}\n\n{END}{after}")


def told(report: Report) -> str:
    """Give the paragraphs and the tables of a report."""
    claims = counts.judged([report])
    total, broken = counts.identities(report)
    seeds = len(report["seeds"])
    many = f"{NUMBERS.get(seeds, f'{seeds} seeds')}: {counts.phrase(counts.of_kinds(claims))}"
    identities = f"{total - len(broken)} of {total} identities hold" if total else "no identities"
    parts = [f"{many}; {identities}. A claim is counted once for each aspect.", *tables(claims)]
    if report["sensitivity"] and report["sensitivity"]["claims"]:
        parts.append(sensitivity.sentence(report["sensitivity"]))
    return "\n\n".join(parts)


def tables(claims: list[Claim]) -> list[str]:
    """Give the verdicts by aspect, and of every claim."""
    used = counts.used(claims)
    words = [verdicts.OF[name].word for name in used]
    summary = [["aspect", *words]]
    for aspect in verdicts.ASPECTS:
        found = counts.by_verdict(claims, aspect)
        if found:
            summary.append([aspect, *(str(found.get(name, "")) for name in used)])
    every = [["claim", "", "where", *verdicts.ASPECTS]]
    for claim in claims:
        where = ", ".join(places.heading(place, [claim]) for place in claim["places"])
        found = [claim["verdicts"].get(aspect) for aspect in verdicts.ASPECTS]
        of = [verdicts.OF[name].word if name else "" for name in found]
        every.append([claim["id"], claim["statement"], where, *of])
    return [table(summary), table(every)]


def table(rows: Sequence[Sequence[str]]) -> str:
    """Give rows, of which the first has the heads, as a table of Markdown."""
    head, *rest = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([head, "|---" * len(rows[0]) + "|", *rest])


main()
