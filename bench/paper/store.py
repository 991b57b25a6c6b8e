"""Finished cells on disk: one JSON line each, appended so that a kill loses at most the line in writing."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from bench.lib import folders
from stea_fast._util.atomic import append_line
from stea_fast._util.locks import LockHeldError, held

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
    append_line(path, json.dumps(record, ensure_ascii=False, allow_nan=False).encode())


@contextmanager
def reserved(folder: Path) -> Iterator[bool]:
    """Whether this process got the folder of a cell to itself. A killed process holds nothing."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        try:
            stack.enter_context(held(folder.with_name(folder.name + ".lock")))
        except LockHeldError:
            yield False
            return
        yield True


def discard(folder: Path) -> None:
    """Remove the checkpoint of a finished cell."""
    shutil.rmtree(folder, ignore_errors=True)
