"""The designer's evaluation at a small scale: its conditions, its figures of merit, who is best, and its page."""

from __future__ import annotations

import math
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from flashlore import Device, FileError, Sweep, Trace, UsageError, sweep
from flashlore.designer import __main__ as command
from flashlore.designer import conditions, measures, page, ranking, words
from playwright.sync_api import expect

if TYPE_CHECKING:
    from conftest import Open
    from flashlore.designer.conditions import Conditions, Part

FILE = Path(__file__).parents[2] / "papers" / "designer" / "conditions.toml"
CAPTURE = "sqlite-bytes"


def small() -> dict[str, Any]:
    """The conditions with one capture, one part, one budget, three divisions, two seeds and few requests."""
    tree = tomllib.loads(FILE.read_text(encoding="utf-8"))
    tree["capture"] = [capture for capture in tree["capture"] if capture["name"] == CAPTURE]
    tree["part"] = [part for part in tree["part"] if part["name"] == "qlc"]
    tree["budgets"], tree["splits"], tree["seeds"] = [1000], [0.0, 0.5, 1.0], [1, 2]
    tree["settings"]["host"]["limit"] = 4000
    return tree


@pytest.fixture(scope="module")
def given() -> Conditions:
    return conditions.of(small())


@pytest.fixture(scope="module")
def done(given: Conditions, tmp_path_factory: pytest.TempPathFactory) -> Sweep:
    return sweep(given.grid(None), out=tmp_path_factory.mktemp("designer") / "out", progress=False)


@pytest.fixture(scope="module")
def table(given: Conditions, done: Sweep) -> pl.DataFrame:
    return measures.figures(done.frame(), given)


def test_every_system_runs_with_every_division_and_seed(given: Conditions, table: pl.DataFrame) -> None:
    expected = {
        (rival.name, split, seed)
        for rival in (*given.systems, *given.promises)
        for split in rival.splits(given.splits)
        for seed in given.seeds
    }
    assert set(table.select("system", "split", "seed").rows()) == expected
    assert table.height == len(expected)
    assert table["budget"].unique().to_list() == [1000]


def test_no_division_takes_more_than_the_budget(done: Sweep) -> None:
    capacity = Trace.open(f"demo:{CAPTURE}").summary.footprint_units * 4096 / 0.8
    frame = done.frame().filter(pl.col("dedup.index_entries").is_not_null())
    for cache, entries in frame.select("device.map.cache_bytes", "dedup.index_entries").rows():
        dram = cache + entries * conditions.INDEX_ENTRY
        # The map cache holds an entry in any case.
        assert capacity / 1000 * 0.99 < dram < capacity / 1000 + conditions.MAP_ENTRY


def test_figures_of_merit_by_hand(given: Conditions, done: Sweep, table: pl.DataFrame) -> None:
    row, found = done.frame().row(0, named=True), table.row(0, named=True)
    part = given.parts[0]
    written = row["host.write_pages"] * 4096
    capacity = Trace.open(f"demo:{CAPTURE}").summary.footprint_units * 4096 / 0.8
    assert found["lifetime_tb"] == pytest.approx(1000 * written / capacity / row["erases.mean"], rel=1e-3)
    assert found["worst_tb"] == pytest.approx(1000 * written / capacity / row["erases.max"], rel=1e-3)
    joules = 1e-6 * (
        row["flash.page_reads"] * part.read_uj
        + row["flash.page_programs"] * part.program_uj
        + row["flash.block_erases"] * part.erase_uj
    )
    assert found["energy_j"] == pytest.approx(joules / (written / 1e9))
    assert found["amplification"] == row["waf_total"]
    assert found["p999_ms"] == pytest.approx(row["response_us.all.p999"] / 1000)


def test_a_device_lives_as_long_as_its_raw_capacity_and_its_erases_say(done: Sweep, table: pl.DataFrame) -> None:
    """The other way to the same figure: raw capacity and all erases, where a fifth of raw is spare."""
    row, found = done.frame().row(0, named=True), table.row(0, named=True)
    erased = row["flash.block_erases"] * 256 * 1024
    per_capacity = 1000 * row["host.write_pages"] * 4096 / erased / 0.8
    # The capacity is rounded up to whole blocks of each die.
    assert found["lifetime_tb"] == pytest.approx(per_capacity, rel=0.05)


@pytest.mark.parametrize("part", conditions.load(FILE).parts, ids=lambda part: part.label)
def test_energy_and_erases_follow_from_the_part_set(part: Part) -> None:
    def us(text: str) -> float:
        number = text.rstrip("mnus")
        return float(number) * {"ms": 1e3, "us": 1.0, "ns": 1e-3}[text[len(number) :]]

    whole = tomllib.loads(Device("auto", {"part": part.name}).to_toml())
    ours = tomllib.loads(Device("auto", {"part": part.name, **part.settings}).to_toml())
    read, program, erase = 9.5 / 25, 76.1 / 500, us(ours["timing"]["erase"])
    programs = [us(text) for text in whole["timing"]["program"]]
    scale = ours["geometry"]["pages_per_block"] / whole["geometry"]["pages_per_block"]
    assert erase == pytest.approx(us(whole["timing"]["erase"]) * scale, rel=1e-3)
    assert part.read_uj == pytest.approx(us(whole["timing"]["read"]) * read, rel=1e-3)
    assert part.program_uj == pytest.approx(sum(programs) / len(programs) * program, rel=1e-3)
    assert part.erase_uj == pytest.approx(erase * program, rel=1e-3)
    page_bytes = int(ours["geometry"]["page_size"].removesuffix("KiB"))
    assert page_bytes * ours["geometry"]["pages_per_block"] == 256


def made(values: dict[str, list[float]], split: float = 0.0) -> pl.DataFrame:
    """A table of one place: figures of each system by seed."""
    return pl.DataFrame(
        [
            {
                "trace": "t",
                "capture": "t",
                "part": "SLC",
                "budget": 250,
                "system": system,
                "split": split,
                "seed": seed,
                "amplification": value,
                "lifetime_tb": 1 / value,
            }
            for system, found in values.items()
            for seed, value in enumerate(found, 1)
        ]
    )


def test_an_interval_by_hand() -> None:
    estimate = ranking.ratio([1.0, math.e**0.2], [1.0, 1.0])
    # Mean .1, standard deviation .2 / sqrt 2, t of one degree of freedom.
    assert estimate.mean == pytest.approx(math.exp(0.1))
    assert estimate.high == pytest.approx(math.exp(0.1 + 12.706 * 0.1))
    assert estimate.low == pytest.approx(math.exp(0.1 - 12.706 * 0.1))


@pytest.mark.parametrize("metric", [measures.AMPLIFICATION, measures.LIFETIME], ids=lambda metric: metric.column)
def test_the_best_is_alone_only_if_the_interval_says_so(metric: measures.Metric) -> None:
    # Seeds move all systems alike: pairs tell them apart where means would not.
    table = made({"plain": [4.0, 8.0, 6.0], "ca-ssd": [2.0, 4.1, 3.0], "compress": [2.1, 4.3, 3.16]})
    compared = ranking.against_baseline(table, metric)
    assert compared.filter("first")["system"].to_list() == ["ca-ssd"]
    assert compared.filter("alone")["system"].to_list() == ["ca-ssd"]
    tied = made({"plain": [4.0, 8.0, 6.0], "ca-ssd": [2.0, 4.1, 3.0], "compress": [2.1, 4.0, 3.1]})
    compared = ranking.against_baseline(tied, metric)
    assert compared.filter("first")["system"].to_list() == ["ca-ssd"]
    assert compared.filter("alone").is_empty()
    assert set(compared.filter("best")["system"]) == {"ca-ssd", "compress"}
    assert "several as good as each other in 1" in words.winners(compared, metric)


def test_a_loss_is_said() -> None:
    compared = ranking.against_baseline(made({"plain": [1.0, 1.1], "ca-ssd": [2.0, 2.2]}), measures.AMPLIFICATION)
    said = list(words.losses(compared, measures.AMPLIFICATION))
    sentence = "ca-ssd does worse than plain in 1 of 1 places, most on t (SLC, DRAM 1/250): 2 times."
    assert said == [f"Write amplification: {sentence}"]
    assert not list(words.losses(compared.with_columns(pl.col("low") * 0.4), measures.AMPLIFICATION))
    lives = ranking.against_baseline(made({"plain": [1.0, 1.1], "ca-ssd": [2.0, 2.2]}), measures.LIFETIME)
    assert len(list(words.losses(lives, measures.LIFETIME))) == 1


def test_one_division_is_chosen_for_all_captures() -> None:
    both = pl.concat([made({"ca-ssd": [2.0]}, 0.25), made({"ca-ssd": [3.0]}, 0.75)])
    other = both.with_columns(
        pl.lit("u").alias("trace"), pl.when(pl.col("split") > 0.5).then(1.0).otherwise(4.0).alias("amplification")
    )
    assert ranking.chosen_splits(both)["split"].to_list() == [0.25]
    assert ranking.chosen_splits(pl.concat([both, other]))["split"].to_list() == [0.75]
    assert ranking.as_built(pl.concat([both, other]))["trace"].to_list() == ["t", "u"]


def test_the_page_names_the_winner_and_draws_every_figure(
    given: Conditions, done: Sweep, table: pl.DataFrame, tmp_path: Path, visit: Open
) -> None:
    path = tmp_path / "page.html"
    page.make(done.frame(), given).write(path)
    names = [rival.name for rival in given.systems]
    means = table.filter(pl.col("system").is_in(names)).group_by("system", "split").agg(pl.col("amplification").mean())
    winner = means.sort("amplification")["system"][0]
    with visit(path.as_uri(), offline=True) as visited:
        places = visited.page.locator(".canvas")
        count = places.count()
        assert count == 4 + 4 + 2 * 2 + 1
        for place in range(count):
            places.nth(place).scroll_into_view_if_needed()
        expect(visited.page.locator(".canvas[data-drawn=light]")).to_have_count(count)
        said = visited.page.locator("li", has_text="Write amplification: of 1 places").inner_text()
        assert winner in said or "several" in said
        assert visited.page.locator("table", has_text="combined-history").count() == 1


def test_commands(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    given: Conditions,
    done: Sweep,
) -> None:
    assert command.main(["sweep", str(tmp_path / "none.toml"), "-o", str(tmp_path / "out")]) == 1
    monkeypatch.setattr(conditions, "load", lambda _: given)
    # Nothing is left to run.
    assert command.main(["sweep", str(FILE), "-o", str(done.out)]) == 0
    assert f"{len(done.cells)} of {len(done.cells)} cells" in capsys.readouterr().err
    assert command.main(["page", str(FILE), str(done.out), "-o", str(tmp_path / "page.html")]) == 0
    assert command.main(["page", str(FILE), str(done.out), "-o", str(tmp_path / "page.html")]) == 1
    assert "--force" in capsys.readouterr().err


def test_what_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError):
        conditions.load(tmp_path / "none.toml")
    bad = tmp_path / "bad.toml"
    bad.write_text("seeds = [1]\n")
    with pytest.raises(UsageError, match="budgets"):
        conditions.load(bad)
    tree = small()
    tree["capture"] = [{"name": "upgrade-bytes", "bytes": True}]
    with pytest.raises(UsageError, match="--captures"):
        conditions.of(tree).grid(None)
