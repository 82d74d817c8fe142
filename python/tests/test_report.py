"""The report of results: its words and numbers, and what a browser, a keyboard and a printer make of it."""

from __future__ import annotations

import html
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import flashlore
import polars as pl
import pytest
from flashlore.errors import FileError, ResultsError, UsageError
from flashlore.figures import Tables, theme
from flashlore.report import build, summary, write
from flashlore.report.groups import Group, groups
from flashlore.report.markup import Html, element
from flashlore.report.measures import comparison
from flashlore.report.page import Page
from flashlore.report.table import Cell, Column, Table
from flashlore.report.table import plain as plain_text
from playwright.sync_api import expect

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conftest import Open, Visit

NARROW = (400, 800)


def command(*arguments: str, where: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "flashlore", *arguments],
        cwd=where,
        env={**os.environ, "PYTHONPATH": str(Path(flashlore.__file__).parents[1])},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two small workloads on three systems with two seeds, with time lines, and what one of them is like."""
    where = tmp_path_factory.mktemp("report")
    mail = "profile:mail,scale=0.0005"
    compared = command(
        *("compare", mail, "profile:sysbench,scale=0.002", "--systems", "plain,ca-ssd,bvssd"),
        *("--seeds", "2", "--timeline", "100ms", "--out", "results"),
        where=where,
    )
    assert compared.returncode == 0, compared.stderr
    assert command("trace", "characterize", mail, "--out", "results", where=where).returncode == 0
    return where / "results"


@pytest.fixture(scope="module")
def report(results: Path) -> Path:
    made = command("report", "results", "-o", "report.html", "--title", "My page", where=results.parent)
    assert made.returncode == 0, made.stderr
    return results.parent / "report.html"


def all_drawn(visited: Visit, colours: str) -> int:
    """Wait until every figure is drawn in these colours, and count them."""
    places = visited.page.locator(".canvas")
    count = places.count()
    expect(visited.page.locator(f".canvas[data-drawn={colours}]")).to_have_count(count)
    return count


def test_every_figure_is_drawn_without_a_network(report: Path, visit: Open) -> None:
    with visit(report.as_uri(), offline=True) as visited:
        assert all_drawn(visited, "light") >= 25
        bare = visited.page.evaluate(
            """[...document.querySelectorAll("figure")].filter(figure =>
                ![...figure.querySelectorAll(".canvas svg .role-mark path")].some(path => path.getAttribute("d")))
                .map(figure => figure.dataset.title)"""
        )
        assert bare == []
        # One heading of the first rank, each after it at most one rank deeper, and a name for every figure.
        ranks = visited.page.evaluate("[...document.querySelectorAll('h1,h2,h3,h4,h5')].map(h => +h.tagName[1])")
        assert ranks.count(1) == 1
        unnamed = visited.page.locator("figure:not([aria-label])").count()
        assert unnamed == 0


def test_a_telephone_in_the_dark_shows_all_without_sideways_scrolling(report: Path, visit: Open) -> None:
    with visit(report.as_uri(), size=NARROW, scheme="dark") as visited:
        all_drawn(visited, "dark")
        assert visited.page.evaluate("document.documentElement.scrollWidth") <= NARROW[0]
        wide = visited.page.evaluate(
            """[...document.querySelectorAll(".canvas")].filter(place =>
                place.querySelector("svg").getBoundingClientRect().right > place.getBoundingClientRect().right + 1)
                .map(place => place.closest("figure").dataset.title)"""
        )
        assert wide == []


def test_keys_reach_everything(report: Path, visit: Open) -> None:
    with visit(report.as_uri()) as visited:
        page = visited.page
        all_drawn(visited, "light")
        page.keyboard.press("Tab")
        expect(page.locator(".skip")).to_be_focused()
        page.keyboard.press("Tab")
        expect(page.locator("#theme")).to_be_focused()
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline == "solid"
        page.keyboard.press("Enter")
        page.keyboard.press("Enter")
        expect(page.locator("#theme")).to_have_text("Colours: dark")
        all_drawn(visited, "dark")
        # A table sorts by the button in its head.
        fold = page.get_by_text(re.compile("^Every run$"))
        fold.focus()
        page.keyboard.press("Enter")
        head = page.locator("th", has=page.get_by_role("button", name="Seed", exact=True))
        head.get_by_role("button").focus()
        page.keyboard.press("Space")
        assert head.get_attribute("aria-sort") == "descending"
        seeds = page.locator("table:has(caption:text-is('Runs')) tbody tr td:nth-child(4)").all_text_contents()
        assert seeds == sorted(seeds, reverse=True)
        assert set(seeds) == {"1", "2"}
        # A system that is unticked leaves the figures, and comes back.
        line = page.locator("figure .role-mark path[aria-label*='bvssd']")
        before = line.count()
        assert before > 0
        box = page.get_by_role("checkbox", name="bvssd")
        box.focus()
        page.keyboard.press("Space")
        expect(line).to_have_count(0)
        page.keyboard.press("Space")
        expect(line).to_have_count(before)


def test_data_stand_in_tables_and_files(report: Path, visit: Open) -> None:
    with visit(report.as_uri()) as visited:
        page = visited.page
        all_drawn(visited, "light")
        figure = page.locator("figure[data-title^='Programs by cause']").first
        figure.get_by_text("Data as a table").click()
        expect(figure.locator("details table tbody tr").nth(2)).to_be_visible()
        saved = {}
        for kind in ("CSV", "SVG", "PNG"):
            with page.expect_download() as download:
                figure.get_by_role("button", name=kind).click()
            saved[kind] = Path(download.value.path()).read_bytes()
        assert saved["CSV"].startswith(b"system,trace,cause,units")
        assert b"<svg" in saved["SVG"]
        assert saved["PNG"].startswith(b"\x89PNG")


def test_print_is_light_and_whole(report: Path, visit: Open) -> None:
    with visit(report.as_uri(), scheme="dark") as visited:
        page = visited.page
        count = all_drawn(visited, "dark")
        # Listeners are called in their order, the page's own first.
        page.evaluate(
            """window.addEventListener("beforeprint", () => {
                const texts = document.querySelectorAll(".canvas .role-axis-title text");
                window.printed = [...texts].map(text => text.getAttribute("fill"));
            })"""
        )
        inks = page.locator(".canvas .role-axis-title text").count()
        assert page.pdf(format="A4").startswith(b"%PDF")
        assert page.evaluate("window.printed") == [theme.INK[0]] * inks
        assert inks >= count
        all_drawn(visited, "dark")


def test_the_page_says_whose_programs_it_holds_and_how_it_was_made(report: Path) -> None:
    text = html.unescape(report.read_text())
    for name in ("University of Washington Interactive Data Lab", "Mike Bostock", "WITHOUT WARRANTY OF ANY KIND"):
        assert name in text
    assert "flashlore report results -o report.html --title 'My page'" in text


def test_the_page_asks_nobody(report: Path) -> None:
    text = html.unescape(report.read_text())
    assert "default-src 'none'" in text
    assert "unsafe-eval" not in text
    assert re.findall(r'(?:src|href)="(?!#|data:,)[^"]*"', text.split('<script type="application/json"')[0]) == []


def test_the_summary_is_computed(results: Path, report: Path) -> None:
    tables = Tables.load(results)
    text = report.read_text()
    for trace, of_trace in groups(tables).items():
        written = {}
        for group in of_trace:
            causes = ("host", "packed", "merge", "gc", "wear", "map", "padding")
            counts = [sum(record["programs"][cause] for cause in causes) for record in group.records]
            written[group.system] = sum(counts) / len(counts)
        best = min(written, key=lambda system: written[system])
        first = next(group for group in of_trace if group.system == "plain")
        best_group = next(group for group in of_trace if group.system == best)
        doubted = any(group.doubts("units") for group in of_trace)
        one, other = first.get("units"), best_group.get("units")
        assert one is not None
        assert other is not None
        if doubted or not one.apart(other):
            assert "none is" in text
            continue
        said = f"{best} programmed least: {round(written[best]):,} units"
        assert said in text, trace
        if best != "plain":
            assert f"{100 * (1 - written[best] / written['plain']):.1f}\u00a0% fewer than plain" in text


def group(system: str, **numbers: Any) -> Group:
    """One run of a system, of which these numbers are known, `__` for the points in their paths."""
    record: dict[str, Any] = {"configuration": {}}
    for path, value in numbers.items():
        part, _, key = path.partition("__")
        if key:
            record.setdefault(part, {})[key] = value
        else:
            record[part] = value
    causes = {"host": 10, **dict.fromkeys(("packed", "merge", "gc", "wear", "map", "padding"), 0)}
    host = {"requests": 10, "read_pages": 0, "write_pages": 10, "trim_pages": 0}
    return Group(system, "t", [record | {"host": host, "programs": causes, "trace_files": []}], None)


def test_measures_have_their_units_and_say_what_is_better() -> None:
    first = group("plain", waf_total=2.0, energy_uj=2.5e6, dedup__hits=10, utilization__die_mean=0.25)
    other = group("ca-ssd", waf_total=3.0, energy_uj=5e6, dedup__hits=15, utilization__die_mean=0.5)
    table = comparison([first, other], "t")
    shown = {plain_text(row[0]): row[1:] for row in table.rows if isinstance(row[0], Html)}
    assert shown == {
        "Units programmed": [Cell("10", 10.0), Cell("10", 10.0, "0.0\u00a0%")],
        "Write amplification": [Cell("2", 2.0), Cell("3", 3.0, "+50.0\u00a0%", "worse")],
        "Energy (J)": [Cell("2.500", 2.5e6), Cell("5", 5e6, "+100.0\u00a0%", "worse")],
        "Duplicates found": [Cell("10", 10.0), Cell("15", 15.0, "+50.0\u00a0%", "better")],
        "Dies busy": [Cell("25.0\u00a0%", 0.25), Cell("50.0\u00a0%", 0.5, "")],
        "Block erases": [Cell("-"), Cell("-", note="")],
    }


def test_tiles_name_the_winner_by_how_much_and_the_longest_window() -> None:
    of_trace = [
        group("plain", waf_total=1.0, flash__block_erases=8, history__window_s=30.0),
        group("ca-ssd", waf_total=1.0, flash__block_erases=6, history__window_s=90.5),
    ]
    assert summary.tiles({"t": of_trace}) == [
        ("Fewest erases", "ca-ssd", "\N{MINUS SIGN}25.0\u00a0% against plain"),
        ("Longest protection window", "90.50\u00a0s", "ca-ssd on t"),
    ]


def doubtful(found: Group, *metrics: str) -> Group:
    finding = {"id": "ratio-drawn", "doubtful": True, "metrics": metrics, "systems": [found.system], "sentence": "Why."}
    return replace(found, findings=[finding])


def test_nobody_is_crowned_by_a_number_that_is_not_to_be_judged_by() -> None:
    plain, other = (
        group(name, flash__retired_blocks=0, response_us__all={"mean": mean})
        for name, mean in (("plain", 5.0), ("combined", 1.0))
    )
    assert [tile[1] for tile in summary.tiles({"t": [plain, other]})] == ["combined"]
    of_trace = [plain, doubtful(other, "response_us")]
    assert summary.tiles({"t": of_trace}) == []
    (said,) = [sentence for sentence in summary.findings(of_trace) if "mean response" in sentence]
    assert said == "By the mean response none is called the best: see below (ratio-drawn)."
    assert "On t, combined (ratio-drawn): Why." in summary.caveats({"t": of_trace})
    table = comparison(of_trace, "t")
    (cell,) = [row[2] for row in table.rows if isinstance(row[0], Html) and plain_text(row[0]) == "Mean response"]
    assert isinstance(cell, Cell)
    assert (cell.note, cell.kind) == ("\N{MINUS SIGN}80.0\u00a0% ?", "")


def seeded(system: str, mean: float, half: float, **numbers: Any) -> Group:
    """Two seeds of a system, of which the first is far off the mean."""
    one = group(system, dedup__hits=1, dedup__misses=9)
    estimates = {"response_us": {"all": {"mean": {"mean": mean, "ci95": half}}}, **numbers}
    return replace(one, records=[one.record, one.record], estimates=estimates)


def test_tile_and_sentence_agree_within_intervals() -> None:
    of_trace = [seeded("plain", 10.0, 2.0), seeded("ca-ssd", 7.0, 2.0)]
    assert summary.tiles({"t": of_trace}) == []
    assert any("are within their intervals: none is the best" in sentence for sentence in summary.findings(of_trace))
    apart = [seeded("plain", 10.0, 1.0), seeded("ca-ssd", 7.0, 1.0)]
    assert [tile[1] for tile in summary.tiles({"t": apart})] == ["ca-ssd"]


def test_savings_are_means_over_seeds() -> None:
    dedup = {"hits": {"mean": 5.0, "ci95": 1.0}, "misses": {"mean": 5.0, "ci95": 1.0}}
    said = summary.findings([seeded("plain", 9.0, 1.0), seeded("ca-ssd", 9.0, 1.0, dedup=dedup)])
    assert "ca-ssd found 50.0\u00a0% of the writes it hashed to be duplicates." in said


def test_times_of_a_row_have_one_unit() -> None:
    slow, quick = group("plain", response_us__all={"mean": 1813.0}), group("ca-ssd", response_us__all={"mean": 31.25})
    table = comparison([slow, quick], "t")
    (row,) = [row for row in table.rows if isinstance(row[0], Html) and plain_text(row[0]) == "Mean response"]
    assert [cell.text for cell in row[1:] if isinstance(cell, Cell)] == ["1.813\u00a0ms", "0.03125\u00a0ms"]


def test_a_page_that_is_there_stays(results: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text("mine")
    refused = command("report", str(results), "-o", str(page), where=tmp_path)
    assert refused.returncode == 2
    assert "page.html exists already" in refused.stderr
    assert page.read_text() == "mine"
    with pytest.raises(UsageError, match="exists already"):
        write(results, page)
    write(results, page, force=True)
    assert page.read_text().startswith("<!")


def test_a_page_for_which_there_is_no_room_leaves_the_old_one(results: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text("mine")
    script = (
        "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)); "
        f"from flashlore.report import write; write({str(results)!r}, {str(page)!r}, force=True)"
    )
    failed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert f"cannot write {page}: File too large" in failed.stderr
    assert page.read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


def test_to_answer_at_once_is_fastest() -> None:
    of_trace = [group("plain", response_us__all={"mean": 5.0}), group("bvssd", response_us__all={"mean": 0.0})]
    (tile,) = summary.tiles({"t": of_trace})
    assert tile == ("Fastest on average", "bvssd", "\N{MINUS SIGN}100.0\u00a0% against plain")


def test_answers_from_ram_are_told_where_not_all_give_them(report: Path) -> None:
    text = report.read_text()
    assert text.count("bvssd (answers-early): Writes are answered when they are in a queue in RAM") == 2


def test_names_from_files_are_only_text(results: Path, tmp_path: Path, visit: Open) -> None:
    evil = "</script><script>document.title='taken'</script><img src=x onerror=alert(1)>&\"'"
    copy = tmp_path / "results"
    copy.mkdir()
    for name in ("response_cdf", "victim_cdf", "timeline"):
        frame = pl.read_parquet(results / f"{name}.parquet")
        frame.with_columns(trace=pl.lit(evil)).write_parquet(copy / f"{name}.parquet")
    document: dict[str, Any] = json.loads((results / "results.json").read_text())
    document["runs"] = [{**run, "trace": evil} for run in document["runs"] if run["trace"].startswith("profile:mail")]
    document["seeds"] = []
    (copy / "results.json").write_text(json.dumps(document))
    page = tmp_path / "page.html"
    write(copy, page, title=evil)
    with visit(page.as_uri()) as visited:
        all_drawn(visited, "light")
        assert visited.page.title() == evil
        expect(visited.page.locator("h1")).to_have_text(evil)


def test_a_file_of_json_is_enough(results: Path, tmp_path: Path) -> None:
    alone = tmp_path / "alone.json"
    alone.write_bytes((results / "results.json").read_bytes())
    text = build(Tables.load(alone)).render()
    assert "flashlore rerun" in text
    assert "Valid units per victim" in text


@pytest.fixture
def untouched(tmp_path: Path) -> Iterator[Path]:
    page = tmp_path / "page.html"
    page.write_text("before")
    yield page
    assert page.read_text() == "before"
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".flashlore-")] == []


def test_traces_of_one_name_are_refused(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "t.csv").write_text("")
    refused = command("compare", "a/t.csv", "b/t.csv", where=tmp_path)
    assert refused.returncode == 2
    assert "a/t.csv and b/t.csv have the same file name" in refused.stderr


def test_bad_results_end_in_a_sentence(tmp_path: Path, untouched: Path) -> None:
    (tmp_path / "results.json").write_text('{"version": "99.0.0", "runs": []}')
    failed = command("report", ".", "-o", str(untouched), "--force", where=tmp_path)
    assert failed.returncode == 1
    assert "Flashlore 99.0.0 wrote it" in failed.stderr
    assert "Traceback" not in failed.stderr


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda run: run["host"].pop("requests"), "`requests` is missing"),
        (lambda run: run.pop("config_hash"), "`config_hash` is missing"),
        (lambda run: run.update(host=None), "not as Flashlore writes it"),
        (lambda run: run["gc"].update(valid_per_victim=3), "not as Flashlore writes it"),
    ],
)
def test_a_damaged_record_ends_in_a_sentence(results: Path, tmp_path: Path, change: Any, says: str) -> None:
    document = json.loads((results / "results.json").read_text())
    change(document["runs"][0])
    damaged = tmp_path / "damaged.json"
    damaged.write_text(json.dumps(document))
    with pytest.raises(ResultsError, match=rf"damaged\.json: .*{says}"):
        write(damaged, tmp_path / "page.html")
    assert [path.name for path in tmp_path.iterdir()] == ["damaged.json"]


def test_only_files_are_replaced(tmp_path: Path) -> None:
    page, link = tmp_path / "page.html", tmp_path / "link.html"
    link.symlink_to(page)
    Page("Words").write(link)
    assert link.is_symlink()
    assert page.read_text() == Page("Words").render()
    with pytest.raises(FileError, match="cannot write /dev/full: No space"):
        Page("Words").write("/dev/full")
    assert Path("/dev/full").is_char_device()


def test_a_page_that_cannot_be_written_ends_in_a_sentence(results: Path, tmp_path: Path) -> None:
    failed = command("report", str(results), "-o", "no/such/page.html", where=tmp_path)
    assert failed.returncode == 1
    assert "no/such/page.html" in failed.stderr
    assert "Traceback" not in failed.stderr


def test_a_page_without_figures_carries_no_vega(tmp_path: Path, visit: Open) -> None:
    page = Page("Words", subtitle="and no figure")
    section = page.section("One")
    section.table(Table([Column("A"), Column("B", numbers=True)], [["x", 2.0], ["y", None], ["z", 10.0]], "Some"))
    section.table(Table([Column("C")], [[Cell("<b>", note="n")]], Html("<em>caption</em>")))
    page.section("One").prose("again", element("b", "<bold>"))
    place = tmp_path / "page.html"
    page.write(place)
    assert place.stat().st_size < 40_000
    with visit(place.as_uri()) as visited:
        visited.page.get_by_role("button", name="B").click()
        rows = visited.page.locator("table").first.locator("tbody th").all_text_contents()
        assert rows == ["z", "x", "y"]
        assert visited.page.locator(".contents a").all_text_contents() == ["One", "One"]
        assert visited.page.locator("section#one-2 b").text_content() == "<bold>"
