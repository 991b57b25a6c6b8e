"""Reading .npy files that nobody vouches for: plain numbers, as many as the header says, and never a pickle."""

from __future__ import annotations

import os
import warnings
from math import prod
from typing import IO

import numpy as np
from numpy.lib import format as npy


def read_npy(path: str | os.PathLike[str], *, mmap: bool = False) -> np.ndarray:
    """The array of a file, in memory of its own, or with `mmap` on the disk until it is touched.

    The file is mapped in either case: a header that promises more than the file holds then costs no memory.

    Raises:
        OSError: the file cannot be opened.
        ValueError: the file does not hold the numbers that its header promises; the message names it.
    """
    with open(path, "rb") as stream:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of Python 2, which wrote such headers
                shape, fortran, dtype = _read_header(stream)
            offset = stream.tell()
            present = stream.seek(0, os.SEEK_END) - offset
            if prod(shape) * dtype.itemsize > present:
                raise ValueError(f"its header promises {dtype} {shape}, and {present:,} bytes follow")
            empty = np.zeros(shape, dtype=dtype) if 0 in shape else None  # nothing cannot be mapped
        except Exception as error:  # whatever a header makes NumPy and its parser raise, the file is to blame
            raise ValueError(f"{path} is not a .npy file of numbers: {error}") from None
    if empty is not None:
        return empty
    mapped = np.memmap(path, dtype=dtype, shape=shape, order="F" if fortran else "C", mode="r", offset=offset)
    return mapped if mmap else np.array(mapped)


def _read_header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Shape, whether columns are contiguous, and dtype."""
    version = npy.read_magic(stream)
    if version != (1, 0):  # the others are for headers of more than 64 KiB, and for records
        raise ValueError(f"its format has version {version}")
    shape, fortran, dtype = npy.read_array_header_1_0(stream)
    if dtype.kind not in "iufb":
        raise ValueError(f"it holds {dtype}")
    if any(length < 0 for length in shape):
        raise ValueError(f"its shape is {shape}")
    return shape, fortran, dtype
