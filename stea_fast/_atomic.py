"""Files that appear whole or not at all: written aside, flushed to the disk, renamed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A stream that takes the place of `path` when it is complete; until then the old file stays untouched."""
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    aside = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        aside.chmod(_permissions(path))
        os.replace(aside, path)
        flush(path.parent)
    finally:
        aside.unlink(missing_ok=True)


def check_writable(path: Path) -> None:
    """Fail now rather than after hours of work: can a file be made beside `path`?"""
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; expected the name of a file")
    with tempfile.TemporaryFile(dir=path.parent):
        pass


def flush(path: Path) -> None:
    """To the disk itself, so that a power cut leaves the old or the new state."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _permissions(path: Path) -> int:
    """Those of the file that is replaced, or else what the user's mask gives to a new one."""
    if path.exists():
        return path.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
