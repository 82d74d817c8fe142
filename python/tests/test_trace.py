"""Traces of arrays and frames are those of files with the same records."""

import array
import datetime as dt
import pickle
from pathlib import Path
from typing import Any

import flashlore as fl
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

DEMO = "demo:maildir"
PAGE = 4096


def outcome(run: fl.Run) -> dict[str, Any]:
    """A record without what names its trace and without its speed."""
    record = run.to_dict()
    for key in ("trace", "trace_files", "run", "config_hash"):
        record.pop(key)
    return record


def columns(requests: int = 5000) -> dict[str, Any]:
    draw = np.random.default_rng(1)
    op = draw.choice(np.array([0, 1, 1, 1, 2], dtype=np.uint8), requests)
    pages = draw.integers(1, 5, requests)
    return {
        "op": op,
        "offset": draw.integers(0, 3000, requests) * PAGE,
        "length": pages * PAGE,
        "time": np.cumsum(draw.integers(0, 200_000, requests)),
        "content": draw.integers(0, 2000, int(pages[op == 1].sum()), dtype=np.uint64) * (2**40 + 1),
    }


def as_fiu(path: Path, taken: dict[str, Any]) -> Path:
    """The writes of some records as a text trace with digests, one line a page."""
    lines = []
    values = iter(taken["content"])
    for op, offset, length, time in zip(taken["op"], taken["offset"], taken["length"], taken["time"], strict=True):
        for page in range(length // PAGE):
            sector = offset // 512 + page * 8
            lines.append(f"{time} 1 app {sector} 8 {'RW'[op]} 8 0 {int(next(values)):032x}")
    path.write_text("\n".join(lines) + "\n")
    return path


def test_arrays_are_a_file_of_the_same_records(tmp_path: Path) -> None:
    taken = columns()
    draw = np.random.default_rng(2)
    requests = len(taken["op"])
    taken["op"] = draw.integers(0, 2, requests).astype(np.uint8)
    taken["length"] = np.full(requests, PAGE)
    taken["content"] = draw.integers(0, 900, requests).astype(np.uint64)
    # Some times step back, and are raised.
    taken["time"][50::100] -= 300_000
    file = fl.Trace.open(as_fiu(tmp_path / "trace.fiu", taken))
    arrays = fl.Trace.from_arrays(**taken)
    assert arrays.summary.inputs[0].read == file.summary.inputs[0].read
    assert file.summary.inputs[0].read.clamped > 0
    for content in ("trace", "distinct", "zipf:a=0.9,n=500"):
        runs = fl.compare([file.with_content(content), arrays.with_content(content)], progress=False)
        plain_file, dedup_file, plain_arrays, dedup_arrays = (outcome(run) for run in runs)
        assert plain_file == plain_arrays
        assert dedup_file == dedup_arrays


def test_records_of_one_request_are_joined_when_asked() -> None:
    whole, joined = fl.Trace.open("demo:maildir"), fl.Trace.open("demo:maildir", coalesce="0s")
    assert len(joined) == 19_080
    assert joined.summary.inputs[0].read.coalesced == len(whole) - len(joined)
    assert joined.summary.counts.writes.pages == whole.summary.counts.writes.pages
    run = fl.simulate(joined, progress=False)
    assert run.workload.read.coalesce_ns == 0
    with pytest.raises(fl.UsageError, match="coalesce: expected a duration"):
        fl.Trace.open("demo:maildir", coalesce="soon")


def test_redrawn_traces_are_pickled_and_keep_their_draw() -> None:
    trace = fl.Trace.synth("mail", requests=500)
    other = trace.redrawn(2)
    assert trace.redrawn(0) is trace
    assert other.summary.content != trace.summary.content
    assert other.summary.content == fl.Trace.synth("mail", requests=500, seed=3).summary.content
    for one in (
        other,
        other.with_content("zipf:a=1,n=50"),
        fl.Trace.from_arrays(**columns()).with_content("uniform:n=9"),
    ):
        back = pickle.loads(pickle.dumps(one.redrawn(1)))  # noqa: S301 (our own)
        assert outcome(fl.simulate(back, progress=False)) == outcome(fl.simulate(one.redrawn(1), progress=False))
    assert fl.Trace.open("demo:maildir").redrawn(5).summary == fl.Trace.open("demo:maildir").summary
    with pytest.raises(fl.UsageError, match="number = -1"):
        trace.redrawn(-1)


def test_frames_are_arrays() -> None:
    taken = columns()
    arrays = fl.Trace.from_arrays(**taken, name="t")
    values = iter(taken["content"])
    content = [
        [int(next(values)) for _ in range(length // PAGE)] if op == 1 else None
        for op, length in zip(taken["op"], taken["length"], strict=True)
    ]
    words = [fl.Op(op).name.lower() for op in taken["op"]]
    frame = pl.DataFrame({key: taken[key] for key in ("offset", "length", "time")} | {"op": words, "content": content})
    expected = outcome(fl.simulate(arrays, progress=False))
    for made in (frame, frame.to_arrow(), pd.DataFrame(frame.to_dict(as_series=False))):
        trace = fl.Trace.from_frame(made, name="t")
        assert trace.summary.inputs[0].sha256 == arrays.summary.inputs[0].sha256
        assert outcome(fl.simulate(trace, progress=False)) == expected


def test_a_table_of_records_gives_the_trace_back() -> None:
    trace = fl.Trace.open(DEMO)
    table = trace.to_table()
    assert len(table) == len(trace)
    again = fl.Trace.from_frame(table, name=trace.name)
    assert outcome(fl.simulate(again, progress=False)) == outcome(fl.simulate(trace, progress=False))


def test_traces_are_pickled_by_path_or_with_their_records() -> None:
    for trace in (
        fl.Trace.open(DEMO, content="distinct"),
        fl.Trace.open(DEMO).with_content("distinct"),
        fl.Trace.from_arrays(**columns()),
        fl.Trace.from_arrays(**columns()).with_content("zipf:a=1,n=300"),
    ):
        again = pickle.loads(pickle.dumps(trace))  # noqa: S301 (our own)
        assert again.name == trace.name
        assert again.summary == trace.summary
        assert outcome(fl.simulate(again, progress=False)) == outcome(fl.simulate(trace, progress=False))


def test_a_summary_says_what_the_file_has() -> None:
    summary = fl.Trace.open(DEMO).summary
    assert summary.requests == summary.counts.writes.requests
    assert summary.inputs[0].path == DEMO
    assert summary.footprint_units == summary.lpn_count
    wide = fl.Trace.open(DEMO, compact=False).summary
    assert wide.lpn_count > wide.footprint_units == summary.footprint_units
    assert summary.options.content == "from_trace"


def test_content_of_writes_or_of_reads_too() -> None:
    fixed: dict[str, Any] = {
        "op": ["r", "w", "flush", "trim"],
        "offset": array.array("Q", [0, 0, 0, 0]),
        "length": array.array("I", [PAGE, PAGE + 1, 0, PAGE]),
    }
    of_writes = fl.Trace.from_arrays(**fixed, content=array.array("q", [1, 2])).summary
    assert (of_writes.content.pages_written, of_writes.content.pages_read) == (2, 0)
    of_both = fl.Trace.from_arrays(**fixed, content=array.array("q", [3, 1, 2])).summary
    assert (of_both.content.pages_written, of_both.content.pages_read) == (2, 1)
    with pytest.raises(fl.UsageError, match=r"content has 1 numbers, .*every write \(2\).*read and write \(3\)"):
        fl.Trace.from_arrays(**fixed, content=array.array("q", [3]))


@pytest.mark.parametrize(
    ("change", "error", "sentence"),
    [
        ({"op": ["write", "wipe"]}, fl.UsageError, "op is 'wipe', expected read, write, trim or flush"),
        ({"op": [1, 9]}, fl.TraceError, "record 2: op is 9, expected 0 (read)"),
        ({"offset": array.array("q", [0, -5])}, fl.UsageError, "offset[1] is -5"),
        ({"offset": array.array("q", [0])}, fl.UsageError, "offset has 1 numbers and op has 2"),
        ({"length": array.array("d", [1.0, 2.0])}, fl.UsageError, 'length is an array of the type "d"'),
        ({"length": [1, 2]}, fl.UsageError, "length is a list, expected a contiguous array"),
        ({"length": array.array("q", [PAGE, 0])}, fl.TraceError, "record 2: size is 0"),
        ({"length": array.array("q", [PAGE, 1 << 31])}, fl.TraceError, "at most 2^30 bytes"),
        ({"offset": np.zeros(4, dtype=np.int64)[::2]}, fl.UsageError, "with gaps"),
        ({"offset": np.zeros((2, 1), dtype=np.int64)}, fl.UsageError, "2 dimensions"),
        ({"offset": np.array([0, PAGE], dtype=">i8")}, fl.UsageError, "the type '>q', expected the byte order of this"),
        ({"op": np.array([1, 1], dtype=">u2")}, fl.UsageError, "the type '>H', expected the byte order of this"),
        ({"op": [1, 1.5]}, fl.UsageError, "op is 1.5, expected read, write"),
        ({"op": [1, 300]}, fl.UsageError, "op is 300, expected read, write"),
        ({"op": b"", "offset": array.array("q"), "length": array.array("q")}, fl.TraceError, "holds no record"),
    ],
)
def test_arrays_that_are_no_records(change: dict[str, Any], error: type[Exception], sentence: str) -> None:
    fixed: dict[str, Any] = {
        "op": [1, 1],
        "offset": array.array("q", [0, PAGE]),
        "length": array.array("q", [PAGE, PAGE]),
    }
    with pytest.raises(error) as raised:
        fl.Trace.from_arrays(**{**fixed, **change})
    assert sentence in str(raised.value)


def test_frames_that_are_no_records() -> None:
    with pytest.raises(fl.UsageError, match="no column length"):
        fl.Trace.from_frame(pl.DataFrame({"op": [1], "offset": [0]}))
    two: dict[str, Any] = {"op": [1, 1], "offset": [0, 0], "length": [PAGE, PAGE]}
    for change, sentence in (
        ({"op": ["write", "wipe"]}, "op is 'wipe', expected read, write"),
        ({"op": [1.0, 1.0]}, "column op is of Float64, expected words or whole numbers"),
        ({"offset": [0, -1]}, "cannot be taken as records: conversion .* failed in column 'offset'"),
        ({"offset": [0, None]}, "column offset has nulls"),
        ({"length": [0.5, 1.0]}, "column length is of Float64, expected whole numbers"),
        # Seconds would all become the same nanoseconds.
        ({"time": [0.25, 0.5]}, "column time is of Float64, expected nanoseconds as whole numbers, dates or durations"),
        # What is not known is not the value 0.
        ({"length": [2 * PAGE, PAGE], "content": [[7, None], [7]]}, "column content has nulls within its lists"),
        ({"content": [[7.5], None]}, "column content is of Float64, expected lists of whole numbers"),
        ({"content": [7, 8]}, "column content is of Int64, expected lists of whole numbers"),
    ):
        with pytest.raises(fl.UsageError, match=sentence):
            fl.Trace.from_frame(pl.DataFrame({**two, **change}))


def test_words_in_arrays_and_times_of_all_kinds() -> None:
    begun = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    fixed: dict[str, Any] = {"offset": np.array([0, 0]), "length": np.array([PAGE, PAGE])}
    for op in (np.array(["w", "READ"]), np.array(["write", "r"], dtype=object), pl.Series(["write", "read"])):
        assert fl.Trace.from_arrays(op=op, **fixed).to_table().to_polars()["op"].to_list() == ["write", "read"]
    for time in ([begun, begun + dt.timedelta(microseconds=5)], [dt.timedelta(0), dt.timedelta(microseconds=5)]):
        trace = fl.Trace.from_frame(pl.DataFrame({"op": ["w", "r"], **fixed, "time": time}))
        assert trace.to_table().to_polars()["time"].to_list() == [0, 5000]


@settings(max_examples=25)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 2),
            st.integers(0, 40_000),
            st.integers(1, 20_000),
            st.integers(0, 10**6),
            st.integers(0, 5),
        ),
        min_size=1,
        max_size=60,
    )
)
def test_any_records_come_back_as_they_were(records: list[tuple[int, int, int, int, int]]) -> None:
    op, offset, length, time, value = (list(column) for column in zip(*records, strict=True))
    chunks = [-(-bytes_ // PAGE) for bytes_ in length]
    content = [[one] * count if kind == 1 else None for kind, one, count in zip(op, value, chunks, strict=True)]
    flat = [number for numbers in content if numbers for number in numbers]
    trace = fl.Trace.from_arrays(
        op=bytes(op),
        offset=np.array(offset, dtype=np.uint32),
        length=np.array(length, dtype=np.int32),
        time=np.array(time),
        content=np.array(flat, dtype=np.uint8),
    )
    table = trace.to_table().to_polars()
    assert table["offset"].to_list() == offset
    assert table["length"].to_list() == length
    raised = np.maximum.accumulate(time)
    assert table["time"].to_list() == (raised - raised[0]).tolist()
    # Values are numbered anew, in order of first appearance.
    numbers = {number: at for at, number in enumerate(dict.fromkeys(flat))}
    expected = [numbers_ and [numbers[number] for number in numbers_] for numbers_ in content]
    assert table["content"].to_list() == expected
