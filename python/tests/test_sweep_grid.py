"""Grids expand as they are written, and what cannot be expanded is refused by name."""

import itertools
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from flashlore.errors import FileError, FlashloreError, UsageError
from flashlore.sweeps.axes import axis, text
from flashlore.sweeps.cell import Cell
from flashlore.sweeps.cell import plan as planned
from flashlore.sweeps.grid import Grid, Point
from flashlore.sweeps.reading import load_grid
from hypothesis import given
from hypothesis import strategies as st

DEMO = "demo:maildir"


def plan(grid: Grid) -> list[Cell]:
    with TemporaryDirectory() as folder:
        return planned(grid, Path(folder))


def told(point: Point) -> tuple[Any, ...]:
    settings = tuple(f"{key}={text(value)}" for key, value in point.settings.items())
    return point.trace.name, point.system.name, point.device.name, *settings, point.seed


def test_a_product_is_in_the_order_in_which_it_is_written() -> None:
    grid = Grid(
        [DEMO],
        ["plain", "ca-ssd"],
        settings={"host.queue_depth": range(1, 3), "host.mode": "closed", "device.gc.policy": ["greedy", "fifo"]},
        seeds=[7, 8],
    )
    expected = [
        (DEMO, system, "auto", "host.mode=closed", f"host.queue_depth={depth}", f"device.gc.policy={policy}", seed)
        for system in ("plain", "ca-ssd")
        for depth in (1, 2)
        for policy in ("greedy", "fifo")
        for seed in (7, 8)
    ]
    assert [told(point) for point in grid.points()] == expected


@given(
    lengths=st.lists(st.integers(1, 3), max_size=3),
    in_step=st.lists(st.tuples(st.integers(1, 3), st.integers(1, 2)), max_size=2),
    seeds=st.integers(1, 3),
)
def test_random_grids_have_every_combination_once(
    lengths: list[int], in_step: list[tuple[int, int]], seeds: int
) -> None:
    settings = {f"a.k{number}": [f"v{value}" for value in range(length)] for number, length in enumerate(lengths)}
    zipped = [
        {f"z{number}.k{key}": [f"{key}.{value}" for value in range(length)] for key in range(keys)}
        for number, (length, keys) in enumerate(in_step)
    ]
    points = Grid([DEMO], ["plain", "trap"], settings=settings, zipped=zipped, seeds=seeds).points()
    groups = [[[(key, value)] for value in values] for key, values in settings.items()]
    groups += [[[(key, step[row]) for key, step in axes.items()] for row in range(len(axes[f"z{number}.k0"]))]
               for number, axes in enumerate(zipped)]  # fmt: skip
    expected = [
        (system, dict(itertools.chain(*combination)), repetition)
        for system in ("plain", "trap")
        for combination in itertools.product(*groups)
        for repetition in range(seeds)
    ]
    assert [(point.system.name, dict(point.settings), point.repetition) for point in points] == expected


def test_axes_in_step_may_be_systems_devices_traces_and_seeds() -> None:
    zipped = [{"system": ["plain", "ca-ssd"], "device": ["auto", "ca-ssd-4g"], "seed": [3, 4]}]
    points = Grid([DEMO], zipped=zipped).points()
    assert [told(point) for point in points] == [(DEMO, "plain", "auto", 3), (DEMO, "ca-ssd", "ca-ssd-4g", 4)]


def test_cells_take_constants_and_name_traces() -> None:
    grid = Grid(
        [{"path": DEMO, "name": "mail", "content": "distinct"}],
        settings={"host.mode": "closed", "host.queue_depth": [1, 2]},
        cells=[{"trace": "mail", "system": "plain", "gc.policy": "fifo"}, {"trace": DEMO, "system": "trap", "seed": 9}],
    )
    points = grid.points()
    assert [told(point) for point in points] == [
        ("mail", "plain", "auto", "host.mode=closed", "gc.policy=fifo", 1),
        (DEMO, "trap", "auto", "host.mode=closed", 9),
    ]
    assert [point.trace.content for point in points] == ["distinct", "trace"]


def test_exclusions_leave_out_what_has_all_their_values() -> None:
    grid = Grid(
        [DEMO],
        ["plain", "ca-ssd"],
        settings={"host.queue_depth": [1, 2, 4]},
        exclude=[{"system": "plain", "host.queue_depth": [2, 4]}],
    )
    found = [(point.system.name, point.settings["host.queue_depth"]) for point in grid.points()]
    assert found == [("plain", 1), ("ca-ssd", 1), ("ca-ssd", 2), ("ca-ssd", 4)]


@given(first=st.integers(-50, 50), count=st.integers(1, 40), step=st.integers(1, 9), places=st.integers(0, 6))
def test_ranges_hold_both_ends_and_what_decimals_say(first: int, count: int, step: int, places: int) -> None:
    def decimal(number: int) -> float:
        return float(f"{number}e-{places}")

    ends = {"from": decimal(first), "to": decimal(first + step * (count - 1)), "step": decimal(step)}
    assert axis(ends, "here") == [decimal(first + step * number) for number in range(count)]


def test_arrays_are_axes_and_their_scalars_are_values() -> None:
    settings = {"a.b": np.array([1, 2]), "a.c": np.array(0.5), "a.d": np.float64(0.25)}
    points = Grid([DEMO], ["plain"], settings=settings, seeds=np.array([7])).points()  # type: ignore[arg-type]
    assert [told(point)[3:] for point in points] == [("a.c=0.5", "a.d=0.25", f"a.b={n}", 7) for n in (1, 2)]


def test_derived_seeds_are_of_the_cell_alone() -> None:
    wide = Grid([DEMO], ["plain", "ca-ssd"], settings={"device.space.over_provisioning": [0.1, 0.2]}, seeds=3)
    narrow = Grid([DEMO], ["ca-ssd"], settings={"device.space.over_provisioning": [0.2]}, seeds=2)
    seeds = {cell.key: cell.seed for cell in plan(wide)}
    assert len(set(seeds.values())) == 12
    assert all(seeds[cell.key] == cell.seed for cell in plan(narrow))
    other = Grid([DEMO], ["ca-ssd"], settings={"device.space.over_provisioning": [0.2]}, seeds=2, seed=1)
    assert not {cell.seed for cell in plan(other)} & set(seeds.values())


def test_a_system_without_use_for_a_setting_runs_once() -> None:
    cells = plan(Grid([DEMO], ["plain", "ca-ssd"], settings={"dedup.index_entries": ["1Ki", "2Ki"]}))
    assert [(cell.system, dict(cell.settings)) for cell in cells] == [
        ("plain", {}),
        ("ca-ssd", {"dedup.index_entries": "1Ki"}),
        ("ca-ssd", {"dedup.index_entries": "2Ki"}),
    ]


def test_a_key_is_of_bytes_and_values_not_of_places(tmp_path: Path) -> None:
    keys = []
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        trace = tmp_path / folder / "one.csv"
        trace.write_text("1,W,0,4096,0\n")
        for share in (0.1, "10%"):
            grid = Grid([str(trace)], ["plain"], settings={"device.gc.low_watermark": [share]})
            keys += [cell.key for cell in plan(grid)]
    assert len(set(keys)) == 1
    trace.write_text("1,W,4096,4096,0\n")
    changed = plan(Grid([str(trace)], ["plain"], settings={"device.gc.low_watermark": [0.1]}))
    assert changed[0].key not in keys


def test_a_key_is_of_how_a_trace_is_read() -> None:
    ways: list[dict[str, Any]] = [
        {},
        {"content": "distinct"},
        {"content": "zipf:a=1,n=9"},
        {"lenient": True},
        {"compact": False},
        {"delta": "gaussian:mean=0.3,std=0.1"},
        {"name": "other"},
    ]
    keys = [plan(Grid([{"path": DEMO, **way}], ["plain"]))[0].key for way in ways]
    assert len(set(keys)) == len(ways)


def test_a_key_is_of_profiles_too(tmp_path: Path) -> None:
    file = tmp_path / "mine"
    mail = (Path(__file__).parents[2] / "crates/synth/profiles/mail.toml").read_text()
    keys = []
    for writes in ("25", "24", "25"):
        file.write_text(mail.replace("light_writes = 25", f"light_writes = {writes}"))
        grid = Grid([f"profile:{file},requests=10", {"path": DEMO, "content": f"profile:{file}"}], ["plain"])
        keys.append([cell.key for cell in plan(grid)])
    assert keys[0] == keys[2]
    assert not set(keys[0]) & set(keys[1])


def test_files_of_systems_are_taken_along(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('name = "mine"\nbase = "ca-ssd"\n[dedup]\nindex_entries = "1Ki"\n')
    (cell,) = plan(Grid([DEMO], [str(file)]))
    assert cell.system == "mine"
    assert 'index_entries = "1Ki"' in (cell.task["system"]["toml"] or "")


MISTAKES: dict[str, tuple[dict[str, Any], str]] = {
    "traces": ({"systems": ["plain"]}, "traces: the axis is empty"),
    "systems": ({"traces": [DEMO]}, "systems: the axis is empty"),
    "nothing": ({}, "the grid has no cell"),
    "devices": ({"devices": []}, "devices: the axis is empty"),
    "no path": ({"traces": [""]}, "a trace has no path"),
    "empty axis": ({"settings": {"gc.window": []}}, "settings.gc.window: the axis is empty"),
    "empty range": ({"settings": {"a.b": {"from": 2, "to": 1, "step": 1}}}, "settings.a.b: the range is empty"),
    "no step": ({"settings": {"a.b": {"from": 2, "to": 1}}}, "settings.a.b: a range has from, to, and either"),
    "units": ({"settings": {"a.b": {"from": "1Ki", "to": "1Mi", "factor": 2}}}, "from and to have different units"),
    "factor": ({"settings": {"a.b": {"from": 1, "to": 9, "factor": 1}}}, "factor = 1: expected a number above 1"),
    "kind": ({"settings": {"a.b": [None]}}, "settings.a.b: expected a number, a text"),
    "seed": ({"settings": {"host.seed": 3}}, "settings.host.seed: seeds are named by seeds"),
    "no key": ({"settings": {"ab": 3}}, "settings.ab: expected a key of --set"),
    "twice": ({"settings": {"a.b": 3, "system.a.b": 4}}, "settings.a.b: the key is there twice"),
    "zip lengths": ({"zipped": [{"a.b": [1, 2], "a.c": [1]}]}, "zip 1: axes that go in step have equal lengths"),
    "zip scalar": ({"zipped": [{"a.b": 1}]}, "zip 1.a.b: expected a list"),
    "zip twice": ({"settings": {"a.b": [1]}, "zipped": [{"a.b": [1]}]}, "zip 1.a.b: the key is there twice"),
    "zip and systems": ({"zipped": [{"system": ["trap"]}]}, "in their lists or in zip"),
    "no exclusion": ({"exclude": [{"system": "trap"}]}, "exclude 1: no cell has these values"),
    "all excluded": ({"exclude": [{"system": "plain"}]}, "the grid has no cell"),
    "cell": ({"cells": [{"trace": DEMO}]}, "cell 1: the key system is missing"),
    "seeds": ({"seeds": 0}, "seeds = 0: expected at least 1"),
    "negative seed": ({"seeds": [-1]}, "seeds: seed -1: expected a whole number of 64 bits"),
    "same trace": ({"traces": [DEMO, DEMO]}, "traces: two are called demo:maildir"),
    "option": ({"traces": [{"path": DEMO, "contents": "x"}]}, "traces: there is no key 'contents'"),
    "option kind": ({"traces": [{"path": DEMO, "lenient": 1}]}, "lenient = 1: expected true or false"),
    "many seeds": ({"seeds": 1_000_000}, "seeds = 1000000: expected at least 1, and at most"),
    "large": ({"settings": {"a.b": range(1000), "a.c": range(1000)}}, "the grid has 1,000,000 cells"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_named(name: str) -> None:
    fields, message = MISTAKES[name]
    whole = fields if name in ("traces", "systems", "nothing") else {"traces": [DEMO], "systems": ["plain"], **fields}
    with pytest.raises(UsageError) as error:
        Grid(**whole).points()
    assert message in str(error.value)


PLANNED: dict[str, tuple[dict[str, Any], str]] = {
    "no file": ({"traces": ["nowhere.csv"]}, "nowhere.csv: No such file"),
    "a folder": ({"traces": ["/"]}, "traces: cannot read /: Is a directory"),
    "no name": ({"traces": ["a\0b"]}, "is no path: embedded null byte"),
    "no capture": ({"traces": ["demo:none"]}, "traces: there is no bundled capture demo:none"),
    "no profile": ({"traces": ["profile:male"]}, "traces: there is no profile 'male'"),
    "no profile file": ({"traces": ["profile:no/male"]}, "no/male: No such file"),
    "no format": ({"traces": [{"path": DEMO, "format": "x"}]}, "traces: unknown trace format 'x'"),
    "no content": ({"traces": [{"path": DEMO, "content": "x"}]}, "traces: content 'x' is not known"),
    "no content file": ({"traces": [{"path": DEMO, "content": "profile:x.toml"}]}, "x.toml: No such file"),
    "namesakes": ({"cells": [{"trace": {"path": DEMO, "lenient": True}, "system": "plain"}]}, "traces: two are called"),
    "no system": ({"systems": ["nothing"]}, "nothing"),
    "no key": ({"settings": {"dedup.index_entires": "1Ki"}}, 'did you mean "dedup.index_entries"'),
    "bad value": ({"settings": {"device.space.over_provisioning": ["2x"]}}, "expected a share"),
    "useless": ({"settings": {"dedup.index_entries": ["1Ki"]}}, "dedup.index_entries: nothing in the grid uses"),
}


@pytest.mark.parametrize("name", PLANNED)
def test_what_cannot_run_is_refused_before_anything_runs(name: str) -> None:
    fields, message = PLANNED[name]
    with pytest.raises(FlashloreError) as error:
        plan(Grid(**{"traces": [DEMO], "systems": ["plain"], **fields}))
    assert message in str(error.value)
    # Another name or value helps, except where the system refuses to read.
    unread = {"no file", "a folder", "no profile file", "no content file"}
    assert isinstance(error.value, FileError if name in unread else UsageError)


def test_a_file_says_the_same_as_a_grid(tmp_path: Path) -> None:
    (tmp_path / "one.csv").write_text("1,W,0,4096,0\n")
    file = tmp_path / "grid.toml"
    file.write_text("""
        traces = ["one.csv", { path = "demo:maildir", name = "mail", content = "distinct" }]
        systems = ["plain", "ca-ssd"]
        seeds = 2

        [settings]
        host.queue_depth = 4
        "dedup.index_entries" = { from = "1Ki", to = "4Ki", factor = 2 }
        device.layout.stripe = [["channel", "plane", "package", "die"]]

        [[zip]]
        device.gc.policy = ["greedy", "d-choices"]
        device.gc.choices = [0, 5]

        [[exclude]]
        trace = "one.csv"
        system = "ca-ssd"

        [[cell]]
        trace = "mail"
        system = "trap"
        """)
    grid = Grid(
        [str(tmp_path / "one.csv"), {"path": DEMO, "name": "mail", "content": "distinct"}],
        ["plain", "ca-ssd"],
        settings={
            "host.queue_depth": 4,
            "dedup.index_entries": ["1Ki", "2Ki", "4Ki"],
            "device.layout.stripe": [["channel", "plane", "package", "die"]],
        },
        zipped=[{"device.gc.policy": ["greedy", "d-choices"], "device.gc.choices": [0, 5]}],
        exclude=[{"trace": "one.csv", "system": "ca-ssd"}],
        cells=[{"trace": "mail", "system": "trap"}],
        seeds=2,
    )
    assert load_grid(file).points() == grid.points()


FILES = {
    "name": ('traces = [{ path = "demo:maildir", name = ["x"] }]', "grid.toml: traces: name = ['x']: expected a text"),
    "twice": ('[settings]\n"host.mode" = 1\nhost.mode = 2', "grid.toml: host.mode: the key is there twice"),
    "toml": ("traces = [", "grid.toml: "),
    "key": ("tracs = []", "grid.toml: there is no key 'tracs' (did you mean 'traces'?)"),
    "kind": ("traces = 1", "grid.toml: traces: expected a list, found 1"),
    "table": ("settings = 1", "grid.toml: settings: expected a table, found 1"),
    "tables": ("[zip]\na.b = [1]", "grid.toml: zip: expected tables: [[zip]]"),
    "axis": (
        'traces = ["demo:maildir"]\nsystems = ["plain"]\n[settings]\na.b = []',
        "grid.toml: settings.a.b: the axis",
    ),
}


def test_profiles_of_a_file_begin_at_its_folder(tmp_path: Path) -> None:
    file = tmp_path / "grid.toml"
    file.write_text("""
        traces = ["profile:mine/mail,scale=2", { path = "one.csv", content = "profile:mail.toml,seed=3" }]
        systems = ["plain", "mine/system"]
        """)
    points = load_grid(file).points()
    assert points[0].trace.paths == (f"profile:{tmp_path}/mine/mail,scale=2",)
    assert points[2].trace.content == f"profile:{tmp_path}/mail.toml,seed=3"
    assert points[1].system.name == f"{tmp_path}/mine/system"


@pytest.mark.parametrize("name", FILES)
def test_mistakes_of_a_file_are_named_with_it(name: str, tmp_path: Path) -> None:
    content, message = FILES[name]
    file = tmp_path / "grid.toml"
    file.write_text(content)
    with pytest.raises(UsageError) as error:
        load_grid(file)
    assert message in str(error.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"cannot read .*none\.toml: No such file"):
        load_grid(tmp_path / "none.toml")


def test_the_file_of_the_documentation_has_cells(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "sweeps.md").read_text()
    file = tmp_path / "grid.toml"
    file.write_text(page.partition("```toml\n")[2].partition("```")[0])
    # Sizes of spare space and seeds; on ca-ssd 3 indices with one digest and 2 with the other; the cell named.
    assert len(plan(load_grid(file))) == 3 * 2 + 3 * 2 * (3 + 2) + 2
