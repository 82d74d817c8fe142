"""What a results directory holds, as frames: the shape in which all figures take their data.

`Tables.load` reads a directory that `compare`, `simulate` or `trace characterize` wrote with `--out`, or a file of
`--json`. Columns are those that docs/results.md and docs/workloads.md name; a file that is not there is `None`, and so
are columns that older versions did not write.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from flashlore import __version__
from flashlore.errors import ResultsError

if TYPE_CHECKING:
    import os

# Files of runs and of characterizations, by the name of the table.
_OF_RUNS = ("response_cdf", "victim_cdf", "erase_cdf", "timeline")
_OF_TRACES = ("popularity", "stack_distance", "miss_ratio", "sizes", "overwrite", "arrivals")


@dataclass(frozen=True)
class Tables:
    """The tables of one results directory, or of results in memory, which have no `path`.

    `records`, `seeds` and `findings` are the lists of results.json, `runs` the records as a frame with a column for
    each number and text, named by its path (`response_us.read.p99`). `characterizations` are the items of a
    summary.json.
    Where one system ran on several devices, its name is `system @ device` in every table.
    """

    path: Path | None
    version: str = __version__
    records: Sequence[Mapping[str, Any]] = ()
    seeds: Sequence[Mapping[str, Any]] = ()
    findings: Sequence[Mapping[str, Any]] = ()
    runs: pl.DataFrame = field(default_factory=pl.DataFrame)
    response_cdf: pl.DataFrame | None = None
    victim_cdf: pl.DataFrame | None = None
    erase_cdf: pl.DataFrame | None = None
    timeline: pl.DataFrame | None = None
    characterizations: Sequence[Mapping[str, Any]] = ()
    popularity: pl.DataFrame | None = None
    stack_distance: pl.DataFrame | None = None
    miss_ratio: pl.DataFrame | None = None
    sizes: pl.DataFrame | None = None
    overwrite: pl.DataFrame | None = None
    arrivals: pl.DataFrame | None = None

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Tables:
        """Read a directory of `--out`, or a file with the output of `--json`.

        Raises:
            ResultsError: it is not there, is no such directory or file, is of a newer version, or is damaged.

        """
        place = Path(path)
        if place.is_dir():
            return _directory(place)
        if place.exists():
            return _documents(place, [place])
        raise ResultsError(f"{place}: there is no such directory or file")

    @property
    def systems(self) -> list[str]:
        """The systems, in the order in which they ran."""
        return self._names("system")

    @property
    def traces(self) -> list[str]:
        """The traces, in the order in which they ran."""
        return self._names("trace")

    def _names(self, column: str) -> list[str]:
        return list(dict.fromkeys(str(record[column]) for record in self.records))


def flat(record: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Walk the numbers and texts of a record, each with its path; lists are left out.

    >>> dict(flat({"a": 1, "b": {"c": "x", "d": [1]}}))
    {'a': 1, 'b.c': 'x'}
    """
    for key, value in record.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{key}.")
        elif not isinstance(value, list):
            yield prefix + key, value


def frame_of(records: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """Make the frame of records: a row a run; configuration and workload are left out."""
    rows = [
        dict(flat({key: value for key, value in record.items() if key not in ("configuration", "workload")}))
        for record in records
    ]
    return pl.DataFrame(rows, infer_schema_length=None) if rows else pl.DataFrame()


def victims_of(records: Sequence[Mapping[str, Any]]) -> pl.DataFrame | None:
    """Make the table of victims, which the records hold as well, where its file is not at hand."""
    rows: list[dict[str, Any]] = []
    for record in records:
        pairs = record["gc"]["valid_per_victim"]
        total, sofar = sum(count for _, count in pairs), 0
        who = {key: record[key] for key in ("system", "device", "trace", "seed")}
        for units, count in pairs:
            sofar += count
            rows.append({**who, "valid_units": units, "victims": count, "share": sofar / total})
    return pl.DataFrame(rows) if rows else None


def _directory(place: Path) -> Tables:
    documents = [place / name for name in ("results.json", "summary.json") if (place / name).exists()]
    if not documents:
        raise ResultsError(
            f"{place}: neither results.json, which compare and simulate write with --out, "
            "nor summary.json of trace characterize is in it"
        )
    return _documents(place, documents)


def _documents(place: Path, documents: Sequence[Path]) -> Tables:
    """Join the documents of a directory, or the only one, with the tables beside them."""
    version = "0.0.0"
    records: list[Mapping[str, Any]] = []
    seeds: list[Mapping[str, Any]] = []
    findings: list[Mapping[str, Any]] = []
    characterizations: list[Mapping[str, Any]] = []
    for document in documents:
        content = _json(document)
        items = content if isinstance(content, list) else [content]
        if all(isinstance(item, dict) and "whole" in item and "sources" in item for item in items) and items:
            characterizations = items
            version = max(version, *(_version(document, item) for item in items), key=_ordered)
        elif isinstance(content, dict) and isinstance(content.get("runs"), list):
            version = max(version, _version(document, content), key=_ordered)
            records, seeds = content["runs"], content.get("seeds", [])
            findings = content.get("findings", [])
            _demand_records(document, records)
        else:
            raise ResultsError(f"{document}: it has neither `runs`, as results have, nor the statistics of a trace")
    if documents == [place]:
        found: dict[str, pl.DataFrame | None] = {}
    else:
        names = (_OF_RUNS if records else ()) + (_OF_TRACES if characterizations else ())
        found = {name: _parquet(place / f"{name}.parquet") for name in names}
    if found.get("victim_cdf") is None:
        found["victim_cdf"] = victims_of(records)
    names_of_runs = _names_of_runs(records)
    return Tables(
        path=place,
        version=version,
        records=[{**record, "system": names_of_runs[record["system"], record["device"]]} for record in records],
        seeds=[
            {**item, "system": names_of_runs.get((item["system"], item["device"]), item["system"])} for item in seeds
        ],
        findings=[
            {
                **item,
                "systems": [
                    names_of_runs.get(pair, pair[0]) for pair in zip(item["systems"], item["devices"], strict=True)
                ],
            }
            for item in findings
        ],
        runs=_named(frame_of(records), names_of_runs),
        characterizations=characterizations,
        **{
            name: _named(table, names_of_runs) if table is not None and name in _OF_RUNS else table
            for name, table in found.items()
        },
    )


def _names_of_runs(records: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], str]:
    """Name each system on each device: with the device if there are several."""
    pairs = list(dict.fromkeys((record["system"], record["device"]) for record in records))
    systems = [system for system, _ in pairs]
    return {
        (system, device): system if systems.count(system) == 1 else f"{system} @ {device}" for system, device in pairs
    }


def _named(table: pl.DataFrame, names: Mapping[tuple[str, str], str]) -> pl.DataFrame:
    """Give the systems of a table their names, if any of them needs another one."""
    changed = {f"{system}\0{device}": name for (system, device), name in names.items() if name != system}
    if not changed:
        return table
    key = pl.concat_str(["system", "device"], separator="\0")
    return table.with_columns(key.replace_strict(changed, default=pl.col("system")).alias("system"))


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ResultsError(f"{path}: it is not JSON, as results are: {error}") from error
    except OSError as error:
        raise ResultsError(f"{path}: it cannot be read: {error.strerror}") from error


def _parquet(path: Path) -> pl.DataFrame | None:
    if not path.exists():
        return None
    try:
        return pl.read_parquet(path)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise ResultsError(f"{path}: it is damaged or no Parquet file: {error}") from error


def _demand_records(document: Path, records: Sequence[Any]) -> None:
    """Refuse runs that are no records, before a figure stumbles over them."""
    needed = ("system", "device", "trace", "seed", "host", "programs", "gc", "erases", "response_us", "configuration")
    if not records:
        raise ResultsError(f"{document}: it holds no run")
    for index, record in enumerate(records):
        missing = [key for key in needed if not isinstance(record, dict) or key not in record]
        if missing:
            raise ResultsError(f"{document}: run {index} lacks `{missing[0]}`, which every record has")


def _version(document: Path, content: Mapping[str, Any]) -> str:
    """Give the version that wrote a document, unless it is newer than this one."""
    version = content.get("version")
    if not isinstance(version, str):
        raise ResultsError(f"{document}: it does not say which version of Flashlore wrote it")
    if _ordered(version) > _ordered(__version__):
        raise ResultsError(f"{document}: Flashlore {version} wrote it, and this is {__version__}, which is older")
    return version


def _ordered(version: str) -> tuple[int, ...]:
    return tuple(int(part) if part.isdigit() else 0 for part in version.split("-", maxsplit=1)[0].split("."))
