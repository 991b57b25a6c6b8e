"""Large arrays in memory or, where memory is short, in files that the system reads and writes as they are used.

A file loses its name as soon as it is mapped: it goes when nobody uses the matrix any more, also after an error or a
kill. Its room on the disk is taken beforehand, since a mapped file for which there is none ends the process.
"""

from __future__ import annotations

import errno
import mmap
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np

from stea_fast._util import disk

Empty = Callable[[tuple[int, int]], np.ndarray]  # empty(shape): a float32 matrix to be filled


def in_memory(shape: tuple[int, int]) -> np.ndarray:
    """A matrix in memory."""
    return np.empty(shape, dtype=np.float32)


def in_a_file(shape: tuple[int, int]) -> np.ndarray:
    """A matrix in a file without a name, in the system's folder for temporary files (`TMPDIR`).

    Raises:
        OSError: there is no room, or no such folder; the message says where, and what to do.
    """
    size = 4 * shape[0] * shape[1]
    if not size:
        return in_memory(shape)
    return np.frombuffer(_nameless(size, "embeddings"), dtype=np.float32).reshape(shape)


def moved_to_a_file(array: np.ndarray, what: str) -> np.ndarray:
    """A copy of an array in such a file; the array itself if it is in one already, or empty.

    Args:
        array: an array of any type and shape.
        what: what it holds, in the plural, for messages.

    Raises:
        OSError: as of `in_a_file`.
    """
    if not array.nbytes or _is_in_a_file(array):
        return array
    copy = np.frombuffer(_nameless(array.nbytes, what), dtype=array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def _is_in_a_file(array: np.ndarray) -> bool:
    base: object = array
    while isinstance(base, np.ndarray):
        base = base.base
    return isinstance(base, memoryview) and isinstance(base.obj, mmap.mmap)


def _nameless(size: int, what: str) -> mmap.mmap:
    """The bytes of a file that nobody else sees, and that goes with them."""
    folder = disk.temporary_folder()
    try:
        descriptor, path = disk.create_temporary(folder)
        disk.remove(path)
        try:
            disk.take_room(descriptor, size)
            return mmap.mmap(descriptor, size)  # has a descriptor of its own
        finally:
            os.close(descriptor)
    except OSError as error:
        raise _explained(error, folder, size, what) from error


def rows_of(matrix: np.ndarray, rows: np.ndarray, empty: Empty, at_once: int = 1 << 12) -> np.ndarray:
    """Some rows of a matrix, in one that `empty` makes."""
    out = empty((len(rows), matrix.shape[1]))
    for begin in range(0, len(rows), at_once):
        out[begin : begin + at_once] = matrix[rows[begin : begin + at_once]]
    return out


def _explained(error: OSError, folder: Path, size: int, what: str) -> OSError:
    if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return OSError(error.errno, f"cannot write {what} to a file in {folder}: {error.strerror or error}")
    free = disk.free_bytes(folder)
    return OSError(
        error.errno,
        f"{what} of {size / 1e9:.2g} GB are to be in a file, since memory is short, but {folder} has only "
        f"{free / 1e9:.2g} GB left: make room there, let TMPDIR name a folder of a larger disk, or allow more memory. "
        "A checkpoint stays whole: the same call continues from it",
    )
