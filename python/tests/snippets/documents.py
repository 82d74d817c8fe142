"""Documents of the repository, and what stands in them: fenced blocks, code within lines, links, headings.

A comment of one line above a fence says something about the block: `<!-- KEY: VALUE -->`, KEY one of `NOTES`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

REPOSITORY = Path(__file__).parents[3]
# Files of Markdown that are the project's: what lies beneath these directories, and beside the README.
PLACES = ("*.md", "docs/**/*.md", "papers/**/*.md", "notebooks/**/*.md", "crates/**/*.md", "python/**/*.md")
NOTES = ("not run", "long", "output of", "file")

_FENCE = re.compile(r"(?P<indent>\s*)(?P<ticks>`{3,}|~{3,})\s*(?P<language>[\w+-]*)\s*")
_NOTE = re.compile(r"\s*<!--\s*(?P<key>[^:]*?)\s*:\s*(?P<value>.*?)\s*-->\s*")
_SPAN = re.compile(r"(`+)(?P<code>.+?)\1")
_LINK = re.compile(r"\]\((?P<target>[^()\s]+)\)")


class DocumentError(Exception):
    """A document that cannot be taken apart, or a comment above a fence that means nothing."""


@dataclass(frozen=True)
class Block:
    """A fenced block."""

    document: str
    line: int  # of the fence that begins it, from 1
    language: str
    text: str
    notes: dict[str, str] = field(hash=False)
    follows: int | None  # the line of the block that ends right above it, if nothing but blank lines is between

    def __str__(self) -> str:
        return f"{self.document}:{self.line}"


def names() -> list[str]:
    """All documents, as paths from the root of the repository."""
    found = {path for place in PLACES for path in REPOSITORY.glob(place)}
    return sorted(str(path.relative_to(REPOSITORY)) for path in found)


def read(document: str) -> str:
    return (REPOSITORY / document).read_text(encoding="utf-8")


def blocks(document: str) -> list[Block]:
    """All fenced blocks of a document, in its order."""
    return list(_blocks(document, read(document).split("\n")))


def _blocks(document: str, lines: list[str]) -> Iterator[Block]:
    notes: dict[str, str] = {}
    above = None
    at = 0
    while at < len(lines):
        begin = at
        at += 1
        if opened := _FENCE.fullmatch(lines[begin]):
            ends = (end for end in range(at, len(lines)) if lines[end].strip() == opened["ticks"])
            end = next(ends, None)
            if end is None:
                raise DocumentError(f"{document}:{begin + 1}: the block has no end")
            indent = len(opened["indent"])
            text = "".join(line[min(indent, len(line) - len(line.lstrip())) :] + "\n" for line in lines[at:end])
            yield Block(document, begin + 1, opened["language"], text, notes, above)
            notes, above, at = {}, begin + 1, end + 1
        elif note := _NOTE.fullmatch(lines[begin]):
            if note["key"] not in NOTES:
                raise DocumentError(f"{document}:{begin + 1}: {note['key']!r} is none of {', '.join(NOTES)}")
            notes = {**notes, note["key"]: note["value"]}
        elif lines[begin].strip():
            notes, above = {}, None


def _prose(document: str) -> Iterator[tuple[int, str]]:
    """Lines that are in no block, with their numbers."""
    lines = read(document).split("\n")
    within = {n for block in blocks(document) for n in range(block.line, block.line + block.text.count("\n") + 2)}
    return ((n, line) for n, line in enumerate(lines, 1) if n not in within)


def spans(document: str) -> list[tuple[int, str]]:
    """Code within lines, with the numbers of these."""
    return [(n, span["code"].strip()) for n, line in _prose(document) for span in _SPAN.finditer(line)]


def links(document: str) -> list[tuple[int, str]]:
    """Targets of links, with the numbers of their lines."""
    plain = ((n, _SPAN.sub("", line)) for n, line in _prose(document))
    return [(n, link["target"]) for n, line in plain for link in _LINK.finditer(line)]


def anchors(document: str) -> set[str]:
    """What a link may name behind `#`: headings, in the spelling of GitHub."""
    headings = (line.lstrip("#").strip() for _, line in _prose(document) if re.match(r"#{1,6} ", line))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
