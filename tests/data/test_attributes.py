"""Values of entities beside the edges of a graph: kept by everything that makes, copies, saves or loads a graph."""

from __future__ import annotations

import copy
import datetime
import json
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import stea_fast as sf
from stea_fast.formats.value_pool import LONGEST_VALUE, Value

TEXT = st.text(min_size=1, max_size=5).filter(lambda text: text.strip())
VALUES = st.builds(Value, TEXT, st.sampled_from(["", "http://x/int"]), st.sampled_from(["", "de"]))
STATEMENTS = st.lists(st.tuples(st.integers(0, 4), st.sampled_from(["name", "born", "näme"]), VALUES), max_size=30)


def stated(attributes: sf.Attributes) -> list[tuple[int, str, Value]]:
    return [(e, name, value) for e in range(attributes.num_entities) for name, value in attributes.of(e)]


def graph(statements=((0, "name", "Berlin"), (2, "name", "Köln"), (2, "born", 5))) -> sf.KG:
    return sf.KG([[0, 0, 1], [1, 0, 2]], attributes=sf.Attributes.from_statements(statements, 3))


# --- the statements ---


@given(STATEMENTS)
def test_every_statement_is_there_once_and_in_order(statements):
    attributes = sf.Attributes.from_statements(statements, 5)
    assert sorted(stated(attributes)) == sorted(set(statements))
    assert len(attributes) == len(set(statements)) == len(attributes.entity)
    rows = list(zip(attributes.entity.tolist(), attributes.attribute.tolist(), attributes.value.tolist(), strict=True))
    assert rows == sorted(set(rows))
    assert attributes.entity.dtype == attributes.attribute.dtype == attributes.value.dtype == np.int32


@given(STATEMENTS)
def test_every_distinct_value_is_held_once_with_its_datatype_and_language(statements):
    pool = sf.Attributes.from_statements(statements, 5).values
    distinct = {value for _, _, value in statements}
    assert {pool.value(i) for i in range(len(pool))} == distinct and len(pool) == len(distinct)
    assert list(pool) == [pool[i] for i in range(len(pool))]
    assert bytes(pool.data) == "".join(pool).encode("utf-8", "surrogatepass") and len(pool.offsets) == len(pool) + 1
    assert pool.datatype.dtype == pool.language.dtype == np.int16


@given(STATEMENTS, st.permutations(range(5)))
def test_values_follow_entities_that_are_numbered_anew(statements, order):
    attributes = sf.Attributes.from_statements(statements, 5)
    taken = attributes.take(order)
    assert [taken.of(new) for new in range(5)] == [attributes.of(old) for old in order]
    assert sf.KG([], 5, 1, attributes=taken).num_entities == 5  # the checks of a graph find nothing wrong


def test_numbers_dates_and_truth_values_have_the_datatypes_of_xml_schema():
    given = (True, 7, 2.5, np.int32(7), np.float32(0.5), datetime.date(1990, 10, 3), datetime.datetime(1990, 10, 3, 1))
    values = [value for _, value in sf.Attributes.from_statements([(0, "x", v) for v in given], 1).of(0)]
    assert [(value.text, value.datatype.rpartition("#")[2]) for value in values] == [
        ("true", "boolean"), ("7", "integer"), ("2.5", "double"), ("0.5", "double"), ("1990-10-03", "date"),
        ("1990-10-03T01:00:00", "dateTime"),
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["", " \n", "x" * (LONGEST_VALUE + 1)])
def test_a_value_that_says_nothing_or_fills_the_memory_is_refused(text):
    with pytest.raises(ValueError, match="the value of 'name' of entity 0 must have 1 to 262,144 bytes"):
        sf.Attributes.from_statements([(0, "name", text)], 1)


@pytest.mark.parametrize("value", [None, float("nan"), [1], b"x"])
def test_a_value_of_another_kind_is_refused(value):
    with pytest.raises(TypeError, match=f"got {type(value).__name__}"):
        sf.Attributes.from_statements([(0, "name", value)], 1)


def test_a_statement_about_no_entity_of_the_graph_is_refused():
    with pytest.raises(ValueError, match="there are only 2 entities"):
        sf.Attributes.from_statements([(2, "name", "x")], 2)


def test_more_datatypes_than_can_be_numbered_are_an_error():
    statements = ((0, "x", Value("5", f"http://{i}")) for i in range(40_000))
    with pytest.raises(ValueError, match="more than 32,767 datatypes and languages"):
        sf.Attributes.from_statements(statements, 1)


def test_statements_cannot_be_changed():
    attributes = graph().attributes
    with pytest.raises(AttributeError, match="immutable"):
        attributes.value = np.zeros(3)
    for array in (attributes.indptr, attributes.attribute, attributes.value, attributes.values.datatype):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


# --- in a graph ---


def test_a_graph_without_values_says_so():
    assert sf.KG([[0, 0, 1]]).attributes is None
    assert sf.KG([[0, 0, 1]], attributes=sf.Attributes.from_statements([], 2)).attributes is None
    assert graph().with_attributes(None) == sf.KG([[0, 0, 1], [1, 0, 2]])
    assert graph() != graph().with_attributes(None)
    assert "3 values" in repr(graph())


def test_values_of_another_graph_are_refused():
    with pytest.raises(ValueError, match="must divide 3 statements among 2 entities"):
        sf.KG([[0, 0, 1]], attributes=graph().attributes)
    with pytest.raises(TypeError, match="attributes must be Attributes, got dict"):
        sf.KG([[0, 0, 1]], attributes={})


def test_an_entity_that_is_taken_away_loses_its_values():
    left = graph().without([2])
    assert stated(left.attributes) == [(0, "name", Value("Berlin"))]
    assert left.attributes.num_entities == 3


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda kg: pickle.loads(pickle.dumps(kg))])
def test_a_copy_has_the_same_values_and_is_as_immutable(copied):
    kg = copied(graph())
    assert kg == graph()
    assert not kg.attributes.value.flags.writeable and not kg.attributes.values.datatype.flags.writeable


# --- on the disk ---


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize(
    "statements", [[(2, "name", "x\0y")], [(0, "n", Value("Gift", "", lang)) for lang in ("de", "en")]]
)
def test_saved_values_come_back(tmp_path, statements, mmap):
    kg = graph(statements)
    kg.save(tmp_path / "graph")
    loaded = sf.KG.load(tmp_path / "graph", mmap=mmap)
    assert loaded == kg and stated(loaded.attributes) == stated(kg.attributes)
    assert isinstance(loaded.attributes.values.data, np.memmap) is mmap


def test_a_graph_without_values_is_saved_as_older_versions_read_it(tmp_path):
    graph().save(tmp_path / "graph")
    graph().with_attributes(None).save(tmp_path / "graph")
    assert json.loads((tmp_path / "graph" / "kg.json").read_text())["version"] == 2
    assert sorted(path.name for path in (tmp_path / "graph").iterdir()) == [
        "edges.1.npy", "functionality.1.npy", "indptr.1.npy", "kg.json",
    ]  # fmt: skip
    assert sf.KG.load(tmp_path / "graph").attributes is None
