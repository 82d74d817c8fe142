"""The directory in which the blocks of one document run, and the processes that run them.

Whatever a block leaves behind is ended here: processes, mounts and loop devices of its directory.
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import flashlore
import pytest
from skips import Skip

from snippets import commands, processes, props
from snippets.documents import Block
from snippets.interpreter import Interpreter

# How long a block may take, in seconds, and how long what it stopped may take to end.
LIMIT = 600
LONG_LIMIT = 3600
GRACE = 20

# A server in the foreground stays until somebody presses Ctrl-C; this is what it says when it is ready.
_SERVER = re.compile(r"flashlore (serve|mount|record) [^&;|]*")
_READY = re.compile(r"^(serving|mounted) ", re.MULTILINE)
# Tells which command of a block failed.
_TRAP = """trap 'echo "failed: $BASH_COMMAND" >&2' ERR; """

# Programs that need not be installed, and those that need root as well.
_MOUNTING = {"losetup", "mount", "umount", "fusermount3", "nbdfuse"}
_OPTIONAL = {*_MOUNTING, "nbdinfo", "nbdcopy", "nbdsh", "qemu-img", "qemu-io", "mkfs.ext4", "curl", "fio"}


@dataclass
class Ended:
    """What a block printed, and how it ended; no status if it was stopped at its limit."""

    status: int | None
    output: str
    errors: str


class Stage:
    """The directory of one document. Blocks run in order; later ones find the files of earlier ones."""

    def __init__(self, directory: Path, properties: Path) -> None:
        self.directory = directory / "work"
        self.printed: dict[int, str] = {}
        self._properties = properties
        self._outputs = directory / "outputs"
        self._interpreter: Interpreter | None = None
        programs = directory / "bin"
        for new in (self.directory, self._outputs, programs, directory / "home", properties):
            new.mkdir(exist_ok=True)
        for name, arguments in (("flashlore", " -m flashlore"), ("python", ""), ("python3", "")):
            (programs / name).write_text(f'#!/bin/sh\nexec {sys.executable}{arguments} "$@"\n')
            (programs / name).chmod(0o755)
        package = Path(flashlore.__file__).parents[1]
        self._environment = {
            **os.environ,
            "HOME": str(directory / "home"),
            "PATH": f"{programs}:{os.environ['PATH']}:/usr/sbin:/sbin",
            "PYTHONPATH": f"{package}:{os.environ.get('PYTHONPATH', '')}".rstrip(":"),
            "LC_ALL": "C.UTF-8",
        }

    def lacks(self, block: Block) -> Skip | None:
        """Why the block cannot run here, if it cannot."""
        programs = commands.programs(block.text) if block.language == "sh" else set()
        for tool in sorted(programs & _OPTIONAL):
            if shutil.which(tool, path=self._environment["PATH"]) is None:
                return Skip("program-missing", f"{tool} is not installed")
        for port in re.findall(r"--metrics (\d+)", block.text):
            with socket.socket() as listener:
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                try:
                    listener.bind(("127.0.0.1", int(port)))
                except OSError:
                    return Skip("port-in-use", f"port {port} is in use")
        return _cannot_mount() if programs & _MOUNTING else None

    def save(self, block: Block, name: str) -> Path:
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text)
        return path

    def run(self, block: Block, *, long: bool) -> None:
        """Run a block of `sh` or `python`; what it prints is in `printed`."""
        self._bring(block)
        limit = LONG_LIMIT if long else LIMIT
        ended = self._shell(block.text, limit) if block.language == "sh" else self._python(block, limit)
        self.printed[block.line] = ended.output
        left = self._tidy()
        if ended.status is None:
            _fail(_said(block, f"did not end within {limit} s", ended))
        if ended.status != 0:
            _fail(_said(block, f"ended with status {ended.status}", ended))
        if left:
            _fail(_said(block, f"leaves behind: {', '.join(left)}", ended))

    def output_of(self, block: Block, command: str) -> str:
        """What a command prints that stands above a block of text."""
        ended = self._shell(command, LIMIT)
        if ended.status != 0:
            _fail(_said(block, f"{command!r} ended with status {ended.status}", ended))
        return ended.output

    def loads(self, path: Path) -> None:
        """Read a file as a system, a device or a profile; one of them must do."""
        ways = (f"systems {path}", f"devices {path}", f"trace synth {path} --requests 1 -o {path}.parquet")
        tried = [self._shell(f"flashlore {way}", LIMIT) for way in ways]
        if all(ended.status != 0 for ended in tried):
            _fail("\n".join(ended.errors for ended in tried))

    def close(self) -> None:
        if self._interpreter is not None:
            self._interpreter.close()
        self._tidy()
        shutil.rmtree(self.directory)

    def _bring(self, block: Block) -> None:
        """Put what the block takes for granted into the directory."""
        for name, recipe in props.missing(block.text, self.directory).items():
            if not (self._properties / name).exists():
                made = self._shell(recipe, LIMIT, directory=self._properties)
                if made.status != 0:
                    _fail(_said(block, f"names {name}, which could not be made", made))
            command = ["cp", "-a", "--sparse=always", str(self._properties / name), str(self.directory / name)]
            subprocess.run(command, check=True)

    def _shell(self, script: str, limit: float, *, directory: Path | None = None) -> Ended:
        output, errors = self._outputs / "output", self._outputs / "errors"
        with output.open("w") as out, errors.open("w") as err:
            process = subprocess.Popen(
                ["bash", "-eu", "-c", _TRAP + script],
                cwd=directory or self.directory,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
        foreground = _SERVER.fullmatch(_last_command(script)) is not None
        status: int | None
        try:
            if foreground:
                processes.until(lambda: process.poll() is not None or _READY.search(errors.read_text()), limit)
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGINT)
            status = process.wait(limit)
        except BaseException as error:
            processes.end(processes.session(process.pid), 5)
            process.wait()
            if not isinstance(error, subprocess.TimeoutExpired):  # somebody interrupts the tests
                raise
            status = None
        # What it stopped in the background may take a moment.
        if not processes.until(lambda: not processes.session(process.pid), GRACE if status == 0 else 0):
            running = ", ".join(map(processes.command, processes.session(process.pid)))
            with errors.open("a") as err:
                err.write(f"still running at its end: {running}\n")
            status = status or -1
        processes.end(processes.session(process.pid), 5)
        return Ended(status, output.read_text(errors="replace"), errors.read_text(errors="replace"))

    def _python(self, block: Block, limit: float) -> Ended:
        output = self._outputs / "output"
        if self._interpreter is None or self._interpreter.has_ended:
            self._interpreter = Interpreter(self.directory, self._environment, output)
        failure = self._interpreter.run(block, limit)
        status = None if failure is None else int(failure != "")
        return Ended(status, output.read_text(errors="replace"), failure or "")

    def _tidy(self) -> list[str]:
        """Undo mounts and loop devices of the directory; what there was of them."""
        inside = f"{self.directory}/"
        mounts = [line.split(" ")[1] for line in Path("/proc/self/mounts").read_text().splitlines()]
        mounts = [mount for mount in mounts if mount.startswith(inside)]
        for mount in reversed(mounts):
            subprocess.run(["umount", "-l", mount], check=False)
        loops = []
        if shutil.which("losetup", path=self._environment["PATH"]) and os.geteuid() == 0:
            listed = subprocess.run(
                ["losetup", "-nlO", "NAME,BACK-FILE"],
                env=self._environment,
                check=False,
                capture_output=True,
                text=True,
            )
            loops = [line.split()[0] for line in listed.stdout.splitlines() if inside in line]
            for loop in loops:
                subprocess.run(["losetup", "-d", loop], env=self._environment, check=False)
        return mounts + loops


def _cannot_mount() -> Skip | None:
    if os.geteuid() != 0:
        return Skip("not-root", "loop devices and mounts need root")
    if not Path("/dev/fuse").exists():
        return Skip("no-fuse", "there is no /dev/fuse")
    if not Path("/dev/loop-control").exists():
        return Skip("no-loop-devices", "there is no /dev/loop-control")
    return None


def _fail(message: str) -> NoReturn:
    pytest.fail(message, pytrace=False)


def _said(block: Block, what: str, ended: Ended) -> str:
    return (
        f"{block} {what}\n--- the block\n{block.text}--- its output\n{ended.output}--- its errors\n{ended.errors}"
        "--- how blocks run, and what they may say above themselves, stands at the head of test_snippets.py"
    )


def _last_command(script: str) -> str:
    lines = [line.split(" #")[0].strip() for line in script.replace("\\\n", " ").splitlines()]
    return next((line for line in reversed(lines) if line and not line.startswith("#")), "")
