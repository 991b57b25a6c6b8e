"""Objects as files between processes of one machine: arrays are mapped, so that however many read them, none copies.

A message is two numbers (the size of the head, and how many buffers follow), the sizes of the buffers, the head (the
object, pickled without its arrays), and the arrays themselves, each at a multiple of 64 bytes.
"""

from __future__ import annotations

import mmap
import pickle
from pathlib import Path
from typing import Any

import numpy as np

_ALIGNMENT = 64


def write(value: Any, path: Path) -> None:
    """Write an object to a new file."""
    buffers: list[pickle.PickleBuffer] = []
    head = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
    views = [buffer.raw() for buffer in buffers]
    sizes = np.array([len(head), len(views), *(view.nbytes for view in views)], dtype=np.int64)
    with open(path, "xb") as stream:
        parts: list[bytes | memoryview] = [sizes.tobytes(), head, *views]
        for part in parts:
            stream.write(b"\0" * (-stream.tell() % _ALIGNMENT))
            stream.write(part)


def read(path: Path) -> Any:
    """The object of a file; its arrays are the file's pages, which outlast its name and cannot be written to."""
    with open(path, "rb") as stream:
        data = memoryview(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ))
    head_size, count = np.frombuffer(data[:16], dtype=np.int64).tolist()
    sizes = np.frombuffer(data[16 : 16 + 8 * count], dtype=np.int64).tolist()
    end = 16 + 8 * count
    parts = []
    for size in (head_size, *sizes):
        begin = end + -end % _ALIGNMENT
        end = begin + size
        parts.append(data[begin:end])
    return pickle.loads(parts[0], buffers=parts[1:])
