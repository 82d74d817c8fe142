"""Every fenced block of every document runs as a test, or says why it does not.

A fence says what is in it:

- `sh`: commands. They run by `bash -eu` in a directory of the document, in order: later blocks find the files of
  earlier ones. Traces, images and disks that a reader would have are made when a block names them
  (snippets/props.py). What a block starts in the background it must end; a server in the foreground as the last
  command is ended as by Ctrl-C. A block has 120 seconds.
- `python`: runs in the same directory, all blocks of a document in one namespace.
- `toml`: a system, a device or a profile, which the program must load; or, with a name (`file`, below), what a later
  block of commands uses.
- `text`: output, formats, diagrams. Right below a block that runs it is what that prints, and compared. Lines that
  are `...` stand for any lines.

A comment of one line above the fence may say more:

- `<!-- not run: REASON -->`: the block never runs. Its commands and options must exist all the same.
- `<!-- long: REASON -->`: it runs with `--long-snippets` alone (`make snippets`).
- `<!-- output of: COMMAND -->`: text that this command prints.
- `<!-- file: NAME -->`: the block is a file of this name, for later blocks.

Blocks that mount need root, FUSE and loop devices, and some need tools such as nbdinfo; they are skipped where these
are not (`pytest -rs` says why). All options that documents name must exist, and all files and headings that they
link to.
"""

import difflib
import re
import tomllib
from collections.abc import Callable, Iterator

import pytest
from skips import skip
from snippets import commands, documents
from snippets.documents import REPOSITORY, Block
from snippets.stage import Stage

DOCUMENTS = documents.names()
BLOCKS = [block for document in DOCUMENTS for block in documents.blocks(document)]
LANGUAGES = ("sh", "python", "toml", "text")
# Options that prose names of losetup, and of tools/memory-limit.py.
FOREIGN_OPTIONS = {"--direct-io", "--group"}

each_document = pytest.mark.parametrize("document", DOCUMENTS)


def runs(block: Block) -> bool:
    return block.language in ("sh", "python") and "file" not in block.notes


def printed_by(block: Block) -> Block | None:
    """The block above a text that prints it."""
    above = next((b for b in BLOCKS if b.document == block.document and b.line == block.follows), None)
    return above if above is not None and runs(above) and "not run" not in above.notes else None


def is_tested(block: Block) -> bool:
    """Whether something can go wrong with a block: not with text that no command prints."""
    if block.language == "text":
        return "output of" in block.notes or printed_by(block) is not None
    return block.language in LANGUAGES


@pytest.fixture(scope="session")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Stage]]:
    """The directory of a document. There is one at a time: blocks of a document follow each other."""
    properties = tmp_path_factory.mktemp("properties")
    open_one: dict[str, Stage] = {}

    def enter(document: str) -> Stage:
        if document not in open_one:
            leave()
            open_one[document] = Stage(tmp_path_factory.mktemp("document"), properties)
        return open_one[document]

    def leave() -> None:
        for stage in open_one.values():
            stage.close()
        open_one.clear()

    yield enter
    leave()


@pytest.mark.parametrize("block", [block for block in BLOCKS if is_tested(block)], ids=str)
def test_block(block: Block, stage: Callable[[str], Stage], request: pytest.FixtureRequest) -> None:
    if "not run" in block.notes:
        skip("snippet-not-run", f"{block}: {block.notes['not run']}")
    long = "long" in block.notes
    if long and not request.config.getoption("--long-snippets"):
        skip("snippet-long", f"{block}: {block.notes['long']}")
    here = stage(block.document)
    if lack := here.lacks(block):
        skip(lack.name, f"{block}: {lack.what}")
    if block.language == "text":
        _compare(block, here)
    elif "file" in block.notes:
        path = here.save(block, block.notes["file"])
        if not _is_used(block):
            here.loads(path)
    elif block.language == "toml":
        here.loads(here.save(block, "block.toml"))
    else:
        here.run(block, long=long)


def _is_used(block: Block) -> bool:
    later = (b for b in BLOCKS if b.document == block.document and b.line > block.line and runs(b))
    return any(block.notes["file"] in b.text for b in later)


def _compare(block: Block, stage: Stage) -> None:
    if command := block.notes.get("output of"):
        printed = stage.output_of(block, command)
    else:
        assert block.follows is not None
        if block.follows not in stage.printed:
            skip("snippet-follows", f"{block}: the block above it did not run")
        printed = stage.printed[block.follows]
    expected, found = _lines(block.text), _lines(printed)
    pattern = "".join(r"(?:.*\n)*?" if line == "..." else re.escape(line) + r"\n" for line in expected)
    if re.fullmatch(pattern, "".join(line + "\n" for line in found)) is None:
        changes = "\n".join(difflib.unified_diff(expected, found, "the document", "what is printed", lineterm=""))
        pytest.fail(f"{block} is not what is printed\n{changes}", pytrace=False)


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.rstrip().split("\n")]


@each_document
def test_fences_say_what_is_in_them(document: str) -> None:
    wrong = []
    for block in documents.blocks(document):
        if block.language not in LANGUAGES:
            wrong.append(f"{block}: {block.language or 'nothing'!r} is none of {', '.join(LANGUAGES)}")
        elif block.language == "toml":
            tomllib.loads(block.text)
    assert not wrong, "\n".join(wrong)


@each_document
def test_commands_and_options_exist(document: str) -> None:
    """Also of blocks that do not run, and of code within lines."""
    wrong = [
        f"{block}: {problem}"
        for block in documents.blocks(document)
        if block.language == "sh"
        for problem in commands.problems(block.text)
    ]
    known = frozenset().union(*commands.options().values()) | FOREIGN_OPTIONS
    for line, code in documents.spans(document):
        if re.match(r"(flashlore|make|cargo|tools/\S+) ", code):
            wrong += [f"{document}:{line}: {problem}" for problem in commands.problems(code)]
        elif (option := re.match(r"--[a-z][\w-]*", code)) and option[0] not in known:
            wrong.append(f"{document}:{line}: no command has an option {option[0]}")
    assert not wrong, "\n".join(wrong)


@each_document
def test_files_and_headings_exist(document: str) -> None:
    """Of links, and of paths from the root of the repository within code."""
    wrong = []
    for line, target in documents.links(document):
        path, _, anchor = target.partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        file = (REPOSITORY / document).parent / path if path else REPOSITORY / document
        if not file.exists():
            wrong.append(f"{document}:{line}: there is no {path}")
        elif anchor and anchor not in documents.anchors(str(file.resolve().relative_to(REPOSITORY))):
            wrong.append(f"{document}:{line}: {path or document} has no heading #{anchor}")
    for line, code in documents.spans(document):
        if re.fullmatch(r"(crates|docs|fuzz|notebooks|papers|python|tools)/[\w./*-]+", code) and not [
            *REPOSITORY.glob(code.rstrip("/"))
        ]:
            wrong.append(f"{document}:{line}: there is no {code}")
    assert not wrong, "\n".join(wrong)
