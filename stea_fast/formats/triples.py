"""Files of one graph: which formats there are, reading and writing."""

from __future__ import annotations

import os
from pathlib import Path

from stea_fast._util import validate
from stea_fast._util.atomic import replacing
from stea_fast.formats import rdf, tabular
from stea_fast.formats.literal_values import names_as_values, values_as_names
from stea_fast.formats.streams import compressing, reading, split_suffixes
from stea_fast.formats.triple_table import MissingExtraError, Problems, TripleTable
from stea_fast.formats.value_pool import LONGEST_VALUE

__all__ = [
    "FORMATS",
    "LITERALS",
    "MissingExtraError",
    "Problems",
    "TripleTable",
    "format_of",
    "read_triples",
    "write_triples",
]

RDF_FORMATS = ("nt", "ttl", "rdf")
TABLE_FORMATS = ("tsv", "csv", "parquet", "arrow")
FORMATS = RDF_FORMATS + TABLE_FORMATS
LITERALS = ("values", "drop", "keep")
_SUFFIXES = {
    ".nt": "nt", ".ntriples": "nt", ".ttl": "ttl", ".turtle": "ttl", ".rdf": "rdf", ".xml": "rdf", ".owl": "rdf",
    ".tsv": "tsv", ".txt": "tsv", ".csv": "csv", ".parquet": "parquet", ".pq": "parquet", ".arrow": "arrow",
    ".feather": "arrow",
}  # fmt: skip


def format_of(path: Path, format: str | None = None) -> str:
    """The format asked for, or the one that the suffix of the file's name stands for."""
    if format is not None:
        return validate.choice(format, "format", FORMATS)
    suffix, _ = split_suffixes(path)
    if suffix not in _SUFFIXES:
        raise ValueError(
            f"{path}: the suffix {suffix!r} names no known format; rename the file or give one of {', '.join(FORMATS)}"
        )
    return _SUFFIXES[suffix]


def read_triples(
    path: str | os.PathLike[str], *, format: str | None = None, literals: str = "values", strict: bool = False
) -> TripleTable:
    """The triples of one file, and its attribute statements.

    Args:
        path: N-Triples, Turtle, RDF/XML, TSV, CSV, Parquet or Arrow, also compressed by gzip or zstd.
        format: one of `FORMATS`; default: by the suffix of the file's name.
        literals: "values" makes attribute statements of triples whose object is a literal, in tables of those whose
            tail is spelt like one; "keep" makes entities of literals; "drop" leaves out those of RDF.
        strict: whether the first malformed line is an error; otherwise it is left out and noted in `problems`.

    Raises:
        ValueError: the file is not of its format or holds no triples; the message names file and line.
        MissingExtraError: a package for this format is not installed.
    """
    path = Path(path)
    kind = format_of(path, format)
    validate.choice(literals, "literals", LITERALS)
    problems = Problems(strict)
    with reading(path) as stream:
        if kind in RDF_FORMATS:
            table = rdf.read(stream, path, kind, problems, literals=literals)
        else:
            table = tabular.read(stream, path, kind, problems)
    if literals == "values":
        try:
            table = names_as_values(table, certain=kind in RDF_FORMATS)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
    if not len(table.triples) and table.attributes is None:
        raise ValueError(_why_empty(path, kind, problems))
    return table


def _why_empty(path: Path, kind: str, problems: Problems) -> str:
    if problems.count:
        return f"{path} holds no triple that can be read as {kind}; the first problem is {problems.first[0]}"
    if problems.dropped_literals:
        return (
            f"{path} holds only triples whose object is a literal; read them with literals='values' (--literals values)"
        )
    if problems.unusable_values:
        return f"{path} holds only values that are blank or have more than {LONGEST_VALUE:,} bytes"
    return f"{path} holds no triples"


def write_triples(
    table: TripleTable,
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    spreadsheet_safe: bool = False,
) -> None:
    """Write triples and values to a file, whole or not at all; `.gz` and `.zst` compress.

    With `spreadsheet_safe` no cell of TSV or CSV is a formula to a spreadsheet.
    """
    path = Path(path)
    kind = format_of(path, format)
    table = values_as_names(table)
    with replacing(path) as raw, compressing(raw, split_suffixes(path)[1]) as stream:
        if kind in RDF_FORMATS:
            rdf.write(table, stream, kind)
        else:
            tabular.write(table, stream, kind, spreadsheet_safe=spreadsheet_safe)
