"""Files of links between two graphs, by the names of their entities: every format that is written can be read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import IO, NamedTuple

from stea_fast.formats import rdf, tabular
from stea_fast.formats.streams import reading, split_suffixes
from stea_fast.formats.terms import unwrap
from stea_fast.formats.triple_table import Problems

LINK_FORMATS = ("tsv", "csv", "jsonl", "parquet", "arrow", "nt", "sssom")
SAME_AS = "http://www.w3.org/2002/07/owl#sameAs"
NO_TERM_FOUND = "https://w3id.org/sssom/NoTermFound"
_SUFFIXES = {
    ".tsv": "tsv", ".txt": "tsv", ".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet",
    ".arrow": "arrow", ".feather": "arrow", ".nt": "nt",
}  # fmt: skip
_ENDS = (
    ("source", "subject_id", "subject", "head", "entity1", "left", "from"),
    ("target", "object_id", "object", "tail", "entity2", "right", "to"),
)
_PROBABILITY = ("probability", "confidence", "prob", "score")


class Link(NamedTuple):
    """A link as a file has it; `probability` is None where the file gives none."""

    line: int
    source: str
    target: str
    probability: float | None


class LinkRow(NamedTuple):
    """One source entity by its name.

    Attributes:
        source, target: original ids; the target is None where there is no counterpart.
        probability: that the link is right; 1 for a seed, None where there is no link.
        rank: of the target among the source's candidates, from 1; None where it is not among them.
        agreement: who chose whom: "both" each other, "forward" the source the target, "backward" the target the
            source, "none" (one-to-one links only); None where there is no link.
        status: "seed", "link" or "no_counterpart".
    """

    source: str
    target: str | None
    probability: float | None
    rank: int | None
    agreement: str | None
    status: str


def link_format_of(path: Path, given: str | None = None) -> str:
    """The format asked for, or by the suffixes of the file's name; `.sssom.tsv` is SSSOM."""
    if given is not None:
        if given not in LINK_FORMATS:
            raise ValueError(f"format must be one of {', '.join(LINK_FORMATS)}; got {given!r}")
        return given
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


def read_link_rows(path: Path, problems: Problems, *, format: str | None = None) -> list[Link]:
    """The links of a file; rows without a target (entities without counterpart) are no links."""
    kind = link_format_of(path, format)
    with reading(path) as stream:
        if kind == "nt":
            links = _same_as(stream, path, problems)
        elif kind == "jsonl":
            links = _json_lines(stream, path, problems)
        elif kind in ("parquet", "arrow"):
            links = _arrow_links(stream, path, kind)
        else:
            links = _text_links(stream, path, kind, problems)
        return [link for link in links if link.target]


def _same_as(stream: IO[bytes], path: Path, problems: Problems) -> Iterator[Link]:
    table = rdf.read(stream, path, "nt", problems, literals="drop")
    for number, (head, relation, tail) in enumerate(table.triples.tolist(), start=1):
        if table.relations[relation] == SAME_AS:
            yield Link(number, table.entities[head], table.entities[tail], None)


def _json_lines(stream: IO[bytes], path: Path, problems: Problems) -> Iterator[Link]:
    for number, line in enumerate(stream, start=1):
        if line.strip():
            try:
                record = json.loads(line)
                target, prob = record.get("target"), record.get("probability")
                yield Link(number, str(record["source"]), str(target or ""), None if prob is None else float(prob))
            except (ValueError, KeyError, AttributeError, TypeError):
                problems.add(f"{path}:{number}", 'expected an object with "source" and "target"')


def _arrow_links(stream: IO[bytes], path: Path, kind: str) -> Iterator[Link]:
    table = tabular.read_arrow(stream, path, kind)
    places = tabular.find_columns(table.column_names, _ENDS)
    if places is None and table.num_columns != 2:
        raise ValueError(f"{path}: expected columns source and target; found {', '.join(table.column_names)}")
    prob = tabular.find_columns(table.column_names, [_PROBABILITY])
    columns = [table.column(place).to_pylist() for place in [*(places or (0, 1)), *(prob or ())]]
    for number, row in enumerate(zip(*columns, strict=True), start=1):
        known = row[2] if len(row) > 2 else None
        yield Link(number, str(row[0]), str(row[1] or ""), None if known is None else float(known))


def _text_links(stream: IO[bytes], path: Path, kind: str, problems: Problems) -> Iterator[Link]:
    rows = tabular.text_rows(stream, path, "csv" if kind == "csv" else "tsv", problems)
    prefixes: dict[str, str] = {}
    first = next(rows, None)
    while kind == "sssom" and first is not None and first[1][0].startswith("#"):
        _note_prefix(first[1][0], prefixes)
        first = next(rows, None)
    if first is None:
        return
    places, prob = tabular.find_columns(first[1], _ENDS), tabular.find_columns(first[1], [_PROBABILITY])
    if places is None:
        rows, places, prob = chain([first], rows), [0, 1], None
    for line, row in rows:
        if len(row) != len(first[1]) or len(row) <= max(places) or not row[places[0]]:
            problems.add(f"{path}:{line}", f"expected a source and a target, got {row!r:.100}")
            continue
        source, target = (_expanded(row[place], prefixes) for place in places)
        yield Link(line, unwrap(source), "" if target == NO_TERM_FOUND else unwrap(target), _number(row, prob))


def _note_prefix(comment: str, prefixes: dict[str, str]) -> None:
    """Take `#  prefix: expansion` of a curie_map; other metadata is taken as well, and used by no CURIE."""
    prefix, colon, expansion = comment[1:].strip().partition(": ")
    if colon:
        prefixes[prefix] = expansion.strip().strip("\"'")


def _expanded(curie: str, prefixes: dict[str, str]) -> str:
    """A CURIE in full; without prefixes (any other table) names are what they are."""
    prefix, _, local = curie.partition(":")
    return prefixes[prefix] + local if prefix in prefixes else curie


def _number(row: Sequence[str], place: list[int] | None) -> float | None:
    try:
        return None if place is None else float(row[place[0]])
    except (ValueError, IndexError):
        return None
