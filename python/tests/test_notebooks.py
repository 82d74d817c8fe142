"""The notebooks run, and hold what they put out when they run."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
import run_notebooks

NAMES = [path.name for path in run_notebooks.notebooks()]
# A stored notebook that is larger is slow to open, and heavy for a repository.
MOST_BYTES = 700_000
# What would tell whose machine it was: paths of homes, temporary and other directories.
PATHS = re.compile(r"/(home|tmp|root|usr|var|work|Users)/")

each_notebook = pytest.mark.parametrize("name", NAMES)


@pytest.fixture(scope="module")
def anew(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of the notebooks as they are when all have been executed now."""
    out = tmp_path_factory.mktemp("executed")
    # A process of its own: the libraries that talk to kernels warn of much that is theirs.
    command = [sys.executable, run_notebooks.__file__, "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return out


def cells(folder: Path, name: str) -> list[Any]:
    notebook = nbformat.read(folder / name, as_version=4)
    nbformat.validate(notebook)
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def said(cell: Any) -> list[Any]:
    """What a cell put out: its texts, and the data of its figures; pictures depend on fonts."""
    found: list[Any] = []
    for output in cell.outputs:
        data = output.get("data", {})
        specs = [value for kind, value in data.items() if kind.startswith("application/vnd.vegalite")]
        found += [output.get("text"), data.get("text/plain"), *(spec["datasets"] for spec in specs)]
    return found


def test_there_are_three() -> None:
    assert NAMES == ["fingerprint-index.ipynb", "first-comparison.ipynb", "how-far-back.ipynb"]


@each_notebook
def test_it_puts_out_what_it_holds(name: str, anew: Path) -> None:
    stored, executed = cells(run_notebooks.FOLDER, name), cells(anew, name)
    for before, now in zip(stored, executed, strict=True):
        assert said(now) == said(before), f"`make notebooks` is due; the cell is\n{now.source}"


@each_notebook
def test_it_was_executed_from_the_first_cell_to_the_last_without_complaints(name: str) -> None:
    stored = cells(run_notebooks.FOLDER, name)
    assert [cell.execution_count for cell in stored] == list(range(1, len(stored) + 1))
    for cell in stored:
        for output in cell.outputs:
            assert output.output_type != "error", cell.source
            assert output.get("name") != "stderr", output.text


@each_notebook
def test_each_figure_has_its_picture(name: str) -> None:
    forms = [set(o.get("data", {})) for cell in cells(run_notebooks.FOLDER, name) for o in cell.outputs]
    drawn = [kinds for kinds in forms if any(kind.startswith("application/vnd.vegalite") for kind in kinds)]
    assert len(drawn) >= 4
    assert all("image/png" in kinds for kinds in drawn)


@each_notebook
def test_it_is_small_and_names_no_machine(name: str) -> None:
    text = (run_notebooks.FOLDER / name).read_text(encoding="utf-8")
    assert len(text.encode()) < MOST_BYTES
    notebook = json.loads(text)
    for cell in notebook["cells"]:
        for output in cell.get("outputs", []):
            output.get("data", {}).pop("image/png", None)
    assert not PATHS.search(json.dumps(notebook))
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
