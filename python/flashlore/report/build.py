"""The report of a results directory, section by section."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import polars as pl

from flashlore import __version__, figures
from flashlore.errors import FileError, ResultsError
from flashlore.figures import timeline
from flashlore.figures.programs import changes
from flashlore.figures.tables import Tables, flat
from flashlore.output import refuse_existing
from flashlore.report import measures, summary
from flashlore.report.groups import Group, groups
from flashlore.report.markup import Html, element
from flashlore.report.page import Page, Section, write_text
from flashlore.report.table import Cell, Column, Table, Value, duration, number

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping, Sequence

    from flashlore.figures.theme import Figure

# What fields that are missing, or are of another kind, end in.
_DAMAGE = (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, pl.exceptions.PolarsError)
# Lines of so many seeds can still be told apart.
_SEEDS = 5


def write(
    results: Tables | str | os.PathLike[str],
    output: str | os.PathLike[str],
    title: str | None = None,
    *,
    force: bool = False,
) -> None:
    """Write the report of results: one page that opens without a network, complete or not at all.

    Args:
        results: a directory of `--out`, a file of `--json`, or what `Tables.load` made of one.
        output: the file of the page.
        title: its title.
        force: replace a page that is there already.

    Raises:
        UsageError: a page is there already, and it is not to be replaced.
        ResultsError: the results cannot be read.
        FileError: the page cannot be written.

    """
    folder = Path(output).parent
    if not folder.is_dir():
        raise FileError(f"{output}: the page cannot be written there: there is no directory {folder}")
    refuse_existing(Path(output), force=force)
    try:
        tables = results if isinstance(results, Tables) else Tables.load(results)
        page = build(tables, title).render()
    except _DAMAGE as error:
        source = "the results" if isinstance(results, Tables) else results
        what = f"`{error.args[0]}` is missing" if isinstance(error, KeyError) else str(error)
        raise ResultsError(f"{source}: not all is there, or not as Flashlore writes it: {what}") from error
    write_text(Path(output), page, force=force)


def build(tables: Tables, title: str | None = None) -> Page:
    """Make the page of results."""
    traces = groups(tables)
    page = Page(title or _title(tables, traces), subtitle=_subtitle(tables), footer=_footer(tables))
    if traces:
        _summary(page.section("Summary"), traces)
        _numbers(page.section("Results"), traces)
        _figures(page, _thinned(tables), traces)
    if tables.characterizations:
        _characterization(page.section("The traces"), tables)
    if traces:
        words = page.section("What the numbers mean")
        every = [group for of_trace in traces.values() for group in of_trace]
        words.html(measures.meanings(measures.used(every)))
        _configuration(page.section("Configuration"), tables, every)
        _provenance(page.section("Provenance"), tables)
    _repeat(page.section("Repeating it"), tables, title)
    return page


def _title(tables: Tables, traces: Mapping[str, Sequence[Group]]) -> str:
    if not traces:
        return "What the traces are like"
    systems = list(dict.fromkeys(group.system for of_trace in traces.values() for group in of_trace))
    if len(systems) == 1:
        return f"{systems[0]} on {_some(list(traces), 'traces')}"
    return f"{_some(systems, 'systems')} on {_some(tables.traces, 'traces')}"


def _some(names: Sequence[str], what: str) -> str:
    """Name a few; of more say how many."""
    most = 4
    if len(names) > most:
        return f"{len(names)} {what}"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _subtitle(tables: Tables) -> str:
    devices = list(dict.fromkeys(str(record["device"]) for record in tables.records))
    text = f"Flashlore {tables.version}"
    if devices:
        text += f", {'device' if len(devices) == 1 else 'devices'} {_some(devices, 'devices')}"
    if tables.records:
        text += f", {number(len(tables.records))} {'run' if len(tables.records) == 1 else 'runs'} in simulated time"
    return text


def _footer(tables: Tables) -> str:
    source = "results in memory" if tables.path is None else str(tables.path)
    return f"Made by Flashlore {__version__} from {source}. The page holds all its data and asks no network."


def _summary(section: Section, traces: Mapping[str, Sequence[Group]]) -> None:
    section.prose(summary.compared(traces))
    tiles = summary.tiles(traces)
    if tiles:
        section.tiles(tiles)
    found = []
    for trace, of_trace in traces.items():
        part = section.subsection(f"On {trace}")
        part.bullets(summary.findings(of_trace))
        found.append(part)
    section.grid(found)
    cautions = summary.caveats(traces)
    if cautions:
        section.subsection("Before you quote a number").bullets(cautions)


def _numbers(section: Section, traces: Mapping[str, Sequence[Group]]) -> None:
    if max(len(of_trace) for of_trace in traces.values()) > 1:
        section.prose("Small numbers are changes against the first system: green is better, red is worse.")
    for trace, of_trace in traces.items():
        section.table(measures.comparison(of_trace, f"Trace {trace}"))
    for trace, of_trace in traces.items():
        section.details(f"Every number of {trace}", _every_number(trace, of_trace).html())


def _every_number(trace: str, of_trace: Sequence[Group]) -> Table:
    """Make the table of all numbers of the records that are not 0 in all of them, the first seed of each system."""
    records = [dict(flat({k: v for k, v in group.record.items() if k != "configuration"})) for group in of_trace]
    names = [
        name
        for name in dict.fromkeys(name for record in records for name in record)
        if any(isinstance(value := record.get(name), int | float) and value for record in records) and name != "seed"
    ]
    columns = [Column("Field"), *(Column(group.system, numbers=True) for group in of_trace)]
    rows: list[list[Value]] = [
        [element("code", name), *(Cell(_plain(record.get(name)), _sortable(record.get(name))) for record in records)]
        for name in names
    ]
    seeds = " (of the first seed)" if len(of_trace[0].records) > 1 else ""
    return Table(columns, rows, f"Fields of the records of {trace}{seeds}; those that are 0 everywhere are left out")


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return number(value, 6)
    return "-" if value is None else str(value)


def _sortable(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _thinned(tables: Tables) -> Tables:
    """Take a few seeds of many, whose lines can be told apart."""
    seeds = list(dict.fromkeys(record["seed"] for record in tables.records))
    if len(seeds) <= _SEEDS:
        return tables
    keep = pl.col("seed").is_in(seeds[:_SEEDS])
    changed = {
        name: table.filter(keep)
        for name in ("response_cdf", "victim_cdf", "erase_cdf", "timeline")
        if (table := getattr(tables, name)) is not None
    }
    return Tables(**{**vars(tables), **changed})


class _Panels:
    """Figures of one kind, one for each trace, put into a section where any of them has data."""

    def __init__(self, section: Section, traces: Sequence[str]) -> None:
        self._section = section
        self._traces = traces

    def add(
        self,
        title: str,
        caption: str,
        frame: pl.DataFrame | None,
        make: Callable[[pl.DataFrame], Figure],
    ) -> None:
        """Add a figure a trace."""
        if frame is None or frame.is_empty():
            return
        panels = []
        for trace in self._traces:
            part = frame.filter(pl.col("trace") == trace)
            if part.height:
                panels.append((make(part), trace))
        if panels:
            self._section.gallery(title, caption, panels)


def _figures(page: Page, tables: Tables, traces: Mapping[str, Sequence[Group]]) -> None:
    section = page.section("Figures")
    systems = tables.systems
    if len(systems) > 1:
        section.prose(
            "Rest the pointer on a figure for its numbers; click a name in a legend to bring its line forward. "
            "One system has one colour everywhere."
        )
        section.html(page.filter("system", systems, "Systems that are drawn"))
    seeds = len({record["seed"] for record in tables.records})
    if seeds > 1:
        section.prose("Each seed is a thin line of its own.")
    names = list(traces)
    _writing(section.subsection("Writing"), tables, names)
    _response(section.subsection("Response"), tables, names)
    _collection(section.subsection("Collection and wear"), tables, names)
    if tables.timeline is not None:
        _time(section.subsection("Over time"), tables.timeline, names)


def _writing(section: Section, tables: Tables, traces: Sequence[str]) -> None:
    panels = _Panels(section, traces)
    panels.add(
        "Programs by cause",
        "Units programmed, by what for. The upright mark is what the host wrote: a bar that ends before it saved "
        "writes, and what lies beyond it is amplification.",
        _written(tables.runs),
        figures.programs_by_cause,
    )
    if len(tables.systems) > 1:
        panels.add(
            f"Against {tables.systems[0]}",
            f"Each measure as a multiple of {tables.systems[0]}'s, on a log axis: half is as far left as twice is "
            "right. Less is better in all of them. A measure that is 0 is no multiple, and is left out.",
            _compared(tables.runs),
            lambda frame: figures.change(frame, baseline=tables.systems[0]),
        )


def _written(runs: pl.DataFrame) -> pl.DataFrame:
    """Leave out traces on which nothing was programmed."""
    return runs.filter(pl.col("flash.page_programs").sum().over("trace") > 0)


def _compared(runs: pl.DataFrame) -> pl.DataFrame:
    """Leave out traces that only one system replayed, or whose first system has nothing to compare with."""
    base = str(runs["system"][0])
    several = pl.col("system").n_unique().over("trace") > 1
    kept = runs.filter(several & (pl.col("system") == base).any().over("trace"))
    traces = [trace for trace in kept["trace"].unique() if _has_changes(kept.filter(pl.col("trace") == trace), base)]
    return kept.filter(pl.col("trace").is_in(traces))


def _has_changes(runs: pl.DataFrame, base: str) -> bool:
    return changes(runs, base).height > 0


def _response(section: Section, tables: Tables, traces: Sequence[str]) -> None:
    panels = _Panels(section, traces)
    kinds: list[tuple[Any, str, str]] = [("all", "Response times", "requests")]
    both = tables.runs["response_us.read.count"].sum() and tables.runs["response_us.write.count"].sum()
    if both:
        kinds += [("read", "Response times of reads", "reads"), ("write", "Response times of writes", "writes")]
    for kind, title, what in kinds:
        panels.add(
            title,
            f"The share of {what} that were answered within a time, queueing included. Left is faster.",
            _of_kind(tables.response_cdf, kind),
            lambda frame, kind=kind: figures.response_cdf(frame, kind=kind),  # type: ignore[misc]
        )
    panels.add(
        "Percentiles of response times",
        "Half of the requests were answered within the first point, all but one in ten thousand within the last.",
        tables.runs.filter(pl.col("response_us.all.count") > 0),
        figures.response_percentiles,
    )


def _of_kind(frame: pl.DataFrame | None, kind: str) -> pl.DataFrame | None:
    return None if frame is None else frame.filter(pl.col("kind") == kind)


def _collection(section: Section, tables: Tables, traces: Sequence[str]) -> None:
    panels = _Panels(section, traces)
    panels.add(
        "Valid units per victim",
        "How much of a block was still needed when it was collected, and had to be moved. Left is less.",
        tables.victim_cdf,
        figures.valid_per_victim,
    )
    if tables.erase_cdf is not None:
        panels.add(
            "Wear of blocks",
            "The share of blocks that were erased at most so often. A steep line is even wear, left is less.",
            tables.erase_cdf,
            figures.wear_distribution,
        )
    else:
        panels.add(
            "Wear of blocks",
            "Erases of the least worn block, of all blocks on average (the mark), and of the most worn one.",
            tables.runs.filter(pl.col("erases.max").max().over("trace") > 0),
            figures.wear_spread,
        )
    busy = figures.utilization_of(tables.records)
    panels.add(
        "Utilisation",
        "The share of simulated time in which each die worked (a mark each), and each channel where several dies share "
        "it; the bar is their mean.",
        busy.filter(pl.col("busy").max().over("trace") > 0),
        figures.utilization,
    )


def _time(section: Section, frame: pl.DataFrame, traces: Sequence[str]) -> None:
    panels = _Panels(section, traces)
    for measure, look in timeline.MEASURES.items():
        if timeline.has(frame, measure):
            panels.add(
                look.name,
                look.caption,
                timeline.with_points(frame, measure),
                lambda part, measure=measure: figures.over_time(part, measure),  # type: ignore[misc]
            )


def _characterization(section: Section, tables: Tables) -> None:
    for item in tables.characterizations:
        names = ", ".join(str(source["path"]) for source in item["sources"])
        section.table(_mix(item["whole"], names))
        kinds = item["whole"].get("kinds") or {}
        if kinds.get("writes"):
            section.prose(_kinds(kinds))
    panels: list[tuple[Figure, str, str | Html]] = []

    def add(frame: pl.DataFrame | None, title: str, caption: str, make: Callable[[pl.DataFrame], Figure]) -> None:
        if frame is not None and frame.height > 1:
            panels.append((make(frame), title, caption))

    add(
        tables.popularity,
        "Popularity of values",
        "The most frequent values and the share of accesses they make. A line that starts high means that a few values "
        "are written again and again.",
        figures.popularity,
    )
    add(
        tables.miss_ratio,
        "Misses of an index",
        "The share of writes whose content an LRU index of so many fingerprints does not know. In the live reading a "
        "value leaves the index when no page holds it any more.",
        figures.miss_ratio,
    )
    for space, what in (("value", "values"), ("page", "pages")):
        part = None if tables.stack_distance is None else tables.stack_distance.filter(pl.col("space") == space)
        add(
            part,
            f"Stack distances of {what}",
            f"How many different {what} were accessed since the same one was, itself included: what an LRU cache of so "
            "many would hit.",
            lambda frame, space=space: figures.stack_distances(frame, space=space),  # type: ignore[misc]
        )
    add(
        tables.overwrite,
        "Distance of overwrites",
        "How many page writes lie between two writes of the same page: what dies young need not be moved.",
        figures.overwrite_distances,
    )
    add(tables.sizes, "Sizes of requests", "The share of requests that are no larger.", figures.request_sizes)
    if panels:
        section.figures(panels)


def _mix(whole: Mapping[str, Any], names: str) -> Table:
    rows = [
        [kind, *(whole["mix"][kind][unit] for unit in ("requests", "pages", "bytes"))]
        for kind in ("reads", "writes", "trims", "flushes")
        if isinstance(whole["mix"].get(kind), dict)
    ]
    columns = [Column("Kind"), *(Column(name, numbers=True) for name in ("Requests", "Pages", "Bytes"))]
    return Table(columns, rows, f"Requests of {names}", compact=True)


def _kinds(kinds: Mapping[str, int]) -> str:
    shares = ", ".join(
        f"{100 * kinds[key] / kinds['writes']:.1f} % {words}"
        for key, words in (
            ("new", "are new content"),
            ("elsewhere", "are held by another page"),
            ("reborn", "were held once and by no page any more"),
            ("silent", "change nothing"),
        )
    )
    return f"Of {number(kinds['writes'])} page writes with content, {shares}."


def _configuration(section: Section, tables: Tables, every: Sequence[Group]) -> None:
    systems = _first_of(every, lambda group: group.system)
    sized = _first_of([group for group in every if group.system == every[0].system], lambda group: group.trace)
    if len(systems) > 1:
        different = _different(systems)
        section.prose(
            "What decides a run, and is not the same for all systems:" if different else "All systems were set alike."
        )
        if different:
            section.table(_keys(systems, different, "Keys in which the systems differ"))
    different = _different(sized)
    if different:
        section.table(_keys(sized, different, "Keys in which the traces differ, as the device is sized from each"))
    section.details("Every key", _keys(systems, None, f"Device, system and host on {every[0].trace}").html())
    workload = dict(_flat_lists(tables.records[0].get("workload", {})))
    if workload:
        rows = [[element("code", key), _text(value)] for key, value in workload.items()]
        section.details(
            "How the traces were read", Table([Column("Key"), Column("Value")], rows, "Workload", compact=True).html()
        )


# The values of a configuration by their paths.
_Values: TypeAlias = "dict[str, Any]"


def _first_of(every: Sequence[Group], name: Callable[[Group], str]) -> dict[str, _Values]:
    """Give the first configuration of each system, or each trace."""
    found: dict[str, _Values] = {}
    for group in every:
        if name(group) not in found:
            found[name(group)] = dict(_flat_lists(group.record["configuration"]))
    return found


def _different(configurations: Mapping[str, _Values]) -> list[str]:
    """List the keys that configurations set differently; names and descriptions decide nothing."""
    words = (".name", ".description", ".source", ".part")
    keys = dict.fromkeys(key for values in configurations.values() for key in values)
    return [
        key
        for key in keys
        if len({_text(values.get(key)) for values in configurations.values()}) > 1 and not key.endswith(words)
    ]


def _keys(configurations: Mapping[str, _Values], keys: Sequence[str] | None, caption: str) -> Table:
    """Make the table of some keys, or of all, a column a configuration."""
    chosen = keys if keys is not None else dict.fromkeys(key for values in configurations.values() for key in values)
    rows = [[element("code", key), *(_text(values.get(key)) for values in configurations.values())] for key in chosen]
    return Table([Column("Key"), *(Column(name) for name in configurations)], rows, caption, compact=keys is not None)


def _flat_lists(tree: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """Walk all values of a tree with their paths; a list is one value."""
    found: list[tuple[str, Any]] = []
    for key, value in tree.items():
        if isinstance(value, dict):
            found += _flat_lists(value, f"{prefix}{key}.")
        else:
            found.append((prefix + key, value))
    return found


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(str(item) for item in value) or "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    return "-" if value is None else str(value)


def _provenance(section: Section, tables: Tables) -> None:
    section.prose(
        f"Written by Flashlore {tables.version}. The same version, configuration, traces and seed give the same "
        "numbers, bit by bit; only the real time differs."
    )
    files = {file["path"]: file for record in tables.records for file in record["trace_files"]}
    section.table(
        Table(
            [Column("Trace"), Column("Format"), Column("Records", numbers=True), Column("SHA-256")],
            [
                [
                    str(file["path"]),
                    _text(file.get("format")),
                    file.get("records"),
                    element("code", _text(file.get("sha256"))),
                ]
                for file in files.values()
            ],
            "Files of traces",
        )
    )
    columns = [
        Column("System"),
        Column("Trace"),
        Column("Device"),
        Column("Seed", numbers=True),
        Column("Simulated", "s", numbers=True),
        Column("Real time", numbers=True),
        Column("Requests a second of real time", numbers=True),
        Column("Configuration"),
    ]
    rows = [
        [
            str(record["system"]),
            str(record["trace"]),
            str(record["device"]),
            Cell(str(record["seed"]), float(record["seed"])),
            record["run"]["simulated_s"],
            Cell(duration(record["run"]["wall_s"] * 1e6), record["run"]["wall_s"]),
            None if record["run"]["requests_per_s"] is None else round(record["run"]["requests_per_s"]),
            element("code", str(record["config_hash"])),
        ]
        for record in tables.records
    ]
    section.details("Every run", Table(columns, rows, "Runs").html())


def _repeat(section: Section, tables: Tables, title: str | None) -> None:
    path = tables.path
    if path is None:
        section.prose("These results were never in a file. Results.save writes one that `flashlore rerun` repeats.")
        return
    lines = []
    if tables.records:
        document = path / "results.json" if path.is_dir() else path
        lines.append(f"flashlore rerun {shlex.quote(str(document))}")
        section.prose(
            "The first command runs everything again, with the same traces, and reports every number that differs; the "
            "last one makes this page again."
        )
    for item in tables.characterizations:
        sources = " ".join(shlex.quote(str(source["path"])) for source in item["sources"])
        lines.append(f"flashlore trace characterize {sources} --out {shlex.quote(str(path))}")
    titled = "" if title is None else f" --title {shlex.quote(title)}"
    lines.append(f"flashlore report {shlex.quote(str(path))} -o report.html{titled}")
    section.command(*lines)
