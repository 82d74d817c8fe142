"""The page of `flashlore reproduce`: what papers claim, what was measured, and what became of each claim.

| module | what it does |
|---|---|
| `document` | the types of the command's JSON |
| `verdicts` | what each verdict is called and means, and how it looks |
| `states` | what became of a single number, in a word |
| `counts` | distinct claims by kind, aspect and verdict; identities |
| `places` | names of papers, figures and tables; where the page can be linked to |
| `commands` | the command lines that repeat what the page shows |
| `numbers` | the figures of a claim |
| `claims` | a claim with its table and its figures |
| `differences` | known differences, and the experiments that show their causes |
| `sensitivity` | which claims hold with other settings |
| `summary` | all papers beside one another |
| `markdown` | the prose of known differences |
| `page` | the sections, put together |
"""

from flashlore.papers.page import make

__all__ = ["make"]
