"""Figures build, are drawn in both themes, and tell systems apart for everybody; their tables keep what they show."""

import itertools
import json
import math
import re
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
import vl_convert
from flashlore import figures
from flashlore.errors import ResultsError
from flashlore.figures import Tables, theme, timeline
from flashlore.figures.programs import causes, changes
from flashlore.figures.thin import CELLS, coarse, thin, widened
from hypothesis import given, settings
from hypothesis import strategies as st

SYSTEMS = ["plain", "ca-ssd", "mine"]
TRACES = ["one.csv", "two.csv"]
RESPONSES = {"mean": 100.0, "p50": 50.0, "p95": 400.0, "p99": 900.0, "p999": 1600.0, "p9999": 2500.0}


def runs() -> pl.DataFrame:
    rows = []
    for index, (trace, system) in enumerate(itertools.product(TRACES, SYSTEMS)):
        told = system == "ca-ssd"
        rows.append(
            {
                "system": system,
                "trace": trace,
                "seed": 1,
                "programs.host": 100,
                "programs.unique": 60 if told else None,
                "programs.reborn": 30 if told else None,
                "programs.duplicate": 10 if told else None,
                "programs.packed": 0,
                "programs.merge": 0,
                "programs.gc": 20 * index,
                "programs.wear": 0,
                "programs.map": 3,
                "programs.padding": 0,
                "host.write_pages": 110,
                "flash.block_erases": 10 + index,
                "energy_uj": 5.0 + index,
                "erases.min": 0,
                "erases.mean": 1.5,
                "erases.max": 4 + index,
                "waf_total": 1.0 + index,
                "history.window_s": float(index),
                "device.space.over_provisioning": 0.07 * (index + 1),
                **{f"response_us.all.{key}": time * (index + 1) for key, time in RESPONSES.items()},
            }
        )
    return pl.DataFrame(rows)


def lines(columns: dict[str, list[float]]) -> pl.DataFrame:
    """The same line for every system, trace and two seeds."""
    who = pl.DataFrame(
        list(itertools.product(SYSTEMS, TRACES, [1, 2])), schema=["system", "trace", "seed"], orient="row"
    )
    return who.join(pl.DataFrame(columns), how="cross")


def response() -> pl.DataFrame:
    return lines({"response_us": [10.0, 200.0, 4000.0], "share": [0.2, 0.9, 1.0]}).with_columns(kind=pl.lit("all"))


def time_line() -> pl.DataFrame:
    counts = ("requests", "read_pages", "write_pages", "host_programs", "gc_programs", "other_programs", "erases")
    columns: dict[str, list[float]] = {name: [5, 6, 7] for name in counts}
    columns |= {"start_s": [0.0, 1.0, 2.0], "width_s": [1.0] * 3, "free_blocks": [9, 8, 7], "waf": [1.0] * 3}
    columns |= {"response_mean_us": [1.0, 20.0, 300.0], "die_busy": [0.1, 0.5, 1.0], "channel_busy": [0.1, 0.2, 0.3]}
    columns |= {"erases_mean": [0.1, 0.2, 0.3], "erases_max": [1, 1, 2], "erases_std": [0.1, 0.2, 0.1]}
    return lines(columns | {"window_s": [1.0, 2.0, 3.0], "units_in_use": [10, 20, 30]})


def characterized(name: str) -> pl.DataFrame:
    tables = {
        "popularity": {
            "accesses_per_value": [100, 2, 1],
            "values": [1, 10, 100],
            "share_of_values": [0.01, 0.1, 1.0],
            "share_of_accesses": [0.4, 0.5, 1.0],
        },
        "stack_distance": {
            "space": ["value", "value", "page"],
            "distance": [1, 9, 5],
            "share_of_accesses": [0.1, 0.3, 1.0],
        },
        "miss_ratio": {"entries": [1, 2, 4], "plain_ratio": [0.9, 0.7, 0.5], "live_ratio": [0.9, 0.8, 0.6]},
        "sizes": {"low_bytes": [4096, 8192], "high_bytes": [4096, 8192], "requests": [5, 6]},
        "overwrite": {
            "measure": ["page_writes", "page_writes", "time_ns"],
            "low": [1, 2, 7],
            "high": [1, 3, 8],
            "overwrites": [4, 5, 6],
        },
    }
    return pl.DataFrame(tables[name]).with_columns(pl.lit("write").alias("class"), slice=pl.lit(None, pl.Int64))


def busy() -> pl.DataFrame:
    return figures.utilization_of(
        [
            {"system": system, "trace": trace, "seed": 1, "utilization": {"die": [0.2, 1.1], "channel": [0.4]}}
            for system, trace in itertools.product(SYSTEMS, TRACES)
        ]
    )


Make = Callable[..., theme.Figure]
OF_RUNS: dict[str, tuple[Callable[[], pl.DataFrame], Make]] = {
    "response_cdf": (response, figures.response_cdf),
    "response_percentiles": (runs, figures.response_percentiles),
    "programs_by_cause": (runs, figures.programs_by_cause),
    "change": (runs, figures.change),
    "wear_spread": (runs, figures.wear_spread),
    "wear_distribution": (
        lambda: lines({"erases": [0, 1, 5], "blocks": [5, 4, 1], "share": [0.5, 0.9, 1.0]}),
        figures.wear_distribution,
    ),
    "valid_per_victim": (
        lambda: lines({"valid_units": [0, 8, 60], "victims": [3, 3, 4], "share": [0.3, 0.6, 1.0]}),
        figures.valid_per_victim,
    ),
    "utilization": (busy, figures.utilization),
    "amplification": (runs, figures.amplification),
    "protection_window": (
        runs,
        lambda frame, **how: figures.protection_window(frame, "device.space.over_provisioning", **how),
    ),
    "against a name": (runs, lambda frame, **how: figures.against(frame, "trace name", "waf_total", **how)),
    **{
        measure: (time_line, lambda frame, measure=measure, **how: figures.over_time(frame, measure, **how))
        for measure in timeline.MEASURES
    },
}
OF_TRACES: dict[str, tuple[Callable[[], pl.DataFrame], Make]] = {
    "popularity": (lambda: characterized("popularity"), figures.popularity),
    "stack_distances": (lambda: characterized("stack_distance"), figures.stack_distances),
    "miss_ratio": (lambda: characterized("miss_ratio"), figures.miss_ratio),
    "request_sizes": (lambda: characterized("sizes"), figures.request_sizes),
    "overwrite_distances": (lambda: characterized("overwrite"), figures.overwrite_distances),
}
FIGURES = OF_RUNS | OF_TRACES


def data_of(name: str) -> pl.DataFrame:
    frame = FIGURES[name][0]()
    if name == "against a name":
        return frame.with_columns(pl.col("trace").alias("trace name"))
    return frame


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_drawn_in_both_themes(name: str) -> None:
    frame = data_of(name)
    if "trace" in frame.columns:
        frame = frame.filter(pl.col("trace") == TRACES[0])
    light, dark = (FIGURES[name][1](frame, theme=which).to_dict() for which in ("light", "dark"))
    drawn = vl_convert.vegalite_to_svg(light)
    # Marks of data, not those of axes and legends.
    assert re.search(r'aria-roledescription="[^"]*(mark|bar|line|point|tick|symbol)[^"]*"', drawn)
    assert theme.paint(light) == dark
    left = set(re.findall(r"#[0-9a-f]{6}\b", json.dumps({**dark, "datasets": None}))) & set(theme.DARK_OF_LIGHT)
    assert left == set()


@pytest.mark.parametrize("name", OF_RUNS)
def test_several_traces_stand_side_by_side(name: str) -> None:
    spec = OF_RUNS[name][1](data_of(name)).to_dict()
    assert spec["facet"]["field"] == "trace"


@pytest.mark.parametrize("name", OF_TRACES)
def test_characterized_traces_stand_side_by_side_as_each_by_itself(name: str) -> None:
    make, draw = OF_TRACES[name]
    frames = {TRACES[0]: make(), TRACES[1]: make().head(2)}

    def points(frame: pl.DataFrame) -> list[dict[str, object]]:
        (data,) = draw(frame).to_dict()["datasets"].values()
        return [{key: value for key, value in row.items() if key != "_"} for row in data]

    named = {trace: frame.with_columns(trace=pl.lit(trace)) for trace, frame in frames.items()}
    both = pl.concat(named.values())
    assert draw(both).to_dict()["facet"]["field"] == "trace"
    for trace, frame in named.items():
        assert [row for row in points(both) if row["trace"] == trace] == points(frame)


# What a figure draws of the first system, or of the only trace, in the columns of its axes.
DRAWN: dict[str, list[tuple[object, ...]]] = {
    "response_cdf": [(10.0, 0.2), (200.0, 0.9), (4000.0, 1.0)],
    "response_percentiles": [("50 %", 50.0), ("95 %", 400.0), ("99 %", 900.0), ("99.9 %", 1600.0), ("99.99 %", 2500.0)],
    "wear_spread": [(0.0, 1.5, 4.0)],
    "wear_distribution": [(0, 0.5), (1, 0.9), (5, 1.0)],
    "valid_per_victim": [(0, 0.3), (8, 0.6), (60, 1.0)],
    "utilization": [("die", 0, 0.2), ("die", 1, 1.1), ("channel", 0, 0.4)],
    "stack_distances": [(1, 0.1), (9, 0.3)],
    "miss_ratio": [
        *[(entries, "plain index", ratio) for entries, ratio in ((1, 0.9), (2, 0.7), (4, 0.5))],
        *[(entries, "live index", ratio) for entries, ratio in ((1, 0.9), (2, 0.8), (4, 0.6))],
    ],
    "request_sizes": [(4096, 5 / 11), (8192, 1.0)],
    "overwrite_distances": [(1, 4 / 9), (3, 1.0)],
}
AXES = {
    "response_cdf": ("response_us", "share"),
    "response_percentiles": ("percentile", "response_us"),
    "wear_spread": ("min", "mean", "max"),
    "wear_distribution": ("erases", "share"),
    "valid_per_victim": ("valid_units", "share"),
    "utilization": ("part", "number", "busy"),
    "stack_distances": ("distance", "share"),
    "miss_ratio": ("entries", "reading", "ratio"),
    "request_sizes": ("high_bytes", "share"),
    "overwrite_distances": ("high", "share"),
}


@pytest.mark.parametrize("name", DRAWN)
def test_a_figure_draws_the_numbers_of_its_frame(name: str) -> None:
    frame = data_of(name)
    for key, value in (("trace", TRACES[0]), ("system", "plain"), ("seed", 1)):
        frame = frame.filter(pl.col(key) == value) if key in frame.columns else frame
    (rows,) = FIGURES[name][1](frame).to_dict()["datasets"].values()
    assert [tuple(row[key] for key in AXES[name]) for row in rows] == DRAWN[name]


def test_each_series_has_its_own_colour_dashes_and_shape() -> None:
    names = ["trap", "plain", "bvssd"]
    looks = [theme.SYSTEMS[name] for name in names]
    for scale, expected in (
        (theme.colours(names), [look.light for look in looks]),
        (theme.dashes(names), [list(look.dash) for look in looks]),
        (theme.shapes(names), [look.shape for look in looks]),
    ):
        assert (scale.to_dict()["domain"], scale.to_dict()["range"]) == (names, expected)


def test_an_unknown_theme_is_refused() -> None:
    with pytest.raises(ValueError, match='the theme is "blue"; there are "light" and "dark"'):
        figures.wear_spread(runs(), theme="blue")  # type: ignore[arg-type]


def test_kinds_of_host_programs_stand_for_their_sum() -> None:
    table = causes(runs()).filter(pl.col("trace") == TRACES[0])
    told = table.filter(pl.col("system") == "ca-ssd").sort("order")
    assert told["cause"].to_list()[:3] == ["host: new content", "host: reborn content", "host: duplicate"]
    assert told["units"].to_list()[:3] == [60, 30, 10]
    assert table.filter(pl.col("system") == "plain")["cause"].to_list() == ["host", "map"]


def test_changes_are_against_the_named_system() -> None:
    table = changes(runs(), "mine").filter(pl.col("measure") == "block erases", pl.col("trace") == TRACES[0])
    assert table["system"].to_list() == ["plain", "ca-ssd"]
    assert table["ratio"].to_list() == pytest.approx([10 / 12, 11 / 12])
    assert table["change"].to_list() == pytest.approx([10 / 12 - 1, 11 / 12 - 1])
    # Host, collection and map: 163, 183 and 203.
    units = changes(runs()).filter(pl.col("measure") == "units programmed", pl.col("trace") == TRACES[1])
    assert units["ratio"].to_list() == pytest.approx(
        [(100 + 80 + 3) / (100 + 60 + 3), (100 + 100 + 3) / (100 + 60 + 3)]
    )


def test_systems_and_names_stay_in_the_order_of_the_frame_and_numbers_ascend() -> None:
    rows = [("plain", "16Ki", 2.0), ("plain", "128Ki", 1.0), ("ca-ssd", "16Ki", 2.0), ("ca-ssd", "128Ki", 1.0)]
    frame = pl.DataFrame(rows, schema=["system", "entries", "fill"], orient="row").with_columns(
        trace=pl.lit("t"), waf=1
    )

    def drawn(setting: str) -> list[tuple[str, object]]:
        (data,) = figures.against(frame, setting, "waf").to_dict()["datasets"].values()
        return [(row["system"], row["setting"]) for row in data]

    assert drawn("entries") == [(system, entries) for system, entries, _ in rows]
    assert drawn("fill") == [("plain", 1.0), ("ca-ssd", 1.0), ("plain", 2.0), ("ca-ssd", 2.0)]


def test_what_is_answered_at_once_is_drawn_at_a_microsecond() -> None:
    frame = pl.DataFrame({"response_us": [0.0, 0.5, 200.0], "share": [0.6, 0.7, 1.0], "kind": "all"})
    frame = frame.with_columns(system=pl.lit("bvssd"), trace=pl.lit("t"), seed=1)
    (rows,) = figures.response_cdf(frame).to_dict()["datasets"].values()
    assert [(row["response_us"], row["share"]) for row in rows] == [(1.0, 0.7), (200.0, 1.0)]
    at_once = runs().filter(pl.col("trace") == TRACES[0]).with_columns(pl.col("response_us.all.p50") * 0)
    (rows,) = figures.response_percentiles(at_once).to_dict()["datasets"].values()
    assert [row["response_us"] for row in rows if row["percentile"] == "50 %"] == [1.0] * 3


def test_a_kind_of_requests_is_not_drawn_for_another() -> None:
    assert figures.response_cdf(response(), kind="read").to_dict()["datasets"].popitem()[1] == []


# ---- colours

# What people with protanopia, deuteranopia and tritanopia see of linear light (Machado and others, 2009).
SIGHTS = (
    ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)),
    ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
)
Triple = tuple[float, ...]


def times(matrix: tuple[Triple, ...], colour: Triple) -> Triple:
    return tuple(sum(a * b for a, b in zip(row, colour, strict=True)) for row in matrix)


def linear(colour: str) -> Triple:
    parts = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    return tuple(part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)


def luminance(colour: str) -> float:
    red, green, blue = linear(colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def oklab(light: Triple) -> Triple:
    cones = times(
        ((0.41222, 0.53633, 0.05145), (0.21190, 0.68070, 0.10740), (0.08830, 0.28172, 0.62998)),
        tuple(min(max(part, 0.0), 1.0) for part in light),
    )
    return times(
        ((0.21045, 0.79362, -0.00407), (1.97800, -2.42859, 0.45059), (0.02590, 0.78277, -0.80868)),
        tuple(math.cbrt(part) for part in cones),
    )


def difference(one: str, other: str) -> float:
    """The least difference that any of the four kinds of sight sees, in OKLab; 0.02 is just noticeable."""
    return min(math.dist(oklab(times(sight, linear(one))), oklab(times(sight, linear(other)))) for sight in SIGHTS)


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


FTL = list(theme.SYSTEMS)[:8]
ARRAYS = list(theme.SYSTEMS)[8:14]
VARIANTS = list(theme.SYSTEMS)[14:]


@pytest.mark.parametrize("which", ["light", "dark"])
def test_systems_are_told_apart_by_everybody(which: str) -> None:
    def shade(name: str) -> str:
        return str(getattr(theme.SYSTEMS[name], which))

    for kind in (FTL, ARRAYS, VARIANTS):
        for one, other in itertools.combinations(kind, 2):
            assert difference(shade(one), shade(other)) > 0.09, (one, other)
            assert theme.SYSTEMS[one].dash != theme.SYSTEMS[other].dash
            assert theme.SYSTEMS[one].shape != theme.SYSTEMS[other].shape
    for one, other in itertools.combinations(theme.SYSTEMS, 2):
        assert difference(shade(one), shade(other)) > 0.045, (one, other)
    # The two that are compared most.
    assert difference(shade("plain"), shade("ca-ssd")) > 0.13
    # In grey, as print has it: the cube root is about as light as it looks.
    for one, other in itertools.combinations(FTL[:5], 2):
        assert abs(luminance(shade(one)) ** (1 / 3) - luminance(shade(other)) ** (1 / 3)) > 0.04, (one, other)


@pytest.mark.parametrize("at", [0, 1])
def test_colours_stand_out_from_the_ground(at: int) -> None:
    ground = theme.GROUND[at]
    for name, look in theme.SYSTEMS.items():
        assert contrast((look.light, look.dark)[at], ground) >= 3, name
    for text in (theme.INK, theme.MUTED, theme.BETTER, theme.WORSE):
        assert contrast(text[at], ground) >= 4.5
    stacked = [pair[at] for pair in theme.CAUSES.values()]
    for one, other in itertools.pairwise(stacked):
        assert difference(one, other) > 0.05, (one, other)


def test_no_colour_stands_for_two_things() -> None:
    lights = [look.light for look in (*theme.SYSTEMS.values(), *theme.CLASSES.values())]
    lights += [light for light, _ in theme.CAUSES.values()]
    assert len(set(lights)) == len(lights)
    assert set(theme.DARK_OF_LIGHT).isdisjoint(theme.DARK_OF_LIGHT.values())
    assert len(set(theme.DARK_OF_LIGHT.values())) == len(theme.DARK_OF_LIGHT)


@given(
    st.lists(st.sampled_from([*theme.SYSTEMS, "a", "b", "ca-ssd @ large", "c"]), min_size=1, max_size=12, unique=True)
)
def test_every_system_of_a_figure_has_a_look_of_its_own(names: list[str]) -> None:
    found = theme.looks(names)
    assert list(found) == names
    assert len({look.light for look in found.values()}) == len(names)
    for name in names:
        if name in theme.SYSTEMS:
            assert found[name] == theme.SYSTEMS[name]


# ---- thinning


@settings(max_examples=60)
@given(st.lists(st.integers(1, 10**7), min_size=1, max_size=3000, unique=True), st.booleans())
def test_thinning_leaves_out_nothing_that_is_seen(numbers: list[int], log: bool) -> None:  # noqa: FBT001
    numbers.sort()
    count = len(numbers)
    full = pl.DataFrame({"x": numbers, "share": [(at + 1) / count for at in range(count)], "system": "plain"})
    kept = thin(full, "x", "share", ["system"], log=log)
    assert kept.height <= 2 * CELLS + 2
    assert kept.row(0) == full.row(0)
    assert kept.row(-1) == full.row(-1)
    place = math.log if log else float
    width = (place(numbers[-1]) - place(numbers[0])) or 1.0
    drawn = dict(zip(kept["x"], kept["share"], strict=True))
    before = (numbers[0], full["share"][0])
    for x, share in zip(full["x"], full["share"], strict=True):
        if x in drawn:
            before = (x, share)
        assert share - before[1] <= 1 / CELLS + 1e-9
        assert (place(x) - place(before[0])) / width <= 1 / CELLS + 1e-9


def test_long_time_lines_are_joined() -> None:
    full = pl.DataFrame({"system": ["a"] * 1000, "start_s": list(range(1000)), "v": [float(n) for n in range(1000)]})
    joined = coarse(full, ["system"], 400, pl.col("start_s").first(), pl.col("v").mean())
    assert joined.row(1) == ("a", 3, 4.0)
    assert joined.height == 334
    assert coarse(full, ["system"], 1000, pl.col("v").mean()).equals(full)


def test_stretches_that_are_joined_count_by_what_they_hold() -> None:
    """The first two of 800 stretches: one request of 10 us, then three of 30."""
    count = 800
    frame = lines(
        {
            "start_s": [0.5 * at for at in range(count)],
            "width_s": [0.5] * count,
            "requests": [1, 3] * (count // 2),
            "response_mean_us": [10.0, 30.0] * (count // 2),
            "free_blocks": [float(at) for at in range(count)],
            **{name: [1] * count for name in ("host_programs", "gc_programs", "other_programs", "write_pages")},
        }
    ).filter(pl.col("system") == "plain", pl.col("trace") == TRACES[0], pl.col("seed") == 1)

    def first(measure: str) -> tuple[float, ...]:
        (rows,) = figures.over_time(frame, measure).to_dict()["datasets"].values()
        return tuple(value for key, value in rows[0].items() if key not in ("system", "trace", "seed", "_"))

    assert first("response_mean_us") == (0.0, 25.0)
    assert first("programs") == (0.0, 6.0)
    # What is seen at the end of a stretch stands at its end.
    assert first("free_blocks") == (1.0, 1.0)


def test_amplification_so_far_is_a_quotient_of_sums() -> None:
    table = timeline.measured(time_line()).filter(
        pl.col("system") == "plain", pl.col("trace") == TRACES[0], pl.col("seed") == 1
    )
    assert table["waf"].to_list() == [3.0, 3.0, 3.0]
    assert not timeline.has(time_line().drop("die_busy"), "die_busy")
    assert timeline.has(time_line(), "die_busy")


# ---- reading results

RECORD = {
    "system": "plain",
    "device": "auto",
    "trace": "t",
    "seed": 1,
    "host": {},
    "programs": {},
    "gc": {"valid_per_victim": [[1, 3], [5, 1]]},
    "erases": {},
    "response_us": {},
    "configuration": {},
}


def test_victims_come_from_the_records_as_well(tmp_path: Path) -> None:
    document = tmp_path / "results.json"
    document.write_text(json.dumps({"version": "0.1.0", "runs": [RECORD, {**RECORD, "device": "large"}]}))
    tables = Tables.load(document)
    assert tables.systems == ["plain @ auto", "plain @ large"]
    assert tables.victim_cdf is not None
    assert tables.victim_cdf["share"].to_list() == [0.75, 1.0] * 2


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "it is not JSON, as results are"),
        ("[]", "it has neither `runs`, as results have, nor the statistics of a trace"),
        ('{"version": "0.1.0", "runs": []}', "it holds no run"),
        ('{"version": "0.1.0", "runs": [{"system": "a"}]}', "run 0 lacks `device`, which every record has"),
        ('{"version": "99.0.0", "runs": []}', "Flashlore 99.0.0 wrote it, and this is .*, which is older"),
        ('{"runs": []}', "it does not say which version of Flashlore wrote it"),
    ],
)
def test_what_is_no_results_is_refused(tmp_path: Path, text: str, says: str) -> None:
    document = tmp_path / "results.json"
    document.write_text(text)
    for path in (document, tmp_path):
        with pytest.raises(ResultsError, match=f"^{re.escape(str(document))}: {says}"):
            Tables.load(path)


def test_a_damaged_table_is_refused(tmp_path: Path) -> None:
    (tmp_path / "results.json").write_text(json.dumps({"version": "0.1.0", "runs": [RECORD]}))
    (tmp_path / "timeline.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(ResultsError, match=r"timeline\.parquet: it is damaged or no Parquet file"):
        Tables.load(tmp_path)


def test_what_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match="no: there is no such directory or file"):
        Tables.load(tmp_path / "no")
    with pytest.raises(ResultsError, match=r"neither results\.json.*nor summary\.json"):
        Tables.load(tmp_path)


def test_lines_of_distributions_begin_and_end_together() -> None:
    frame = pl.DataFrame(
        {
            "system": ["plain", "plain", "ca-ssd", "plain"],
            "trace": ["t", "t", "t", "u"],
            "seed": [1, 1, 1, 1],
            "erases": [2, 5, 0, 7],
            "blocks": [3, 1, 4, 4],
            "share": [0.75, 1.0, 1.0, 1.0],
        }
    )
    by = ["system", "trace", "seed"]
    assert widened(frame, "erases", "share", by).rows() == [
        ("plain", "t", 1, 0, None, 0.0),
        ("plain", "t", 1, 2, 3, 0.75),
        ("plain", "t", 1, 5, 1, 1.0),
        ("ca-ssd", "t", 1, 0, 4, 1.0),
        ("ca-ssd", "t", 1, 5, None, 1.0),
        ("plain", "u", 1, 7, 4, 1.0),
    ]
    assert widened(frame.clear(), "erases", "share", by).is_empty()
