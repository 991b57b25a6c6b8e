"""Reading Parquet and Arrow files that nobody vouches for.

The library takes offsets and lengths in a file for what they are, and reads outside of memory where they lie: nothing
of a table is touched before all of it has been validated.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from stea_fast.formats.triple_table import MissingExtraError

_FEATHER_1 = b"FEA1"


def library() -> Any:
    """pyarrow, with its readers."""
    try:
        import pyarrow.feather
        import pyarrow.parquet
    except ModuleNotFoundError:
        raise MissingExtraError("Parquet and Arrow", "tables") from None
    return pyarrow


def read_table(stream: IO[bytes], path: Path, fmt: str) -> Any:
    """A Parquet or Arrow file as a pyarrow.Table of its plain columns: text and numbers, not lists or records.

    Raises:
        ValueError: the file is damaged, or not of the format; the message names it.
    """
    arrow = library()
    content = stream.read()
    if content.startswith(_FEATHER_1):
        raise ValueError(f"{path} is of Feather version 1, which is outdated; write it anew by pandas or pyarrow")
    try:
        table = (_read_parquet if fmt == "parquet" else _read_ipc)(arrow, content)
        table.validate(full=True)
        return table.unify_dictionaries()
    except Exception as error:  # whatever a file makes the library raise: KeyError and MemoryError are among it
        raise ValueError(f"{path} is not a readable {fmt} file: {error}") from None


def _read_ipc(arrow: Any, content: bytes) -> Any:
    schema = arrow.ipc.open_file(arrow.BufferReader(content)).schema
    options = arrow.ipc.IpcReadOptions(included_fields=_plain_columns(arrow, schema), use_threads=False)
    return arrow.ipc.open_file(arrow.BufferReader(content), options=options).read_all()


def _read_parquet(arrow: Any, content: bytes) -> Any:
    with arrow.parquet.ParquetFile(arrow.BufferReader(content)) as file:
        schema = file.schema_arrow
        names = [schema.names[place] for place in _plain_columns(arrow, schema)]
        texts = [name for name in names if arrow.types.is_string(schema.field(name).type)]
    # A text that is stored once stays in memory once, however many rows have it.
    with arrow.parquet.ParquetFile(arrow.BufferReader(content), read_dictionary=texts) as file:
        return file.read(columns=names, use_threads=False)


def _plain_columns(arrow: Any, schema: Any) -> list[int]:
    return [place for place, field in enumerate(schema) if _is_plain(arrow.types, field.type)]


def _is_plain(types: Any, kind: Any) -> bool:
    if types.is_dictionary(kind):
        return _is_plain(types, kind.value_type)
    tests = (
        types.is_string, types.is_large_string, types.is_binary, types.is_large_binary, types.is_integer,
        types.is_floating, types.is_boolean, types.is_decimal, types.is_temporal,
    )  # fmt: skip
    return any(test(kind) for test in tests)


def values(column: Any, path: Path, convert: Callable[[Any], Any] = lambda value: value) -> list[Any]:
    """The values of a column of `read_table`, converted, and None where there is none.

    A text of a dictionary is converted once: it is one object, however many rows have it.
    """

    def plain(array: Any) -> list[Any]:
        texts = (value.decode() if isinstance(value, bytes) else value for value in array.to_pylist())
        return [None if value is None else convert(value) for value in texts]

    try:
        found: list[Any] = []
        words: list[Any] | None = None  # of the dictionary, which all chunks have in common
        for chunk in column.chunks:
            if hasattr(chunk, "dictionary"):
                words = plain(chunk.dictionary) if words is None else words
                found += [None if place is None else words[place] for place in chunk.indices.to_pylist()]
            else:
                found += plain(chunk)
        return found
    except (ValueError, ArithmeticError) as error:  # a date before the year 1, bytes that are no UTF-8
        raise ValueError(f"{path} holds a value that cannot be read: {error}") from None
