"""Locks that end with the process that holds them, however it ends: a killed process holds nothing."""

from __future__ import annotations

import errno
import fcntl
import json
import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from pathlib import Path

from stea_fast._util import disk

logger = logging.getLogger("stea_fast")

_NOT_OFFERED = (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)


class LocksNotOfferedError(OSError):
    """The file system has no locks."""


class LockHeldError(OSError):
    """Another process holds the lock; the message says which, where, and since when."""


def lock(descriptor: int, *, wait: bool = False) -> None:
    """Lock an open file or folder until it is closed.

    Raises:
        BlockingIOError: somebody else has locked it, and `wait` is False.
        LocksNotOfferedError: the file system has no locks.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError as error:
        if error.errno in _NOT_OFFERED:
            raise LocksNotOfferedError(error.errno, error.strerror) from None
        raise


def is_at(descriptor: int, path: Path) -> bool:
    """Whether an open file or folder still is what its path names, and not removed or replaced since."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Wait until no other process is in such a block for the same folder, and keep all others out during this one."""
    descriptor = _locked_folder(folder)
    while not is_at(descriptor, folder):  # it was replaced while we waited
        os.close(descriptor)
        descriptor = _locked_folder(folder)
    try:
        yield
    finally:
        os.close(descriptor)


def _locked_folder(folder: Path) -> int:
    descriptor = disk.open_path(folder, os.O_RDONLY)
    try:
        lock(descriptor, wait=True)
    except LocksNotOfferedError:
        _warn(folder)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Hold a lock during a block; `path` is a file for this purpose, which is there only as long as it is needed.

    What a killed process left is taken over. A file system without locks is a warning: nobody can be kept out there.

    Raises:
        LockHeldError: a living process holds the lock.
    """
    descriptor = _acquired(path)
    try:
        _introduce_ourselves(descriptor)
        yield
    finally:
        with suppress(FileNotFoundError):
            disk.remove(path)  # before it is unlocked: afterwards it may be somebody else's
        os.close(descriptor)


def _acquired(path: Path) -> int:
    while True:
        descriptor = disk.open_path(path, os.O_RDWR | os.O_CREAT)
        try:
            lock(descriptor)
        except LocksNotOfferedError:
            _warn(path.parent)
            return descriptor
        except BlockingIOError:
            holder = _holder(descriptor)
            os.close(descriptor)
            raise LockHeldError(f"{path.parent} is in use by {holder}") from None
        except BaseException:
            os.close(descriptor)
            raise
        if is_at(descriptor, path):
            return descriptor
        os.close(descriptor)  # its holder removed it while we waited to open it


def _warn(folder: Path) -> None:
    logger.warning("the file system of %s has no locks: let no other process write there at the same time", folder)


def _introduce_ourselves(descriptor: int) -> None:
    since = datetime.now(timezone.utc).astimezone().isoformat(sep=" ", timespec="seconds")
    facts = {"process": os.getpid(), "host": socket.gethostname(), "since": since}
    disk.truncate(descriptor, 0)
    disk.write(descriptor, json.dumps(facts).encode())


def _holder(descriptor: int) -> str:
    try:
        facts = json.loads(os.read(descriptor, 1000))
        return f"process {facts['process']} on {facts['host']} since {facts['since']}"
    except (OSError, ValueError, KeyError, TypeError):  # it has not introduced itself yet
        return "another process"
