"""What figures of lines share: series in their colours and dashes, points that answer the pointer, log axes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import altair as alt
import polars as pl

from flashlore.figures import theme as themes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flashlore.figures.theme import Figure, Theme

# A time in microseconds as people say it.
TIME_LABEL = (
    "datum.value >= 1e6 ? format(datum.value / 1e6, ',~g') + ' s' : "
    "datum.value >= 1e3 ? format(datum.value / 1e3, '~g') + ' ms' : format(datum.value, '~g') + ' µs'"
)
# Times below this are drawn here: a log axis has no 0, which is what a request takes that a queue in RAM acknowledges.
LEAST_US = 1.0
# Ticks in a decade of a log axis, by how many decades it has at most.
_STEPS = ((1.0, (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0)), (3.0, (1.0, 2.0, 5.0)), (math.inf, (1.0,)))
# Points that answer the pointer on a line of many points: every so many.
_EVERY = 5
# As many a browser draws without effort.
FEW = 300
# Pieces of lines, long enough to show their dashes.
_STROKES = alt.Legend(symbolSize=600, symbolType="stroke")
# A number with its thousands, millions and so on; Vega's own format puts the letter behind 0 as well.
COUNT_LABEL = "abs(datum.value) < 1 ? format(datum.value, '~g') : format(datum.value, '~s')"


def series(frame: pl.DataFrame, column: str = "system") -> list[str]:
    """Give the series of a frame, in their order."""
    return [str(name) for name in frame[column].unique(maintain_order=True)]


def log_ticks(low: float, high: float) -> list[float]:
    """Choose ticks of a log axis: decades, with 2 and 5 between them where there are few.

    >>> log_ticks(30, 4000)
    [50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0]
    >>> log_ticks(1, 1e5)
    [1.0, 10.0, 100.0, 1000.0, 10000.0, 100000.0]
    """
    if not 0 < low <= high:
        return []
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    decades = math.log10(high / low)
    steps = next(steps for most, steps in _STEPS if decades <= most)
    ticks = [float(f"{step}e{power}") for power in range(first, last + 1) for step in steps]
    return [tick for tick in ticks if low * 0.999 <= tick <= high * 1.001]


def log_scale(frame: pl.DataFrame, column: str, *, margin: float = 0.0) -> tuple[alt.Scale, list[float]]:
    """Make a log scale over the positive values of a column, and its ticks; `margin` is a share of its length."""
    values = frame.filter(pl.col(column) > 0)[column].cast(pl.Float64)
    if values.is_empty():
        return alt.Scale(), []
    low, high = (float(bound) for bound in (values.min(), values.max()))  # type: ignore[arg-type]
    if low == high:
        low, high = low / 2, high * 2
    room = (high / low) ** margin
    low, high = low / room, high * room
    return alt.Scale(type="log", domain=[low, high], nice=False), log_ticks(low, high)


def colour(names: Sequence[str], field: str = "system", legend: alt.Legend | None = None) -> alt.Color:
    """Encode series by colour, with a legend where there are several."""
    return alt.Color(f"{field}:N", scale=themes.colours(names), legend=legend if len(names) > 1 else None)


def draw(  # noqa: PLR0913 - a figure has this many sides
    frame: pl.DataFrame,
    x: alt.X,
    y: alt.Y,
    tooltip: Sequence[alt.Tooltip],
    *,
    field: str = "system",
    interpolate: str = "linear",
    points: bool = False,
    theme: Theme = "light",
) -> Figure:
    """Draw one line a series, in its colour and dashes; a click in the legend brings one forward.

    Seeds are lines of their own, thinner ones. With `points` each value has the shape of its series, else points that
    are not seen answer the pointer. Several traces stand side by side.
    """
    names = series(frame, field)
    seeds = frame["seed"].n_unique() if "seed" in frame.columns else 1
    chosen = alt.selection_point(fields=[field], bind="legend")
    strength = alt.when(chosen).then(alt.value(1.0 if seeds == 1 else 0.8)).otherwise(alt.value(0.12))
    legend = alt.Legend(symbolSize=100, symbolStrokeWidth=0) if points else _STROKES
    shown = legend if len(names) > 1 else None
    encoded = alt.Chart().encode(x=x, y=y, tooltip=list(tooltip))
    line = encoded.mark_line(
        interpolate=interpolate,  # type: ignore[arg-type]
        strokeWidth=2 if seeds == 1 else 1.4,
    ).encode(
        color=colour(names, field, legend),
        strokeDash=alt.StrokeDash(f"{field}:N", scale=themes.dashes(names), legend=shown),
        opacity=strength,
    )
    if seeds > 1:
        line = line.encode(detail="seed:N")
    layers: list[alt.Chart] = [line.add_params(chosen)]
    if points:
        layers.append(
            encoded.mark_point(filled=True, size=70, opacity=1).encode(
                color=colour(names, field, legend),
                shape=alt.Shape(f"{field}:N", scale=themes.shapes(names), legend=shown),
                opacity=strength,
            )
        )
    else:
        frame = frame.with_columns(pl.int_range(pl.len()).alias("_"))
        few = frame.height <= FEW
        answering = encoded.mark_point(filled=True, size=90, opacity=0)
        layers.append(answering if few else answering.transform_filter(f"datum._ % {_EVERY} == 0"))
    return side_by_side(alt.LayerChart(data=frame, layer=layers), frame, theme)


def side_by_side(chart: alt.LayerChart, frame: pl.DataFrame, theme: Theme) -> Figure:
    """Dress a figure, one a trace where there are several."""
    if "trace" in frame.columns and frame["trace"].n_unique() > 1:
        return themes.dress(chart.properties(width=340).facet("trace:N", columns=2), theme)
    return themes.dress(chart, theme)


def log_x(frame: pl.DataFrame, column: str, title: str, **axis: Any) -> alt.X:
    """Make a log axis of a column, with `axis` for its labels: counts unless said otherwise."""
    scale, ticks = log_scale(frame, column)
    return alt.X(
        f"{column}:Q",
        title=f"{title} (log)",
        scale=scale,
        axis=alt.Axis(values=ticks, **(axis or {"labelExpr": COUNT_LABEL})),
    )


def share_y(title: str, column: str = "share") -> alt.Y:
    """Make an axis of shares, from 0 to 100 %."""
    return alt.Y(
        f"{column}:Q",
        title=title,
        scale=alt.Scale(domain=[0, 1]),
        axis=alt.Axis(format=".0%", tickCount=5),
    )
