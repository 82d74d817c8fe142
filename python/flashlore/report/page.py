"""The page: one self-contained HTML file with sections, tables and figures, which asks no network.

A page holds its style, its script, Vega and its data in itself. Its policy (the `meta` at its head) allows nothing
else: scripts by their hashes alone, no requests at all. Figures are drawn when they come near, in the colours of the
page, and again when those change; printing draws all of them, on white.

>>> page = Page("Results", subtitle="two systems")
>>> section = page.section("Summary")
>>> section.prose("a < b")
>>> "a &lt; b" in page.render()
True
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import math
import re
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import altair as alt

from flashlore import output
from flashlore.figures import theme
from flashlore.report.markup import Child, Html, element
from flashlore.report.table import Column, Table

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping, Sequence

__all__ = ["Column", "Html", "Page", "Section", "Table", "badge", "command", "element"]

# How a page is written; names of files may have bytes that are no text.
_TEXT: Any = {"encoding": "utf-8", "errors": "backslashreplace", "newline": "\n"}

# Digits of a number in the data of a figure: more than a screen or a printer shows.
_DIGITS = 6


class Drawable(Protocol):
    """What a figure is made of: a chart of Altair, or what gives Vega-Lite as one does."""

    def to_dict(self) -> dict[str, Any]:
        """Give the specification, with data by name."""
        ...


class Section:
    """A section of a page, or a subsection. What is added appears in the order in which it is added."""

    def __init__(self, page: Page, title: str, level: int) -> None:
        """Made by `Page.section` and `Section.subsection`."""
        self.title = title
        self.anchor = page.anchor(title)
        self._page = page
        self._level = level
        self._parts: list[Html | Section] = []

    def prose(self, *paragraphs: str | Html) -> None:
        """Add paragraphs. Text is escaped; `Html` goes in as it is."""
        self._parts.extend(element("p", paragraph) for paragraph in paragraphs)

    def bullets(self, items: Iterable[str | Html]) -> None:
        """Add a list."""
        entries = [element("li", item) for item in items]
        if entries:
            self._parts.append(element("ul", entries))

    def html(self, part: Html) -> None:
        """Add markup."""
        self._parts.append(part)

    def table(self, table: Table) -> None:
        """Add a table."""
        self._parts.append(table.html())

    def tiles(self, tiles: Sequence[tuple[str, str, str]]) -> None:
        """Add large numbers, each with what it is above and a remark below."""
        made = [
            element(
                "div",
                element("dt", what),
                element("dd", element("span", value, class_="value"), element("span", remark, class_="remark")),
            )
            for what, value, remark in tiles
        ]
        self._parts.append(element("dl", made, class_="tiles"))

    def command(self, *lines: str) -> None:
        """Add command lines, with a button that copies them."""
        self._parts.append(command(*lines))

    def figure(self, chart: Drawable, *, title: str, caption: str | Html, height: int = 0) -> None:
        """Add a figure in a row of its own; `figures` puts several side by side.

        The chart must be a single view or layers, in the colours of the light theme: the page gives it its width, and
        the colours of its own theme. `caption` says what is seen, and is what is read aloud.
        """
        self.figures([(chart, title, caption)], height=height)

    def figures(
        self,
        panels: Sequence[tuple[Drawable, str, str | Html]],
        *,
        height: int = 0,
    ) -> None:
        """Add figures side by side where there is room: chart, title and caption of each. `height` in pixels."""
        made = [self._page.figure(chart, title, caption, height) for chart, title, caption in panels]
        self._parts.append(element("div", made, class_="panels" if len(made) > 1 else "panels single"))

    def gallery(self, title: str, caption: str | Html, panels: Sequence[tuple[Drawable, str]]) -> None:
        """Add figures of one kind under one title and caption, side by side where there is room.

        Each panel is a chart and what it is of, such as a trace. A single panel is a figure with that title.
        """
        if len(panels) == 1:
            self.figure(panels[0][0], title=title, caption=caption)
            return
        self._parts.append(element("div", element("h4", title), element("p", caption), class_="gallery"))
        made = [self._page.figure(chart, f"{title}, {of}", "", heading=of) for chart, of in panels]
        self._parts.append(element("div", made, class_="panels"))

    def grid(self, sections: Sequence[Section]) -> None:
        """Put subsections that were just added side by side where there is room."""
        kept = [part for part in self._parts if part not in sections]
        self._parts = [*kept, element("div", [section.render() for section in sections], class_="grid")]

    def details(self, summary: str, *content: Child) -> None:
        """Add what is folded away until somebody opens it."""
        self._parts.append(element("details", element("summary", summary), content))

    def subsection(self, title: str) -> Section:
        """Add a section within this one."""
        section = Section(self._page, title, self._level + 1)
        self._parts.append(section)
        return section

    def render(self) -> Html:
        """Make markup of the section."""
        content = [part.render() if isinstance(part, Section) else part for part in self._parts]
        heading = element(f"h{self._level}", self.title, id=f"{self.anchor}-title")
        return element(
            "section", heading, content, id=self.anchor, aria_labelledby=f"{self.anchor}-title", class_="part"
        )


class Page:
    """A page under construction: sections, then `render` or `write`."""

    def __init__(self, title: str, *, subtitle: str | Html = "", footer: str | Html = "") -> None:
        """Begin a page. The subtitle stands below the title, the footer at the end."""
        self.title = title
        self._subtitle = subtitle
        self._footer = footer
        self._sections: list[Section] = []
        # Names that the page itself uses.
        self._anchors: set[str] = {"content", "page-data", "said", "theme"}
        self._figures: list[dict[str, Any]] = []
        self._data: dict[str, dict[str, Any]] = {}

    def section(self, title: str) -> Section:
        """Add a section, which the page's contents list."""
        section = Section(self, title, 2)
        self._sections.append(section)
        return section

    def filter(self, field: str, names: Sequence[str], label: str) -> Html:
        """Make boxes that take series out of all figures: rows whose `field` has an unticked name are not drawn."""
        boxes = [
            element(
                "label",
                element("input", type="checkbox", checked=True, value=name, name=f"show-{field}"),
                element("span", class_="swatch", style=_swatch(theme.colour(name, names))),
                name,
            )
            for name in names
        ]
        return element("fieldset", element("legend", label), boxes, class_="filter", data_field=field)

    def anchor(self, title: str) -> str:
        """Find a name for a place in the page that no other place has."""
        stem = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "part"
        name, count = stem, 1
        while name in self._anchors:
            count += 1
            name = f"{stem}-{count}"
        self._anchors.add(name)
        return name

    def figure(
        self,
        chart: Drawable,
        title: str,
        caption: str | Html,
        height: int = 0,
        *,
        heading: str | None = None,
    ) -> Html:
        """Take a figure in, and give the place where it will be drawn. Its data are kept once, however many show it.

        `heading` stands above it in place of the title, where a title stands above several.
        """
        with alt.data_transformers.enable("default", max_rows=None):
            spec = chart.to_dict()
        spec.pop("$schema", None)
        config = spec.pop("config", {})
        for name, rows in spec.pop("datasets", {}).items():
            self._data.setdefault(name, columns(rows))
        spec["width"] = "container"
        if height:
            spec["height"] = height
        number = len(self._figures)
        self._figures.append({"spec": spec, "config": config, "title": title})
        place = element("div", class_="canvas", data_figure=number, style=f"min-height:{_room(spec)}px")
        tools = [
            element("button", name, type="button", data_save=kind, aria_label=f"{name} of {title}")
            for kind, name in (("svg", "SVG"), ("png", "PNG"), ("csv", "CSV"))
        ]
        table = element(
            "details",
            element("summary", "Data as a table"),
            element("div", class_="rows scroll", tabindex=0, role="region", aria_label=f"Data of {title}"),
            class_="data",
        )
        head = element(
            "div",
            element("h4" if heading is None else "h5", heading or title),
            element("div", tools, class_="tools"),
            class_="head",
        )
        below = element("figcaption", caption) if caption else None
        return element("figure", head, place, below, table, data_title=title, aria_label=title)

    def render(self) -> str:
        """Make the text of the whole page."""
        contents = element(
            "nav",
            element("h2", "Contents", class_="quiet"),
            element("ul", [_entry(section) for section in self._sections]),
            aria_label="Contents",
            class_="contents",
        )
        header = element(
            "header",
            element("div", element("h1", self.title), element("p", self._subtitle) if self._subtitle else None),
            element("button", "Colours: as the system", type="button", id="theme"),
            class_="top",
        )
        body = [
            element("a", "To the content", href="#content", class_="skip"),
            header,
            element(
                "div",
                contents,
                element("main", [section.render() for section in self._sections], id="content", tabindex=-1),
                class_="columns",
            ),
            element("footer", self._footer, self._licences()) if self._footer or self._figures else None,
            element("p", id="said", class_="quiet", role="status", aria_live="polite"),
            element("noscript", element("p", "Figures need JavaScript; the tables and the text do not.")),
            *self._scripts(),
        ]
        head = [
            element("meta", charset="utf-8"),
            element("meta", http_equiv="Content-Security-Policy", content=self._policy()),
            element("meta", name="viewport", content="width=device-width, initial-scale=1"),
            element("meta", name="color-scheme", content="light dark"),
            element("title", self.title),
            # An icon, so that browsers do not ask for one.
            element("link", rel="icon", href="data:,"),
            Html(f"<style>{_resource('style.css')}</style>"),
        ]
        document = element("html", element("head", head), element("body", body), lang="en")
        return f"<!doctype html>\n{document}\n"

    def write(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write the page: complete, or not at all.

        Raises:
            UsageError: a page is there already, and it is not to be replaced (`force`).
            FileError: the file could not be written.

        """
        write_text(Path(path), self.render(), force=force)

    def _scripts(self) -> list[Html]:
        """Embed the data, then the programs that draw them; Vega only where there is something to draw."""
        content = {"figures": self._figures, "data": self._data, "dark": theme.DARK_OF_LIGHT}
        scripts = [Html(f'<script type="application/json" id="page-data">{_embedded(content)}</script>')]
        scripts.extend(Html(f'<script type="module">{source}</script>') for source in self._programs())
        return scripts

    def _programs(self) -> list[str]:
        script = _resource("script.js")
        return [_vega(), script] if self._figures else [script]

    def _licences(self) -> Html | None:
        """Show the licences of the programs that the page holds, which demand it."""
        if not self._figures:
            return None
        summary = element("summary", "Licences of what draws the figures")
        return element("details", summary, element("pre", _resource("licences.txt"), tabindex=0, class_="licences"))

    def _policy(self) -> str:
        """Allow nothing but these scripts; styles in the page; images that Vega makes for downloads."""
        hashes = " ".join(
            f"'sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}'"
            for source in self._programs()
        )
        return (
            f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data: blob:; "
            "base-uri 'none'; form-action 'none'"
        )


def badge(text: str, kind: str) -> Html:
    """Frame a word: `good`, `fair`, `bad` or `neutral`. The word says all; the colour only repeats it."""
    return element("span", text, class_=f"badge {kind}")


def command(*lines: str) -> Html:
    """Show command lines with a button that copies them."""
    return element(
        "div",
        element("pre", element("code", "\n".join(lines)), tabindex=0, aria_label="Commands"),
        element("button", "Copy", type="button", class_="copy"),
        class_="command",
    )


def columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Turn rows into columns, numbers as long as anybody sees them: a third of the size.

    >>> columns([{"a": 1, "b": 0.12345678}, {"a": 2, "b": None}])
    {'a': [1, 2], 'b': [0.123457, None]}
    """
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [_short(row.get(name)) for row in rows] for name in names}


def write_text(path: Path, text: str, *, force: bool) -> None:
    """Write the text of a page; see `output.whole`."""
    with output.whole(path, force=force) as place:
        place.write_text(text, **_TEXT)


def _short(value: Any) -> Any:
    if not isinstance(value, float):
        return value
    # JSON has no others.
    return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None


def _entry(section: Section) -> Html:
    return element("li", element("a", section.title, href=f"#{section.anchor}"))


def _embedded(content: Any) -> str:
    """JSON that may stand in a page: nothing in it ends the element or begins another."""
    text = json.dumps(content, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _resource(name: str) -> str:
    return resources.files("flashlore.report").joinpath(name).read_text(encoding="utf-8")


@functools.cache
def _vega() -> str:
    """Give Vega, Vega-Lite and Vega-Embed as one script, from the package that holds them."""
    import vl_convert  # noqa: PLC0415 - large, and only pages with figures need it

    bundle: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    # Nothing in a script may look like its end.
    return re.sub(r"</(script)", r"<\\/\1", bundle, flags=re.IGNORECASE)


def _swatch(colour: tuple[str, str]) -> str:
    return f"background: light-dark({colour[0]}, {colour[1]})"


def _room(spec: Mapping[str, Any]) -> int:
    """Keep about as much room as a figure will take, in pixels, so that the page does not jump when it is drawn."""
    height = spec.get("height", 260)
    return int(height) + 70 if isinstance(height, int | float) else 330
