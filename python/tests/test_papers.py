"""The page of `flashlore reproduce`: what it says of a document, and that a browser shows it."""

from __future__ import annotations

import copy
import json
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import altair as alt
import pytest
from flashlore._command import papers
from flashlore.errors import FileError
from flashlore.figures import theme
from flashlore.papers import make, markdown, numbers, page, verdicts
from test_figures import contrast, difference

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Open

WIDE = (1280, 900)
NARROW = (400, 800)
HOSTILE = '<script>alert(1)</script> & "quotes"'


def item(**changes: Any) -> Any:
    return {
        "name": "web",
        "kind": "shape",
        "reason": None,
        "published": 65.0,
        "measured": [79.74],
        "accepted": "50 to 90",
        "within": [50.0, 90.0],
        "unit": "%",
        "verdict": "holds",
    } | changes


def check(number: str, figures: list[str], items: list[Any], claim: str = "Responses fall") -> Any:
    return {"id": number, "figures": figures, "claim": claim, "source": "Figure 7(a)", "items": items}


@pytest.fixture
def document() -> Any:
    """Two papers with every verdict, an order, what was left out, and a third that failed."""
    order = item(name="order", published=None, measured=[3.0, 2.0, 1.0], accepted="falling", within=None)
    absent = item(name="absent", measured=[None], verdict="not-reproducible", kind="not-reproducible", reason="why")
    first = {
        "paper": "ca-ssd",
        "title": "A title",
        "source": "FAST 2011",
        "version": "0.1.0",
        "scale": 1.0,
        "figures": [],
        "seed": 1,
        "calibration": {
            "setting": "device.space.over_provisioning",
            "value": 0.18579,
            "figure": "valid_per_victim@web/plain",
            "target": 33.2,
            "reached": 33.1,
            "within_tolerance": True,
            "tried": [[0.15, 40.0], [0.22, 20.0], [0.18579, 33.1]],
        },
        "profiles": {"web": "0123456789abcdef"},
        "checks": [
            check("C1", ["7a"], [item(), order, item(name="exact", kind="exact")]),
            check("C2", ["7b", "7a"], [item(name="far", measured=[46.0], verdict="differs"), absent], HOSTILE),
            check("C3", ["table2"], [item(kind="fitted", verdict="fitted", reason="it was chosen")]),
            check("C4", ["7b"], [item(kind="contradictory", verdict="contradictory", reason="both", within=None)]),
        ],
        "left_out": [],
        "differences": [
            {
                "checks": ["C2"],
                "title": "C2 is far.",
                "text": "Because `a` < b.\n\n| x | y |\n|---|---|\n| 1 | **2** |\n",
            },
            {"checks": [], "title": "What is fitted.", "text": HOSTILE},
        ],
        "sensitivity": {
            "columns": [["web", "cut %"], ["mail", "cut %"]],
            "rows": [["as calibrated", [79.7, 83.3]], ["no warm-up", [77.0, None]]],
        },
        "configurations": {"web/plain": "00ff", "web/unlimited": "ff00"},
        "workloads": [{"requests": {"profile": "web"}}, {"requests": {"capture": "sqlite"}}],
    }
    second = copy.deepcopy(first) | {
        "paper": "mine",
        "scale": 0.1,
        "figures": ["1"],
        "calibration": None,
        "sensitivity": None,
        "differences": [],
        "workloads": [{"requests": {"profile": "mail"}}],
        "left_out": [{"check": "C9", "name": "sqlite"}],
        "checks": [
            check("C1", ["1"], [item(verdict="scaled-inside"), item(name="mail", verdict="scaled-outside")]),
        ],
    }
    return {"papers": [first, second], "failed": [{"paper": "combined", "error": HOSTILE}]}


def text_of(document: Any, **options: Any) -> str:
    made = make(document, **options).render()
    return re.sub(r"<script.*?</script>", "", made, flags=re.DOTALL)


def test_every_number_has_its_verdict(document: Any) -> None:
    first = document["papers"][0]
    counts = verdicts.counts(verdicts.items(first))
    assert counts == {
        "reproduced": 1,
        "shape": 2,
        "fitted": 1,
        "differs": 1,
        "contradictory": 1,
        "not reproducible": 1,
    }
    text = text_of(document)
    for word in counts:
        assert f">{word}</span>" in text
    assert "in range, scaled" in text
    assert "out of range, scaled" in text


def test_tiles_count_numbers(document: Any) -> None:
    found = re.findall(r"<dt>(\w[\w ]*)</dt><dd><span class=\"value\">(\d+)<", text_of(document))
    assert found == [("Hold", "3"), ("Fitted", "1"), ("Differ", "1"), ("Not judged", "2"), ("Scaled", "2")]
    second = verdicts.items(document["papers"][1])
    assert [verdicts.of(item).word for item in second] == ["in range, scaled", "out of range, scaled"]


def test_a_panel_draws_what_was_published_measured_and_accepted() -> None:
    ((figure, _, _),) = numbers.panels(check("C1", ["1"], [item()]))
    spec = figure.to_dict()
    labels, band, _, points, _ = (spec["datasets"][layer["data"]["name"]] for layer in spec["layer"])
    assert labels == [{"name": "web"}]
    assert [(row["low"], row["high"]) for row in band] == [(50.0, 90.0)]
    assert [(row["what"], row["value"]) for row in points] == [("published", 65.0), ("shape", 79.74)]


@pytest.mark.parametrize("dark", [False, True])
def test_a_shape_is_told_from_other_verdicts_by_everybody(dark: bool) -> None:  # noqa: FBT001
    def shade(word: str) -> str:
        light = verdicts.BY_WORD[word].colour
        return theme.DARK_OF_LIGHT[light] if dark else light

    for word in ("reproduced", "fitted", "differs", "contradictory", "not reproducible"):
        assert difference(shade("shape"), shade(word)) > 0.09, word
    assert dark or contrast(shade("shape"), theme.GROUND[0]) >= 3


def test_small_runs_are_not_called_a_verdict(document: Any) -> None:
    assert "Some numbers are scaled." in text_of(document)
    document["papers"].pop()
    text = text_of(document)
    assert "Some numbers are scaled." not in text
    assert "in range, scaled" not in text


def test_what_was_left_out_and_what_failed_is_told(document: Any) -> None:
    text = text_of(document)
    assert "1 numbers, of the checks C9" in text
    assert "Everything combined: &lt;script&gt;" in text


def test_a_document_without_reports_is_a_page_too() -> None:
    text = text_of({"papers": [], "failed": [{"paper": "i-cash", "error": "why"}, {"paper": "bvssd", "error": "not"}]})
    assert "No experiment came to its end." in text
    assert "BVSSD: not" in text


def test_differences_stand_with_their_checks(document: Any) -> None:
    text = text_of(document)
    figure = text.index("Figure 7b</h3>")
    assert figure < text.index("Known: C2 is far.") < text.index("Table 2</h3>") < text.index("Known: What is fitted.")
    assert text.count("Known: C2 is far.") == 1


def test_commands_repeat_what_was_done(document: Any) -> None:
    text = text_of(document)
    assert "flashlore reproduce all --report papers.html" in text
    assert "flashlore reproduce ca-ssd --figure 7a<" in text
    document["papers"][0]["seed"] = 7
    text = text_of(document, quick=True, captures="my captures")
    assert "flashlore reproduce all --quick --captures &#x27;my captures&#x27; --seed 7 --report papers.html" in text
    assert "flashlore reproduce ca-ssd --quick --captures &#x27;my captures&#x27; --seed 7<" in text


def test_a_command_asks_for_what_was_asked_for(document: Any) -> None:
    first, second = document["papers"]
    # Alone it would fail without the captures that `all` left out.
    assert "flashlore reproduce mine --figure 1 --scale 0.1 --captures captures<" in text_of(document)
    first |= {"scale": 0.123456789, "figures": ["7a"], "seed": 3}
    asked = "flashlore reproduce all --figure 7a --scale 0.123456789 --seed 3 --report papers.html<"
    assert asked in text_of({"papers": [first, second], "failed": []})
    alone = text_of({"papers": [first], "failed": []}, asked="my own.toml")
    assert "flashlore reproduce &#x27;my own.toml&#x27; --figure 7b --scale 0.123456789 --seed 3<" in alone
    assert "--seed 3 --report papers.html<" in alone
    assert "reproduce ca-ssd" not in alone


def test_words_of_others_are_escaped(document: Any) -> None:
    whole = make(document).render()
    assert "alert(1)</script>" not in whole
    assert text_of(document).count("&lt;script&gt;alert(1)") > 3


def test_markdown_knows_paragraphs_tables_and_spans() -> None:
    assert markdown.blocks("a\nb\n\n| x |\n|--:|\n| **1** |")[0] == "<p>a b</p>"
    table = markdown.blocks("| x | y |\n|---|---|\n| **1 %** | [a](b.md) <i> |")[0]
    assert '<th scope="col" class="steps">x</th>' in table
    assert "<td><strong>1\N{NO-BREAK SPACE}%</strong></td><td>a &lt;i&gt;</td>" in table


def test_panels_are_vega_lite_that_altair_accepts(document: Any) -> None:
    for report in document["papers"]:
        for each in report["checks"]:
            drawn = numbers.panels(each)
            assert drawn
            for figure, _, _ in drawn:
                alt.LayerChart.from_dict(figure.to_dict())
    counts = {"CA-SSD": verdicts.counts(verdicts.items(document["papers"][0]))}
    alt.LayerChart.from_dict(numbers.overview(counts).to_dict())


def test_orders_and_units_have_panels_of_their_own() -> None:
    items = [item(), item(name="ms", unit="ms"), item(name="order", measured=[2.0, 1.0]), item(name="none", unit="x")]
    items[3]["measured"] = [None]
    titles = [title for _, title, _ in numbers.panels(check("C1", ["1"], items))]
    assert titles == ["C1: numbers, %", "C1: numbers, ms", "C1: orders, %"]


@pytest.mark.parametrize(
    ("measured", "within", "expected"),
    [
        ([70.0, 80.0], [60.0, 90.0], {"zero": False, "nice": False}),
        ([1.0, 1000.0], None, {"type": "log", "nice": False}),
        ([-5.0, 1000.0], None, {"type": "symlog", "constant": 1, "nice": False}),
        ([0.0], None, {"zero": False, "nice": False}),
    ],
)
def test_an_axis_shows_all_points(measured: list[float], within: list[float] | None, expected: dict[str, Any]) -> None:
    scale = numbers._scale([item(measured=[value], published=None, within=within) for value in measured])  # noqa: SLF001
    low, high = scale.pop("domain")
    assert scale == expected
    assert low < min(measured)
    assert high > max(measured)
    if within:
        assert low < within[0] < within[1] < high


def test_a_range_far_away_does_not_squeeze_the_points() -> None:
    scale = numbers._scale([item(measured=[1.04], published=None, within=[1.0, 1000.0])])  # noqa: SLF001
    assert scale["domain"][1] < 2


def test_headings_name_figures_tables_sections_and_groups(document: Any) -> None:
    assert page.heading("4", [document["papers"][0]["checks"][0] | {"source": "Section 4"}]) == "Section 4"
    assert page.heading("4", []) == "Figure 4"


def test_the_command_line_writes_it(document: Any, tmp_path: Path) -> None:
    papers(
        document=document, asked="all", output=str(tmp_path / "papers.html"), force=False, quick=False, captures=None
    )
    assert (tmp_path / "papers.html").read_text().startswith("<!doctype html>")
    with pytest.raises(FileError, match=r"cannot write .*p\.html: No such file"):
        papers(
            document=document,
            asked="all",
            output=str(tmp_path / "no" / "p.html"),
            force=False,
            quick=False,
            captures=None,
        )


def test_a_page_without_a_place_is_refused_before_anything_runs(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "flashlore", "reproduce", "all", "--report"]
    for place, why in (("no/papers.html", "No such file or directory"), (".", "is a directory")):
        done = subprocess.run([*command, place], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=600)
        assert (done.returncode, done.stdout) == (1, "")
        assert f"error: cannot write {place}: {why}" in done.stderr


@pytest.mark.parametrize(("size", "scheme"), [(WIDE, "light"), (NARROW, "dark")])
def test_a_browser_shows_it(document: Any, tmp_path: Path, visit: Open, size: tuple[int, int], scheme: Any) -> None:
    path = tmp_path / "papers.html"
    made = make(document)
    made.write(path)
    figures = json.loads(re.search(r'id="page-data">(.*?)</script>', path.read_text())[1])["figures"]  # type: ignore[index]
    with visit(path.as_uri(), size=size, scheme=scheme, offline=True) as visited:
        shown = visited.page
        shown.locator(f".canvas[data-drawn={scheme}]").nth(len(figures) - 1).wait_for(state="attached")
        assert shown.locator(".canvas svg").count() == len(figures)
        assert shown.locator("html").evaluate("page => page.scrollWidth <= page.clientWidth")
        # By keys: to the contents of the checks, to one of them, and into what is folded.
        link = shown.get_by_role("link", name="C2", exact=True)
        link.focus()
        link.press("Enter")
        assert shown.url.endswith("#check-ca-ssd-c2")
        known = shown.get_by_text("Known: C2 is far.")
        known.focus()
        known.press("Enter")
        assert shown.get_by_text("Because a < b.").is_visible()
