"""SSSOM TSV, the community's standard for mappings: metadata in comments, CURIEs, a justification for every row."""

from __future__ import annotations

import datetime
import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import IO
from urllib.parse import quote

from stea_fast import __version__
from stea_fast.formats.result_rows import LinkRow
from stea_fast.formats.tabular import write_text
from stea_fast.formats.terms import NAMESPACE, WRAPPER, of_graph, wrap

NO_TERM_FOUND = "https://w3id.org/sssom/NoTermFound"
COLUMNS = ("subject_id", "predicate_id", "object_id", "mapping_justification", "confidence", "comment")
EXACT_NAMES = ("ext_subject_name", "ext_object_name")
# The standard fixes these prefixes, and no two prefixes of a file may stand for one namespace.
_BUILT_IN = {
    "owl": "http://www.w3.org/2002/07/owl#",
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "semapv": "https://w3id.org/semapv/vocab/",
    "skos": "http://www.w3.org/2004/02/skos/core#",
    "sssom": "https://w3id.org/sssom/",
    "stea": NAMESPACE,
}
_MOST_PREFIXES = 50
_IRI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s<>\"{}|\\^`\x00-\x1f\x7f-\x9f\ufffe\uffff]+")
_URI_LETTERS = "!$&'()*+,;=:@?/%"  # beside letters, digits and -._~, which `quote` leaves alone
_STRAY_PERCENT = re.compile("%(?![0-9A-Fa-f]{2})")
_NOT_IN_YAML = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")  # beside those that JSON escapes, too
_JUSTIFICATION = {"seed": "semapv:UnspecifiedMatching", "link": "semapv:StructuralMatching"}


def write(stream: IO[bytes], rows: Sequence[LinkRow], *, name: str, comment: str) -> None:
    """Seeds and links as `owl:sameAs`; an entity without counterpart maps to `sssom:NoTermFound`.

    The community's tools take letters of ASCII only. Where an IRI has others, its CURIE is of the URI that stands for
    it, and the IRI itself is in two more columns, which are there only if they are needed.
    """
    prefixes = _prefixes(name for row in rows for name in (row.source, row.target) if name is not None)
    by_space = {expansion: prefix for prefix, expansion in prefixes.items()}
    table = [_fields(row, by_space) for row in rows]
    inexact = any(any(fields[len(COLUMNS) :]) for fields in table)
    columns = (*COLUMNS, *EXACT_NAMES) if inexact else COLUMNS
    stream.write("".join(f"#{line}\n" for line in _metadata(name, comment, prefixes, columns)).encode())
    write_text(stream, "tsv", columns, (fields[: len(columns)] for fields in table))


def _metadata(name: str, comment: str, prefixes: dict[str, str], columns: Sequence[str]) -> Iterable[str]:
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
    if columns != COLUMNS:
        yield "extension_definitions:"
        for column in EXACT_NAMES:
            yield f"  - slot_name: {column}"
            yield f"    property: {_quoted(NAMESPACE + column)}"
    yield "curie_map:"
    yield from (f"  {prefix}: {_quoted(expansion)}" for prefix, expansion in prefixes.items())


def _quoted(value: str) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return _NOT_IN_YAML.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _fields(row: LinkRow, by_space: dict[str, str]) -> list[str]:
    source, exact_source = _curie(of_graph(row.source, 1), by_space)
    target, exact_target = "sssom:NoTermFound", ""
    if row.target is not None:
        target, exact_target = _curie(of_graph(row.target, 2), by_space)
    confidence = "" if row.probability is None else f"{row.probability:.6f}"
    details = "; ".join(
        f"{name} {value}" for name, value in (("rank", row.rank), ("agreement", row.agreement)) if value is not None
    )
    justification = _JUSTIFICATION.get(row.status, _JUSTIFICATION["link"])
    comment = f"{row.status}; {details}" if details else row.status
    return [source, "owl:sameAs", target, justification, confidence, comment, exact_source, exact_target]


def _prefixes(names: Iterable[str]) -> dict[str, str]:
    """A prefix for each of the most frequent namespaces, beside those that every file needs."""
    spaces = Counter(_namespace(name) for name in names if _is_iri(name))
    for space in _BUILT_IN.values():
        del spaces[space]
    frequent = spaces.most_common(_MOST_PREFIXES)
    return _BUILT_IN | {f"ns{number}": space for number, (space, _) in enumerate(frequent, start=1)}


def _is_iri(name: str) -> bool:
    return bool(_IRI.fullmatch(name))


def _namespace(iri: str) -> str:
    if iri.startswith(NAMESPACE):
        return NAMESPACE
    end = max(iri.rfind("/"), iri.rfind("#"), iri.find(":"))
    return iri[: end + 1]


def _curie(name: str, by_space: dict[str, str]) -> tuple[str, str]:
    """A CURIE, and the name itself if that is not what it stands for.

    A name that is no IRI, or of a rare namespace, becomes an IRI of the tool's own.
    """
    space = _namespace(name) if _is_iri(name) else ""
    if space not in by_space or name == NO_TERM_FOUND:
        name, space = wrap(name), NAMESPACE
    local = name[len(space) :]
    letters = _STRAY_PERCENT.sub("%25", quote(local, safe=_URI_LETTERS))
    return f"{by_space[space]}:{letters}", "" if letters == local else name


def note_prefix(comment: str, prefixes: dict[str, str]) -> None:
    """Take `#  prefix: expansion` of a curie_map; other metadata is taken as well, and used by no CURIE."""
    prefix, colon, expansion = comment[1:].strip().partition(": ")
    if colon:
        prefixes[prefix] = _unquoted(expansion.strip())


def _unquoted(value: str) -> str:
    try:
        return str(json.loads(value)) if value.startswith('"') else value.strip("'")
    except ValueError:
        return value.strip('"')


def expanded(curie: str, prefixes: dict[str, str]) -> str:
    """A CURIE in full; without prefixes (any other table) names are what they are."""
    prefix, _, local = curie.partition(":")
    return prefixes[prefix] + local if prefix in prefixes else curie
