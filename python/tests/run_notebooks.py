"""Executes the notebooks from their first cell on: in place, or into a directory, all at the same time.

`make notebooks` runs it. What is stored is the same whoever runs it: no times, no name of the interpreter, no
numbers of cells that differ from run to run.
"""

import argparse
import asyncio
import hashlib
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parents[2] / "notebooks"
# Seconds that a cell may take, on a machine that is busy with other things.
PATIENCE = 300


def notebooks() -> list[Path]:
    """The notebooks, by name."""
    return sorted(FOLDER.glob("*.ipynb"))


async def executed(path: Path, where: str) -> nbformat.NotebookNode:
    """Run a notebook in a directory that is its own, and return it with what it put out."""
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook,
        timeout=PATIENCE,
        kernel_name="python3",
        resources={"metadata": {"path": where}},
        record_timing=False,
        coalesce_streams=True,
    )
    await client.async_execute()
    notebook.metadata = nbformat.from_dict(
        {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"file_extension": ".py", "mimetype": "text/x-python", "name": "python"},
        }
    )
    for number, cell in enumerate(notebook.cells):
        cell.metadata = nbformat.from_dict({})
        cell.id = hashlib.sha256(f"{path.name} {number}".encode()).hexdigest()[:8]
    return notebook


async def execute_all(out: Path) -> None:
    """Run all notebooks and write them into a directory."""
    with tempfile.TemporaryDirectory() as scratch:
        places = [Path(scratch) / path.stem for path in notebooks()]
        for place in places:
            place.mkdir()
        done = await asyncio.gather(*map(executed, notebooks(), map(str, places)))
    for path, notebook in zip(notebooks(), done, strict=True):
        nbformat.write(notebook, out / path.name)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Execute the notebooks.")
    parser.add_argument("--out", type=Path, default=FOLDER, help="directory of the results; by default in place")
    asyncio.run(execute_all(parser.parse_args().out))
