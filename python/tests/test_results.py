"""Results: typed records, tables, and the files of --out."""

import json
import pickle
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import flashlore as fl
import polars as pl
import pytest
from flashlore._tree import from_tree
from flashlore.characteristics import Statistics
from flashlore.record import Record

DEMO = "demo:django-upgrade"


@pytest.fixture(scope="module")
def results() -> fl.Results:
    return fl.compare(DEMO, ["plain", "bvssd"], seeds=2, timeline="100ms", progress=False)


def paths_of(value: object, path: str = "") -> Iterator[str]:
    """The paths of the fields of dataclasses."""
    if not is_dataclass(value):
        return
    for field in fields(value):
        here = f"{path}.{field.name}"
        inner = getattr(value, field.name)
        yield here
        yield from paths_of(inner[0] if isinstance(inner, tuple) and inner else inner, here)


def keys_of(tree: object, typed: object, path: str = "") -> Iterator[str]:
    """The paths of the keys of a tree, as far as it is typed."""
    if not isinstance(tree, dict) or not is_dataclass(typed):
        return
    for key, inner in tree.items():
        here = f"{path}.{key}"
        yield here
        mine = getattr(typed, key, None)
        if isinstance(inner, list) and inner and isinstance(mine, tuple):
            inner, mine = inner[0], mine[0]  # noqa: PLW2901
        yield from keys_of(inner, mine, here)


def test_fields_of_a_record_are_those_of_the_json(results: fl.Results) -> None:
    # R_c of a trace and joining are keys only where they are asked for, what was drawn anew only with several seeds.
    rated = fl.Trace.open(DEMO, coalesce="0s", delta="gaussian:mean=0.3,std=0.05")
    system = fl.System("delta-ftl", {"codec.ratio": "trace"})
    run = fl.simulate(rated, system, progress=False)
    assert set(paths_of(run)) - set(keys_of(run.to_dict(), run)) == {".drawn_from"}
    absent = set(paths_of(results[0])) - set(keys_of(results[0].to_dict(), results[0]))
    assert absent == {".workload.delta", ".workload.read.coalesce_ns", ".drawn_from"}
    assert set(keys_of(results[0].to_dict(), results[0])) <= set(paths_of(results[0]))


def test_values_of_a_record_are_those_of_the_json(results: fl.Results) -> None:
    def value(path: str, tree: Any) -> Any:
        for name in path.split(".")[1:]:
            tree = tree[name] if isinstance(tree, dict) else getattr(tree, name)
        return tree

    for run in results:
        tree = run.to_dict()
        for path in keys_of(tree, run):
            found = value(path, run) if "trace_files." not in path else None
            expected = value(path, tree) if "trace_files." not in path else None
            if isinstance(found, tuple):
                found = [list(item) if isinstance(item, tuple) else item for item in found]
            if is_dataclass(found) or isinstance(expected, list | dict):
                continue
            assert found == expected, path


def test_a_record_with_other_fields_is_refused(results: fl.Results) -> None:
    tree = results[0].to_dict()
    tree["gc"]["more"] = 1
    with pytest.raises(fl.ResultsError, match=r"gc\.more is no field of a record"):
        from_tree(Record, tree)
    del tree["gc"]["more"], tree["gc"]["victims"]
    with pytest.raises(fl.ResultsError, match=r"gc\.victims is missing"):
        from_tree(Record, tree)


def files(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in path.iterdir()}


def test_files_are_those_of_the_command_and_load_as_they_were(results: fl.Results, tmp_path: Path) -> None:
    ours, theirs, again = tmp_path / "ours", tmp_path / "theirs", tmp_path / "again"
    results.save(ours)
    arguments = ["compare", DEMO, "--systems", "plain,bvssd", "--seeds", "2", "--timeline", "100ms"]
    subprocess.run(
        [sys.executable, "-m", "flashlore", *arguments, "--out", str(theirs)], check=True, capture_output=True
    )
    found, expected = files(ours), files(theirs)
    assert set(found) == set(expected)
    for name in set(found) - {"results.json", "results.parquet"}:
        assert found[name] == expected[name], name
    loaded = fl.Results.load(ours)
    loaded.save(again)
    assert files(again) == found
    assert repr(loaded) == repr(results)
    for mine, read in zip(results, loaded, strict=True):
        assert mine == read
        for table in ("response_cdf", "victim_cdf", "erase_cdf", "timeline"):
            assert getattr(mine, table)().to_polars().equals(getattr(read, table)().to_polars())


def test_runs_with_equal_labels_keep_their_own_rows(tmp_path: Path) -> None:
    settings: list[fl.Settings] = [{}, {"host.mode": "closed", "host.queue_depth": 8}]
    twice = fl.Results([fl.simulate(DEMO, "plain", settings=each, progress=False) for each in settings])
    twice.save(tmp_path)
    loaded = fl.Results.load(tmp_path)
    for mine, read in zip(twice, loaded, strict=True):
        assert mine.response_cdf().to_polars().equals(read.response_cdf().to_polars())
    assert not twice[0].response_cdf().to_polars().equals(twice[1].response_cdf().to_polars())


def test_json_alone_has_no_distribution(results: fl.Results, tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    file.write_text(results.to_json())
    loaded = fl.Results.load(file)
    assert list(loaded) == list(results)
    assert loaded.victim_cdf().to_polars().equals(results.victim_cdf().to_polars())
    with pytest.raises(fl.ResultsError, match="without its response times"):
        loaded.response_cdf()
    with pytest.raises(fl.ResultsError, match="without its response times"):
        loaded.save(tmp_path / "out")
    with pytest.raises(fl.ResultsError, match="no run has a time line"):
        loaded.timeline()


def test_runs_are_pickled_with_their_tables(results: fl.Results) -> None:
    again = pickle.loads(pickle.dumps(results))  # noqa: S301 (our own)
    assert list(again) == list(results)
    assert again.timeline().to_polars().equals(results.timeline().to_polars())
    assert again.response_cdf().to_polars().equals(results.response_cdf().to_polars())


def test_tables_go_to_every_library(results: fl.Results) -> None:
    table = results.runs()
    assert len(table) == 4
    assert table.columns[:4] == ["system", "device", "trace", "seed"]
    frame = table.to_polars()
    assert table.to_arrow().column_names == table.columns
    assert list(table.to_pandas().columns) == table.columns
    assert frame["response_us.all.p99"].to_list() == [run.response_us.all.p99 for run in results]
    assert pl.DataFrame(table).equals(frame)
    assert fl.Table(frame).to_polars().equals(frame)
    with pytest.raises(fl.UsageError, match="int offers no Arrow data"):
        fl.Table(7)


def test_results_print_as_the_command_does(results: fl.Results) -> None:
    assert "units programmed" in repr(results)
    assert "units programmed" in results._repr_html_()
    assert isinstance(results[1:], fl.Results)
    assert len(results[1:]) == 3


@pytest.mark.parametrize("text", ["", "{}", '{"version": "1", "runs": 3}'])
def test_what_are_no_results(text: str, tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    file.write_text(text)
    with pytest.raises(fl.ResultsError, match=r"x\.json is not a results file"):
        fl.Results.load(file)
    with pytest.raises(fl.FileError, match="cannot read"):
        fl.Results.load(tmp_path / "none.json")


def test_characteristics_are_those_of_the_command(tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    found = fl.characterize(DEMO, slice="1s", capacities=["1GiB", 1 << 20])
    found.save(ours)
    arguments = ["trace", "characterize", DEMO, "--slice", "1s", "--capacity", "1GiB,1MiB"]
    printed = subprocess.run(
        [sys.executable, "-m", "flashlore", *arguments, "--out", str(theirs)],
        check=True,
        capture_output=True,
        text=True,
    )
    assert files(ours) == files(theirs)
    assert printed.stdout.strip() == repr(found).strip()
    loaded = fl.Characterization.load(ours)
    assert loaded.to_dict() == found.to_dict() == json.loads((theirs / "summary.json").read_text())
    for name, table in found.items():
        assert loaded[name].to_polars().equals(table.to_polars())
        if (file := theirs / f"{name}.parquet").exists():
            assert pl.read_parquet(file).equals(table.to_polars())
    assert isinstance(found.record.whole, Statistics)
    assert found.record.workload is not None
    assert found.record.slices[-1].statistics.mix.writes.pages > 0
    absent = set(paths_of(found.record)) - set(keys_of(found.to_dict(), found.record))
    assert absent == {".workload.read.coalesce_ns"}
    assert set(keys_of(found.to_dict(), found.record)) <= set(paths_of(found.record)) | {".whole.compressibility"}
    with pytest.raises(fl.UsageError, match="sample is 0"):
        fl.characterize(DEMO, sample=0.0)
    with pytest.raises(fl.UsageError, match="slice"):
        fl.characterize(DEMO, slice="soon")
