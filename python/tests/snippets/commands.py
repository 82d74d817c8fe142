"""What commands in documents name: options of the program, targets of make, packages of cargo, files."""

import re
import shlex
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

from snippets.documents import REPOSITORY

_ENDS = re.compile(r"[;&|()<>]+")
_WORDS_BEFORE = {"do", "then", "else", "!", "{", "exec", "time", "sudo"}


def problems(script: str) -> Iterator[str]:
    """What a block of commands names that does not exist."""
    checked = subprocess.run(["bash", "-n", "-c", script], check=False, capture_output=True, text=True)
    if checked.returncode != 0:
        yield checked.stderr
        return
    for words in _commands(script):
        yield from _command_problems(words)


def programs(script: str) -> set[str]:
    """The programs that a block of commands calls."""
    return {words[0] for words in _commands(script)}


def _command_problems(words: list[str]) -> Iterator[str]:
    name = words[0].removeprefix("./").removeprefix("target/release/").removeprefix("target/debug/")
    if name == "flashlore":
        yield from _unknown_options(words[1:])
    elif name == "make":
        yield from (f"make has no target {word}" for word in words[1:] if "=" not in word and word not in _targets())
    elif name == "cargo":
        yield from _unknown_to_cargo(words)
    elif name.startswith("tools/") and not (REPOSITORY / name).exists():
        yield f"there is no {name}"


def _commands(script: str) -> Iterator[list[str]]:
    """Simple commands of a script, as words; redirections and what is computed are words like others."""
    for line in script.replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.commenters = "#"
        words: list[str] = []
        try:
            tokens = [*lexer, ";"]
        except ValueError:  # a quotation over several lines: a program of another language
            continue
        for token in tokens:
            if not _ENDS.fullmatch(token):
                words.append(token)
                continue
            while words and (words[0] in _WORDS_BEFORE or re.match(r"[A-Z_]+=", words[0])):
                words.pop(0)
            if words:
                yield words
            words = []


@cache
def options() -> dict[tuple[str, ...], frozenset[str]]:
    """Options of each subcommand, as its page of the manual has them."""
    with tempfile.TemporaryDirectory() as directory:
        subprocess.run([sys.executable, "-m", "flashlore", "man", directory], check=True, capture_output=True)
        pages = [path.read_text().replace("\\-", "-") for path in Path(directory).glob("*.1")]
    found = {}
    for page in pages:
        synopsis = re.search(r"\.SH SYNOPSIS\n\\fB(?P<name>[\w -]+)\\fR", page)
        assert synopsis is not None, page
        found[tuple(synopsis["name"].split()[1:])] = frozenset(re.findall(r"\\fB(--?[\w-]+)\\fR", page))
    return found


def _unknown_options(words: list[str]) -> Iterator[str]:
    subcommand: tuple[str, ...] = ()
    while len(subcommand) < len(words) and (*subcommand, words[len(subcommand)]) in options():
        subcommand = tuple(words[: len(subcommand) + 1])
    rest = words[len(subcommand) :]
    if any(len(known) > len(subcommand) and known[: len(subcommand)] == subcommand for known in options()) and rest:
        first = rest[0]
        if not first.startswith("-") and (subcommand or first != "help") and not first.isupper():
            yield f"`{' '.join(['flashlore', *subcommand])}` has no subcommand {first}"
            return
    for word in rest:
        option = word.split("=")[0]
        if re.fullmatch(r"--?[A-Za-z][\w-]*", option) and option not in options()[subcommand]:
            yield f"`{' '.join(['flashlore', *subcommand])}` has no option {option}"


@cache
def _targets() -> set[str]:
    return set(re.findall(r"^([\w-]+):", (REPOSITORY / "Makefile").read_text(), re.MULTILINE))


@cache
def _cargo() -> dict[str, set[str]]:
    """What `--package`, `--test`, `--bench` and `--example` may name."""
    found: dict[str, set[str]] = {"--package": set(), "--test": set(), "--bench": set(), "--example": set()}
    for path in REPOSITORY.glob("crates/*/Cargo.toml"):
        manifest = tomllib.loads(path.read_text())
        found["--package"].add(manifest["package"]["name"])
        for kind, place in (("test", "tests"), ("bench", "benches"), ("example", "examples")):
            found[f"--{kind}"] |= {target["name"] for target in manifest.get(kind, [])}
            if manifest["package"].get(f"auto{place}", True):
                found[f"--{kind}"] |= {file.stem for file in (path.parent / place).glob("*.rs")}
    return found


def _unknown_to_cargo(words: list[str]) -> Iterator[str]:
    for word, value in pairwise(words):
        option = "--package" if word == "-p" else word
        if option == "--":
            return
        if option in _cargo() and value not in _cargo()[option]:
            yield f"cargo has no {option.removeprefix('--')} {value}"
