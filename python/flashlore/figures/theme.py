"""Colours and looks of all figures.

One system has one colour everywhere: the presets' stand in a table here, other systems take what the presets in the
same figure leave free, in their order. Dashes and shapes say the same a second time, for people and printers that do
not tell colours apart. Every colour has a light and a dark form; figures are made in the light one, and `paint`
exchanges them all, so no colour may stand for two things.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

import altair as alt

if TYPE_CHECKING:
    from collections.abc import Sequence

Theme = Literal["light", "dark"]
# What figures are: a single view or layers of it; of several traces one beside the other.
Figure: TypeAlias = alt.Chart | alt.LayerChart | alt.FacetChart


@dataclass(frozen=True)
class Look:
    """How a series looks: its colour on light and on dark ground, the dashes of its lines, the shape of its points."""

    light: str
    dark: str
    dash: tuple[int, ...]
    shape: str


# Chosen by a search: the five first differ most, in what people with the three kinds of colour blindness see and in
# grey; systems of one kind differ next; all keep three to one against the ground. A test measures it.
SYSTEMS: dict[str, Look] = {
    "plain": Look("#0c0c0c", "#b9b9b9", (1, 0), "circle"),
    "ca-ssd": Look("#2430b0", "#72a3f7", (8, 3), "square"),
    "delta-ftl": Look("#a33600", "#e66d3b", (2, 2), "triangle-up"),
    "bvssd": Look("#1ea189", "#c8f6b5", (8, 3, 2, 3), "diamond"),
    "combined": Look("#9846d2", "#a65baf", (12, 2), "cross"),
    "compress": Look("#346e7d", "#7bf0fe", (4, 2), "triangle-down"),
    "caftl": Look("#9883d4", "#6a6ffb", (5, 2, 1, 2, 1, 2), "triangle-right"),
    "trap": Look("#ad7b0b", "#f0a622", (2, 5), "triangle-left"),
    "pure-ssd": Look("#1b1b1b", "#f7f7f7", (1, 0), "circle"),
    "i-cash": Look("#161f86", "#95c1e5", (8, 3), "diamond"),
    "i-cash-compression": Look("#d17556", "#ea3228", (2, 2), "triangle-up"),
    "raid0": Look("#4f6130", "#d1d790", (4, 2), "cross"),
    "lru-cache": Look("#5a2e0b", "#c5a97d", (8, 3, 2, 3), "triangle-down"),
    "dedup-cache": Look("#a35095", "#cb62c9", (5, 2, 1, 2, 1, 2), "square"),
    "delta-ftl-letter": Look("#32103f", "#5746f1", (2, 2), "triangle-up"),
    "ca-ssd-history": Look("#3622e9", "#fbea05", (8, 3), "square"),
    "delta-ftl-history": Look("#7b2d7f", "#b33e37", (2, 5), "triangle-left"),
    "compress-history": Look("#a271b3", "#a98db3", (4, 2), "triangle-down"),
}

# What a unit was programmed for, in the order in which bars stack them: the host's in blues, what the translation
# layer adds in other hues. Neighbours differ in grey.
CAUSES: dict[str, tuple[str, str]] = {
    "host": ("#2f6db4", "#5b9ae6"),
    "unique": ("#173f74", "#3f73b8"),
    "reborn": ("#5c99da", "#8fbdf0"),
    "duplicate": ("#a9cef1", "#cfe4fb"),
    "packed": ("#20897c", "#3fbfae"),
    "merge": ("#9bcfa0", "#d3f0c4"),
    "gc": ("#d9661f", "#f08a4b"),
    "wear": ("#7a3c12", "#b4703d"),
    "map": ("#6f4a9f", "#b596e0"),
    "padding": ("#b5bac1", "#767c85"),
}

# Of a figure itself: text, lesser text, lines of axes, grid, ground of a page, and what is better or worse.
INK = ("#1c2431", "#e7eaf0")
MUTED = ("#566171", "#a4aebc")
AXIS = ("#8b95a3", "#6b7584")
GRID = ("#e4e8ee", "#2b323d")
GROUND = ("#fefefe", "#14181f")
BETTER = ("#1a7f5a", "#4fd0a0")
WORSE = ("#b3372b", "#ff8d7d")
# Of a claim of our own that holds.
OURS = ("#7f9f1f", "#c3e06a")

# Of classes of requests: both kinds of access, where a figure is not about systems.
CLASSES: dict[str, Look] = {
    "write": Look("#a33601", "#e66d3c", (1, 0), "circle"),
    "read": Look("#2530a3", "#72a3f8", (6, 3), "square"),
    "plain index": Look("#566172", "#a4aebd", (6, 3), "square"),
    "live index": Look("#a33602", "#e66d3d", (1, 0), "circle"),
}

_PAIRS = (
    *((look.light, look.dark) for look in (*SYSTEMS.values(), *CLASSES.values())),
    *CAUSES.values(),
    INK,
    MUTED,
    AXIS,
    GRID,
    GROUND,
    BETTER,
    WORSE,
    OURS,
)
# Every colour of figures in its dark form.
DARK_OF_LIGHT: dict[str, str] = dict(_PAIRS)

_HEX = re.compile(r"#[0-9a-f]{6}\b")

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', sans-serif"

AnyChart = TypeVar("AnyChart", alt.Chart, alt.LayerChart, alt.FacetChart)


def looks(names: Sequence[str]) -> dict[str, Look]:
    """Give the look of each series. Presets have theirs; others take what is free, in their order, then begin again.

    >>> looks(["mine", "plain"])["mine"] == SYSTEMS["ca-ssd"]
    True
    """
    free = [look for preset, look in SYSTEMS.items() if preset not in names] or list(SYSTEMS.values())
    found: dict[str, Look] = {}
    strangers = 0
    for name in names:
        # A system on another device, `ca-ssd @ large`, looks as the system does where that is not there as well.
        stem = name.split(" @ ", maxsplit=1)[0]
        known = SYSTEMS.get(name) or (SYSTEMS.get(stem) if stem not in names else None) or CLASSES.get(name)
        if known is None or known in found.values():
            rest = [look for look in free if look not in found.values()] or free
            known = rest[0] if rest[0] not in found.values() else free[strangers % len(free)]
            strangers += 1
        found[name] = known
    return found


def colour(name: str, names: Sequence[str]) -> tuple[str, str]:
    """Give the colour of a series among others, on light and on dark ground."""
    look = looks(names)[name]
    return look.light, look.dark


def colours(names: Sequence[str]) -> alt.Scale:
    """Make a scale from series to their colours."""
    found = looks(names)
    return alt.Scale(domain=list(names), range=[found[name].light for name in names])


def dashes(names: Sequence[str]) -> alt.Scale:
    """Make a scale from series to the dashes of their lines."""
    found = looks(names)
    return alt.Scale(domain=list(names), range=[list(found[name].dash) for name in names])


def shapes(names: Sequence[str]) -> alt.Scale:
    """Make a scale from series to the shapes of their points."""
    found = looks(names)
    return alt.Scale(domain=list(names), range=[found[name].shape for name in names])


def dress(chart: AnyChart, theme: Theme = "light") -> AnyChart:
    """Dress a chart in the looks of all figures, in the colours of a theme.

    Raises:
        ValueError: the theme is neither `light` nor `dark`.

    """
    if theme not in ("light", "dark"):
        raise ValueError(f'the theme is "{theme}"; there are "light" and "dark"')
    dressed = chart.properties(config=alt.Config.from_dict(config()))
    if theme == "dark":
        return type(chart).from_dict(paint(dressed.to_dict()))
    return dressed


def paint(spec: Any) -> Any:
    """Paint a specification in dark colours: every colour of the light theme is exchanged for its dark form."""
    if isinstance(spec, dict):
        # Data name no colours, and are long.
        return {key: value if key == "datasets" else paint(value) for key, value in spec.items()}
    if isinstance(spec, list):
        return [paint(item) for item in spec]
    if isinstance(spec, str):
        return _HEX.sub(lambda match: DARK_OF_LIGHT.get(match[0], match[0]), spec)
    return spec


def config() -> dict[str, Any]:
    """Give the configuration of Vega-Lite that all figures share, in light colours."""
    text = {"labelColor": MUTED[0], "titleColor": INK[0], "labelFontSize": 11, "titleFontSize": 12}
    return {
        "background": "transparent",
        "font": FONT,
        # The last label of an axis may reach beyond it.
        "padding": {"left": 4, "top": 4, "right": 12, "bottom": 4},
        "view": {"stroke": None, "continuousHeight": 260, "continuousWidth": 520, "discreteWidth": {"step": 72}},
        "axis": {
            **text,
            "titleFontWeight": 500,
            "titlePadding": 8,
            "labelPadding": 5,
            "gridColor": GRID[0],
            "domainColor": AXIS[0],
            "tickColor": AXIS[0],
            "tickSize": 4,
            "labelOverlap": "greedy",
            "labelSeparation": 6,
        },
        "axisBand": {"grid": False, "labelLimit": 130},
        "legend": {
            **text,
            "orient": "top",
            "direction": "horizontal",
            "title": None,
            "labelColor": INK[0],
            "labelFontSize": 12,
            "labelLimit": 150,
            "symbolSize": 90,
            "symbolStrokeWidth": 2,
            "columnPadding": 14,
            "rowPadding": 4,
            "padding": 0,
            "offset": 10,
        },
        "header": {"labelColor": INK[0], "labelFontSize": 12, "labelFontWeight": 600, "title": None},
        "title": {"color": INK[0], "subtitleColor": MUTED[0], "anchor": "start", "fontSize": 14},
        "line": {"strokeWidth": 2, "strokeCap": "butt", "strokeJoin": "round"},
        "text": {"color": INK[0], "fontSize": 11},
    }
