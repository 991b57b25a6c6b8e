"""What files of results hold, row by row, and which formats they have; the ids are those of the user's own files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

from stea_fast.formats import tabular, terms
from stea_fast.formats.streams import split_suffixes

LINK_FORMATS = ("tsv", "csv", "jsonl", "parquet", "arrow", "nt", "sssom")
_SUFFIXES = {
    ".tsv": "tsv", ".txt": "tsv", ".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet",
    ".arrow": "arrow", ".feather": "arrow", ".nt": "nt",
}  # fmt: skip
Value = str | float | bool | None


class LinkRow(NamedTuple):
    """What was decided for one source entity, under the ids of your files.

    Attributes:
        source: The original id of the source entity.
        target: The original id of its counterpart; None where there is none, and a guess where the status is
            "uncertain".
        probability: The probability that the target is right; 1 for a seed, None where there is no target.
        rank: The place of the target among the source's candidates, from 1; None where it is not among them.
        agreement: Who chose whom: "both" each other, "forward" the source the target, "backward" the target the source,
            "none" neither (one-to-one links only); None where there is no link.
        status: "seed", "link", "uncertain" or "no_counterpart".
        calibration: What the probability rests on: "120 held-out seeds", for example, "12 held-out seeds and a prior"
            or "prior only"; "given" for a seed, None where there is no target or nothing is known of it.
    """

    source: str
    target: str | None
    probability: float | None
    rank: int | None
    agreement: str | None
    status: str
    calibration: str | None = None


class RelationRow(NamedTuple):
    """Two relations that are seen together.

    Attributes:
        source, target: names of the relations.
        inverse: whether the source's relation is compared with the inverse of the target's.
        source_in_target: P(r ⊆ r'): of the statements of r, the share that r' makes too.
        target_in_source: P(r' ⊆ r).
    """

    source: str
    target: str
    inverse: bool
    source_in_target: float
    target_in_source: float


def link_format_of(path: Path, format: str | None = None) -> str:
    """The format asked for, or by the suffixes of the file's name; `.sssom.tsv` is SSSOM."""
    if format is not None:
        if format not in LINK_FORMATS:
            raise ValueError(f"format must be one of {', '.join(LINK_FORMATS)}; got {format!r}")
        return format
    suffix, compression = split_suffixes(path)
    name = path.name.lower().removesuffix(compression)
    if name.endswith(".sssom.tsv") or suffix == ".sssom":
        return "sssom"
    if suffix not in _SUFFIXES:
        raise ValueError(
            f"{path}: the suffix {suffix!r} names no known format of links; rename the file or give one of "
            f"{', '.join(LINK_FORMATS)}"
        )
    return _SUFFIXES[suffix]


def write_statements(stream: IO[bytes], statements: Iterable[tuple[Any, str, Any]], comment: str = "") -> None:
    """N-Triples of subjects and objects as `terms.node_of_graph` gives them, behind a line with the comment."""
    if comment:
        stream.write(f"# {' '.join(comment.split())}\n".encode())
    ox = terms.oxigraph()
    triples = (ox.Triple(head, ox.NamedNode(predicate), tail) for head, predicate, tail in statements)
    ox.serialize(triples, output=stream, format=ox.RdfFormat.N_TRIPLES)


def write_table(
    stream: IO[bytes],
    format: str,
    header: Sequence[str],
    rows: Sequence[Sequence[Value]],
    comment: str = "",
    *,
    spreadsheet_safe: bool = False,
) -> None:
    """Rows as TSV, CSV, JSON lines, Parquet or Arrow; the comment goes into the metadata of the last two.

    With `spreadsheet_safe` no cell of TSV or CSV is a formula to a spreadsheet.
    """
    if format == "jsonl":
        for row in rows:
            line = json.dumps(dict(zip(header, row, strict=True)), ensure_ascii=False)
            stream.write(line.encode() + b"\n")
    elif format in ("tsv", "csv"):
        texts = ([_cell(value, spreadsheet_safe) for value in row] for row in rows)
        tabular.write_text(stream, format, header, texts)
    else:
        columns = list(zip(*rows, strict=True)) or [()] * len(header)
        metadata = {"comment": comment} if comment else None
        tabular.write_arrow(stream, format, dict(zip(header, columns, strict=True)), metadata)


def _cell(value: Value, spreadsheet_safe: bool) -> str:
    if isinstance(value, float):
        return f"{value:.6f}"
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else tabular.cell(str(value), spreadsheet_safe=spreadsheet_safe)
