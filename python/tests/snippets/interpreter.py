"""The interpreter in which the blocks of Python of one document run."""

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path

from snippets import console, processes
from snippets.documents import Block


class Interpreter:
    """A process of console.py. It has ended after a block that did not answer, and is not used again then."""

    def __init__(self, directory: Path, environment: dict[str, str], output: Path) -> None:
        self._output = output
        self._replies, write = os.pipe()
        os.set_blocking(self._replies, False)
        self._process = subprocess.Popen(
            [sys.executable, console.__file__, str(write)],
            cwd=directory,
            env=environment,
            stdin=subprocess.PIPE,
            pass_fds=[write],
            start_new_session=True,
        )
        os.close(write)

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def run(self, block: Block, limit: float) -> str | None:
        """Why a block failed, empty if it did not; nothing if it was stopped after so many seconds."""
        self._output.write_text("")
        asked = {"source": block.text, "document": block.document, "line": block.line, "output": str(self._output)}
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(asked).encode() + b"\n")
        self._process.stdin.flush()
        reply = b""

        def answered() -> bool:
            nonlocal reply
            over = self.has_ended
            with contextlib.suppress(BlockingIOError):
                reply += os.read(self._replies, 1 << 20)
            return over or reply.endswith(b"\n")

        in_time = processes.until(answered, limit)
        if reply.endswith(b"\n"):
            return str(json.loads(reply)["failure"])
        self.close()
        return "the interpreter ended" if in_time else None

    def close(self) -> None:
        """End it, and whatever its blocks have started."""
        if not self._process.stdin or self._process.stdin.closed:
            return
        self._process.stdin.close()
        processes.end(processes.session(self._process.pid), 5)
        self._process.wait()
        os.close(self._replies)
