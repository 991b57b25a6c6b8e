"""A worker process: `python -m stea_fast._executors.process_worker N` reads requests of `Host` and answers them.

A line on standard input names the files of a request; a line on standard output names the file of the answer. Whatever
else would be printed goes to standard error. When its input ends, so does the worker.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from pathlib import Path

from stea_fast._executors import messages
from stea_fast._executors.host import Host


def main() -> None:
    """Serve until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that asks, which ends this one
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    host = Host(int(sys.argv[1]))
    for line in sys.stdin:
        request, answer, *packed = line.rstrip("\n").split("\t")
        try:
            arguments = messages.read(Path(request))
            Path(request).unlink()  # what is mapped stays
            name, *rest = arguments
            if packed:
                position, path = packed
                rest.insert(int(position), messages.read(Path(path)))
            result = True, getattr(host, name)(*rest)
        except Exception as error:
            result = False, (error, traceback.format_exc())
        _write(result, Path(answer))
        print(answer, file=answers, flush=True)


def _write(result: object, path: Path) -> None:
    try:
        messages.write(result, path)
    except OSError as error:  # the disk is full: the error itself is small
        path.unlink(missing_ok=True)
        messages.write((False, (error, "")), path)


if __name__ == "__main__":
    main()
