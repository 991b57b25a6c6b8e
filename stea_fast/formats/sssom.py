"""SSSOM TSV, the community's standard for mappings: metadata in comments, CURIEs, a justification for every row."""

from __future__ import annotations

import datetime
import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import IO

from stea_fast import __version__
from stea_fast.formats.result_rows import LinkRow
from stea_fast.formats.tabular import write_text
from stea_fast.formats.terms import WRAPPER, wrap

NO_TERM_FOUND = "https://w3id.org/sssom/NoTermFound"
COLUMNS = ("subject_id", "predicate_id", "object_id", "mapping_justification", "confidence", "comment")
_BUILT_IN = {
    "owl": "http://www.w3.org/2002/07/owl#",
    "semapv": "https://w3id.org/semapv/vocab/",
    "sssom": "https://w3id.org/sssom/",
    "stea": WRAPPER[:-1],
}
_MOST_PREFIXES = 50
_IRI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s<>\"{}|\\^`]+")
_JUSTIFICATION = {"seed": "semapv:UnspecifiedMatching", "link": "semapv:StructuralMatching"}


def write(stream: IO[bytes], rows: Sequence[LinkRow], *, name: str, comment: str) -> None:
    """Seeds and links as `owl:sameAs`; an entity without counterpart maps to `sssom:NoTermFound`."""
    prefixes = _prefixes(name for row in rows for name in (row.source, row.target) if name is not None)
    stream.write("".join(f"#{line}\n" for line in _metadata(name, comment, prefixes)).encode())
    by_space = {expansion: prefix for prefix, expansion in prefixes.items()}
    write_text(stream, "tsv", COLUMNS, (_fields(row, by_space) for row in rows))


def _metadata(name: str, comment: str, prefixes: dict[str, str]) -> Iterable[str]:
    """YAML. Strings are quoted as in JSON, which is YAML too: whatever they hold stays a string."""
    facts = {
        "mapping_set_id": f"urn:stea-fast:mappings:{wrap(name)[len(WRAPPER) :]}",
        "license": "https://w3id.org/sssom/license/unspecified",
        "mapping_tool": "stea-fast",
        "mapping_tool_version": __version__,
        "comment": comment,
    }
    yield from (f"{key}: {_quoted(value)}" for key, value in facts.items())
    yield f"mapping_date: {datetime.datetime.now(datetime.timezone.utc).date().isoformat()}"
    yield "curie_map:"
    yield from (f"  {prefix}: {_quoted(expansion)}" for prefix, expansion in prefixes.items())


def _quoted(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def _fields(row: LinkRow, by_space: dict[str, str]) -> list[str]:
    target = "sssom:NoTermFound" if row.target is None else _curie(row.target, by_space)
    confidence = "" if row.probability is None else f"{row.probability:.6f}"
    details = "; ".join(
        f"{name} {value}" for name, value in (("rank", row.rank), ("agreement", row.agreement)) if value is not None
    )
    justification = _JUSTIFICATION.get(row.status, _JUSTIFICATION["link"])
    comment = f"{row.status}; {details}" if details else row.status
    return [_curie(row.source, by_space), "owl:sameAs", target, justification, confidence, comment]


def _prefixes(names: Iterable[str]) -> dict[str, str]:
    """A prefix for each of the most frequent namespaces, beside those that every file needs."""
    spaces = Counter(_namespace(name) for name in names if _is_iri(name))
    prefixes = dict(_BUILT_IN)
    for number, (space, _) in enumerate(spaces.most_common(_MOST_PREFIXES), start=1):
        prefixes[f"ns{number}"] = space
    return prefixes


def _is_iri(name: str) -> bool:
    return bool(_IRI.fullmatch(name)) and not name.startswith(("_:", WRAPPER))


def _namespace(iri: str) -> str:
    end = max(iri.rfind("/"), iri.rfind("#"), iri.find(":"))
    return iri[: end + 1]


def _curie(name: str, by_space: dict[str, str]) -> str:
    """A CURIE; a name that is no IRI, or of a rare namespace, becomes one of the tool's own."""
    space = _namespace(name) if _is_iri(name) else ""
    if space in by_space:
        return f"{by_space[space]}:{name[len(space) :]}"
    return f"stea:{wrap(name)[len(WRAPPER) - 1 :]}"


def note_prefix(comment: str, prefixes: dict[str, str]) -> None:
    """Take `#  prefix: expansion` of a curie_map; other metadata is taken as well, and used by no CURIE."""
    prefix, colon, expansion = comment[1:].strip().partition(": ")
    if colon:
        prefixes[prefix] = expansion.strip().strip("\"'")


def expanded(curie: str, prefixes: dict[str, str]) -> str:
    """A CURIE in full; without prefixes (any other table) names are what they are."""
    prefix, _, local = curie.partition(":")
    return prefixes[prefix] + local if prefix in prefixes else curie
