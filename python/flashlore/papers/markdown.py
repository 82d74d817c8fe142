"""Prose of known differences: paragraphs, tables, bold, code and links of Markdown, and nothing else of it.

Links lead into the source, which a page does not have: their text stays.
"""

from __future__ import annotations

import re

from flashlore.report.markup import Html, element, escape, join

_SPANS = re.compile(r"\*\*(?P<bold>.+?)\*\*|\*(?P<stress>[^*\s][^*]*)\*|`(?P<code>[^`]+)`|\[(?P<link>[^]]+)\]\([^)]*\)")
# Cells up to this length are kept in one line: a number and its unit.
_SHORT = 12
_RULE = re.compile(r"^\|[\s|:-]+\|$")


def blocks(text: str) -> list[Html]:
    """Make markup of paragraphs and tables.

    >>> blocks("a **b** < `c`")
    ['<p>a <strong>b</strong> &lt; <code>c</code></p>']
    """
    made = []
    for block in re.split(r"\n\s*\n", text.strip()):
        lines = block.splitlines()
        table = len(lines) > 1 and all(line.startswith("|") for line in lines) and _RULE.match(lines[1])
        made.append(_table(lines) if table else element("p", inline(" ".join(lines))))
    return made


def inline(text: str) -> Html:
    """Make markup of a line.

    >>> inline("[the page](../page.md#part), *faster*")
    'the page, <em>faster</em>'
    """
    parts: list[Html] = []
    end = 0
    for match in _SPANS.finditer(text):
        parts.append(escape(text[end : match.start()]))
        end = match.end()
        if match["bold"]:
            parts.append(element("strong", inline(match["bold"])))
        elif match["stress"]:
            parts.append(element("em", match["stress"]))
        elif match["code"]:
            parts.append(element("code", match["code"]))
        else:
            parts.append(escape(match["link"]))
    parts.append(escape(text[end:]))
    return join(parts)


def _table(lines: list[str]) -> Html:
    head, body = _cells(lines[0]), [_cells(line) for line in lines[2:]]
    made = element(
        "table",
        element("thead", element("tr", [element("th", inline(cell), scope="col", class_="steps") for cell in head])),
        element("tbody", [element("tr", [element("td", inline(cell)) for cell in row]) for row in body]),
        class_="compact",
    )
    return element("div", made, class_="scroll", tabindex=0, role="region", aria_label="Table")


def _cells(line: str) -> list[str]:
    cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
    return [cell.replace(" ", "\N{NO-BREAK SPACE}") if len(cell) <= _SHORT else cell for cell in cells]
