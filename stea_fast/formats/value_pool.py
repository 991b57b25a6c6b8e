"""The distinct values of a graph: texts with a datatype or a language, packed so that millions can be memory-mapped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, overload

import numpy as np

from stea_fast._util.arrays import freeze
from stea_fast._util.name_table import NameTable

LONGEST_VALUE = 1 << 18  # bytes of UTF-8; a name or a description is shorter, and what is longer would fill the memory
MOST_KINDS = int(np.iinfo(np.int16).max)
_BEFORE_KIND = b"\xff"  # is in no text: it does not occur in UTF-8
_KIND_SIZE = 3  # bytes at the end of a key: the one before, and the number of its datatype and language


class Value(NamedTuple):
    """A value of an attribute.

    Attributes:
        text: What it says, such as `Berlin` or `1990-10-03`.
        datatype: The IRI of its datatype; empty for plain text.
        language: Its language tag in lower case; empty where it has none.

    Example:
        >>> import stea_fast as sf
        >>> sf.Value("Köln", language="de").text
        'Köln'
    """

    text: str
    datatype: str = ""
    language: str = ""


class ValuePool(Sequence[str]):
    """The distinct values of a graph as an immutable sequence of their texts, which are decoded when asked for.

    Values that differ in their datatype or language only are several: `Gift` in English and in German.

    Attributes:
        texts: The text of every value.
        datatype: The place of its datatype in `datatype_names`, int16 [n].
        language: The place of its language in `language_names`, int16 [n].
        datatype_names: The IRIs of the datatypes; the first is empty, for plain text.
        language_names: The language tags; the first is empty, for values without one.
    """

    __slots__ = ("datatype", "datatype_names", "language", "language_names", "texts")

    def __init__(
        self,
        texts: NameTable,
        datatype: np.ndarray,
        language: np.ndarray,
        datatype_names: NameTable,
        language_names: NameTable,
    ) -> None:
        self.texts = texts
        self.datatype, self.language = freeze(datatype), freeze(language)
        self.datatype_names, self.language_names = datatype_names, language_names

    @property
    def data(self) -> np.ndarray:
        """The texts in UTF-8, one behind the other, uint8."""
        return self.texts.text

    @property
    def offsets(self) -> np.ndarray:
        """Where each text begins in `data`, int64 [n + 1]."""
        return self.texts.offsets

    def value(self, index: int) -> Value:
        """Look up a value with its datatype and language.

        Args:
            index: Its place in the pool.

        Returns:
            The value.
        """
        return Value(
            self.texts[index], self.datatype_names[self.datatype[index]], self.language_names[self.language[index]]
        )

    def __len__(self) -> int:
        return len(self.texts)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        return self.texts[index]

    def __iter__(self) -> Iterator[str]:
        return iter(self.texts)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ValuePool):
            return NotImplemented
        return (
            self.texts == other.texts
            and np.array_equal(self.datatype, other.datatype)
            and np.array_equal(self.language, other.language)
            and self.datatype_names == other.datatype_names
            and self.language_names == other.language_names
        )

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[type[ValuePool], tuple[object, ...]]:
        return ValuePool, (self.texts, self.datatype, self.language, self.datatype_names, self.language_names)

    def __repr__(self) -> str:
        return f"ValuePool({len(self):,} values)"


def is_usable(text: bytes) -> bool:
    """Whether a text says something, and not more than a value can hold."""
    return len(text) <= LONGEST_VALUE and not text.isspace() and text != b""


class PoolBuilder:
    """Gives ids to distinct values, in order of first occurrence."""

    def __init__(self) -> None:
        self._ids: dict[bytes, int] = {}
        self._kinds: dict[tuple[str, str], bytes] = {}

    def add(self, text: bytes, datatype: str = "", language: str = "") -> int:
        """The id of a value, whose text is in UTF-8.

        Raises:
            ValueError: there are too many datatypes and languages.
        """
        kind = self._kinds.get((datatype, language))
        if kind is None:
            if len(self._kinds) >= MOST_KINDS:
                raise ValueError(f"values have more than {MOST_KINDS:,} datatypes and languages; is the file damaged?")
            kind = self._kinds[datatype, language] = _BEFORE_KIND + len(self._kinds).to_bytes(2, "little")
        return self._ids.setdefault(text + kind, len(self._ids))

    def add_value(self, value: Value) -> int:
        """The id of a value; see `add`."""
        return self.add(value.text.encode("utf-8", "surrogatepass"), value.datatype, value.language)

    def build(self) -> ValuePool:
        """The pool of all values that were added."""
        datatypes, languages = ({"": 0}, {"": 0})
        kinds = np.array(
            [
                (datatypes.setdefault(datatype, len(datatypes)), languages.setdefault(language, len(languages)))
                for datatype, language in self._kinds
            ],
            dtype=np.int16,
        ).reshape(-1, 2)
        # All keys as one text, from which the kinds are taken away: a second object for each of them would be far more.
        keys = np.frombuffer(b"".join(self._ids), dtype=np.uint8)
        ends = np.cumsum(np.fromiter(map(len, self._ids), dtype=np.int64, count=len(self._ids)))
        is_text = np.ones(len(keys), dtype=bool)
        for place in range(1, _KIND_SIZE + 1):
            is_text[ends - place] = False
        kind = keys[ends - 2].astype(np.int64) | keys[ends - 1].astype(np.int64) << 8
        starts = np.concatenate([[0], ends - _KIND_SIZE * np.arange(1, len(ends) + 1)])
        return ValuePool(
            NameTable(freeze(keys[is_text]), freeze(starts)),
            kinds[kind, 0],
            kinds[kind, 1],
            NameTable.pack(datatypes),
            NameTable.pack(languages),
        )
