#!/usr/bin/env python3
"""Write the pages of the Python API: `tools/python-doc.py DIRECTORY`.

The package loads some of its names when they are asked for, and pdoc documents what is there: they are asked for here.
The other modules are those whose classes are results or arguments of what the package offers by name.
"""

import sys
import warnings
from pathlib import Path

import flashlore
import pdoc

MODULES = (
    "flashlore",
    "flashlore.characteristics",
    "flashlore.figures",
    "flashlore.record",
    "flashlore.settings",
    "flashlore.sweeps.executors",
    "flashlore.trace",
    "flashlore.volume",
    "flashlore.volume_info",
    "flashlore.workload",
)


def main() -> None:
    """Write them; what cannot be documented as it stands is an error."""
    warnings.simplefilter("error")
    vars(flashlore).update({name: getattr(flashlore, name) for name in flashlore.__all__})
    pdoc.pdoc(*MODULES, output_directory=Path(sys.argv[1]))


main()
