#!/usr/bin/env python3
"""Write the modules of the Python package that mirror records of the core: `tools/records.py`.

The structs of Rust are the schema: their fields, types and comments become dataclasses and their docstrings, and serde
writes and refuses by the same fields. A test compares the modules with what this makes of the structs.

A struct is read as rustfmt lays it out. What has no counterpart in Python is an error, never left out.
"""

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WIDTH = 120

# Structs that Python calls otherwise.
NAMES = {
    "RunResult": "Record",
    "RunConfig": "Configuration",
    "WorkloadOptions": "Workload",
}

# Types that are no records: what serde makes of them.
TYPES = {
    **dict.fromkeys(("u8", "u16", "u32", "u64", "usize"), "int"),
    "f64": "float",
    "bool": "bool",
    **dict.fromkeys(("String", "Format", "FindingId"), "str"),
}

STRUCT = re.compile(
    r"(?P<doc>(?:^///.*\n)+)(?:^#\[.*\n)*^pub struct (?P<name>\w+) \{\n(?P<body>(?:^(?: .*)?\n)*)^\}", re.MULTILINE
)
FIELD = re.compile(
    r"(?P<doc>(?:^    ///.*\n)+)(?P<attributes>(?:^    #\[.*\n)*)^    pub (?P<name>\w+): (?P<type>.+),\n", re.MULTILINE
)
OPTIONAL = '    #[serde(default, skip_serializing_if = "Option::is_none")]\n'


@dataclass(frozen=True)
class Module:
    """A module of Python, and the records that it is made of."""

    path: str
    head: str
    """What stands before the classes."""
    source: str
    """The directory beneath which the structs stand."""
    roots: tuple[str, ...]
    """Structs that are there for themselves; those of their fields come with them."""


MODULES = (
    Module(
        "python/flashlore/record.py",
        '''"""The record of a run, field by field as in `results.json`.

*Units* are mapping units of 4 KiB, and so are the pages of the host; *flash pages* are those of the device. Latencies
are in microseconds of simulated time. A figure without meaning for a run, such as a mean of nothing, is `None`, which
never means zero.
"""

# Made of the structs of Rust by tools/records.py: change those.

from dataclasses import dataclass

from flashlore.workload import Configuration, Workload
''',
        "crates/sim/src/results",
        ("RunResult", "Finding"),
    ),
    Module(
        "python/flashlore/characteristics.py",
        '''"""What is known about the locality of a trace, field by field as in `summary.json`.

Pages have 4 KiB. *Values* are contents of pages, told apart by the numbers or digests of the trace. A stack distance is
the number of different values, or pages, accessed since the last access to the same one, itself included. A figure
without meaning for a trace, such as a share of nothing, is `None`, which never means zero.
"""

# Made of the structs of Rust by tools/records.py: change those.

from dataclasses import dataclass

from flashlore.workload import Workload
''',
        "crates/characterize/src",
        ("Characteristics",),
    ),
)


def module(made: Module) -> str:
    """Make the text of a module."""
    files = sorted((ROOT / made.source).rglob("*.rs"))
    schema = {struct["name"]: struct for file in files for struct in STRUCT.finditer(file.read_text())}
    written: dict[str, str] = {}

    def write(name: str) -> None:
        if name in written:
            return
        fields = list(FIELD.finditer(schema[name]["body"]))
        if left := FIELD.sub("", schema[name]["body"]).strip():
            raise SystemExit(f"{name}: {left!r} is no field with a comment")
        for field in fields:
            for word in re.findall(r"\w+", field["type"]):
                if word in schema:
                    write(word)
        written[name] = "\n".join([*heading(schema[name]), *(line for field in fields for line in member(field, name))])

    for root in made.roots:
        write(root)
    return made.head + "".join(f"\n\n{text}\n" for text in written.values())


def heading(struct: re.Match[str]) -> Iterator[str]:
    """Begin a class."""
    yield "@dataclass(frozen=True)"
    yield f"class {NAMES.get(struct['name'], struct['name'])}:"
    yield from docstring(struct["doc"], struct["name"])


def member(field: re.Match[str], owner: str) -> Iterator[str]:
    """Write a field."""
    yield ""
    if field["attributes"] not in ("", OPTIONAL):
        raise SystemExit(f"{owner}.{field['name']}: {field['attributes'].strip()} has no counterpart")
    yield f"    {field['name']}: {python_type(field['type'])}{' = None' if field['attributes'] else ''}"
    yield from docstring(field["doc"], owner)


def python_type(rust: str) -> str:
    """Write a type as Python has it."""
    if match := re.fullmatch(r"(\w+)<(.+)>", rust):
        outer, inner = match.groups()
        items = ", ".join(map(python_type, parts(inner)))
        return {"Option": f"{items} | None", "Vec": f"tuple[{items}, ...]", "BTreeMap": f"dict[{items}]"}[outer]
    if match := re.fullmatch(r"\[(.+); \d+\]", rust):
        return f"tuple[{python_type(match[1])}, ...]"
    if match := re.fullmatch(r"\((.+)\)", rust):
        return f"tuple[{', '.join(map(python_type, parts(match[1])))}]"
    return TYPES.get(rust) or NAMES.get(rust, rust)


def parts(types: str) -> list[str]:
    """Split types at the commas between them."""
    return [part.strip() for part in re.findall(r"(?:[^,(<]|\([^)]*\)|<[^>]*>)+", types)]


def docstring(comment: str, owner: str) -> Iterator[str]:
    """Write a comment as a docstring: a summary, in one line if it has one, and what is behind it."""
    text = "\n".join(line.strip().removeprefix("///").strip() for line in comment.splitlines())
    text = re.sub(r"\[`([^`]+)`\]", lambda link: f"`{linked(link[1], owner)}`", text).replace("`null`", "`None`")
    paragraphs = [" ".join(paragraph.split()) for paragraph in text.split("\n\n")]
    if len(f'    """{paragraphs[0]}"""') > WIDTH:
        paragraphs = [*re.split(r"(?<=\.) (?=[A-Z])", paragraphs[0], maxsplit=1), *paragraphs[1:]]
    if len(paragraphs) == 1 and len(f'    """{paragraphs[0]}"""') <= WIDTH:
        yield f'    """{paragraphs[0]}"""'
        return
    for number, paragraph in enumerate(paragraphs):
        first = '    """' if number == 0 else "    "
        if number:
            yield ""
        yield from textwrap.wrap(
            paragraph, WIDTH, initial_indent=first, subsequent_indent="    ", break_on_hyphens=False
        )
    yield '    """'


def linked(path: str, owner: str) -> str:
    """Write a link between comments as Python would."""
    names = [NAMES.get(name, name) for name in path.split("::") if name not in ("Self", "crate")]
    return ".".join(names[1:] if names[0] == NAMES.get(owner, owner) and len(names) > 1 else names)


def main() -> None:
    """Write them all."""
    for made in MODULES:
        (ROOT / made.path).write_text(module(made))


if __name__ == "__main__":
    main()
