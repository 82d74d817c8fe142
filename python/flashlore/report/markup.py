"""HTML that cannot be forgotten to be escaped.

`Html` is text that is markup already. Everything else that becomes part of a page is text, and is escaped where it is
put in; nothing but `element` and `join` makes `Html` out of other people's words.
"""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


Child: TypeAlias = "str | Html | int | Iterable[Child] | None"

# Elements that have neither content nor an end.
_VOID = frozenset({"br", "hr", "img", "input", "link", "meta", "wbr"})


def escape(text: str) -> Html:
    """Make markup of text; what is `Html` already stays.

    >>> escape("a < b")
    'a &lt; b'
    """
    return text if isinstance(text, Html) else Html(html.escape(text))


def join(children: Child) -> Html:
    """Put children one after the other; `None` is nothing."""
    if children is None:
        return Html("")
    if isinstance(children, str):
        return escape(children)
    if isinstance(children, int):
        return Html(children)
    return Html("".join(join(child) for child in children))


def element(name: str, /, *children: Child, **attributes: str | int | bool | None) -> Html:
    """Make an element; `class_` is `class`, `aria_label` is `aria-label`, true is a bare name, false and none are out.

    >>> element("a", "x & y", href='#"x"', class_="link")
    '<a href="#&quot;x&quot;" class="link">x &amp; y</a>'
    """
    parts = [name]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        word = key.rstrip("_").replace("_", "-")
        parts.append(word if value is True else f'{word}="{html.escape(str(value))}"')
    start = f"<{' '.join(parts)}>"
    return Html(start) if name in _VOID else Html(f"{start}{join(children)}</{name}>")
