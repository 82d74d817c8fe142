"""Tables of a page: numbers stand at the right, columns sort by a button in their head."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from flashlore.report.markup import Html, element, escape, join

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# Between a number and its unit, which stay on one line.
NARROW = "\N{NO-BREAK SPACE}"
# What a cell may be: a number that sorts, with the text that shows it; a text; nothing; or markup.
Value: TypeAlias = "float | int | str | Html | Cell | None"


@dataclass(frozen=True)
class Cell:
    """A value that is shown as something else than it sorts as.

    `note` is said beside it in smaller letters, such as a change against the baseline; `kind` is `better`, `worse` or
    nothing. An empty note keeps its room, so that a column stays in line; with `None` there is none.
    """

    text: str | Html
    sort: float | str | None = None
    note: str | None = None
    kind: str = ""
    strong: bool = False


@dataclass(frozen=True)
class Column:
    """A column: its name, its unit if all its values have the same, and what it means, for a pointer that rests."""

    name: str
    unit: str = ""
    help: str = ""
    numbers: bool = False


@dataclass(frozen=True)
class Table:
    """A table with a caption. The first column names the row. `compact` keeps it as narrow as its content."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[Value]]
    caption: str | Html
    sortable: bool = True
    compact: bool = field(default=False)

    def html(self) -> Html:
        """Make markup of the table, in a frame that scrolls by itself, by keys as well, where the window is narrow."""
        sortable = self.sortable and len(self.rows) > 1
        head = element("tr", [self._head(column, sortable) for column in self.columns])
        body = [element("tr", [self._cell(index, value) for index, value in enumerate(row)]) for row in self.rows]
        table = element(
            "table",
            element("caption", self.caption),
            element("thead", head),
            element("tbody", body),
            class_="compact" if self.compact else None,
        )
        return element("div", table, class_="scroll", tabindex=0, role="region", aria_label=plain(self.caption))

    @staticmethod
    def _head(column: Column, sortable: bool) -> Html:  # noqa: FBT001 - the only argument it can be
        unit = element("span", f" ({column.unit})", class_="unit") if column.unit else None
        content: Html = join([column.name, unit])
        if sortable:
            content = element("button", content, type="button", class_="sort", title=column.help or None)
        return element(
            "th",
            content,
            scope="col",
            class_="number" if column.numbers else None,
            title=None if sortable else column.help or None,
        )

    def _cell(self, index: int, value: Value) -> Html:
        cell = value if isinstance(value, Cell) else Cell(*_shown(value))
        content: Html = element("strong", cell.text) if cell.strong else escape(cell.text)
        if cell.note is not None:
            content = join([content, element("span", cell.note, class_=f"note {cell.kind}".strip())])
        sort = cell.sort
        if isinstance(sort, float) and not math.isfinite(sort):
            sort = None
        return element(
            "td" if index else "th",
            content,
            scope=None if index else "row",
            class_="number" if self.columns[index].numbers else None,
            data_sort=None if sort is None else str(sort),
        )


def _shown(value: float | str | Html | None) -> tuple[str | Html, float | str | None]:
    """Give a plain value as a text, and what it sorts as."""
    if value is None:
        return "-", None
    if isinstance(value, str):
        return value, None
    return number(value), value


def number(value: float | None, digits: int = 4) -> str:
    """Write a number for people: whole ones in groups of three, others with so many significant digits.

    >>> number(1234567), number(0.91586), number(12345.6), number(None)
    ('1,234,567', '0.9159', '12,346', '-')
    """
    if value is None or not math.isfinite(value):
        return "-"
    if isinstance(value, int) or float(value).is_integer():
        return f"{int(value):,}"
    size = math.floor(math.log10(abs(value)))
    return f"{value:,.{min(max(digits - 1 - size, 0), 9)}f}"


def plain(text: str | Html) -> str:
    """Strip markup of its tags, for a label."""
    if not isinstance(text, Html):
        return text
    out, inside = [], False
    for letter in text:
        if letter == "<":
            inside = True
        elif letter == ">":
            inside = False
        elif not inside:
            out.append(letter)
    return "".join(out).replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", '"').replace("&amp;", "&")


def duration(microseconds: float | None) -> str:
    r"""Write a time for people.

    >>> duration(31.25), duration(4984801.2), duration(1813), duration(None)
    ('31.25\xa0µs', '4.985\xa0s', '1.813\xa0ms', '-')
    """
    return durations(microseconds or 0.0)(microseconds)


def durations(largest: float) -> Callable[[float | None], str]:
    r"""Give what writes times in the unit that the largest of them has.

    >>> durations(1813)(31.25)
    '0.03125\xa0ms'
    """
    units = (("s", 1e6), ("ms", 1e3))
    unit, size = next((known for known in units if abs(largest) >= known[1]), ("µs", 1.0))
    return lambda microseconds: "-" if microseconds is None else f"{number(microseconds / size)}{NARROW}{unit}"


def percent(change: float) -> str:
    r"""Write a change for people, with its sign.

    >>> percent(-0.504), percent(1.4512), percent(0.00001)
    ('\u221250.4\xa0%', '+145.1\xa0%', '0.0\xa0%')
    """
    text = f"{change * 100:+.1f}"
    if text in ("+0.0", "-0.0"):
        text = "0.0"
    return f"{text}{NARROW}%".replace("-", "\N{MINUS SIGN}")
