"""Dataclasses that mirror what the core writes."""

import importlib.util
import json
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from flashlore import _core, volume_info
from flashlore.volume import Volume

ROOT = Path(__file__).resolve().parents[2]


def tool() -> Any:
    spec = importlib.util.spec_from_file_location("records", ROOT / "tools" / "records.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_modules_are_what_the_structs_of_rust_make() -> None:
    records = tool()
    for module in records.MODULES:
        made = records.module(module)
        assert (ROOT / module.path).read_text() == made, f"{module.path} is outdated: run tools/records.py"


def answers() -> dict[str, list[str]]:
    """Fields of the structs and variants that the core answers with; of two of a name those that come last."""
    text = "".join((ROOT / f"crates/serve/src/{name}.rs").read_text() for name in ("troubles", "request"))
    body = r"(?: *///.*\n| *#\[.*\n| +(?:pub )?\w+: .*\n)+"
    found = re.findall(rf"^ *(?:pub struct )?(\w+) \{{\n({body}) *\}}", text, re.MULTILINE)
    return {name: re.findall(r"^ +(?:pub )?(\w+): ", inner, re.MULTILINE) for name, inner in found}


@pytest.mark.parametrize(
    ("mirror", "core", "apart"),
    [
        (volume_info.Saved, "Saved", []),
        (volume_info.HistoryInfo, "HistoryInfo", []),
        (volume_info.Unreadable, "Unreadable", []),
        (volume_info.Failures, "Failures", []),
        (volume_info.VolumeInfo, "Info", []),
        (volume_info.MachineInfo, "MachineInfo", []),
        (volume_info.TrafficInfo, "TrafficInfo", []),
        (volume_info.ElementInfo, "ElementInfo", []),
        (volume_info.ArrayInfo, "ArrayInfo", []),
        (volume_info.Snapshot, "Snapshot", []),
        (volume_info.Mark, "Mark", []),
        (volume_info.Changes, "Changes", []),
        (volume_info.Purge, "Purge", []),
        (volume_info.ClockReading, "Clock", []),
        (volume_info.Recovered, "Recovered", []),
        (volume_info.Cloned, "Cloned", []),
        # Where a scrub goes on is told to whoever asks step by step.
        (volume_info.Scrubbed, "Scrubbed", ["next"]),
    ],
)
def test_answers_have_the_fields_that_the_core_answers_with(mirror: Any, core: str, apart: list[str]) -> None:
    assert sorted([field.name for field in fields(mirror)] + apart) == sorted(answers()[core])


def test_checks_have_the_fields_that_the_core_writes(tmp_path: Path) -> None:
    media = {"fast": tmp_path / "fast", "slow": tmp_path / "slow"}
    Volume.create(tmp_path / "volume", "1MiB", capacity="16MiB").close()
    Volume.create(tmp_path / "array", "4MiB", "i-cash", **media).close()
    for name, mirror in (("volume", volume_info.VolumeCheck), ("array", volume_info.ArrayCheck)):
        checked = _core.check_volume(str(tmp_path / name), False, False, None)  # noqa: FBT003 (as they stand there)
        written = json.loads(checked)
        assert sorted(written) == sorted(field.name for field in fields(mirror))
