"""Names of entities and relations, packed so that millions of them can be memory-mapped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import overload

import numpy as np

from stea_fast._util.arrays import freeze
from stea_fast._util.sparse import concatenated_runs, offsets_of_counts


class NameTable(Sequence[str]):
    """An immutable sequence of strings in two arrays: UTF-8 bytes and int64 offsets."""

    __slots__ = ("offsets", "text")

    def __init__(self, text: np.ndarray, offsets: np.ndarray) -> None:
        self.text = text
        self.offsets = offsets

    @classmethod
    def pack(cls, names: Iterable[str]) -> NameTable:
        """Pack any iterable of strings; a NameTable is returned as it is."""
        if isinstance(names, NameTable):
            return names
        return cls.pack_utf8([name.encode("utf-8", "surrogatepass") for name in names])

    @classmethod
    def pack_utf8(cls, encoded: list[bytes]) -> NameTable:
        """Pack strings that are in UTF-8 already."""
        offsets = offsets_of_counts(np.array([len(name) for name in encoded], dtype=np.int64))
        return cls(freeze(np.frombuffer(b"".join(encoded), dtype=np.uint8).copy()), freeze(offsets))

    def take(self, order: np.ndarray) -> NameTable:
        """The names at these places, in this order."""
        lengths = np.diff(self.offsets)[order]
        letters = concatenated_runs(self.offsets[:-1][order], lengths)
        return NameTable(freeze(self.text[letters]), freeze(offsets_of_counts(lengths)))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        position = range(len(self))[index]
        begin, end = self.offsets[position], self.offsets[position + 1]
        return self.text[begin:end].tobytes().decode("utf-8", "surrogatepass")

    def __iter__(self) -> Iterator[str]:
        return (self[i] for i in range(len(self)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, NameTable):
            return NotImplemented
        return np.array_equal(self.offsets, other.offsets) and np.array_equal(self.text, other.text)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"NameTable({len(self):,} names)"
