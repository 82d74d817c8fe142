"""What runs the blocks of documents notices what is wrong with them."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from snippets import commands, documents, props
from snippets import stage as stages
from snippets.documents import Block, DocumentError
from snippets.stage import Stage


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    made = Stage(tmp_path, tmp_path / "properties")
    yield made
    made.close()


def block(text: str, language: str = "sh", line: int = 1) -> Block:
    return Block("a.md", line, language, text, {}, None)


def parsed(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Block]:
    monkeypatch.setattr(documents, "REPOSITORY", tmp_path)
    (tmp_path / "a.md").write_text(text)
    return documents.blocks("a.md")


def test_blocks_are_found_with_what_stands_above_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "# A\n<!-- long: a while -->\n\n```sh\necho\n```\n\n~~~text\n```\n~~~\nb\n- c\n  ```\n  d\n   e\n  ```\n"
    first, second, third = parsed(text, tmp_path, monkeypatch)
    assert (first.line, first.language, first.text, first.notes) == (4, "sh", "echo\n", {"long": "a while"})
    assert (second.language, second.text, second.follows, second.notes) == ("text", "```\n", 4, {})
    assert (third.language, third.text, third.follows) == ("", "d\n e\n", None)


@pytest.mark.parametrize("text", ["```sh\necho\n", "<!-- later: why -->\n```sh\n```\n"])
def test_a_document_that_means_nothing_is_an_error(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DocumentError, match=r"a\.md:1: "):
        parsed(text, tmp_path, monkeypatch)


def test_later_blocks_find_what_earlier_ones_left(stage: Stage) -> None:
    stage.run(block("echo 1 > a\n"), long=False)
    stage.run(block("a = open('a').read()\n", "python", 2), long=False)
    stage.run(block("print('a is', a)\n", "python", 3), long=False)
    assert stage.printed == {1: "", 2: "", 3: "a is 1\n\n"}


def test_what_a_block_names_is_made_unless_the_block_makes_it(tmp_path: Path) -> None:
    assert list(props.missing("flashlore snapshot create disk a; a t.fiu.xz at.fiu.xz", tmp_path)) == [
        "t.fiu.xz",
        "disk",
    ]
    (tmp_path / "t.fiu.xz").touch()
    assert list(props.missing("flashlore create disk; cp t.fiu.xz image.raws", tmp_path)) == []
    assert list(props.missing('Volume.create("disk", "1MiB")', tmp_path)) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("true\nfalse | true\ntest 1 = 2\n", "failed: test 1 = 2"),
        ("echo $nowhere\n", "nowhere: unbound variable"),
        ("flashlore systems nothing\n", "nothing"),
    ],
)
def test_commands_that_fail_are_told(stage: Stage, text: str, said: str) -> None:
    with pytest.raises(pytest.fail.Exception, match=said):
        stage.run(block(text), long=False)


@pytest.mark.parametrize("end", ["raise ValueError(1)", "exit(3)", "import os; os._exit(1)", "f("])
def test_python_that_fails_is_told_and_does_not_stop_the_next_block(stage: Stage, end: str) -> None:
    with pytest.raises(pytest.fail.Exception, match="ended with status 1"):
        stage.run(block(f"print(1)\n{end}\n", "python"), long=False)
    stage.run(block("print(2)\n", "python", 9), long=False)
    assert stage.printed[9] == "2\n"


def test_an_exception_names_the_line_of_the_document(stage: Stage) -> None:
    with pytest.raises(pytest.fail.Exception, match=r'"a\.md", line 43, in <module>\n +b = 1 / 0\n'):
        stage.run(block("a = 1\nb = 1 / 0\n", "python", 41), long=False)


@pytest.mark.parametrize("block", [block("sleep 1000\n"), block("import time\ntime.sleep(1000)\n", "python")], ids=str)
def test_a_block_that_does_not_end_is_ended(stage: Stage, block: Block, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "LIMIT", 0.5)
    with pytest.raises(pytest.fail.Exception, match="did not end"):
        stage.run(block, long=False)


def test_what_runs_on_behind_a_block_is_told_and_ended(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "GRACE", 0.2)
    with pytest.raises(pytest.fail.Exception, match="still running at its end: sleep 1000"):
        stage.run(block("sleep 1000 &\necho $! > pid\n"), long=False)
    pid = int((stage.directory / "pid").read_text())
    assert not Path(f"/proc/{pid}").exists() or " Z " in Path(f"/proc/{pid}/stat").read_text()


def test_a_server_in_the_foreground_is_interrupted(stage: Stage) -> None:
    begin = time.monotonic()
    stage.run(block("flashlore create disk --size 64MiB\nflashlore serve disk   # until Ctrl-C\n"), long=False)
    assert time.monotonic() - begin < stages.LIMIT
    assert not (stage.directory / "disk" / "nbd.sock").exists()


def test_a_file_that_is_no_system_device_or_profile_is_told(stage: Stage) -> None:
    good, bad = stage.directory / "good.toml", stage.directory / "bad.toml"
    good.write_text('base = "ca-ssd"\nname = "mine"\n')
    bad.write_text('base = "ca-ssd"\nnmae = "mine"\n')
    stage.loads(good)
    with pytest.raises(pytest.fail.Exception, match="nmae"):
        stage.loads(bad)


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("flashlore compare a --sytems plain", "`flashlore compare` has no option --sytems"),
        ("if true; then A=1 flashlore trace look a; fi", "`flashlore trace` has no subcommand look"),
        ("target/release/flashlore serve disk & flashlore halt", "`flashlore` has no subcommand halt"),
        ("flashlore trace synth a \\\n  --size=3", "`flashlore trace synth` has no option --size"),
        ("make haste", "make has no target haste"),
        ("tools/none.sh 3", "there is no tools/none.sh"),
        ("cargo bench -p flashlore-arrays", "cargo has no package flashlore-arrays"),
        ("cargo test -p flashlore-array --test none", "cargo has no test none"),
        ("for a in b", "syntax error"),
    ],
)
def test_names_that_do_not_exist_are_found(script: str, problem: str) -> None:
    found = list(commands.problems(script))
    assert len(found) == 1
    assert problem in found[0]


def test_names_that_exist_are_not_complained_of() -> None:
    script = (
        "flashlore compare a b --systems=plain -h  # --no\nflashlore trace --help\nmake test; cargo test -p flashlore"
    )
    assert list(commands.problems(script)) == []


def test_mounting_needs_root(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    lack = stage.lacks(block("umount mnt\n"))
    assert lack is not None
    assert lack.name in ("not-root", "program-missing")
