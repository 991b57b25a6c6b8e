"""Names and RDF terms, and a spelling for names that a format cannot hold.

An IRI is its own name, a blank node is `_:label`, a literal is written as in N-Triples. Any other name, "Berlin" from a
table say, becomes an IRI of its own that reading turns back into the name: `urn:stea-fast:nBerlin`. So every name
survives every format. Where one file speaks of two graphs, a blank node becomes an IRI that says of which one it is:
`urn:stea-fast:b1.label` and `urn:stea-fast:b2.label` are two nodes, and reading gives back the label that each has in
its own graph.
"""

from __future__ import annotations

import re
from typing import Any

from stea_fast.formats.triple_table import MissingExtraError

NAMESPACE = "urn:stea-fast:"
WRAPPER = NAMESPACE + "n"
_OWN_TOKEN = b"<" + NAMESPACE.encode()
_SPELLING = re.compile(re.escape(NAMESPACE) + r"(n|b[12]\.)(.*)", re.DOTALL)
_PLAIN = re.compile(rb"[^A-Za-z0-9.-]")
_ESCAPE = re.compile(rb"_([0-9A-F]{2})")

_NAME_START = "A-Z_a-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c-\u200d\u2070-\u218f"
_NAME = _NAME_START + "0-9.\\-\u00b7\u0300-\u036f\u203f-\u2040"
_XML_LABEL = re.compile(f"[{_NAME_START}][{_NAME}]*")
_XML_PREDICATE = re.compile(f".*[^{_NAME}][{_NAME_START}][{_NAME}]*", re.DOTALL)
_XML_TEXT = re.compile("[\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]*")
_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_RDF_WORDS = "RDF|Description|ID|about|parseType|resource|nodeID|datatype|li|bagID|aboutEach|aboutEachPrefix"
_RDF_SYNTAX = re.compile(re.escape(_RDF) + f"(?:{_RDF_WORDS})")


def wrap(name: str) -> str:
    """Any text as an IRI that ends in an XML name: what is not a letter, digit, dot or hyphen becomes _XX."""
    return WRAPPER + _escaped(name)


def of_graph(name: str, graph: int) -> str:
    """A name for a file about two graphs, 1 and 2: a blank node's label means something in its own graph only."""
    return f"{NAMESPACE}b{graph}.{_escaped(name[2:])}" if name.startswith("_:") else unmistakable(name)


def unwrap(name: str) -> str:
    """The name that `wrap` or `of_graph` spelt like this; any other name as it is."""
    spelt = _SPELLING.fullmatch(name)
    if spelt is None:
        return name
    try:
        text = _ESCAPE.sub(lambda match: bytes([int(match.group(1), 16)]), spelt[2].encode()).decode()
    except UnicodeError:
        return name
    if _escaped(text) != spelt[2]:
        return name
    return text if spelt[1] == "n" else f"_:{text}"


def unmistakable(name: str) -> str:
    """A name that looks like one of our spellings is wrapped once more, so that reading gives it back."""
    return name if unwrap(name) == name else wrap(name)


def _escaped(text: str) -> str:
    return _PLAIN.sub(lambda match: b"_%02X" % match.group()[0], text.encode()).decode()


def oxigraph() -> Any:
    """The RDF library; it neither opens the network nor expands external entities."""
    try:
        import pyoxigraph
    except ModuleNotFoundError:
        raise MissingExtraError("RDF", "rdf") from None
    return pyoxigraph


def name_of_token(token: bytes) -> bytes:
    """The name, in UTF-8, of an IRI, blank node or literal as N-Triples writes it."""
    if token.startswith(_OWN_TOKEN):
        return unwrap(token[1:-1].decode()).encode()
    return token[1:-1] if token.startswith(b"<") else token


def node_of_graph(name: str, graph: int) -> Any:
    """The IRI of a name in a file that speaks of two graphs, 1 and 2."""
    return oxigraph().NamedNode(of_graph(name, graph)) if name.startswith("_:") else node(name)


def node(name: str, *, xml: bool = False) -> Any:
    """The IRI or blank node of a name. `xml` asks for one that RDF/XML can hold."""
    ox = oxigraph()
    if name.startswith("_:") and (not xml or _XML_LABEL.fullmatch(name[2:])):
        try:
            return ox.BlankNode(name[2:])
        except ValueError:
            return ox.NamedNode(wrap(name))
    return _iri(name, xml)


def predicate(name: str, *, xml: bool = False) -> Any:
    """The IRI of a relation's name. RDF/XML writes it as an element, so it must end in an XML name."""
    if xml and (_RDF_SYNTAX.fullmatch(name) or not _XML_PREDICATE.fullmatch(name)):
        return oxigraph().NamedNode(wrap(name))
    return _iri(name, xml)


def value(name: str, *, xml: bool = False) -> Any:
    """The term of a name in the place of an object, where literals may stand."""
    literal = _literal(name) if name.startswith('"') else None
    if literal is None or (xml and not _XML_TEXT.fullmatch(literal.value)):
        return node(name, xml=xml)
    return literal


def _iri(name: str, xml: bool) -> Any:
    ox = oxigraph()
    if xml and not _XML_TEXT.fullmatch(name):
        return ox.NamedNode(wrap(name))
    try:
        return ox.NamedNode(unmistakable(name))
    except ValueError:
        return ox.NamedNode(wrap(name))


def _literal(name: str) -> Any:
    """The literal that a name spells exactly as it would be written, else None."""
    ox = oxigraph()
    try:
        objects = [quad.object for quad in ox.parse(f"<a:> <a:> {name} .", format=ox.RdfFormat.N_TRIPLES)]
    except SyntaxError:
        return None
    return objects[0] if len(objects) == 1 and isinstance(objects[0], ox.Literal) and str(objects[0]) == name else None
