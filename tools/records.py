#!/usr/bin/env python3
"""Write the modules of the Python package that mirror records of the core: `tools/records.py`.

The structs of Rust are the schema: their fields, types and comments become dataclasses and their docstrings, and serde
writes and refuses by the same fields. So are the variants of enums that have fields. A test compares the modules with
what this makes of them.

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
    "Info": "VolumeInfo",
    "ClientCounts": "Clients",
    "LogEntry::Clock": "ClockReading",
}

# Structs whose fields Python has in what holds them, `None` where there is no such struct.
DISSOLVED = {"Erased"}

# Fields that are for those who ask step by step.
LEFT_OUT = {("Answer::Scrubbed", "next")}

# Types that are no records: what serde makes of them.
TYPES = {
    **dict.fromkeys(("u8", "u16", "u32", "u64", "usize"), "int"),
    "f64": "float",
    "bool": "bool",
    **dict.fromkeys(("String", "Format", "FindingId"), "str"),
    "PathBuf": "Path",
    "InstantNs": "Time",
}

BODY = r"\{\n(?P<body>(?:^(?: .*)?\n)*)^\}"
STRUCT = re.compile(
    rf"(?P<doc>(?:^///.*\n)+)(?P<attributes>(?:^#\[.*\n)*)^pub struct (?P<name>\w+) {BODY}", re.MULTILINE
)
ENUM = re.compile(rf"^pub enum (?P<name>\w+) {BODY}", re.MULTILINE)
VARIANT = re.compile(
    rf"(?P<doc>(?:^///.*\n)*)(?P<attributes>(?:^#\[.*\n)*)^(?P<name>\w+)(?:\((?P<type>\w+)\)| {BODY}),", re.MULTILINE
)
FIELD = re.compile(
    r"(?P<doc>(?:^    ///.*\n)+)(?P<attributes>(?:^    #\[.*\n)*)^    (?:pub )?(?P<name>\w+): (?P<type>.+),\n",
    re.MULTILINE,
)
OPTIONAL = '    #[serde(default, skip_serializing_if = "Option::is_none")]\n'
# What an older program leaves out comes from the core all the same.
ALWAYS_WRITTEN = re.compile(r'    #\[serde\(default(?: = "\w+")?\)\]\n')
# A struct that serde writes as a list.
LISTED = re.compile(r'^#\[serde\(.*into = "\(', re.MULTILINE)


@dataclass(frozen=True)
class Module:
    """A module of Python, and the records that it is made of."""

    path: str
    head: str
    """What stands before the classes."""
    sources: tuple[str, ...]
    """The files in which the structs stand, and the directories beneath which they do."""
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
        ("crates/sim/src/results",),
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
        ("crates/characterize/src",),
        ("Characteristics",),
    ),
    Module(
        "python/flashlore/volume_info.py",
        '''"""What volumes and arrays answer: the answers of the control socket, field by field as `--json` prints them.

Sizes are in bytes, pages and blocks have 4 KiB, and instants are of `Time` where `--json` has nanoseconds since 1970.
"""

# Made of the structs of Rust by tools/records.py: change those.

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from flashlore.moment import Time
''',
        (
            "crates/serve/src/request.rs",
            "crates/serve/src/troubles.rs",
            "crates/serve/src/array/check.rs",
            "crates/flashlore/src/commands/volume/inspect.rs",
        ),
        (
            "Info",
            "ArrayInfo",
            "Answer::Log",
            "Answer::Recovered",
            "Answer::Purged",
            "Answer::Cloned",
            "Answer::Scrubbed",
            "VolumeCheck",
            "ArrayCheck",
        ),
    ),
)


@dataclass(frozen=True)
class Schema:
    """What stands in files of Rust."""

    structs: dict[str, re.Match[str]]
    """By their names; the variants of enums that have fields are named `Enum::Variant`."""
    enums: dict[str, tuple[str, ...]]
    """The structs that each enum is one of."""


def schema(sources: tuple[str, ...]) -> Schema:
    """Read them."""
    places = [ROOT / source for source in sources]
    files = [file for place in places for file in (sorted(place.rglob("*.rs")) if place.is_dir() else [place])]
    found = Schema({}, {})
    for text in map(Path.read_text, files):
        found.structs.update((struct["name"], struct) for struct in STRUCT.finditer(text))
        for enum in ENUM.finditer(text):
            variants = list(VARIANT.finditer(textwrap.dedent(enum["body"])))
            named = [(variant["type"] or f"{enum['name']}::{variant['name']}", variant) for variant in variants]
            found.enums[enum["name"]] = tuple(name for name, _ in named)
            found.structs.update((name, variant) for name, variant in named if variant["body"])
    return found


def module(made: Module) -> str:
    """Make the text of a module."""
    known = schema(made.sources)
    written: dict[str, str] = {}

    def write(name: str) -> None:
        if name in written:
            return
        fields = list(fields_of(known, name))
        for field, _ in fields:
            for word in re.findall(r"\w+", field["type"]):
                for struct in known.enums.get(word, [word] if word in known.structs else []):
                    write(struct)
        lines = [line for field, is_there in fields for line in member(known, field, name, is_there=is_there)]
        written[name] = "\n".join([*heading(known.structs[name], name), *lines])

    for root in made.roots:
        write(root)
    return made.head + "".join(f"\n\n{text}\n" for text in written.values())


def fields_of(known: Schema, name: str) -> Iterator[tuple[re.Match[str], bool]]:
    """Find the fields that the class of a struct has, and whether each is always there."""
    body = known.structs[name]["body"]
    if left := FIELD.sub("", body).strip():
        raise SystemExit(f"{name}: {left!r} is no field with a comment")
    for field in FIELD.finditer(body):
        inner = re.fullmatch(r"Option<(\w+)>", field["type"])
        if inner and inner[1] in DISSOLVED:
            yield from ((field, False) for field, _ in fields_of(known, inner[1]))
        elif (name, field["name"]) not in LEFT_OUT:
            yield field, True


def heading(struct: re.Match[str], name: str) -> Iterator[str]:
    """Begin a class."""
    is_listed = LISTED.search(struct["attributes"])
    if not is_listed:
        yield "@dataclass(frozen=True)"
    yield f"class {python_name(name)}{'(NamedTuple)' if is_listed else ''}:"
    yield from docstring(struct["doc"], name)


def member(known: Schema, field: re.Match[str], owner: str, *, is_there: bool) -> Iterator[str]:
    """Write a field."""
    yield ""
    attributes = ALWAYS_WRITTEN.sub("", field["attributes"])
    if attributes not in ("", OPTIONAL):
        raise SystemExit(f"{owner}.{field['name']}: {attributes.strip()} has no counterpart")
    kind = python_type(field["type"], known.enums) + ("" if is_there else " | None")
    yield f"    {field['name']}: {kind}{' = None' if attributes else ''}"
    yield from docstring(field["doc"], owner)


def python_name(struct: str) -> str:
    """Name the class of a struct or a variant."""
    return NAMES.get(struct, struct.rpartition(":")[2])


def python_type(rust: str, enums: dict[str, tuple[str, ...]]) -> str:
    """Write a type as Python has it."""
    if match := re.fullmatch(r"(\w+)<(.+)>", rust):
        outer, inner = match.groups()
        items = ", ".join(python_type(part, enums) for part in parts(inner))
        return {"Option": f"{items} | None", "Vec": f"tuple[{items}, ...]", "BTreeMap": f"dict[{items}]"}[outer]
    if match := re.fullmatch(r"\[(.+); \d+\]", rust):
        return f"tuple[{python_type(match[1], enums)}, ...]"
    if match := re.fullmatch(r"\((.+)\)", rust):
        return f"tuple[{', '.join(python_type(part, enums) for part in parts(match[1]))}]"
    return TYPES.get(rust) or " | ".join(python_name(struct) for struct in enums.get(rust, (rust,)))


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
