"""What results depend on: figures, and which claims stay inside, with one open choice changed at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flashlore.papers import places
from flashlore.report.markup import Html, element
from flashlore.report.table import Cell, Column, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flashlore.papers.document import Report, Sensitivity
    from flashlore.report.page import Section
    from flashlore.report.table import Value


def show(section: Section, report: Report, found: Sensitivity) -> None:
    """Show the matrix of claims with what it says, then the tables of figures."""
    section.prose(
        "Runs repeated with something changed that is not published, or that was chosen. The first row has nothing "
        f"changed. All with the first seed alone, {report['seeds'][0]}, so a number counts as inside if it is in its "
        "range; there are no intervals here."
    )
    if found["scale"] is not None:
        section.prose(
            f"The changed runs replay at most {found['scale']:g} of each workload, and the first row the whole of it: "
            "a row tells what a setting does only as far as the size changes nothing."
        )
    if report["scale"] != 1:
        section.prose(
            "The workloads are smaller than those that the ranges are meant for, so this says little of them."
        )
    if found["claims"]:
        section.html(element("p", element("strong", sentence(found))))
        section.prose(*_always_and_never(found))
        section.table(_matrix(report, found))
    for index, name in enumerate(dict.fromkeys(table for table, _ in found["columns"])):
        section.table(_figures(report, found, name, is_first=index == 0 and not found["claims"]))


def sentence(found: Sensitivity) -> str:
    """Say whether any single setting has everything inside, and which have the most."""
    every = len(found["claims"])
    counted = {name: sum(inside) for name, inside in found["inside"]}
    most = max(counted.values())
    best = "; ".join(name for name, count in counted.items() if count == most)
    if most == every == 1:
        return f"The one aspect of a claim is inside under: {best}."
    if most == every:
        return f"All {every} aspects of claims are inside at once under: {best}."
    return f"No single setting has all {every} aspects of claims inside. The most, {most}, are under: {best}."


def _always_and_never(found: Sensitivity) -> list[str]:
    columns = list(zip(*(inside for _, inside in found["inside"]), strict=True))
    names = [" ".join(claim) for claim in found["claims"]]
    always = [name for name, column in zip(names, columns, strict=True) if all(column)]
    never = [name for name, column in zip(names, columns, strict=True) if not any(column)]
    told = []
    if always:
        told.append(f"Inside under every setting: {', '.join(always)}.")
    if never:
        told.append(f"Inside under no setting: {', '.join(never)}.")
    return [" ".join(told)] if told else []


def _matrix(report: Report, found: Sensitivity) -> Table:
    """Make settings by aspects of claims. Words say what is inside; colours only repeat them."""
    ids = {claim["id"]: claim for claim in report["claims"]}
    columns = [Column("changed"), Column("inside", numbers=True)]
    columns += [Column(f"{claim} {aspect}", help=ids[claim]["statement"]) for claim, aspect in found["claims"]]
    rows: list[list[Value]] = []
    for name, inside in found["inside"]:
        count = Cell(f"{sum(inside)} of {len(inside)}", sum(inside), strong=True)
        rows.append([_setting(report, name), count, *map(_cell, inside)])
    caption = "Whether the judged numbers of each aspect of a claim are inside what is accepted, setting by setting"
    return Table(columns, rows, caption, sortable=False, compact=True)


def _cell(inside: bool) -> Cell:  # noqa: FBT001 - the only argument it can be
    return Cell(element("span", "inside" if inside else "outside", class_="inside" if inside else "outside"))


def _figures(report: Report, found: Sensitivity, name: str, *, is_first: bool) -> Table:
    """Make a table of figures. If it is the first table of all, settings are linked to in it."""
    chosen = [place for place, (table, _) in enumerate(found["columns"]) if table == name]
    columns = [Column("changed"), *(Column(found["columns"][place][1], numbers=True) for place in chosen)]
    rows: list[Sequence[Value]] = [
        [_setting(report, variant) if is_first else variant, *(values[place] for place in chosen)]
        for variant, values in found["rows"]
    ]
    return Table(columns, rows, f"{name}, with other settings", compact=True, sortable=False)


def _setting(report: Report, name: str) -> Html:
    return element("span", name, id=places.of_setting(report, name))
