"""Saved graphs that are damaged or made to do harm: each is an error that says what is wrong, mapped or not."""

from __future__ import annotations

import json
import tracemalloc

import numpy as np
import pytest

import stea_fast as sf
from stea_fast._util.npy import read_npy
from stea_fast.formats.value_pool import Value

TRIPLES = [[0, 0, 2], [1, 0, 2], [0, 0, 3], [3, 1, 3]]
WRAPPING = (2**63 - 1, -(2**63), -1)  # behind 0, every difference is positive in 64 bits


@pytest.fixture
def saved(tmp_path):
    """A folder with a saved graph: five entities, two relations, eight edges."""
    kg = sf.KG(TRIPLES, 5, 2, entity_names=["Köln", "", "C", "D 🙂", "E"], relation_names=["in", "is"])
    kg.save(tmp_path / "graph")
    return tmp_path / "graph"


@pytest.fixture
def valued(tmp_path):
    """A folder with a saved graph that has values: three entities, four statements, four values."""
    statements = [(0, "name", Value("Köln", "", "de")), (0, "name", "Cologne"), (2, "born", 5), (2, "name", "🙂")]
    kg = sf.KG(TRIPLES, 5, 2, attributes=sf.Attributes.from_statements(statements, 5))
    kg.save(tmp_path / "graph")
    return tmp_path / "graph"


def changed(folder, name, place, value):
    """The array of a file with one element replaced."""
    array = np.load(folder / name)
    array[place] = value
    return array


CRAFTED = [
    ("edges.npy", 4, (5, 0), "entities that are not among the 5"),
    ("edges.npy", 4, (-1, 0), "entities that are not among the 5"),
    ("edges.npy", 4, (0, 4), "relations that are not among the 4"),
    ("edges.npy", 4, (0, -1), "relations that are not among the 4"),
    ("edges.npy", 4, (0, 2), "are not in order"),
    ("edges.npy", 1, (1, 0), "are not in order"),
    ("edges.npy", 7, (4, 1), "inverse of every edge"),
    ("indptr.npy", slice(1, 4), WRAPPING, "indptr must divide edges"),
    ("indptr.npy", 1, 9, "indptr must divide edges"),
    ("indptr.npy", -1, 7, "indptr must divide edges"),
    ("functionality.npy", 1, np.nan, "functionality must lie between 0 and 1"),
    ("functionality.npy", 1, 1e30, "functionality must lie between 0 and 1"),
    ("functionality.npy", 1, -0.5, "functionality must lie between 0 and 1"),
    ("entity_names.offsets.npy", slice(1, 4), WRAPPING, "entity_names must be 5 pieces"),
    ("entity_names.offsets.npy", 1, 2, "entity_names must be divided between characters"),
    ("entity_names.text.npy", 0, 0xFF, "entity_names must be UTF-8"),
    ("relation_names.offsets.npy", 2, 99, "relation_names must be 2 pieces"),
]


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize(("file", "place", "value", "message"), CRAFTED)
def test_a_crafted_graph_is_refused_before_a_kernel_sees_it(saved, file, place, value, message, mmap):
    np.save(saved / file, changed(saved, file, place, value))
    with pytest.raises(ValueError, match=rf"graph is damaged: .*{message}"):
        sf.KG.load(saved, mmap=mmap)


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize(
    ("file", "change", "message"),
    [
        ("edges.npy", np.asfortranarray, "edges must be rows of int32"),
        ("edges.npy", lambda edges: edges.astype(">i4"), "edges must be rows of int32, and is >i4"),
        ("edges.npy", np.ravel, "indptr must divide edges"),
        ("functionality.npy", lambda values: values[:3], "functionality must have 4 numbers"),
        ("entity_names.text.npy", lambda text: text.astype(np.int64), "entity_names must be bytes"),
        ("entity_names.offsets.npy", lambda offsets: offsets[:-1], "entity_names must be 5 pieces"),
    ],
)
def test_arrays_of_another_kind_are_refused(saved, file, change, message, mmap):
    np.save(saved / file, change(np.load(saved / file)))
    with pytest.raises(ValueError, match=message):
        sf.KG.load(saved, mmap=mmap)


CRAFTED_VALUES = [
    ("value", 1, 4, "values that are not among the 4"),
    ("value", 1, -1, "values that are not among the 4"),
    ("attribute", 0, 2, "attributes that are not among the 2"),
    ("attribute", 0, -1, "attributes that are not among the 2"),
    ("value", 1, 0, "statements 0 to 4 are not in order"),
    ("attribute", 0, 1, "statements 0 to 4 are not in order"),
    ("indptr", slice(1, 4), WRAPPING, "must divide 4 statements among 5 entities"),
    ("indptr", -1, 3, "must divide 4 statements among 5 entities"),
    ("datatype", 2, 2, "a datatype that is not among the 2"),
    ("datatype", 2, -1, "a datatype that is not among the 2"),
    ("language", 0, 9, "a language that is not among the 2"),
    ("texts.text", 1, 0xFF, "texts must be UTF-8"),
    ("texts.offsets", slice(1, 4), WRAPPING, "texts must be 4 pieces"),
    ("attribute_names.offsets", -1, 99, "attribute_names must be 2 pieces"),
    ("language_names.text", 0, 0x80, "language_names must be UTF-8"),
    ("datatype_names.offsets", 1, 99, "datatype_names must be 2 pieces"),
]


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize(("part", "place", "value", "message"), CRAFTED_VALUES)
def test_crafted_values_are_refused_before_anybody_sees_them(valued, part, place, value, message, mmap):
    file = f"attributes.{part}.npy"
    np.save(valued / file, changed(valued, file, place, value))
    with pytest.raises(ValueError, match=rf"graph is damaged: .*{message}"):
        sf.KG.load(valued, mmap=mmap)


@pytest.mark.parametrize(
    ("part", "change", "message"),
    [
        ("value", lambda values: values.astype(np.int64), "value of the attributes must be a row of int32"),
        ("attribute", lambda attributes: attributes[:-1], "must divide 4 statements"),
        ("datatype", lambda kinds: kinds[:-1], "one datatype for each of 4 values"),
        ("language", lambda kinds: kinds.reshape(2, 2), "language of the attributes must be a row of int16"),
        ("language_names.offsets", lambda offsets: offsets[:0], "its offsets are"),
        ("attribute_names.offsets", lambda offsets: np.array(3), "its offsets are"),
        ("texts.offsets", lambda offsets: offsets[:-1], "texts must be 3 pieces"),
    ],
)
def test_values_of_another_kind_are_refused(valued, part, change, message):
    np.save(valued / f"attributes.{part}.npy", change(np.load(valued / f"attributes.{part}.npy")))
    with pytest.raises(ValueError, match=message):
        sf.KG.load(valued)


def test_a_part_of_the_values_that_is_missing_is_named(valued):
    (valued / "attributes.texts.text.npy").unlink()
    with pytest.raises(ValueError, match=r"cannot read attributes\.texts\.text\.npy; the folder is damaged"):
        sf.KG.load(valued)


@pytest.mark.parametrize("size", [True, 0, -1, 2**31, 2**70, "5", 5.0, None])
@pytest.mark.parametrize("name", ["num_entities", "num_relations"])
def test_a_number_that_no_graph_has_is_refused(saved, name, size):
    header = json.loads((saved / "kg.json").read_text())
    (saved / "kg.json").write_text(json.dumps({**header, name: size}))
    with pytest.raises(ValueError, match="how many entities and relations"):
        sf.KG.load(saved)


@pytest.mark.parametrize("mmap", [False, True])
def test_an_order_that_only_a_later_block_breaks_is_found(tmp_path, mmap):
    star = sf.KG([[0, 0, tail] for tail in range(1, 200_000)])  # the edges of entity 0 lie in several blocks
    star.save(tmp_path / "star")
    assert sf.KG.load(tmp_path / "star", mmap=mmap) == star
    edges = np.load(tmp_path / "star" / "edges.npy")
    edges[[1 << 16, (1 << 16) - 1]] = edges[[(1 << 16) - 1, 1 << 16]]  # the last of a block and the first of the next
    np.save(tmp_path / "star" / "edges.npy", edges)
    with pytest.raises(ValueError, match="not in order"):
        sf.KG.load(tmp_path / "star", mmap=mmap)


def test_a_mapped_graph_is_checked_in_little_memory(tmp_path):
    rng = np.random.default_rng(0)
    kg = sf.KG(rng.integers([100_000, 5, 100_000], size=(600_000, 3)), 100_000, 5)
    values = ((entity % 100_000, "name", f"value {entity}") for entity in range(300_000))
    kg.with_attributes(sf.Attributes.from_statements(values, 100_000)).save(tmp_path / "large")
    tracemalloc.start()
    sf.KG.load(tmp_path / "large", mmap=True)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (tmp_path / "large" / "edges.npy").stat().st_size > 9e6
    assert peak < 5e6


HEADER = "{'descr': %s, 'fortran_order': False, 'shape': %s}"


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (HEADER % ("'<f4'", "(1000000000, 1000000000)"), "its header promises float32"),
        (HEADER % ("'<f4'", "(4294967296, 4294967296)"), "its header promises float32"),  # wraps to nothing in 64 bits
        (HEADER % ("'<f4'", "(-1, -4)"), "its shape is"),
        (HEADER % ("'|O'", "(1,)"), "it holds object"),
        (HEADER % ("[('x', '<f4')]", "(1,)"), "it holds"),
        (HEADER % ("'<f4'", "(0, 99999999999999999999999)"), "not a .npy file"),
        ("(" * 9000, "not a .npy file"),
        ("-" * 9000 + "1", "not a .npy file"),
        ("{'descr': 1}", "not a .npy file"),
        ("\\N{", "not a .npy file"),
    ],
)
def test_a_header_that_promises_what_is_not_there_is_an_error_and_costs_nothing(tmp_path, header, message):
    path = tmp_path / "a.npy"
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + b"\0" * 16)
    for mmap in (False, True):
        with pytest.raises(ValueError, match=rf"a\.npy is not a \.npy file of numbers: .*|{message}") as caught:
            read_npy(path, mmap=mmap)
        assert message.removeprefix("not a .npy file") in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"\x93NUMPY", b"\x93NUMPY\x03\x00\xff\xff", b"PK\x03\x04", b"\x80\x04."])
def test_a_file_that_is_no_array_is_an_error(tmp_path, content):
    (tmp_path / "a.npy").write_bytes(content)
    with pytest.raises(ValueError, match=r"a\.npy is not a \.npy file of numbers: "):
        read_npy(tmp_path / "a.npy")


def test_a_pickle_is_never_opened(tmp_path):
    np.save(tmp_path / "a.npy", np.array([print], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match="it holds object"):
        read_npy(tmp_path / "a.npy")


@pytest.mark.parametrize("array", [np.arange(6.0).reshape(2, 3), np.zeros((0, 4)), np.asfortranarray(np.eye(3))])
def test_an_honest_array_comes_back(tmp_path, array):
    np.save(tmp_path / "a.npy", array)
    for mmap in (False, True):
        np.testing.assert_array_equal(read_npy(tmp_path / "a.npy", mmap=mmap), array)
