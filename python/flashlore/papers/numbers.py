"""The figures of a claim: what was published, measured and accepted, a row a number.

The name of a number stands above its row, so that the plot has the whole width of a narrow window. A bar with ends is
the 95 % interval over the seeds. An order of several figures is a path of numbered points: it holds where the path
never turns to the right. Numbers of different units, and orders, stand in panels of their own. Identities are
not drawn: nothing was published of them, and the table says whether they hold.

A page of all papers has a hundred of these, and Altair takes a tenth of a second to check each. So they are written
as Vega-Lite, which a test has Altair check once.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, TypeAlias

from flashlore.figures import theme
from flashlore.papers import counts, places, states, verdicts
from flashlore.report.table import number

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from flashlore.papers.document import Claim, Item, Measured, Report

PUBLISHED = "published"

# Colour and shape of the points of each state.
_LOOKS = {
    states.INSIDE: (theme.BETTER[0], "circle"),
    states.FITTED: (theme.CAUSES["unique"][0], "triangle-up"),
    states.OUTSIDE: (theme.WORSE[0], "cross"),
    states.INSIDE_SCALED: (theme.CAUSES["reborn"][0], "circle"),
    states.OUTSIDE_SCALED: (theme.CAUSES["wear"][0], "cross"),
    states.SHOWN: (theme.MUTED[0], "triangle-right"),
}

Row: TypeAlias = dict[str, "str | float | None"]

# Pixels of a row: its name, and its points below that.
_ROW = 42
_NAME = -13
_POINTS = 4
_INTERVAL = 17

# Points of several seeds.
_WIDE = "datum.low < datum.high"

# Values so many times apart are drawn on a logarithmic axis.
_APART = 30.0
# Values from ten thousand on are written with a letter for thousands and millions.
_LABEL = "format(datum.value, abs(datum.value) >= 10000 ? '~s' : ',~r')"
# An accepted range is drawn to its ends where those are nearer than so many times the spread or size of what is shown.
_REACH = 1.5
# The least spread of an axis.
_LEAST = 1e-6


class Figure:
    """A figure as Vega-Lite, in the looks of all figures and in light colours."""

    def __init__(self, spec: dict[str, Any]) -> None:
        """Take a specification without data that stand in it."""
        self._spec = spec

    def to_dict(self) -> dict[str, Any]:
        """Give the specification, with data by name, as Altair's charts do."""
        return {**self._spec, "config": theme.config()}


def panels(claim: Claim) -> list[tuple[Figure, str, str]]:
    """Draw a claim: a panel for the numbers of each unit and one for its orders; none of what was not measured.

    Each comes with its title and its caption.
    """
    every = [item for item in claim["items"] if item["aspect"] != "identity"]
    found = []
    for unit, is_order in dict.fromkeys(map(_kind, every)):
        items = [item for item in every if _kind(item) == (unit, is_order)]
        if any(value is not None for item in items for value in item["measured"]):
            parts = ["orders" if is_order else "numbers", *[unit] * (unit != "")]
            found.append((_panel(items, unit), f"{claim['id']}: {', '.join(parts)}", _caption(items)))
    return found


def _caption(items: Sequence[Item]) -> str:
    if len(items[0]["measured"]) > 1:
        return "Numbered in their order; it holds where the path never turns to the right, for every seed."
    parts = ["Measured numbers, by whether they are inside what is accepted"]
    if any(measured["low"] < measured["high"] for item in items for measured in item["measured"] if measured):
        parts.append("bars with ends are 95 % intervals over the seeds")
    if any(item["published"] is not None for item in items):
        parts.append("diamonds were published")
    if any(item["within"] for item in items):
        parts.append("grey is accepted, as far as it is near")
    return "; ".join(parts) + "."


def _kind(item: Item) -> tuple[str, bool]:
    return item["unit"], len(item["measured"]) > 1


def _panel(items: Sequence[Item], unit: str) -> Figure:
    points, bands = _named(_points(items)), _named(_bands(items))
    labels = _named({"name": item["name"]} for item in items)
    names = list(dict.fromkeys(item["name"] for item in items))
    scale = _scale(items)
    y = {"field": "name", "type": "nominal", "sort": names, "axis": None}
    axis = {"tickCount": 5, "labelExpr": _LABEL}
    x = {"field": "value", "type": "quantitative", "title": unit or None, "scale": scale, "axis": axis}
    colours, shapes = _looks(points)
    what = {"field": "what", "type": "nominal"}
    tooltip = [
        {"field": "name", "type": "nominal"},
        what,
        {"field": "value", "type": "quantitative", "format": ",.4~r", "title": unit or "value"},
        {"field": "interval", "type": "nominal", "title": "95 % interval"},
    ]
    rule = {"y": y, "x": x | {"field": "low"}, "x2": {"field": "high"}}
    end = {"type": "tick", "yOffset": _POINTS, "size": _INTERVAL, "thickness": 1.5, "color": theme.INK[0]}
    layers = [
        {
            "data": {"name": _key(labels)},
            "mark": {"type": "text", "align": "left", "yOffset": _NAME, "fontSize": 11.5, "fontWeight": 500},
            "encoding": {"y": y, "x": {"value": 0}, "text": {"field": "name", "type": "nominal"}},
        },
        {
            "data": {"name": _key(bands)},
            "mark": {"type": "bar", "height": 13, "yOffset": _POINTS, "opacity": 0.45, "cornerRadius": 2, "clip": True}
            | {"color": theme.CAUSES["padding"][0]},
            "encoding": {
                "y": y,
                "x": {"field": "low", "type": "quantitative", "scale": scale, "title": unit or None, "axis": axis},
                "x2": {"field": "high"},
                "tooltip": [{"field": "accepted", "type": "nominal"}],
            },
        },
        _layer(
            points,
            {"type": "line", "yOffset": _POINTS, "strokeWidth": 1.5, "color": theme.AXIS[0]},
            {"y": y, "x": x, "order": {"field": "step", "type": "quantitative"}, "detail": {"field": "name"}},
        ),
        _layer(
            points, {"type": "rule", "yOffset": _POINTS, "strokeWidth": 1.5, "color": theme.INK[0]}, rule, only=_WIDE
        ),
        _layer(points, end, {"y": y, "x": x | {"field": "low"}}, only=_WIDE),
        _layer(points, end, {"y": y, "x": x | {"field": "high"}}, only=_WIDE),
        _layer(
            points,
            {"type": "point", "yOffset": _POINTS, "filled": True, "size": 85, "opacity": 1, "strokeWidth": 2.5},
            {"y": y, "x": x, "color": what | {"scale": colours}, "shape": what | {"scale": shapes}, "tooltip": tooltip},
        ),
        _layer(
            points,
            {"type": "text", "yOffset": _POINTS + 12, "fontSize": 10, "color": theme.MUTED[0]},
            {"y": y, "x": x, "text": {"field": "step", "type": "quantitative"}},
            only="datum.steps > 1",
        ),
    ]
    return Figure({"layer": layers, "height": _ROW * len(names), "datasets": points | bands | labels})


def _layer(
    points: dict[str, list[Row]], mark: dict[str, Any], encoding: dict[str, Any], *, only: str = "true"
) -> dict[str, Any]:
    """Draw those points that have a value."""
    filters = [{"filter": "isValid(datum.value)"}, {"filter": only}]
    return {"data": {"name": _key(points)}, "transform": filters, "mark": mark, "encoding": encoding}


def _named(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """Name data by what is in them, as Altair does: figures of a page may share them."""
    made = list(rows)
    text = json.dumps(made, sort_keys=True)
    return {f"numbers-{hashlib.sha256(text.encode()).hexdigest()[:16]}": made}


def _key(data: dict[str, list[Row]]) -> str:
    return next(iter(data))


def _points(items: Sequence[Item]) -> Iterable[Row]:
    """Make a row a point: number, what it is, value and interval, and its place in an order of so many steps."""
    for item in items:
        word = states.of(item).word
        steps = len(item["measured"])
        if item["published"] is not None:
            yield {"name": item["name"], "what": PUBLISHED, "value": item["published"], "step": 0, "steps": 1}
        for step, measured in enumerate(item["measured"], start=1):
            row: Row = {"name": item["name"], "what": word, "value": None, "step": step, "steps": steps}
            if measured is not None:
                row |= {"value": measured["mean"], "low": measured["low"], "high": measured["high"]}
                row["interval"] = interval(measured) or "one seed gives none"
            yield row


def interval(measured: Measured) -> str | None:
    """Write the interval of a figure, if it has one.

    >>> interval({"mean": 2.0, "low": 1.5, "high": 2.5})
    '1.500 to 2.500'
    """
    if not measured["low"] < measured["high"]:
        return None
    return f"{number(measured['low'])} to {number(measured['high'])}"


def _bands(items: Sequence[Item]) -> Iterable[Row]:
    for item in items:
        if item["within"] is not None:
            low, high = item["within"]
            yield {"name": item["name"], "low": low, "high": high, "accepted": f"accepted: {item['accepted']}"}


def _looks(points: dict[str, list[Row]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Give colours and shapes of what there is: what was published, and what became of what was measured."""
    there = {row["what"] for rows in points.values() for row in rows}
    looks = [(PUBLISHED, theme.INK[0], "diamond")] if PUBLISHED in there else []
    looks += [(state.word, *look) for state, look in _LOOKS.items() if state.word in there]
    words = [word for word, _, _ in looks]
    colours = {"domain": words, "range": [colour for _, colour, _ in looks]}
    return colours, {"domain": words, "range": [shape for _, _, shape in looks]}


def _scale(items: Sequence[Item]) -> dict[str, Any]:
    """Choose an axis that shows all points, and of accepted ranges what is near."""
    ends = [end for item in items for found in item["measured"] if found for end in (found["low"], found["high"])]
    shown = ends + [item["published"] for item in items if item["published"] is not None]
    low, high = min(shown), max(shown)
    reach = _REACH * max(high - low, abs(low), abs(high))
    near = [end for item in items for end in item["within"] or () if low - reach <= end <= high + reach]
    low, high = min(low, *near, low), max(high, *near, high)
    if low > 0 and high / low > _APART:
        return {"type": "log", "domain": [low / 1.3, high * 1.3], "nice": False}
    sizes = [abs(value) for value in shown if value != 0]
    if sizes and low <= 0 and max(sizes) > _APART * max(1, min(sizes)):
        return {"type": "symlog", "constant": 1, "domain": [low * 1.3, high * 1.3], "nice": False}
    margin = 0.06 * max(high - low, 0.02 * max(abs(low), abs(high)), _LEAST)
    return {"zero": False, "domain": [low - margin, high + margin], "nice": False}


def overview(reports: Sequence[Report]) -> Figure:
    """Draw how many claims of each paper have which verdict: a bar for each aspect of a paper's claims."""
    made: list[Row] = []
    for report in reports:
        for aspect in verdicts.ASPECTS:
            name = f"{places.label(report['paper'])}, {aspect}"
            found = counts.by_verdict(report["claims"], aspect)
            for place, verdict in enumerate(verdicts.ALL):
                if verdict.name in found:
                    row: Row = {"name": name, "verdict": verdict.word, "place": place, "claims": found[verdict.name]}
                    made.append(row)
    rows = _named(made)
    there = {row["verdict"] for row in made}
    words = [verdict for verdict in verdicts.ALL if verdict.word in there]
    scale = {"domain": [verdict.word for verdict in words], "range": [verdict.colour for verdict in words]}
    claims = {"field": "claims", "type": "quantitative"}
    names = list(dict.fromkeys(row["name"] for row in made))
    y = {"field": "name", "type": "nominal", "sort": names, "title": None, "axis": {"domain": False, "ticks": False}}
    bars = {
        "mark": {"type": "bar", "height": 16, "stroke": theme.GROUND[0], "strokeWidth": 1.5},
        "encoding": {
            "y": y,
            "x": claims | {"stack": "zero", "axis": {"format": "d", "tickMinStep": 1}},
            "order": {"field": "place", "type": "quantitative"},
            "color": {"field": "verdict", "type": "nominal", "scale": scale},
            "tooltip": [{"field": "name"}, {"field": "verdict"}, claims],
        },
    }
    height = 26 * len(names)
    return Figure({"data": {"name": _key(rows)}, "layer": [bars], "height": height, "datasets": rows})
