"""Files and folders that appear whole or not at all: written aside, flushed to the disk, renamed."""

from __future__ import annotations

import errno
import io
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from stea_fast._util import asides, disk, locks

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
    with explained(path):
        if place.is_stream:
            if not os.access(path, os.W_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            return
        asides.remove_leftovers(place.file)
        _try_to_write_beside(place)


def check_folder(folder: Path) -> None:
    """Fail now: can files be written into `folder`, which may have to be made first?"""
    with explained(folder):
        there = next(path for path in (folder, *folder.absolute().parents) if os.path.lexists(path))
        if not there.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, f"{there} is not a folder")
        _try_to_write_beside(_Place(folder, there / "new", None, is_stream=False))


@contextmanager
def appearing(folder: Path) -> Iterator[Path]:
    """A folder to fill; it becomes `folder`, which must not be there yet, when the block is over.

    Files in it are on the disk before that if `new_file` wrote them.
    """
    with explained(folder):
        make_folders(folder.parent)
    asides.remove_leftovers(folder)
    with explained(folder), _opened_folder(folder.parent) as parent:
        aside, descriptor = asides.new_folder(folder)
        try:
            yield aside
            disk.sync_folder(descriptor)
            disk.rename(aside, folder)
        except BaseException:
            asides.remove_tree(aside)
            raise
        finally:
            os.close(descriptor)
        with explained(folder, _NEW_IS_THERE):
            disk.sync_folder(parent)


@contextmanager
def new_file(path: Path) -> Iterator[IO[bytes]]:
    """A stream into a new file that is on the disk when the block is over: a part of what becomes visible later."""
    with explained(path):
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
    with explained(path):
        make_folders(path.parent)
        stream = io.BufferedWriter(disk.DescriptorStream(disk.open_path(path, os.O_RDWR | os.O_CREAT)))
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


def _place(path: Path) -> _Place:
    """Follow links, and refuse what must not be replaced."""
    with explained(path):
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
        os.close(disk.open_path(path, os.O_WRONLY))  # who may not write into a file shall not replace it either
        if not os.path.samefile(path, file):
            raise OSError("it leads to a file without a name")
        return _Place(path, file, stat.S_IMODE(old.st_mode) & 0o777, is_stream=False)


@contextmanager
def _passing_on(place: _Place) -> Iterator[IO[bytes]]:
    with explained(place.path, _PASSED_ON):
        stream = io.BufferedWriter(disk.DescriptorStream(disk.open_path(place.file, os.O_WRONLY)))
        try:
            yield stream
            stream.flush()
        finally:
            stream.raw.close()


@contextmanager
def _taking_the_place(place: _Place) -> Iterator[IO[bytes]]:
    asides.remove_leftovers(place.file)
    with explained(place.path), _opened_folder(place.file.parent) as folder:
        aside, descriptor = asides.new_file(place.file, place.permissions)
        stream = io.BufferedWriter(disk.DescriptorStream(descriptor))
        try:
            yield stream
            stream.flush()
            disk.sync(descriptor)
            disk.rename(aside, place.file)  # before it is closed, which unlocks it
        except BaseException:
            asides.remove_tree(aside)
            raise
        finally:
            stream.raw.close()
        with explained(place.path, _NEW_IS_THERE):
            disk.sync_folder(folder)


def _try_to_write_beside(place: _Place) -> None:
    with _opened_folder(place.file.parent):
        aside, descriptor = asides.new_file(place.file, place.permissions)
        os.close(descriptor)
        disk.remove(aside)


@contextmanager
def _opened_folder(folder: Path) -> Iterator[int]:
    """The descriptor of a folder, opened before anything is changed in it, to flush its names afterwards."""
    descriptor = disk.open_path(folder, os.O_RDONLY)
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
def explained(path: Path, state: str = _OLD_IS_THERE) -> Iterator[None]:
    """Turn errors of the system during a block into an `OutputError` that names the path and what is there now."""
    try:
        yield
    except OutputError:
        raise
    except OSError as error:
        raise OutputError(path, error, state) from error
