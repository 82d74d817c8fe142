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
from flashlore.papers import claims, counts, make, markdown, numbers, places, sensitivity, states, summary, verdicts
from test_figures import contrast, difference

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Open

WIDE = (1280, 900)
NARROW = (400, 800)
HOSTILE = '<script>alert(1)</script> & "quotes"'


def measured(mean: float, half: float = 0.0) -> Any:
    return {"mean": mean, "low": mean - half, "high": mean + half}


def item(value: float | None = 64.0, half: float = 0.0, **changes: Any) -> Any:
    """A number of a size between 55 and 75."""
    found = {
        "name": "web",
        "aspect": "size",
        "standing": {"is": "judged"},
        "published": 65.0,
        "measured": [None if value is None else measured(value, half)],
        "accepted": "55 to 75",
        "within": [55.0, 75.0],
        "unit": "%",
        "scaled": False,
    } | changes
    within, values = found["within"], found["measured"]
    inside = all(v and (within is None or within[0] <= v["low"] <= v["high"] <= within[1]) for v in values)
    return {"inside": inside} | found


def order(*values: float, **changes: Any) -> Any:
    made = {"name": "order", "aspect": "order", "published": None, "accepted": "falling", "within": None}
    return item(**made | {"measured": [measured(value, 0.2) for value in values]} | changes)


def because(standing: str, why: str = "why") -> Any:
    return {"is": standing, "because": why}


def claim(number: str, at: list[str], items: list[Any], of: dict[str, str], **changes: Any) -> Any:
    return {
        "id": number,
        "places": at,
        "kind": "measured",
        "statement": "Responses fall",
        "quote": None,
        "source": "Figure 7(a)",
        "reading": "printed in the text",
        "verdicts": of,
        "items": items,
        "evidence": [],
    } | changes


def evidence(by: str, after: float, *, moves: bool, inside: bool) -> Any:
    return {
        "by": by,
        "aspect": "size",
        "item": "far",
        "before": [2.0],
        "after": [after],
        "moves": moves,
        "inside": inside,
    }


def first_paper() -> Any:
    """A paper with every verdict but those of scaled runs, broken identities, and an order; five seeds."""
    return {
        "paper": "ca-ssd",
        "title": "A title",
        "source": "FAST 2011",
        "version": "0.1.0",
        "scale": 1.0,
        "figures": [],
        "seeds": [1, 2, 3, 4, 5],
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
        "claims": [
            claim(
                "C1",
                ["7a"],
                [
                    item(64.0, 0.3128),
                    order(3.0, 2.0, 1.0),
                    item(1.0, name="sum", aspect="identity", within=[0.9, 1.1], published=None),
                    item(2.0, name="parts", aspect="identity", within=[0.9, 1.1], published=None),
                ],
                {"order": "reproduced", "size": "reproduced"},
                quote="they fall",
            ),
            claim(
                "C2",
                ["7b", "7a"],
                [item(46.0, 0.5, name="far"), item(56.0, 2.0, name="near")],
                {"size": "differs"},
                statement=HOSTILE,
                evidence=[
                    evidence("variant no warm-up", 1.0, moves=True, inside=False),
                    evidence("item C3/web", 0.5, moves=True, inside=True),
                    evidence("variant one die", 3.0, moves=False, inside=False),
                    evidence("variant of another difference", 0.5, moves=True, inside=True),
                ],
            ),
            claim(
                "C3",
                ["table2"],
                [item(standing=because("fitted", "it was chosen")), item(name="free")],
                {"size": "fitted"},
                kind="derived",
            ),
            claim(
                "C4",
                ["7b"],
                [item(standing=because("contradictory", "both"))],
                {"size": "contradictory"},
            ),
            claim("C5", ["7b"], [order(3.0, 2.9, inside=False)], {"order": "cause-unknown"}),
            claim(
                "C6",
                ["7b"],
                [item(None, name="absent", standing=because("unjudged", "nothing is published"), inside=None)],
                {"size": "not-judged"},
            ),
            claim("D1", ["ours"], [item(aspect="shape", published=None)], {"shape": "holds"}, kind="ours"),
            claim("I1", ["ours"], [item(1.0, name="one", aspect="identity", within=[1.0, 1.0])], {}, kind="ours"),
        ],
        "without_claim": {"1": "an overview of the architecture"},
        "left_out": [],
        "differences": [
            {
                "claims": ["C2", "C4"],
                "title": "C2 is far.",
                "shown_by": ["variant no warm-up", "item C3/web", "variant one die"],
                "text": "Because `a` < b.\n\n| x | y |\n|---|---|\n| 1 | **2** |\n",
            },
            {"claims": ["C5"], "title": "C5 is not understood.", "shown_by": [], "text": "Who knows."},
            {"claims": [], "title": "What is fitted.", "shown_by": [], "text": HOSTILE},
        ],
        "sensitivity": {
            "scale": None,
            "columns": [["web", "cut %"], ["mail", "cut %"]],
            "rows": [["as calibrated", [79.7, 83.3]], ["no warm-up", [77.0, None]], ["one die", [1.0, 2.0]]],
            "claims": [["C1", "order"], ["C1", "size"], ["C2", "size"]],
            "inside": [
                ["as calibrated", [True, True, False]],
                ["no warm-up", [True, False, False]],
                ["one die", [True, True, False]],
            ],
        },
        "configurations": {"web/plain": "00ff", "web/unlimited": "ff00"},
        "workloads": [{"requests": {"profile": "web"}}, {"requests": {"capture": "sqlite"}}],
    }


@pytest.fixture
def document() -> Any:
    """Two papers with every verdict, an order, what was left out, and a third that failed."""
    first = first_paper()
    second = copy.deepcopy(first) | {
        "paper": "mine",
        "scale": 0.1,
        "figures": ["1"],
        "calibration": None,
        "sensitivity": None,
        "differences": [],
        "without_claim": {},
        "workloads": [{"requests": {"profile": "mail"}}],
        "left_out": [{"claim": "C9", "name": "sqlite"}],
        "claims": [claim("C1", ["1"], [item(scaled=True), item(1.0, name="mail", scaled=True)], {"size": "scaled"})],
    }
    return {"papers": [first, second], "failed": [{"paper": "combined", "error": HOSTILE}]}


def text_of(document: Any, **options: Any) -> str:
    made = make(document, **options).render()
    return re.sub(r"<script.*?</script>", "", made, flags=re.DOTALL)


def words_of(markup: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", markup))


def rows_of(table: str) -> list[list[str]]:
    """The cells of the rows of a table."""
    rows = re.findall(r"<tr>(.*?)</tr>", table)
    return [[words_of(cell).strip() for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row)] for row in rows]


def table_of(text: str, caption: str) -> list[list[str]]:
    """The cells of the table with a caption that begins so."""
    found = re.search(rf"<table[^>]*><caption>{re.escape(caption)}.*?</table>", text)
    assert found, caption
    return rows_of(found[0])


def test_claims_are_counted_once_by_kind_aspect_and_verdict(document: Any) -> None:
    first = document["papers"][0]
    judged = counts.judged([first])
    # I1 has identities alone.
    assert [claim["id"] for claim in judged] == ["C1", "C2", "C3", "C4", "C5", "C6", "D1"]
    assert counts.of_kinds(judged) == {"measured": 5, "derived": 1, "ours": 1}
    head, *rows = table_of(text_of(document), "CA-SSD: distinct claims")
    words = ["reproduced", "holds", "fitted", "differs", "cause unknown", "contradictory", "not judged"]
    assert head == ["kind", "aspect", *words, "claims"]
    assert rows == [
        ["measured", "order", "1", "", "", "", "1", "", "", "2"],
        ["measured", "size", "1", "", "", "1", "", "1", "1", "4"],
        ["derived", "size", "", "", "1", "", "", "", "", "1"],
        ["ours", "shape", "", "1", "", "", "", "", "", "1"],
    ]


def test_tiles_never_call_a_claim_reproduced_that_is_fitted_or_ours(document: Any) -> None:
    found = re.findall(
        r"<dt>([^<]+)</dt><dd><span class=\"value\">([^<]+)</span><span class=\"remark\">([^<]*)<", text_of(document)
    )
    assert found == [
        ("Order: reproduced", "1 of 2", "1 cause unknown"),
        ("Size: reproduced", "1 of 6", "1 fitted, 1 differs, 1 scaled, 1 contradictory, 1 not judged"),
        ("Our own, shape: hold", "1 of 1", ""),
    ]


def test_no_number_is_counted_as_a_claim(document: Any) -> None:
    text = words_of(text_of(document))
    assert "8 claims (6 measured, 1 derived, 1 ours) of 2 papers." in text
    document["papers"][0]["claims"][0]["items"] *= 3
    assert "8 claims (6 measured, 1 derived, 1 ours) of 2 papers." in words_of(text_of(document))


def test_identities_are_told_apart_and_broken_ones_by_name(document: Any) -> None:
    first = document["papers"][0]
    total, broken = counts.identities(first)
    assert total == 3
    assert [(claim["id"], item["name"]) for claim, item in broken] == [("C1", "parts")]
    text = text_of(document)
    assert "1 broken, </strong>" in text
    assert '<a href="#claim-ca-ssd-c1-4">C1 parts</a>' in text
    assert ">identity broken</span>" in text
    assert "There are no identities." in text
    first["claims"][0]["items"][3] = item(1.0, name="parts", aspect="identity", within=[0.9, 1.1])
    text = text_of(document)
    assert "3 identities, arithmetic that must come out whatever the workload: all hold." in text
    assert "broken" not in words_of(text)


@pytest.mark.parametrize(
    ("number", "word", "remark"),
    [
        (item(64.0, 1.0), "inside", None),
        (item(64.0, standing=because("fitted")), "inside, fitted", None),
        (item(40.0), "outside", None),
        (item(74.5, 1.0), "outside", "the interval leaves the range"),
        (item(40.0, standing=because("fitted")), "outside", None),
        (item(None), "outside", "not measurable"),
        (item(64.0, scaled=True), "inside, scaled", None),
        (item(40.0, scaled=True), "outside, scaled", None),
        (item(64.0, standing=because("contradictory")), "shown", None),
        (item(64.0, standing=because("unjudged"), inside=None), "shown", None),
        (item(74.5, 1.0, standing=because("unjudged")), "shown", None),
        (order(2.0, 1.0), "inside", None),
        (order(2.0, 1.9, inside=False), "outside", "not for every seed"),
        (order(1.0, 2.0, inside=False), "outside", None),
        (item(1.0, aspect="identity", within=[1.0, 1.0], scaled=True), "identity holds", None),
        (item(2.0, aspect="identity", within=[1.0, 1.0]), "identity broken", None),
        (item(None, aspect="identity", within=[1.0, 1.0]), "identity broken", "not measurable"),
    ],
)
def test_a_number_says_where_it_lies(number: Any, word: str, remark: str | None) -> None:
    assert states.of(number).word == word
    assert states.remark(number) == remark


def test_a_claim_is_shown_with_all_that_it_rests_on(document: Any) -> None:
    text = text_of(document)
    begin, end = text.index('id="claim-ca-ssd-c1"'), text.index('id="claim-ca-ssd-c2"')
    part = text[begin:end]
    said = words_of(part)
    assert "Measured. Figure 7(a)." in said
    assert "<q>they fall</q>" in part
    assert "Published values: printed in the text." in said
    assert "order: reproduced" in said
    assert "size: reproduced" in said
    head, size, falling, holds, broken = table_of(part, "C1: published and measured, means with 95 % intervals")
    assert head == ["number", "aspect", "published (%)", "measured (%)", "accepted", "state"]
    assert size == ["web", "size", "65", "64 ± 0.31", "55 to 75", "inside"]
    assert falling == ["order", "order", "", "3 ± 0.20 → 2 ± 0.20 → 1 ± 0.20", "falling", "inside"]
    assert holds[-1] == "identity holds"
    assert broken[-1] == "identity broken"


def test_verdicts_stand_with_claims_by_aspect(document: Any) -> None:
    text = text_of(document)
    told = set(re.findall(r'class="badge \w+">(order|shape|size): ([^<]+)<', text))
    assert told == {
        ("order", "reproduced"),
        ("order", "cause unknown"),
        ("shape", "holds"),
        ("size", "reproduced"),
        ("size", "fitted"),
        ("size", "differs"),
        ("size", "scaled"),
        ("size", "contradictory"),
        ("size", "not judged"),
    }
    assert ">identities, no claim</span>" in text


def test_reasons_name_what_they_are_of(document: Any) -> None:
    said = words_of(text_of(document))
    assert "fitted (web): it was chosen." in said
    assert "not judged : nothing is published." in said


def test_small_runs_are_not_called_a_verdict(document: Any) -> None:
    assert "Some claims are scaled." in text_of(document)
    document["papers"].pop()
    text = text_of(document)
    assert "Some claims are scaled." not in text
    assert "scaled</span>" not in text


def test_seeds_are_told_with_what_they_mean(document: Any) -> None:
    text = text_of(document)
    assert "5 seeds, 1 to 5: figures are means with 95 % intervals" in text
    document["papers"][0]["seeds"] = [7]
    assert summary.seeds(document["papers"]).startswith("One seed, 7: there are no intervals")
    assert "means with" not in text_of({"papers": document["papers"][:1], "failed": []})


def test_what_has_no_claim_was_left_out_or_failed_is_told(document: Any) -> None:
    text = text_of(document)
    assert "<dt>Figure 1</dt><dd>an overview of the architecture</dd>" in text
    assert "1 numbers, of the claims C9" in text
    assert "Everything combined: &lt;script&gt;" in text


def test_a_document_without_reports_is_a_page_too() -> None:
    text = text_of({"papers": [], "failed": [{"paper": "i-cash", "error": "why"}, {"paper": "bvssd", "error": "not"}]})
    assert "No experiment came to its end." in text
    assert "BVSSD: not" in text


def test_claims_stand_under_their_first_place_and_are_named_under_the_others(document: Any) -> None:
    text = text_of(document)
    seven_a, seven_b = text.index("Figure 7a</h3>"), text.index("Figure 7b</h3>")
    assert seven_a < text.index('Shown elsewhere, and about this as well: <a href="#claim-ca-ssd-c2">C2</a>') < seven_b
    assert seven_b < text.index('id="claim-ca-ssd-c2"') < text.index("Table 2</h3>")
    assert text.count('id="claim-ca-ssd-c2"') == 1
    only_second = [claim("C1", ["1", "2"], [item()], {"size": "reproduced"})]
    assert list(places.grouped(only_second)) == ["1", "2"]


def test_differences_stand_with_their_claims_and_what_shows_them(document: Any) -> None:
    text = text_of(document)
    c2, c4 = text.index('id="claim-ca-ssd-c2"'), text.index('id="claim-ca-ssd-c4"')
    known = text.index('id="difference-ca-ssd-1"')
    assert c2 < known < c4 < text.index('Known: <a href="#difference-ca-ssd-1">C2 is far.</a> (with C2)')
    assert text.count("Known: C2 is far.") == 1
    shown = re.search(r"Known: C2 is far. </strong>(.*?)</p>", text)
    assert shown
    # A row of the settings and a claim; what moves nothing is not named as the cause.
    assert re.findall(r'href="#([^"]+)"', shown[1]) == ["setting-ca-ssd-2", "claim-ca-ssd-c3"]
    # A reader sees what each of them does.
    head, *rows = table_of(text, "What the experiments do")
    assert head == ["outside", "as defined", "experiment", "there", ""]
    assert rows == [
        ["C2 far", "2", "no warm-up", "1", "nearer"],
        ["C2 far", "2", "C3/web", "0.5000", "inside"],
        ["C2 far", "2", "one die", "3", "not nearer"],
    ]
    assert "Known: C5 is not understood. </strong>No experiment here shows the cause." in text
    assert "Known: What is fitted. </strong></p>" in text


def test_causes_that_were_not_run_are_told_apart(document: Any) -> None:
    document["papers"][0]["claims"][1]["evidence"] = []
    assert "C2 is far. </strong>Shown by experiments that were not run here." in text_of(document)


def test_every_link_leads_somewhere_and_places_are_unique(document: Any) -> None:
    text = text_of(document)
    ids = re.findall(r'\bid="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"]+)"', text)) <= set(ids)


def test_settings_and_claims_are_a_matrix_in_words(document: Any) -> None:
    text = text_of(document)
    head, *rows = table_of(text, "Whether the judged numbers")
    assert head == ["changed", "inside", "C1 order", "C1 size", "C2 size"]
    assert rows == [
        ["as calibrated", "2 of 3", "inside", "inside", "outside"],
        ["no warm-up", "1 of 3", "inside", "outside", "outside"],
        ["one die", "2 of 3", "inside", "inside", "outside"],
    ]
    assert (
        "No single setting has all 3 aspects of claims inside. The most, 2, are under: as calibrated; one die." in text
    )
    assert "Inside under every setting: C1 order. Inside under no setting: C2 size." in text
    assert table_of(text, "mail, with other settings")[2] == ["no warm-up", "-"]


def test_a_setting_that_has_all_inside_is_named(document: Any) -> None:
    found = document["papers"][0]["sensitivity"]
    found["inside"][2][1][2] = True
    assert sensitivity.sentence(found) == "All 3 aspects of claims are inside at once under: one die."
    found |= {"claims": [["C1", "order"]], "inside": [["as defined", [False]], ["one die", [True]]]}
    assert sensitivity.sentence(found) == "The one aspect of a claim is inside under: one die."


def test_settings_on_smaller_workloads_say_little(document: Any) -> None:
    first = document["papers"][0]
    little, apart = "this says little of them", "The changed runs replay at most 0.05 of each workload"
    assert little not in text_of(document)
    assert apart not in text_of(document)
    first["scale"], first["sensitivity"]["scale"] = 0.1, 0.05
    assert little in text_of(document)
    assert apart in text_of(document)


def test_settings_can_be_linked_to_without_claims_too(document: Any) -> None:
    found = document["papers"][0]["sensitivity"]
    found["claims"], found["inside"] = [], [[name, []] for name, _ in found["inside"]]
    text = text_of(document)
    assert "single setting" not in text
    assert text.count('id="setting-ca-ssd-2"') == 1


def test_commands_repeat_what_was_done(document: Any) -> None:
    text = text_of(document)
    assert "flashlore reproduce all --report papers.html" in text
    assert "flashlore reproduce ca-ssd --figure 7a<" in text
    for report in document["papers"]:
        report["seeds"] = [7]
    text = text_of(document, quick=True, captures="my captures")
    assert "flashlore reproduce all --quick --captures &#x27;my captures&#x27; --seed 7 --report papers.html" in text
    assert "flashlore reproduce ca-ssd --quick --captures &#x27;my captures&#x27; --seed 7<" in text
    # By itself a figure has five seeds.
    assert "reproduce ca-ssd --figure 7a --captures &#x27;my captures&#x27; --seed 7 --seeds 1<" in text


def test_commands_say_how_many_seeds_unless_it_is_the_default(document: Any) -> None:
    for report in document["papers"]:
        report["seeds"] = [1, 2, 3]
    text = text_of(document)
    assert "flashlore reproduce all --seeds 3 --report papers.html" in text
    assert "flashlore reproduce ca-ssd --figure 7a --seeds 3<" in text
    assert "flashlore reproduce ca-ssd --quick --seeds 3<" in text_of(document, quick=True)


def test_a_command_asks_for_what_was_asked_for(document: Any) -> None:
    first, second = document["papers"]
    # Alone it would fail without the captures that `all` left out.
    assert "flashlore reproduce mine --figure 1 --scale 0.1 --captures captures<" in text_of(document)
    first |= {"scale": 0.123456789, "figures": ["7a"], "seeds": [3, 4, 5, 6, 7]}
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


def drawn(spec: Any, mark: str) -> list[Any]:
    """The rows of each layer with a mark."""
    return [spec["datasets"][layer["data"]["name"]] for layer in spec["layer"] if layer["mark"]["type"] == mark]


def test_a_panel_draws_what_was_published_measured_and_accepted() -> None:
    ((figure, _, caption),) = numbers.panels(claim("C1", ["1"], [item(64.0, 1.5)], {}))
    spec = figure.to_dict()
    assert drawn(spec, "text")[0] == [{"name": "web"}]
    assert [(row["low"], row["high"]) for row in drawn(spec, "bar")[0]] == [(55.0, 75.0)]
    (points,) = drawn(spec, "point")
    assert [(row["what"], row["value"]) for row in points] == [("published", 65.0), ("inside", 64.0)]
    assert [(row.get("low"), row.get("high")) for row in points] == [(None, None), (62.5, 65.5)]
    assert drawn(spec, "rule") == [points]
    assert "95 % intervals" in caption


def test_one_seed_has_no_interval_bars() -> None:
    ((figure, _, caption),) = numbers.panels(claim("C1", ["1"], [item()], {}))
    assert "intervals" not in caption
    (rule,) = (layer for layer in figure.to_dict()["layer"] if layer["mark"]["type"] == "rule")
    assert {"filter": "datum.low < datum.high"} in rule["transform"]
    assert claims.measured(measured(2.5)) == "2.500"


@pytest.mark.parametrize("dark", [False, True])
def test_verdicts_are_told_apart_by_everybody(dark: bool) -> None:  # noqa: FBT001
    def shade(light: str) -> str:
        return theme.DARK_OF_LIGHT[light] if dark else light

    # Bars carry no shapes, and any two verdicts may be neighbours.
    colours = [(verdict.word, shade(verdict.colour)) for verdict in verdicts.ALL]
    for place, (word, colour) in enumerate(colours):
        for other, another in colours[:place]:
            assert difference(colour, another) > 0.04, (word, other)
    assert dark or contrast(shade(verdicts.OF["holds"].colour), theme.GROUND[0]) >= 3


def test_panels_are_vega_lite_that_altair_accepts(document: Any) -> None:
    for report in document["papers"]:
        for each in report["claims"]:
            panels = numbers.panels(each)
            # Of C6 nothing was measured, and I1 is an identity.
            assert bool(panels) == (each["id"] not in ("C6", "I1"))
            for figure, _, _ in panels:
                alt.LayerChart.from_dict(figure.to_dict())
    alt.LayerChart.from_dict(numbers.overview(document["papers"]).to_dict())


def test_the_overview_counts_claims(document: Any) -> None:
    (rows,) = numbers.overview(document["papers"]).to_dict()["datasets"].values()
    assert sum(row["claims"] for row in rows if row["name"] == "CA-SSD, size") == 5
    assert sum(row["claims"] for row in rows) == 9


def test_orders_and_units_have_panels_of_their_own() -> None:
    items = [item(), item(name="ms", unit="ms"), order(2.0, 1.0), item(None, name="none", unit="x")]
    items.append(item(aspect="identity", unit="µs"))
    titles = [title for _, title, _ in numbers.panels(claim("C1", ["1"], items, {}))]
    assert titles == ["C1: numbers, %", "C1: numbers, ms", "C1: orders, %"]


@pytest.mark.parametrize(
    ("values", "within", "expected"),
    [
        ([70.0, 80.0], [60.0, 90.0], {"zero": False, "nice": False}),
        ([1.0, 1000.0], None, {"type": "log", "nice": False}),
        ([-5.0, 1000.0], None, {"type": "symlog", "constant": 1, "nice": False}),
        ([0.0], None, {"zero": False, "nice": False}),
    ],
)
def test_an_axis_shows_all_points(values: list[float], within: list[float] | None, expected: dict[str, Any]) -> None:
    scale = numbers._scale([item(value, published=None, within=within) for value in values])  # noqa: SLF001
    low, high = scale.pop("domain")
    assert scale == expected
    assert low < min(values)
    assert high > max(values)
    if within:
        assert low < within[0] < within[1] < high


def test_an_axis_shows_whole_intervals() -> None:
    low, high = numbers._scale([item(64.0, 30.0, within=None)])["domain"]  # noqa: SLF001
    assert low < 34
    assert high > 94


def test_a_range_far_away_does_not_squeeze_the_points() -> None:
    scale = numbers._scale([item(1.04, published=None, within=[1.0, 1000.0])])  # noqa: SLF001
    assert scale["domain"][1] < 2


def test_headings_name_figures_tables_sections_and_groups() -> None:
    assert places.heading("4", [claim("C1", ["4"], [], {}, source="Section 4")]) == "Section 4"
    assert places.heading("4") == "Figure 4"


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
        # By keys: to the contents of the claims, to one of them, and into what is folded.
        link = shown.get_by_role("link", name="C2", exact=True).first
        link.focus()
        link.press("Enter")
        assert shown.url.endswith("#claim-ca-ssd-c2")
        known = shown.locator("#difference-ca-ssd-1 summary")
        known.focus()
        known.press("Enter")
        assert shown.get_by_text("Because a < b.").is_visible()
