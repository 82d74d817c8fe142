"""The page of `flashlore reproduce`: published figures beside measured ones, and what became of each claim.

| module | what it does |
|---|---|
| `document` | the types of the command's JSON |
| `verdicts` | what each verdict is called and means, and how it looks |
| `numbers` | the figure of a check |
| `markdown` | the prose of known differences |
| `page` | the sections, put together |
"""

from flashlore.papers.page import make

__all__ = ["make"]
