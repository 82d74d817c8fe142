"""What was programmed and why, and how systems differ from one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import altair as alt
import polars as pl

from flashlore.figures import lines
from flashlore.figures import theme as themes

if TYPE_CHECKING:
    from flashlore.figures.theme import Figure, Theme

# The causes in words. `host` is written whole where nobody counted what its content was.
CAUSES = {
    "host": "host",
    "unique": "host: new content",
    "reborn": "host: reborn content",
    "duplicate": "host: duplicate",
    "packed": "packed",
    "merge": "materialized",
    "gc": "collection",
    "wear": "wear levelling",
    "map": "map",
    "padding": "padding",
}
# Ticks of ratios, each a round change: near 1, and far from it.
_NEAR = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.2, 1.5, 2.0, 2.5, 3.0)
_FAR = (0.001, 0.01, 0.1, 0.2, 0.5, 1.0, 2.0, 4.0, 10.0, 100.0, 1000.0, 10000.0)
# Measures that a comparison shows, and what they are called.
MEASURES = {
    "units": "units programmed",
    "flash.block_erases": "block erases",
    "response_us.all.mean": "mean response",
    "response_us.all.p99": "99 % response",
    "energy_uj": "energy",
}


def causes(runs: pl.DataFrame) -> pl.DataFrame:
    """Make the table of programs by cause: `system`, `trace`, `cause`, `order`, `units`; means over seeds.

    Where the oracle told what the host's content was, its three kinds stand for `host`.
    """
    host = pl.col("programs.host").cast(pl.Float64)
    told = pl.col("programs.unique").is_not_null()
    columns = [pl.when(told).then(0.0).otherwise(host).alias("host")]
    columns += [pl.col(f"programs.{key}").cast(pl.Float64).fill_null(0.0).alias(key) for key in list(CAUSES)[1:]]
    order = {name: index for index, name in enumerate(CAUSES)}
    return (
        runs.select("system", "trace", *columns)
        .group_by("system", "trace", maintain_order=True)
        .mean()
        .unpivot(index=["system", "trace"], variable_name="cause", value_name="units")
        .filter(pl.col("units") > 0)
        .with_columns(
            pl.col("cause").replace_strict(order, return_dtype=pl.Int64).alias("order"),
            pl.col("cause").replace(CAUSES),
        )
    )


def programs_by_cause(runs: pl.DataFrame, *, theme: Theme = "light") -> Figure:
    """Draw the units programmed by each system, by cause; a mark shows what the host wrote.

    `runs` is the frame of records: `system`, `trace`, `programs.*` and `host.write_pages`, in units of 4 KiB.
    """
    names = lines.series(runs)
    table = causes(runs)
    present = [key for key, word in CAUSES.items() if word in table["cause"]]
    y = alt.Y("system:N", sort=names, title=None, scale=alt.Scale(paddingInner=0.3))
    x = alt.X("units:Q", title="units programmed (4 KiB)", axis=alt.Axis(labelExpr=lines.COUNT_LABEL, tickCount=6))
    tooltip = [
        alt.Tooltip("system:N"),
        alt.Tooltip("cause:N"),
        alt.Tooltip("units:Q", format=",.0f", title="units"),
    ]
    chosen = alt.selection_point(fields=["cause"], bind="legend")
    bars = (
        alt.Chart()
        .mark_bar(stroke=themes.GROUND[0], strokeWidth=1)
        .encode(
            x=x,
            y=y,
            color=alt.Color(
                "cause:N",
                scale=alt.Scale(
                    domain=[CAUSES[key] for key in present], range=[themes.CAUSES[key][0] for key in present]
                ),
                legend=alt.Legend(symbolType="square", symbolSize=120),
            ),
            order=alt.Order("order:Q"),
            opacity=alt.when(chosen).then(alt.value(1.0)).otherwise(alt.value(0.2)),
            tooltip=tooltip,
        )
        .transform_filter("isValid(datum.cause)")
        .add_params(chosen)
    )
    written = (
        runs.group_by("system", "trace", maintain_order=True)
        .agg(pl.col("host.write_pages").mean().alias("units"))
        .with_columns(pl.lit("written by the host").alias("mark"))
    )
    ticks = (
        alt.Chart()
        .mark_tick(thickness=3, size=34, color=themes.INK[0], opacity=1)
        .encode(
            x=x,
            y=y,
            tooltip=[alt.Tooltip("system:N"), alt.Tooltip("mark:N"), alt.Tooltip("units:Q", format=",.0f")],
        )
        .transform_filter("isValid(datum.mark)")
    )
    both = pl.concat([table, written], how="diagonal")
    chart = alt.LayerChart(data=both, layer=[bars, ticks]).properties(height=38 * len(names))
    return lines.side_by_side(chart, both, theme)


def changes(runs: pl.DataFrame, baseline: str | None = None) -> pl.DataFrame:
    """Make the table of ratios to a baseline (the first system): `system`, `trace`, `measure`, `ratio`, `change`."""
    units = pl.sum_horizontal(
        pl.col(f"programs.{key}") for key in ("host", "packed", "merge", "gc", "wear", "map", "padding")
    )
    base = baseline or str(runs["system"][0])
    means = (
        runs.with_columns(units.alias("units"))
        .select(
            "system",
            "trace",
            *(pl.col(key).cast(pl.Float64) for key in MEASURES if key in runs.columns or key == "units"),
        )
        .group_by("system", "trace", maintain_order=True)
        .mean()
        .unpivot(index=["system", "trace"], variable_name="measure", value_name="value")
    )
    of_base = means.filter(pl.col("system") == base).select("trace", "measure", pl.col("value").alias("base"))
    return (
        means.filter(pl.col("system") != base)
        .join(of_base, on=["trace", "measure"])
        .filter((pl.col("base") > 0) & (pl.col("value") > 0))
        .with_columns(
            (pl.col("value") / pl.col("base")).alias("ratio"),
            (pl.col("value") / pl.col("base") - 1).alias("change"),
            pl.col("measure").replace(MEASURES),
        )
        .drop("base")
    )


def change(runs: pl.DataFrame, *, baseline: str | None = None, theme: Theme = "light") -> Figure:
    """Draw the key measures of each system as multiples of a baseline's, which is the first system unless named.

    The axis is logarithmic, so that half and twice are equally far from the line in the middle; less is better in all.
    """
    table = changes(runs, baseline)
    names = lines.series(table)
    base = baseline or str(runs["system"][0])
    scale, _ = lines.log_scale(
        pl.concat([table.select("ratio"), pl.DataFrame({"ratio": [0.8, 1.25]})]), "ratio", margin=0.05
    )
    chosen = alt.selection_point(fields=["system"], bind="legend")
    y = alt.Y("measure:N", sort=list(MEASURES.values()), title=None, scale=alt.Scale(paddingInner=0.35))
    offset = alt.YOffset("system:N", sort=names)
    strength = alt.when(chosen).then(alt.value(1.0)).otherwise(alt.value(0.15))
    tooltip = [
        alt.Tooltip("system:N"),
        alt.Tooltip("measure:N"),
        alt.Tooltip("change:Q", format="+.1%"),
    ]
    x = alt.X(
        "ratio:Q",
        title=f"change against {base} (log)",
        scale=scale,
        axis=alt.Axis(
            labelExpr="datum.value == 1 ? 'same' : format(datum.value - 1, '+.1~%')",
            values=_multiples(table),
        ),
    )
    legend = alt.Legend(symbolSize=100)
    shared = alt.Chart().encode(y=y, yOffset=offset, color=lines.colour(names, legend=legend), tooltip=tooltip)
    stems = shared.mark_bar(height=2.5).encode(x=x, x2=alt.datum(1), opacity=strength)
    dots = shared.mark_point(filled=True, size=80, opacity=1).encode(
        x=x,
        shape=alt.Shape("system:N", scale=themes.shapes(names), legend=legend if len(names) > 1 else None),
        opacity=strength,
    )
    one = alt.Chart().mark_rule(strokeWidth=1.5, color=themes.INK[0]).encode(x=alt.datum(1))
    chart = alt.LayerChart(data=table, layer=[one, stems.add_params(chosen), dots]).properties(
        height=table["measure"].n_unique() * (16 * len(names) + 14)
    )
    return lines.side_by_side(chart, table, theme)


def _multiples(table: pl.DataFrame) -> list[float]:
    """Choose ticks of a ratio: close ones where all ratios are near 1."""
    ratios = [*table["ratio"], 0.8, 1.25]
    low, high = min(ratios), max(ratios)
    ladder = _NEAR if high / low < 8 else _FAR  # noqa: PLR2004 - where near ticks become many
    return [step for step in ladder if low * 0.95 <= step <= high * 1.05]
