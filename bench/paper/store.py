"""Finished cells on disk: one JSON line each, appended so that a kill loses at most the line in writing."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.lib import folders

RESULTS = folders.RESULTS / "paper"
CELLS, AUDITS = "cells.jsonl", "audits.jsonl"
CHECKPOINTS = "checkpoints"
DEMO = folders.RESULTS / "demo"  # cells of the built-in pair: for trying things, never among the recorded ones


def read(path: Path) -> list[dict[str, Any]]:
    """All whole lines; a last one that was cut off is not one of them."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]


def append(path: Path, record: dict[str, Any]) -> None:
    """Add a line, on the disk itself when this returns. Several processes may append to one file."""
    line = json.dumps(record, ensure_ascii=False, allow_nan=False).encode() + b"\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        file.truncate(file.read().rfind(b"\n") + 1)  # what a killed process left of its line
        file.write(line)
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def reserved(folder: Path) -> Iterator[bool]:
    """Whether this process got the folder of a cell to itself. A killed process holds nothing."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    lock = folder.with_name(folder.name + ".lock")
    with lock.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True


def discard(folder: Path) -> None:
    """Remove the checkpoint of a finished cell."""
    shutil.rmtree(folder, ignore_errors=True)
