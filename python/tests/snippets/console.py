"""Runs the blocks of Python of one document, one after the other in one namespace, as somebody would type them.

A program of its own, so that a block can be stopped. For each line of JSON on standard input (the source, its document
and line, and the file for what it prints) it answers one on the file descriptor of its only argument. Blocks do not
see that input.
"""

import json
import linecache
import os
import sys
import traceback
import types


def main() -> None:
    replies = int(sys.argv[1])
    del sys.argv[1:]
    requests = os.fdopen(os.dup(0))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    # Not that of this file: a block that starts processes must not run it in them.
    module = sys.modules["__main__"] = types.ModuleType("__main__")
    for line in requests:
        asked = json.loads(line)
        output = os.open(asked["output"], os.O_WRONLY | os.O_APPEND)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.close(output)
        failure = ""
        try:
            # As many blank lines before it as make the lines of a traceback those of the document.
            source = "\n" * asked["line"] + asked["source"]
            lines = source.splitlines(keepends=True)
            linecache.cache[asked["document"]] = (len(source), None, lines, asked["document"])
            exec(compile(source, asked["document"], "exec"), module.__dict__)  # noqa: S102
        except BaseException:  # noqa: BLE001 whatever ends a block is its failure, `SystemExit` included
            failure = traceback.format_exc()
        sys.stdout.flush()
        os.write(replies, (json.dumps({"failure": failure}) + "\n").encode())


if __name__ == "__main__":
    main()
