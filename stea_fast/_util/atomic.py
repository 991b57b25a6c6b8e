"""Files and folders that appear whole or not at all: written aside, flushed to the disk, renamed.

What a killed process wrote aside is known by its name and by the missing lock of its writer; the next one who writes to
the same place removes it.
"""

from __future__ import annotations

import errno
import io
import os
import re
import secrets
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from stea_fast._util import disk, locks

_OLD_IS_THERE = "what was there before is untouched"
_NEW_IS_THERE = "the new content is in place, but the disk did not confirm it"
_PASSED_ON = "some of it may have been passed on already"
_REFUSED = {stat.S_IFDIR: "it is a folder", stat.S_IFBLK: "it is a disk", stat.S_IFSOCK: "it is a socket"}
_TAIL = 1 << 16  # bytes to look back at once for the end of the last line


class OutputError(OSError):
    """A file cannot be written; the message says what is there now."""

    def __init__(self, path: Path, error: OSError, state: str = _OLD_IS_THERE) -> None:
        super().__init__(f"cannot write {path}: {error.strerror or error}; {state}")


@dataclass(frozen=True)
class _Place:
    """Where an output goes: the path as it was given, the file behind all links, and the permissions of the old one.

    `is_stream` marks devices and pipes, which have no content that could be replaced.
    """

    path: Path
    file: Path
    permissions: int | None
    is_stream: bool


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A stream that takes the place of `path` when it is complete; until then the old file stays untouched.

    A symbolic link stays one: the file that it leads to is replaced. What is written to a pipe or a device, such as
    /dev/null, goes there at once.

    Raises:
        OutputError: it cannot be written, or must not be: a folder, a disk, a file that is read-only.
    """
    place = _place(path)
    with (_passing_on if place.is_stream else _taking_the_place)(place) as stream:
        yield stream


def check_writable(path: Path) -> None:
    """Fail now rather than after hours of work: can `path` be written?"""
    place = _place(path)
    with _explained(path):
        if place.is_stream:
            if not os.access(path, os.W_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            return
        remove_leftovers(place.file)
        with _opened_folder(place.file.parent):
            aside, descriptor = _file_aside(place)
            os.close(descriptor)
            disk.remove(aside)


def is_device(path: Path) -> bool:
    """Whether `path` is a device such as /dev/null, of which any number of outputs may be given."""
    return path.is_char_device()


@contextmanager
def appearing(folder: Path) -> Iterator[Path]:
    """A folder to fill; it becomes `folder`, which must not be there yet, when the block is over.

    Files in it are on the disk before that if `new_file` wrote them.
    """
    with _explained(folder):
        make_folders(folder.parent)
    remove_leftovers(folder)
    with _explained(folder), _opened_folder(folder.parent) as parent:
        aside, descriptor = _folder_aside(folder)
        try:
            yield aside
            disk.sync_folder(descriptor)
            disk.rename(aside, folder)
        except BaseException:
            _remove_tree(aside)
            raise
        finally:
            os.close(descriptor)
        with _explained(folder, _NEW_IS_THERE):
            disk.sync_folder(parent)


@contextmanager
def new_file(path: Path) -> Iterator[IO[bytes]]:
    """A stream into a new file that is on the disk when the block is over: a part of what becomes visible later."""
    with _explained(path):
        stream = io.BufferedWriter(disk.DescriptorStream(disk.create(path)))
        try:
            yield stream
            stream.flush()
            disk.sync(stream.fileno())
        finally:
            stream.raw.close()  # not `stream`: after an error it would try to write once more


def append_line(path: Path, line: bytes) -> None:
    """Add a line to a file, on the disk itself when this returns; several processes may append to one file.

    What a killed process left of its line is cut off first, and so is what this one wrote before an error.
    """
    with _explained(path):
        make_folders(path.parent)
        stream = io.BufferedWriter(disk.DescriptorStream(disk.open_existing(path, os.O_RDWR | os.O_CREAT)))
        descriptor = stream.fileno()
        try:
            with suppress(locks.LocksNotOfferedError):
                locks.lock(descriptor, wait=True)
            end = _end_of_last_line(descriptor)
            disk.truncate(descriptor, end)
            try:
                stream.seek(end)
                stream.write(line + b"\n")
                stream.flush()
                disk.sync(descriptor)
            except BaseException:
                disk.truncate(descriptor, end)
                raise
        finally:
            stream.raw.close()
        with _opened_folder(path.parent) as folder:
            disk.sync_folder(folder)


def sync_folder(folder: Path) -> None:
    """The names of the files in a folder to the disk itself."""
    with _opened_folder(folder) as descriptor:
        disk.sync_folder(descriptor)


def make_folders(folder: Path) -> None:
    """Make a folder and all above it that are missing, on the disk itself."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    for path in reversed(missing):
        with suppress(FileExistsError):  # another process was faster
            disk.make_folder(path)
        sync_folder(path.parent)


def remove_leftovers(path: Path) -> None:
    """Remove what killed processes wrote aside for `path`."""
    pattern = re.compile(re.escape(_aside_prefix(path)) + r"[0-9a-f]{8}\.tmp")
    with suppress(OSError):
        for name in os.listdir(path.parent):
            if pattern.fullmatch(name):
                _remove_if_abandoned(path.parent / name)


def _remove_if_abandoned(aside: Path) -> None:
    with suppress(OSError):  # its writer is alive, or it is another user's
        flags = os.O_RDONLY if aside.is_dir() else os.O_RDWR  # to lock a file on a network it must be open for writing
        descriptor = disk.open_existing(aside, flags | os.O_NOFOLLOW)
        try:
            locks.lock(descriptor)
            _remove_tree(aside)
        finally:
            os.close(descriptor)


def _remove_tree(path: Path) -> None:
    """Remove a file or a folder of files, as far as that is possible."""
    with suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            for entry in path.iterdir():
                _remove_tree(entry)
            disk.remove_folder(path)
        else:
            disk.remove(path)


def _place(path: Path) -> _Place:
    """Follow links, and refuse what must not be replaced."""
    with _explained(path):
        file = Path(os.path.realpath(path))
        try:
            old = os.stat(path)
        except FileNotFoundError:
            return _Place(path, file, None, is_stream=False)
        kind = stat.S_IFMT(old.st_mode)
        if kind in _REFUSED:
            raise OSError(_REFUSED[kind])
        if kind != stat.S_IFREG:
            return _Place(path, path, None, is_stream=True)
        os.close(disk.open_existing(path, os.O_WRONLY))  # who may not write into a file shall not replace it either
        if not os.path.samefile(path, file):
            raise OSError("it leads to a file without a name")
        return _Place(path, file, stat.S_IMODE(old.st_mode) & 0o777, is_stream=False)


@contextmanager
def _passing_on(place: _Place) -> Iterator[IO[bytes]]:
    with _explained(place.path, _PASSED_ON):
        stream = io.BufferedWriter(disk.DescriptorStream(disk.open_existing(place.file, os.O_WRONLY)))
        try:
            yield stream
            stream.flush()
        finally:
            stream.raw.close()


@contextmanager
def _taking_the_place(place: _Place) -> Iterator[IO[bytes]]:
    remove_leftovers(place.file)
    with _explained(place.path), _opened_folder(place.file.parent) as folder:
        aside, descriptor = _file_aside(place)
        stream = io.BufferedWriter(disk.DescriptorStream(descriptor))
        try:
            yield stream
            stream.flush()
            disk.sync(descriptor)
            disk.rename(aside, place.file)  # before it is closed, which unlocks it
        except BaseException:
            _remove_tree(aside)
            raise
        finally:
            stream.raw.close()
        with _explained(place.path, _NEW_IS_THERE):
            disk.sync_folder(folder)


def _aside_prefix(path: Path) -> str:
    """The same for every writer of one place, and short: the name itself may be as long as the system allows."""
    return f".stea-fast-{zlib.crc32(os.fsencode(path.name)):08x}-"


def _aside(path: Path) -> Path:
    return path.with_name(f"{_aside_prefix(path)}{secrets.token_hex(4)}.tmp")


def _file_aside(place: _Place) -> tuple[Path, int]:
    """A new file beside the place, and its locked descriptor."""
    while True:
        aside = _aside(place.file)
        descriptor = disk.create(aside, 0o666 if place.permissions is None else place.permissions)
        if _locked(descriptor, aside):
            if place.permissions is not None:
                os.fchmod(descriptor, place.permissions)  # the user's mask may have taken some away
            return aside, descriptor


def _folder_aside(folder: Path) -> tuple[Path, int]:
    while True:
        aside = _aside(folder)
        disk.make_folder(aside)
        descriptor = disk.open_existing(aside, os.O_RDONLY)
        if _locked(descriptor, aside):
            return aside, descriptor


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


@contextmanager
def _opened_folder(folder: Path) -> Iterator[int]:
    """The descriptor of a folder, opened before anything is changed in it, to flush its names afterwards."""
    descriptor = disk.open_existing(folder, os.O_RDONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _end_of_last_line(descriptor: int) -> int:
    """The size of a file without a last line that lacks its end."""
    end = os.fstat(descriptor).st_size
    while end > 0:
        begin = max(0, end - _TAIL)
        place = os.pread(descriptor, end - begin, begin).rfind(b"\n")
        if place >= 0:
            return begin + place + 1
        end = begin
    return 0


@contextmanager
def _explained(path: Path, state: str = _OLD_IS_THERE) -> Iterator[None]:
    try:
        yield
    except OutputError:
        raise
    except OSError as error:
        raise OutputError(path, error, state) from error
