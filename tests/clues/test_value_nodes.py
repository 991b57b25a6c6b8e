"""Values as nodes: who shares what, how much it says, and that nothing changes where there are none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import stea_fast as sf
from stea_fast.clues.exact_values import exact_pairs
from stea_fast.clues.value_links import similar_statements
from stea_fast.clues.value_nodes import belief_weights, value_nodes
from stea_fast.refinement.api import refined
from stea_fast.refinement.problem import Execution, problem_of
from stea_fast.refinement.structural import refine_by_structure
from stea_fast.values.kinds import kind_of


def pair_of(statements1, statements2, size=4):
    """Two graphs of a chain of entities each, with values."""
    chain = [[e, 0, e + 1] for e in range(size - 1)]
    graphs = (
        sf.KG(chain, size, attributes=sf.Attributes.from_statements(statements, size) if statements else None)
        for statements in (statements1, statements2)
    )
    return sf.make_pair(*graphs, seeds=[])


def people(rng, size):
    """Values of people: unique mail addresses, names that some share, a year, and what nearly all are."""
    first, last = (
        ["Anna", "Bela", "Carl", "Dora", "Emil", "Fritz", "Gerd", "Hanna"],
        ["Adler", "Berg", "Cohn", "Drost", "Ernst", "Falk", "Graf"],
    )
    for e in range(size):
        yield e, "name", f"{rng.choice(first)} {rng.choice(last)} {rng.choice(last)}"
        yield e, "mail", f"{rng.integers(10**9):09d}@example.org"
        yield e, "born", str(1900 + int(rng.integers(100)))
        yield e, "phone", f"+49 {rng.integers(10**8):08d}"
        yield e, "species", "human"


def with_typos(statements, rng, share):
    """The same statements under other attributes; in a share of them two characters are swapped."""
    for entity, attribute, value in statements:
        if rng.random() < share and attribute != "species":
            at = int(rng.integers(len(value) - 1))
            value = value[:at] + value[at + 1] + value[at] + value[at + 2 :]
        yield entity, attribute.upper(), value


def perturbed_pair(size=300, dangling=60, share=0.3, seed=0):
    """Two graphs without edges that say anything, with perturbed values; the last of either have no counterpart."""
    rng = np.random.default_rng(seed)
    known = list(people(rng, size))
    other = [(size - dangling + e % dangling, a, v) for e, a, v in people(rng, dangling)]
    kept = [row for row in known if row[0] < size - dangling]
    order = rng.permutation(size)
    right = [(int(order[e]), a, v) for e, a, v in [*with_typos(kept, rng, share), *with_typos(other, rng, 0.0)]]
    edge = [[0, 0, 1]]
    kg1, kg2 = (sf.KG(edge, size, attributes=sf.Attributes.from_statements(rows, size)) for rows in (known, right))
    return sf.make_pair(kg1, kg2, seeds=[]), order


def test_values_with_typos_find_their_entities_without_a_seed():
    pair, order = perturbed_pair()
    clues = sf.find_clues(pair, names=False)
    nodes = value_nodes(pair.kg1, pair.kg2, clues.values)
    found = refine_by_structure(pair.kg1, pair.kg2, pair.train, k=5, values=nodes)
    right = np.asarray(found.forward.indices)[:240, 0] == order[:240]
    assert right.mean() > 0.98
    sure = found.pairs[found.pair_probs > 0.5]
    linked = sure[:, 0] < 240
    assert (order[sure[linked, 0]] == sure[linked, 1]).mean() > 0.98
    # Entities without counterpart may be left over for each other, but with little behind it.
    evidence = np.asarray(found.forward.evidence)[sure[:, 0], 0]
    assert np.median(evidence[~linked]) < np.quantile(evidence[linked], 0.05)


@pytest.mark.parametrize("seed", [0, 1])
def test_links_by_values_with_typos_are_precise_though_a_fifth_has_no_counterpart(seed):
    pair, order = perturbed_pair(seed=seed)
    alignment = sf.align(pair, clues=sf.find_clues(pair, names=False), progress=False)
    sources, targets = alignment.pairs.T
    right = (sources < 240) & (order[sources] == targets)
    assert right.mean() > 0.9 and right.sum() > 0.98 * 240
    _, low, high = alignment.expected_precision
    assert low <= right.mean() <= high


def test_attributes_align_as_relations_do():
    pair, _ = perturbed_pair()
    clues = sf.find_clues(pair, names=False)
    nodes = value_nodes(pair.kg1, pair.kg2, clues.values)
    found = refine_by_structure(pair.kg1, pair.kg2, pair.train, k=5, values=nodes)
    names1, names2 = (list(side.attribute_names) for side in clues.values.sides)
    contained = found.attributes.sub12.toarray()
    assert contained.shape == (2 * len(names1), 2 * len(names2))
    for attribute in ("mail", "phone", "name", "born"):
        row = contained[names1.index(attribute), : len(names2)]
        assert names2[int(row.argmax())] == attribute.upper()
    assert found.relations.shape == (2, 2)


@pytest.mark.parametrize(("value1", "value2"), [
    ("{year}", "{year}.0"),  # years here, numbers there
    ("00{code}", "{code}"),  # a spreadsheet took the zeros away
    ("{word} of the city of {word}", "{word} of city {word}"),  # a long text here, a short one there
])  # fmt: skip
def test_attributes_of_two_kinds_may_say_the_same(value1, value2):
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("abcdefgh"), 8)) for _ in range(20)]
    sides = [
        [(e, f"attribute {side}", value.format(year=1950 + 3 * e, code=7**e, word=words[e])) for e in range(20)]
        for side, value in enumerate((value1, value2))
    ]
    assert [kind_of([value for _, _, value in side]) for side in sides] in (
        ["date", "number"], ["code", "number"], ["text", "string"],
    )  # fmt: skip
    assert exact_or_similar(pair_of(*sides, size=20)) == {(e, e) for e in range(20)}


def exact_or_similar(pair):
    """Entities that share a similar value."""
    links = similar_statements(pair, (), 1)
    owners = [side.any_owner for side in links.sides]
    return {(int(owners[0][one]), int(owners[1][two])) for one, two in links.pairs}


def test_a_value_weighs_by_who_else_has_it():
    many = [(e, "a", "shared") for e in range(4)]
    pair = pair_of([*many, (0, "b", "mine alone")], [*many, (1, "b", "mine alone")])
    links = similar_statements(pair, (), 1)
    texts = [links.sides[0].texts[one] for one in links.pairs[:, 0]]
    weights = dict(zip(texts, belief_weights(links).tolist(), strict=True))
    assert weights == {"shared": 0.25, "mine alone": 1.0}


def test_those_at_least_as_similar_are_rivals():
    pair = pair_of([(0, "n", "100.0")], [(0, "n", "100.0"), (1, "n", "100.2"), (2, "n", "100.4")])
    links = similar_statements(pair, (), 1)
    texts = [links.sides[1].texts[two] for two in links.pairs[:, 1]]
    weights = dict(zip(texts, (belief_weights(links) * [1, 2, 3]).tolist(), strict=True))
    similarity = dict(zip(texts, links.similarity.tolist(), strict=True))
    assert weights == pytest.approx(similarity)


def test_without_values_nothing_changes():
    pair = sf.synthetic_pair(num_entities=200, seed=0)
    rows = [(e, "note", f"value {e} of one side") for e in range(200)]
    valued = replace(pair, kg1=pair.kg1.with_attributes(sf.Attributes.from_statements(rows, pair.kg1.num_entities)))
    found = [sf.align(each, rounds=1, calibration="none", clues=None) for each in (pair, valued)]
    assert np.array_equal(found[0].pairs, found[1].pairs)
    for side in ("forward", "backward"):
        one, other = (getattr(each.result, side) for each in found)
        assert np.array_equal(one.indices, other.indices) and np.array_equal(one.probs, other.probs)
    assert similar_statements(valued, (), 1) is None  # the other graph has none


def test_values_are_never_given_out():
    pair, _ = perturbed_pair(size=60, dangling=10)
    nodes = value_nodes(pair.kg1, pair.kg2, sf.find_clues(pair, names=False).values)
    found = refine_by_structure(pair.kg1, pair.kg2, pair.train, k=5, values=nodes)
    assert found.forward.indices.shape == (60, 5)
    assert found.forward.indices.max() < 60 and found.backward.indices.max() < 60
    assert np.asarray(found.pairs).max() < 60
    explained = str(found.explain(*found.pairs[0]))
    assert '"' in explained and "MAIL" in explained
    with pytest.raises(ValueError, match="e must"):
        found.explain(60, 0)


@pytest.mark.parametrize("backend", ["reference", "numba", "native"])
def test_all_backends_agree_on_values(backend):
    pair, _ = perturbed_pair(size=40, dangling=8)
    nodes = value_nodes(pair.kg1, pair.kg2, sf.find_clues(pair, names=False).values)
    nothing = np.full((40, 3), -1), np.zeros((40, 3))
    results = []
    for which in (backend, "reference"):
        candidates = sf.Candidates(sf.Ranking(*nothing), sf.Ranking(*nothing))
        problem = problem_of(candidates, pair.kg1, pair.kg2, (), (), None, Execution(which, 1))
        results.append(refined(replace(problem, values=nodes), sf.Joint(sweeps=3, beta=0.0)))
    assert np.array_equal(results[0].forward.indices, results[1].forward.indices)
    np.testing.assert_allclose(results[0].forward.probs, results[1].forward.probs, atol=1e-4)


def test_values_need_the_joint_method():
    pair, _ = perturbed_pair(size=40, dangling=8)
    nodes = value_nodes(pair.kg1, pair.kg2, sf.find_clues(pair, names=False).values)
    candidates = sf.Ranking(np.zeros((40, 1), dtype=np.int64), np.ones((40, 1)))
    problem = problem_of((candidates.indices, candidates.scores), pair.kg1, pair.kg2, (), (), None, Execution())
    with pytest.raises(ValueError, match="values need method='joint'"):
        refined(replace(problem, values=nodes), sf.Product())


def test_exact_pairs_go_by_attributes_that_agree():
    pair, order = perturbed_pair(share=0.1)
    rng = np.random.default_rng(1)
    # A number that is unique, equal and wrong: an inventory that was counted anew.
    numbers = [[(e, "number", f"N{1000 + int(n)}") for e, n in enumerate(rng.permutation(300))] for _ in range(2)]
    graphs = [
        kg.with_attributes(
            sf.Attributes.from_statements(
                [*((e, name, value) for e in range(300) for name, value in kg.attributes.of(e)), *rows], 300
            )
        )
        for kg, rows in zip((pair.kg1, pair.kg2), numbers, strict=True)
    ]
    pairs = exact_pairs(similar_statements(sf.make_pair(*graphs, seeds=[]), (), 1))
    assert len(pairs) > 200
    assert len(np.unique(pairs[:, 0])) == len(np.unique(pairs[:, 1])) == len(pairs)
    assert (order[pairs[:, 0]] == pairs[:, 1]).mean() > 0.98


def test_hidden_pairs_lose_what_only_they_share():
    statements = [(0, "mail", "zero@a.org"), (0, "colour", "red"), (1, "mail", "one@a.org"), (1, "colour", "red")]
    clues = sf.find_clues(pair_of(statements, statements), names=False)
    assert clues.exact.tolist() == [[0, 0], [1, 1]]
    left = clues.without(np.array([[0, 0]]))
    assert left.exact.tolist() == [[1, 1]]
    values = [(side.entity.tolist(), [side.texts[v] for v in side.value]) for side in left.values.sides]
    assert (
        values == [([0, 1, 1], ["red", "red", "one@a.org"])] * 2
        or values == [([0, 1, 1], ["red", "one@a.org", "red"])] * 2
    )
    assert clues.without_targets(np.array([1])).values.sides[1].entity.tolist() == [0, 0]
    assert len({clues.fingerprint, left.fingerprint}) == 2


def test_align_starts_from_values_alone_and_says_so():
    pair, order = perturbed_pair(size=200, dangling=20)
    rng = np.random.default_rng(3)
    edges = rng.integers(180, size=(600, 2))
    kg1 = sf.KG([[a, 0, b] for a, b in edges], 200, 1, attributes=pair.kg1.attributes)
    kg2 = sf.KG([[order[a], 0, order[b]] for a, b in edges], 200, 1, attributes=pair.kg2.attributes)
    both = sf.make_pair(kg1, kg2, seeds=[])
    clues = sf.find_clues(both, names=False)
    assert "200 entities of the first graph have a value" in clues.found[0]
    assert "mail ≈ MAIL" in clues.found[1]
    alignment = sf.align(both, rounds=1, calibration="holdout", clues=clues)
    assert "hidden names and values" in alignment.calibrator.note
    assert (order[alignment.pairs[:, 0]] == alignment.pairs[:, 1]).mean() > 0.95
    assert len(alignment.pairs) > 150


def test_nothing_alike_is_nothing_to_start_from():
    pair = pair_of([(0, "a", "qqqqqq")], [(0, "a", "zzzzzz")])
    with pytest.raises(ValueError, match="nothing to start from"):
        sf.align(pair)
