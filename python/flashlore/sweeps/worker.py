"""A process that runs cells for `LocalExecutor`: `python -m flashlore.sweeps.worker MEMORY`.

It reads a task a line and writes an answer a line, both JSON. When its input ends, its client is done or dead, and it
ends too, in the middle of a cell if need be.
"""

import json
import os
import queue
import resource
import signal
import sys
import threading

from flashlore.sweeps.work import answer


def main() -> None:
    """Answer until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _limit(int(sys.argv[1]))
    # What a library prints must not come between the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    tasks: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(tasks,), daemon=True).start()
    while True:
        told = answer(json.loads(tasks.get()), worker="")
        answers.write(json.dumps({"record": told.record, "error": told.error}) + "\n")
        answers.flush()


def _read(tasks: "queue.SimpleQueue[str]") -> None:
    for line in sys.stdin:
        tasks.put(line)
    os._exit(0)


def _limit(memory: int) -> None:
    """Let this process have so many bytes of memory and no more; 0 is no limit."""
    if memory:
        _, most = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (memory, most))


if __name__ == "__main__":
    main()
