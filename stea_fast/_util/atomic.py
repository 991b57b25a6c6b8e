"""Files that appear whole or not at all: written aside, flushed to the disk, renamed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


class OutputError(OSError):
    """A file cannot be written; what was there before is untouched."""

    def __init__(self, path: Path, error: OSError) -> None:
        super().__init__(f"cannot write {path}: {error.strerror or error}; what was there before is untouched")


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A stream that takes the place of `path` when it is complete; until then the old file stays untouched."""
    aside = None
    try:
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
        aside = Path(name)
        with os.fdopen(descriptor, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        aside.chmod(_permissions(path))
        os.replace(aside, path)
        flush(path.parent)
    except OSError as error:
        raise OutputError(path, error) from error
    finally:
        if aside is not None:
            aside.unlink(missing_ok=True)


def check_writable(path: Path) -> None:
    """Fail now rather than after hours of work: can a file be made beside `path`?"""
    try:
        if path.is_dir():
            raise IsADirectoryError("it is a folder")
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise OutputError(path, error) from error


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
