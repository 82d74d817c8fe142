"""Continuous integration accepts listed skips alone, however a test skips."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import skips

LISTED = """
from skips import skip
def test_a():
    skip("not-root", "the moon belongs\\nto others")
"""
EXPECTED_FAILURE = "import pytest\n@pytest.mark.xfail\ndef test_a(): assert False\n"
# Each ends in a report of another kind.
UNLISTED = {
    "by_name": """
from skips import skip
def test_a():
    skip("no-moon", "there is no moon")
""",
    "without_a_name": "import pytest\ndef test_a(): pytest.skip('there is no moon')\n",
    "in_a_fixture": """
import pytest
@pytest.fixture
def moon():
    pytest.skip('there is no moon')
def test_a(moon):
    pass
""",
    "by_a_condition": "import pytest\n@pytest.mark.skipif(True, reason='there is no moon')\ndef test_a(): pass\n",
    "within_a_test": "import pytest\ndef test_a(): pytest.importorskip('no_moon', reason='there is no moon')\n",
    "a_whole_file": "import pytest\npytest.importorskip('no_moon', reason='there is no moon')\ndef test_a(): pass\n",
}


def run(files: dict[str, str], directory: Path, *arguments: str, ci: str = "true") -> tuple[int, str]:
    """The exit status of pytest on files of tests, and what it printed."""
    for name, text in files.items():
        (directory / f"test_{name}.py").write_text(text)
    environment = {
        **os.environ,
        "CI": ci,
        "FLASHLORE_SKIPS": str(directory / "log"),
        "PYTHONPATH": str(Path(skips.__file__).parent),
        # What is installed takes seconds to load.
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }
    environment.pop("PYTEST_ADDOPTS", None)
    plugins = [f"-p{plugin}" for plugin in ("skips", "xdist", "no:cacheprovider")]
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", *plugins, "-rsfEx", "--continue-on-collection-errors", *arguments],
        cwd=directory,
        env=environment,
        check=False,
        capture_output=True,
        text=True,
    )
    return ended.returncode, ended.stdout + ended.stderr


here_and_in_a_process_of_its_own = pytest.mark.parametrize("workers", [[], ["--numprocesses", "1"]], ids=len)


@here_and_in_a_process_of_its_own
def test_in_continuous_integration_an_unlisted_skip_fails(workers: list[str], tmp_path: Path) -> None:
    status, said = run(UNLISTED, tmp_path, *workers)
    assert status == 1, said
    for how in UNLISTED:
        assert re.search(rf"^(FAILED|ERROR) test_{how}\.py", said, re.MULTILINE), f"{how}: {said}"
    for part in ("there is no moon", ".ci/run", ".ci/skips.txt"):
        assert said.count(part) >= len(UNLISTED), f"{part}: {said}"
    assert "skipped" not in said.splitlines()[-1]
    assert not (tmp_path / "log").exists()


@here_and_in_a_process_of_its_own
def test_a_listed_skip_passes_and_is_told(workers: list[str], tmp_path: Path) -> None:
    status, said = run({"listed": LISTED, "expected_failure": EXPECTED_FAILURE}, tmp_path, *workers)
    assert status == 0, said
    assert "1 skipped, 1 xfailed" in said
    assert (tmp_path / "log").read_text() == "not-root: the moon belongs to others\n"


def test_elsewhere_every_skip_passes(tmp_path: Path) -> None:
    status, said = run(UNLISTED, tmp_path, ci="")
    assert status == 0, said
    assert f"{len(UNLISTED)} skipped" in said
