"""What is written beside the place where it belongs, until it is whole.

What a killed process left is known by its name and by the missing lock of its writer; the next one who writes to the
same place removes it.
"""

from __future__ import annotations

import os
import re
import secrets
import zlib
from contextlib import suppress
from pathlib import Path

from stea_fast._util import disk, locks


def new_file(path: Path, permissions: int | None) -> tuple[Path, int]:
    """A new file beside `path`, and its locked descriptor; without permissions it has those of any new file."""
    while True:
        aside = _name(path)
        descriptor = disk.create(aside, 0o666 if permissions is None else permissions)
        if _locked(descriptor, aside):
            if permissions is not None:
                with suppress(PermissionError):  # file systems without permissions
                    os.fchmod(descriptor, permissions)  # the user's mask may have taken some away
            return aside, descriptor


def new_folder(path: Path) -> tuple[Path, int]:
    """A new folder beside `path`, and its locked descriptor."""
    while True:
        aside = _name(path)
        disk.make_folder(aside)
        try:
            descriptor = disk.open_path(aside, os.O_RDONLY)
        except FileNotFoundError:  # somebody took it for a leftover before we could lock it
            continue
        except BaseException:
            remove_tree(aside)
            raise
        if _locked(descriptor, aside):
            return aside, descriptor


def remove_leftovers(path: Path) -> None:
    """Remove what killed processes wrote aside for `path`."""
    pattern = re.compile(re.escape(_prefix(path)) + r"[0-9a-f]{8}\.tmp")
    with suppress(OSError):
        for name in os.listdir(path.parent):
            if pattern.fullmatch(name):
                _remove_if_abandoned(path.parent / name)


def _remove_if_abandoned(aside: Path) -> None:
    with suppress(OSError):  # its writer is alive, or it is another user's
        flags = os.O_RDONLY if aside.is_dir() else os.O_RDWR  # to lock a file on a network it must be open for writing
        descriptor = disk.open_path(aside, flags | os.O_NOFOLLOW)
        try:
            locks.lock(descriptor)
            remove_tree(aside)
        finally:
            os.close(descriptor)


def remove_tree(path: Path) -> None:
    """Remove a file or a folder of files, as far as that is possible."""
    with suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            for entry in path.iterdir():
                remove_tree(entry)
            disk.remove_folder(path)
        else:
            disk.remove(path)


def _prefix(path: Path) -> str:
    """The same for every writer of one place, and short: the name itself may be as long as the system allows."""
    return f".stea-fast-{zlib.crc32(os.fsencode(path.name)):08x}-"


def _name(path: Path) -> Path:
    return path.with_name(f"{_prefix(path)}{secrets.token_hex(4)}.tmp")


def _locked(descriptor: int, aside: Path) -> bool:
    """Whether we locked it before somebody else took it for a leftover; if not, it is closed."""
    try:
        locks.lock(descriptor)
    except locks.LocksNotOfferedError:  # then nobody can lock it to remove it, either
        return True
    except BlockingIOError:
        os.close(descriptor)
        return False
    if locks.is_at(descriptor, aside):
        return True
    os.close(descriptor)
    return False
