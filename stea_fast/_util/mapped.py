"""Large matrices in memory or, where memory is short, in files that the system reads and writes as they are used.

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
    folder = disk.temporary_folder()
    try:
        descriptor, path = disk.create_temporary(folder)
        disk.remove(path)
        try:
            disk.take_room(descriptor, size)
            mapped = mmap.mmap(descriptor, size)  # has a descriptor of its own
        finally:
            os.close(descriptor)
    except OSError as error:
        raise _explained(error, folder, size) from error
    return np.frombuffer(mapped, dtype=np.float32).reshape(shape)


def rows_of(matrix: np.ndarray, rows: np.ndarray, empty: Empty, at_once: int = 1 << 12) -> np.ndarray:
    """Some rows of a matrix, in one that `empty` makes."""
    out = empty((len(rows), matrix.shape[1]))
    for begin in range(0, len(rows), at_once):
        out[begin : begin + at_once] = matrix[rows[begin : begin + at_once]]
    return out


def _explained(error: OSError, folder: Path, size: int) -> OSError:
    if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return OSError(error.errno, f"cannot write embeddings to a file in {folder}: {error.strerror or error}")
    free = disk.free_bytes(folder)
    return OSError(
        error.errno,
        f"embeddings of {size / 1e9:.2g} GB are to be in a file, since memory is short, but {folder} has only "
        f"{free / 1e9:.2g} GB left: make room there, let TMPDIR name a folder of a larger disk, or allow more memory. "
        "A checkpoint stays whole: the same call continues from it",
    )
