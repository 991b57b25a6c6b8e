"""Values as they come: huge, empty of meaning, of mixed types, in any script; an error or a stated fallback."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import stea_fast as sf
from stea_fast.clues.value_nodes import belief_weights, value_nodes

SIZE = 12
CHAIN = [[e, 0, e + 1] for e in range(SIZE - 1)]


def clues_of(values1, values2, names=False):
    """Clues from one value per entity of either graph, under one attribute; None gives an entity none."""
    graphs = [
        sf.KG(
            CHAIN,
            SIZE,
            attributes=sf.Attributes.from_statements(
                [(e, "label", value) for e, value in enumerate(values) if value is not None], SIZE
            ),
        )
        for values in (values1, values2)
    ]
    return sf.find_clues(sf.make_pair(*graphs, seeds=[]), names=names)


@pytest.mark.parametrize("names", [True, False])
def test_one_value_shared_by_all_says_nothing(names):
    clues = clues_of(["the same"] * SIZE, ["the same"] * SIZE, names)
    assert len(clues.anchors) == 0 and len(clues.exact) == 0
    if not names:
        assert belief_weights(clues.values).tolist() == [1 / SIZE]
    with pytest.raises(sf.NoStartError, match="nothing to start from"):
        clues.check_start(np.zeros((0, 2), dtype=np.int64))


def test_values_that_only_together_say_who_has_them_are_a_start():
    numbers = range(SIZE)
    rows = [(e, f"attribute {i}", f"value {i} {e // 3 if i else e % 3}") for e in numbers for i in (0, 1)]
    graphs = [sf.KG(CHAIN, SIZE, attributes=sf.Attributes.from_statements(rows, SIZE)) for _ in range(2)]
    clues = sf.find_clues(sf.make_pair(*graphs, seeds=[]))
    assert len(clues.exact) == 0 and clues.connects


def test_names_with_a_typing_error_each_are_a_start():
    words = ["".join(np.random.default_rng(e).choice(list("abcdefgh"), 10)) for e in range(SIZE)]
    clues = clues_of(words, [word[:4] + "z" + word[5:] for word in words], names=True)
    assert len(clues.anchors) == 0 and clues.connects
    graph = sf.KG([[0, 0, 1]], SIZE)
    alignment = sf.align(sf.make_pair(graph, graph, seeds=[]), clues=clues, progress=False)
    assert [source == target for source, target in alignment.pairs.tolist()] == [True] * SIZE


@pytest.mark.parametrize("names", [True, False])
def test_memory_is_bounded_by_the_texts_whatever_they_are(names):
    long = [chr(ord("a") + e) * 200_000 + " " + "word " * 10_000 for e in range(SIZE)]
    tracemalloc.start()
    clues = clues_of(long, long, names)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60 * sum(map(len, long))  # a few copies, and four bytes a character while spelling is normalised
    assert (len(clues.anchors) if names else len(clues.values.pairs)) >= SIZE


def test_dates_that_are_none_and_mixed_types_are_compared_as_texts():
    mixed = ["2020-02-30", "1999-13-45", "12", "12 km", "true", "http://a.org/x", "unknown value", "-", "1e400", "NaN"]
    mixed += ["2001-01-01", "0012"]
    clues = clues_of(mixed, mixed)
    first, second = clues.values.sides
    equal = {first.texts[one] for one, two in clues.values.pairs if first.texts[one] == second.texts[two]}
    assert equal == set(mixed)


def test_any_script_and_any_character_is_a_value():
    odd = [
        "\x00",
        "a\x00b",
        "שלום",
        "\u202eשלום\u202c",
        "e\u0301" * 3,
        "é" * 3,
        "\ud800",
        "👩‍👩‍👧",
        "\u200b\u200b",
        "ﷺ",
        "e" + "\u0301" * 500,
        "Z\u0327",
    ]
    clues = clues_of(odd, odd[::-1])
    graphs = [sf.KG(CHAIN, SIZE) for _ in range(2)]
    nodes = value_nodes(*graphs, clues.values)
    assert nodes.graphs[0].num_entities > SIZE
    assert np.isfinite(belief_weights(clues.values)).all()
    assert ((belief_weights(clues.values) > 0) & (belief_weights(clues.values) <= 1)).all()


@pytest.mark.parametrize("value", ["", "   ", "x" * 300_000])
def test_values_that_cannot_be_held_are_refused_where_they_are_made(value):
    with pytest.raises(ValueError, match="bytes and not be blank"):
        sf.Attributes.from_statements([(0, "label", value)], 1)


def test_entities_without_values_and_a_graph_without_any():
    clues = clues_of(["one thing", *[None] * (SIZE - 1)], [None] * SIZE)
    assert clues.values is None and len(clues.exact) == 0
    clues = clues_of(["one thing", *[None] * (SIZE - 1)], [*[None] * (SIZE - 1), "one thing"])
    assert clues.exact.tolist() == [[0, SIZE - 1]]


def test_thousands_of_attributes_stay_sparse():
    rows = [(e, f"attribute {e}-{i}", f"value {e}-{i}") for e in range(SIZE) for i in range(200)]
    graphs = [sf.KG(CHAIN, SIZE, attributes=sf.Attributes.from_statements(rows, SIZE)) for _ in range(2)]
    clues = sf.find_clues(sf.make_pair(*graphs, seeds=[]), names=False)
    nodes = value_nodes(*graphs, clues.values)
    assert nodes.affinity.nnz <= 2 * len(clues.values.pairs)
    assert len(clues.found[1].split(",")) == 5  # the user is told of a few
