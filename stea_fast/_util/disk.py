"""The system calls behind everything that is written, in one place: tests replace them by calls that fail.

Whatever changes a file or a folder goes through a function of this module, called as `disk.write(…)`, so that
replacing the function here reaches every writer.
"""

from __future__ import annotations

import errno
import fcntl
import io
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

# A folder that cannot be flushed is not an error of the disk: some network file systems have no such call.
_NOT_OFFERED = (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS)


def create(path: Path, mode: int = 0o666) -> int:
    """A descriptor of a new file; that there is one already is an error. The user's mask applies to the mode."""
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)


def temporary_folder() -> Path:
    """The system's folder for temporary files (`TMPDIR`)."""
    return Path(tempfile.gettempdir())


def create_temporary(folder: Path) -> tuple[int, Path]:
    """A descriptor of a new file with a name that nobody has, and its path."""
    descriptor, name = tempfile.mkstemp(prefix="stea-fast-", dir=folder)
    return descriptor, Path(name)


def free_bytes(folder: Path) -> int:
    """How many bytes there is room for."""
    return shutil.disk_usage(folder).free


def open_path(path: Path, flags: int) -> int:
    """A descriptor of a file or a folder, which the flags may allow to make."""
    return os.open(path, flags | os.O_CLOEXEC)


def write(descriptor: int, data: Any) -> int:
    """Write as many bytes as the system takes at once; returns how many."""
    return os.write(descriptor, data)


def truncate(descriptor: int, size: int) -> None:
    """Cut a file off."""
    os.ftruncate(descriptor, size)


def take_room(descriptor: int, size: int) -> None:
    """Make an empty file this large, with its room on the disk; an error where there is not enough."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, 0, size)
        return
    zeros = memoryview(bytes(min(size, 1 << 20)))
    while size > 0:
        size -= write(descriptor, zeros[:size])


def sync(descriptor: int) -> None:
    """To the disk itself, so that a power cut cannot undo it."""
    if sys.platform == "darwin":
        fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)  # there, fsync stops at the cache of the drive
    else:
        os.fsync(descriptor)


def sync_folder(descriptor: int) -> None:
    """The names in a folder to the disk itself, where the file system can do that."""
    try:
        sync(descriptor)
    except OSError as error:
        if error.errno not in _NOT_OFFERED:
            raise


def rename(source: Path, target: Path) -> None:
    """Move, replacing what is there, in one step."""
    os.replace(source, target)


def remove(path: Path) -> None:
    """Remove a file."""
    os.unlink(path)


def make_folder(path: Path) -> None:
    """Make a folder; its parent must be there, and it must not."""
    os.mkdir(path)


def remove_folder(path: Path) -> None:
    """Remove an empty folder."""
    os.rmdir(path)


class DescriptorStream(io.FileIO):
    """A stream whose bytes go through `write`; wrap it in `io.BufferedWriter`, which goes on after short writes."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor, "wb")

    def write(self, data: Any, /) -> int:
        """Write some of the bytes."""
        return write(self.fileno(), data)
