"""Arrays and text in one file of the safetensors format: written here, array by array, and read by the library.

The library writes files itself, or needs a second copy of everything in memory; here the bytes go the way of all other
output. The format: the length of a JSON header in eight bytes, the header, and the arrays one behind the other.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

from stea_fast._util.checksums import Checksum

CHECKSUM = "checksum"
_DTYPES = {
    "float64": "F64", "float32": "F32", "float16": "F16", "int64": "I64", "int32": "I32", "int16": "I16", "int8": "I8",
    "uint64": "U64", "uint32": "U32", "uint16": "U16", "uint8": "U8", "bool": "BOOL",
}  # fmt: skip
_ALIGNMENT = 8


class DamagedFileError(ValueError):
    """The file is not what was written."""


def write(stream: IO[bytes], arrays: Mapping[str, np.ndarray], metadata: Mapping[str, str]) -> None:
    """Write arrays and metadata with a checksum over both.

    Raises:
        TypeError: an array is of a type that the format does not have.
    """
    arrays = {name: _little_endian(array, name) for name, array in arrays.items()}
    header: dict[str, Any] = {"__metadata__": {**metadata, CHECKSUM: checksum(arrays, metadata)}}
    end = 0
    for name, array in arrays.items():
        begin, end = end, end + array.nbytes
        header[name] = {
            "dtype": _DTYPES[array.dtype.name], "shape": list(array.shape), "data_offsets": [begin, end],
        }  # fmt: skip
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    stream.write(len(text).to_bytes(8, "little") + text)
    for array in arrays.values():
        stream.write(_bytes_of(array))


def read(path: Path) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """The arrays and the metadata of a file.

    Raises:
        OSError: it cannot be opened.
        DamagedFileError: it is not of the format.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="np") as file:
            names = file.keys()
            return {name: file.get_tensor(name) for name in names}, file.metadata() or {}
    except (SafetensorError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DamagedFileError(str(error)) from None


def checksum(arrays: Mapping[str, np.ndarray], metadata: Mapping[str, str]) -> str:
    """Of everything that a file holds, in no particular order, beside the checksum itself."""
    total = Checksum()
    total.add(json.dumps(sorted((name, text) for name, text in metadata.items() if name != CHECKSUM)).encode())
    for name in sorted(arrays):
        array = arrays[name]
        total.add(f"{name} {array.dtype.name} {array.shape}".encode())
        total.add(_bytes_of(array))
    return str(total)


def _little_endian(array: np.ndarray, name: str) -> np.ndarray:
    if array.dtype.name not in _DTYPES:
        raise TypeError(f"{name} has dtype {array.dtype}, which a checkpoint cannot hold")
    return np.asarray(array, dtype=array.dtype.newbyteorder("<"), order="C")


def _bytes_of(array: np.ndarray) -> memoryview:
    """The memory of an array, without a copy."""
    return array.reshape(-1).view(np.uint8).data
