"""Finding the names of entities: in values such as `rdfs:label`, or else in the local parts of their IRIs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stea_fast._util.name_table import NameTable
from stea_fast._util.sparse import offsets, reduce_groups, run_starts
from stea_fast.data.attributes import Attributes
from stea_fast.data.graph import KG
from stea_fast.data.labels import Labels
from stea_fast.data.local_names import local_names
from stea_fast.data.pair import Pair

NAME_PROPERTIES = (
    "rdfs:label", "skos:prefLabel", "foaf:name", "schema:name", "dcterms:title", "dc:title", "label", "name", "title",
)  # fmt: skip
LOCAL_PART = "local part of the id"
_NAMESPACES = {
    "rdfs": ("http://www.w3.org/2000/01/rdf-schema#",),
    "skos": ("http://www.w3.org/2004/02/skos/core#",),
    "foaf": ("http://xmlns.com/foaf/0.1/",),
    "schema": ("http://schema.org/", "https://schema.org/"),
    "dcterms": ("http://purl.org/dc/terms/",),
    "dc": ("http://purl.org/dc/elements/1.1/",),
}


def labels_of(
    kg: KG,
    *,
    properties: Sequence[str] = NAME_PROPERTIES,
    languages: Sequence[str] | None = None,
    local_parts: bool = True,
) -> Labels:
    """Find out what the entities of a graph are called.

    Values of the usual properties are names. An entity without one is called by the local part of its IRI, decoded and
    with blanks for underscores, if the IRIs of its namespace carry words; keys such as Q42, numbers and hashes do not.

    Args:
        kg: The graph.
        properties: The attributes that hold names, the best first: IRIs, names with one of the prefixes rdfs, skos,
            foaf, schema, dcterms and dc, or titles of columns. Upper and lower case count as the same in titles.
        languages: Language tags, the best first; "en" stands for "en-gb" as well. An entity has the names of the first
            language that it has names in, then those without a language, then all others. The default, None, takes
            all.
        local_parts: Whether names are looked for in the ids of entities.

    Returns:
        The names, and how many entities are named by which source.

    Raises:
        TypeError: The properties or languages are a single text.

    Example:
        >>> import stea_fast as sf
        >>> names = [sf.Value("Cologne", language="en"), sf.Value("Köln", language="de")]
        >>> statements = [(0, "rdfs:label", name) for name in names]
        >>> kg = sf.KG([[0, 0, 1]], attributes=sf.Attributes.from_statements(statements, 2))
        >>> sf.labels_of(kg, languages=["de"]).of(0)
        ['Köln']
    """
    for argument, given in (("properties", properties), ("languages", languages)):
        if isinstance(given, str):
            raise TypeError(f"{argument} must be a sequence of texts, got {given!r}; write [{given!r}]")
    named = _labels_in_values(kg, properties, languages)
    if not local_parts or kg.entity_names is None:
        return named
    return _with_local_parts(named, kg)


def labels_of_pair(
    pair: Pair, *, properties: Sequence[str] = NAME_PROPERTIES, languages: Sequence[str] | None = None
) -> tuple[Labels, Labels]:
    """Find out what the entities of both graphs are called, in a language that both have.

    Names that the pair was given (`pair.names1`, `pair.names2`) count before all others.

    Args:
        pair: The pair of graphs.
        properties: The attributes that hold names, as `labels_of` takes them.
        languages: Language tags, the best first. The default, None, takes the one language in which most entities of
            both graphs have names, and for entities without a name in it any.

    Returns:
        The names of the source and of the target graph.

    Example:
        >>> import stea_fast as sf
        >>> kg1 = sf.KG([[0, 0, 1]], entity_names=["http://a.org/New_York", "http://a.org/Berlin"])
        >>> kg2 = sf.KG([[0, 0, 1]], attributes=sf.Attributes.from_statements([(0, "name", "New York")], 2))
        >>> labels1, labels2 = sf.labels_of_pair(sf.make_pair(kg1, kg2, seeds=[]))
        >>> labels1.of(0) == labels2.of(0)
        True
    """
    if languages is None:
        shared = _shared_language(pair.kg1, pair.kg2, properties)
        languages = None if shared is None else [shared]
    labels1, labels2 = (
        given if given is not None else labels_of(kg, properties=properties, languages=languages)
        for kg, given in ((pair.kg1, pair.names1), (pair.kg2, pair.names2))
    )
    return labels1, labels2


def _labels_in_values(kg: KG, properties: Sequence[str], languages: Sequence[str] | None) -> Labels:
    attributes = kg.attributes
    if attributes is None:
        return Labels(np.zeros(0, dtype=np.int32), NameTable.pack([]), kg.num_entities)
    rank = _property_ranks(attributes, properties)
    rows = np.flatnonzero(rank[attributes.attribute] < len(properties))
    entity, value = attributes.entity[rows], attributes.value[rows]
    preference = _language_ranks(attributes, languages)[value]
    least = reduce_groups(np.minimum, preference, offsets(entity, kg.num_entities), 0)
    rows = rows[preference == least[entity]]
    rows = rows[np.lexsort((attributes.value[rows], rank[attributes.attribute[rows]], attributes.entity[rows]))]
    entity, value = attributes.entity[rows], attributes.value[rows]
    kept = _first_of_each(entity, _text_ids(attributes, value))
    rows, entity, value = rows[kept], entity[kept], value[kept]
    first = attributes.attribute[rows][run_starts(entity)] if len(rows) else rows
    counts = np.bincount(first, minlength=len(attributes.attribute_names))
    by_source = {attributes.attribute_names[a]: int(counts[a]) for a in np.argsort(rank, kind="stable") if counts[a]}
    language = None if languages is None else ", ".join(languages)
    return Labels(entity, attributes.values.texts.take(value), kg.num_entities, by_source, language)


def _property_ranks(attributes: Attributes, properties: Sequence[str]) -> np.ndarray:
    """int64 [attributes]: the place of each attribute among the properties; their number for those not among them."""
    places: dict[str, int] = {}
    for place, name in enumerate(properties):
        prefix, colon, local = name.partition(":")
        spellings = [name] if not colon else [name, *(space + local for space in _NAMESPACES.get(prefix, ()))]
        for spelling in spellings:
            places.setdefault(spelling.lower(), place)
    found = [places.get(name.lower(), len(properties)) for name in attributes.attribute_names]
    return np.array(found, dtype=np.int64)


def _language_ranks(attributes: Attributes, languages: Sequence[str] | None) -> np.ndarray:
    """int64 [values]: the place of each value's language among those preferred; then those without one, then others."""
    if languages is None:
        return np.zeros(len(attributes.values), dtype=np.int64)

    def rank(tag: str) -> int:
        for place, wanted in enumerate(languages):
            if tag == wanted.lower() or tag.startswith(f"{wanted.lower()}-"):
                return place
        return len(languages) + (tag != "")

    ranks = np.array([rank(tag) for tag in attributes.values.language_names], dtype=np.int64)
    return ranks[attributes.values.language]


def _text_ids(attributes: Attributes, values: np.ndarray) -> np.ndarray:
    """int64, as `values`: the same number for values with the same text, whatever their datatype and language."""
    distinct, places = np.unique(values, return_inverse=True)
    ids: dict[str, int] = {}
    numbers = [ids.setdefault(attributes.values[value], len(ids)) for value in distinct.tolist()]
    return np.array(numbers, dtype=np.int64)[places]


def _first_of_each(entity: np.ndarray, text: np.ndarray) -> np.ndarray:
    """The places, in order, where an entity has a text for the first time."""
    _, first = np.unique(np.stack([entity, text], axis=1), axis=0, return_index=True)
    return np.sort(first)


def _with_local_parts(named: Labels, kg: KG) -> Labels:
    """The labels, and for entities that have none the names in their ids."""
    assert kg.entity_names is not None
    nameless = np.ones(kg.num_entities, dtype=bool)
    nameless[named.entity] = False
    if not nameless.any():
        return named
    found = local_names(kg.entity_names)
    added = np.array([e for e in np.flatnonzero(nameless).tolist() if found[e]], dtype=np.int32)
    if not len(added):
        return named
    entity = np.concatenate([named.entity, added])
    order = np.argsort(entity, kind="stable")
    both = NameTable.pack([*named.text, *(found[e] for e in added.tolist())])
    counts = {**named.counts, LOCAL_PART: len(added)}
    return Labels(entity[order], both.take(order), kg.num_entities, counts, named.language)


def _shared_language(kg1: KG, kg2: KG, properties: Sequence[str]) -> str | None:
    """The language in which the largest share of the entities of both graphs is named; None if there is none."""
    shares1, shares2 = (_shares_by_language(kg, properties) for kg in (kg1, kg2))
    common = {language: min(share, shares2[language]) for language, share in shares1.items() if language in shares2}
    return max(sorted(common), key=lambda language: common[language], default=None)


def _shares_by_language(kg: KG, properties: Sequence[str]) -> dict[str, float]:
    """By language, without its region: how many of the entities are named in it."""
    attributes = kg.attributes
    if attributes is None:
        return {}
    rows = _property_ranks(attributes, properties)[attributes.attribute] < len(properties)
    names = [tag.partition("-")[0] for tag in attributes.values.language_names]
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    number_of = np.array([numbers[name] for name in names], dtype=np.int64)
    language = number_of[attributes.values.language[attributes.value[rows]]]
    pairs = np.unique(np.stack([attributes.entity[rows], language], axis=1), axis=0)
    counts = np.bincount(pairs[:, 1], minlength=len(numbers))
    return {name: counts[number] / kg.num_entities for name, number in numbers.items() if counts[number]}
