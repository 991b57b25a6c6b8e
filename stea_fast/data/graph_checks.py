"""What the kernels rely on in a stored graph, checked in one pass over its arrays and in a fixed amount of memory.

A file may be damaged or made to do harm: an edge that leads out of the graph is an address outside an array. Every
function returns what is wrong, or None. Arrays may be mapped files of any size.
"""

from __future__ import annotations

import codecs

import numpy as np

from stea_fast._util.name_table import NameTable
from stea_fast._util.sparse import are_offsets, blocks
from stea_fast.data.attributes import Attributes


def fault_of_arrays(
    num_entities: int, num_relations: int, indptr: np.ndarray, edges: np.ndarray, functionality: np.ndarray
) -> str | None:
    """Of the adjacency and the functionality of a `KG`."""
    expected = (("indptr", indptr, np.int64), ("edges", edges, np.int32), ("functionality", functionality, np.float32))
    for name, array, dtype in expected:
        if array.dtype != dtype or not array.flags.c_contiguous:
            return f"{name} must be rows of {np.dtype(dtype)}, and is {array.dtype}"
    if edges.ndim != 2 or edges.shape[1] != 2 or not are_offsets(indptr, num_entities, len(edges)):
        return f"indptr must divide edges, of shape {edges.shape}, among {num_entities} entities"
    if functionality.shape != (2 * num_relations,):
        return f"functionality must have {2 * num_relations} numbers, and its shape is {functionality.shape}"
    for begin, end in blocks(0, len(functionality)):
        part = functionality[begin:end]
        if not (part.min() >= 0 and part.max() <= 1):
            return "functionality must lie between 0 and 1"
    return _fault_of_edges(indptr, edges, num_entities, num_relations)


def _fault_of_edges(indptr: np.ndarray, edges: np.ndarray, num_entities: int, num_relations: int) -> str | None:
    """In range, increasing within every entity, and as many edges of every relation as of its inverse."""
    counts = np.zeros(2 * num_relations, dtype=np.int64)
    last = -1  # the edge before the block
    for begin, end in blocks(0, len(edges)):
        neighbors, relations = edges[begin:end].T.astype(np.int64)
        if neighbors.min() < 0 or neighbors.max() >= num_entities:
            return f"edges {begin} to {end} lead to entities that are not among the {num_entities}"
        if relations.min() < 0 or relations.max() >= 2 * num_relations:
            return f"edges {begin} to {end} have relations that are not among the {2 * num_relations}"
        order = np.concatenate([[last], neighbors << 32 | relations])
        if not _are_in_order(order, indptr, begin, end):
            return f"edges {begin} to {end} are not in order"
        last = order[-1]
        counts += np.bincount(relations, minlength=len(counts))
    if (counts[:num_relations] != counts[num_relations:]).any():
        return "edges must hold the inverse of every edge"
    return None


def _are_in_order(order: np.ndarray, indptr: np.ndarray, begin: int, end: int) -> bool:
    """Whether the numbers of the items begin - 1 to end increase within every entity."""
    return bool(((order[1:] > order[:-1]) | _begins_entity(indptr, begin, end)).all())


def _begins_entity(indptr: np.ndarray, begin: int, end: int) -> np.ndarray:
    """bool [end - begin]: which of these edges or statements are the first of an entity."""
    first = np.zeros(end - begin, dtype=bool)
    low, high = np.searchsorted(indptr, [begin, end])
    for start, stop in blocks(int(low), int(high)):  # entities without any may be any number
        first[indptr[start:stop] - begin] = True
    return first


def fault_of_names(name: str, table: NameTable | None, size: int) -> str | None:
    """Of the names of entities or relations, if there are any: as many as there are ids, all of them UTF-8."""
    if table is None:
        return None
    text, offsets = table.text, table.offsets
    if text.dtype != np.uint8 or offsets.dtype != np.int64 or text.ndim != 1:
        return f"{name} must be bytes and their offsets, and are {text.dtype} {text.shape} and {offsets.dtype}"
    if not are_offsets(offsets, size, len(text)):
        return f"{name} must be {size} pieces of {len(text)} bytes"
    decoder = codecs.getincrementaldecoder("utf-8")("surrogatepass")
    try:
        for begin, end in blocks(0, len(text)):
            decoder.decode(text[begin:end].tobytes(), final=end == len(text))
    except UnicodeDecodeError as error:
        return f"{name} must be UTF-8 ({error.reason})"
    for begin, end in blocks(0, size):
        starts = offsets[begin:end]
        if (text[starts[starts < len(text)]] >> 6 == 0b10).any():  # how the further bytes of a character begin
            return f"{name} must be divided between characters"
    return None


def fault_of_attributes(attributes: Attributes | None, num_entities: int) -> str | None:
    """Of the attribute statements of a `KG`, if there are any, and of the values that they speak of."""
    if attributes is None:
        return None
    indptr, attribute, value, pool = attributes.indptr, attributes.attribute, attributes.value, attributes.values
    expected = (
        ("indptr", indptr, np.int64), ("attribute", attribute, np.int32), ("value", value, np.int32),
        ("datatype", pool.datatype, np.int16), ("language", pool.language, np.int16),
    )  # fmt: skip
    for name, array, dtype in expected:
        if array.dtype != dtype or array.ndim != 1 or not array.flags.c_contiguous:
            return f"{name} of the attributes must be a row of {np.dtype(dtype)}, and is {array.dtype} {array.shape}"
    if len(attribute) != len(value) or not are_offsets(indptr, num_entities, len(value)):
        return f"indptr of the attributes must divide {len(value)} statements among {num_entities} entities"
    return _fault_of_pool(attributes) or _fault_of_statements(attributes)


def _fault_of_pool(attributes: Attributes) -> str | None:
    """Values in UTF-8, each with a datatype and a language that are there."""
    pool = attributes.values
    tables = {"attribute_names": attributes.attribute_names, "texts": pool.texts}
    tables |= {"datatype_names": pool.datatype_names, "language_names": pool.language_names}
    for name, table in tables.items():
        if table.offsets.ndim != 1 or not len(table.offsets):
            return f"{name} must be bytes and their offsets, and its offsets are {table.offsets.shape}"
        fault = fault_of_names(name, table, len(table))
        if fault is not None:
            return fault
    for name, ids in (("datatype", pool.datatype), ("language", pool.language)):
        if len(ids) != len(pool):
            return f"there must be one {name} for each of {len(pool)} values, and there are {len(ids)}"
        kinds = len(tables[f"{name}_names"])
        for begin, end in blocks(0, len(ids)):
            part = ids[begin:end]
            if part.min() < 0 or part.max() >= kinds:
                return f"values {begin} to {end} have a {name} that is not among the {kinds}"
    return None


def _fault_of_statements(attributes: Attributes) -> str | None:
    """In range, and increasing within every entity."""
    num_attributes, num_values = len(attributes.attribute_names), len(attributes.values)
    last = -1  # the statement before the block
    for begin, end in blocks(0, len(attributes)):
        attribute, value = (part[begin:end].astype(np.int64) for part in (attributes.attribute, attributes.value))
        if attribute.min() < 0 or attribute.max() >= num_attributes:
            return f"statements {begin} to {end} have attributes that are not among the {num_attributes}"
        if value.min() < 0 or value.max() >= num_values:
            return f"statements {begin} to {end} have values that are not among the {num_values}"
        order = np.concatenate([[last], attribute << 32 | value])
        if not _are_in_order(order, attributes.indptr, begin, end):
            return f"statements {begin} to {end} are not in order"
        last = order[-1]
    return None
