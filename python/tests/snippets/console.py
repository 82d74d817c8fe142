"""Runs the blocks of Python of one document, one after the other in one namespace, as somebody would type them.

A program of its own, so that a block can be stopped. For each line of JSON on standard input (the source, its file
and line, and the file for what it prints) it answers one on the file descriptor of its only argument.
"""

import json
import os
import sys
import traceback


def answer(replies: int, said: str) -> None:
    os.write(replies, (json.dumps({"failure": said}) + "\n").encode())


def main() -> None:
    replies = int(sys.argv[1])
    del sys.argv[1:]
    namespace = sys.modules["__main__"].__dict__
    for line in sys.stdin:
        asked = json.loads(line)
        output = os.open(asked["output"], os.O_WRONLY | os.O_APPEND)
        os.dup2(output, 1)
        os.close(output)
        said = ""
        try:
            # As many blank lines before it as make the lines of a traceback those of the document.
            source = "\n" * asked["line"] + asked["source"]
            exec(compile(source, asked["document"], "exec"), namespace)  # noqa: S102
        except BaseException:  # noqa: BLE001 whatever ends a block is its failure, `SystemExit` included
            said = traceback.format_exc()
        sys.stdout.flush()
        answer(replies, said)


if __name__ == "__main__":
    main()
