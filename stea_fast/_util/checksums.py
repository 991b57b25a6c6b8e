"""Checksums that tell a damaged file from a whole one. They are no protection against somebody who forges both."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

_CHUNK = 1 << 20


class Checksum:
    """The CRC-32 of all bytes that were added, in any pieces; its text is `crc32:` and eight digits."""

    def __init__(self) -> None:
        self._value = 0

    def add(self, data: Any) -> None:
        """Go on with these bytes."""
        self._value = zlib.crc32(data, self._value)

    def __str__(self) -> str:
        return f"crc32:{self._value:08x}"


def checksum_of_file(path: Path) -> str:
    """The checksum of a file's content, in bounded memory."""
    checksum = Checksum()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            checksum.add(chunk)
    return str(checksum)
