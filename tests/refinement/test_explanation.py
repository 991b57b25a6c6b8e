"""Explanations: the facts behind a pair add up to its evidence and can be read."""

from __future__ import annotations

import numpy as np
import pytest

import stea_fast as sf
from stea_fast.data.sealed import reveal
from stea_fast.encoders.demo import candidates
from stea_fast.types import RelationAlignment

# Ada was born in London and wrote Notes; the others are neighbours of neighbours. Entity 4 has no triples.
NAMES1 = ["Ada", "London", "Notes", "Charles", "Nobody"]
KG1 = sf.KG([[0, 0, 1], [0, 1, 2], [3, 0, 1]], 5, 2, entity_names=NAMES1, relation_names=["born", "wrote"])
KG2 = sf.KG([[0, 0, 1], [2, 1, 0], [3, 0, 1]], 5, 2)
ALL = np.tile(np.arange(5), (5, 1))
DIAGONAL = np.where(np.eye(5, dtype=bool), 0.6, 0.1)  # every entity is most probably the one with its own id


def explained(**options: object) -> sf.Refinement:
    """Every pair is a candidate, so each has its evidence. Relations: born is 0, wrote is nearly 1⁻."""
    same = np.zeros((4, 4))
    same[0, 0] = same[2, 2] = 1.0
    same[1, 3] = same[3, 1] = 0.8
    relations = options.pop("relations", RelationAlignment(same, same.T))
    method = sf.Product(normalisation="none", sweeps=1, **options)
    return sf.refine((ALL, DIAGONAL), KG1, KG2, relations=relations, method=method)


def evidence_of(ranking: sf.RefinedRanking, e: int, e2: int) -> float:
    return float(ranking.evidence[e][ranking.indices[e] == e2][0])


def test_facts_are_named_with_weight_and_evidence_by_hand():
    facts = explained().explain(0, 0)
    assert len(facts) == 2
    wrote, born = facts
    assert (born.relation, born.neighbor, born.relation2, born.neighbor2) == (0, 1, 0, 1)
    assert (wrote.relation, wrote.neighbor, wrote.relation2, wrote.neighbor2) == (1, 2, 3, 2)
    # born: fun⁻¹ = 1 tail / 2 pairs in both graphs, P = 1. wrote: fun⁻¹ = 1, P = 0.8.
    assert born.weight == wrote.weight == pytest.approx(0.6)
    assert born.evidence == pytest.approx(-2 * np.log(1 - 0.5 * 0.6), rel=1e-5)
    assert wrote.evidence == pytest.approx(-2 * np.log(1 - 0.8 * 0.6), rel=1e-5)
    assert facts.evidence == pytest.approx(evidence_of(explained().forward, 0, 0), rel=1e-5)


def test_names_are_shown_where_known_and_ids_where_not():
    explanation = explained(evidence="argmax").explain(0, 0)
    text = str(explanation)
    assert text.splitlines()[0].startswith("Ada ≡ 0: evidence ")
    assert text.splitlines()[0].endswith(" from 2 facts")
    assert "born → London  ≈  0 → 1  (w = 1.000)" in text
    assert "wrote → Notes  ≈  1⁻ → 2  (w = 1.000)" in text


def test_shares_are_written_as_percentages():
    lines = str(explained(evidence="argmax").explain(3, 3)).splitlines()
    assert len(lines) == 2 and lines[1].strip().startswith("100.0%  born → London")


def test_an_explanation_is_a_sequence_of_facts():
    explanation = explained().explain(0, 0)
    assert list(explanation) == [explanation[0], explanation[1]] == explanation[0:2]
    assert explanation[-1] in explanation


def test_a_pair_without_common_facts_has_an_empty_explanation():
    out = explained()
    for e, e2 in ((4, 0), (0, 4), (4, 4), (2, 1)):
        explanation = out.explain(e, e2)
        assert (len(explanation), explanation.evidence) == (0, 0.0)
        assert str(explanation) == f"{NAMES1[e]} ≡ {e2}: evidence 0.000 from 0 facts"


@pytest.mark.parametrize("sweeps", [1, 3])
@pytest.mark.parametrize("kind", ["soft", "argmax", "mutual", "joint"])
def test_the_facts_add_up_to_the_evidence_of_the_pair(kind, sweeps):
    pair = sf.synthetic_pair(70, 1, num_relations=5)
    method = sf.Joint(sweeps=sweeps) if kind == "joint" else sf.Product(evidence=kind, sweeps=sweeps)
    out = sf.refine(candidates(pair, 6), pair.kg1, pair.kg2, seeds=pair.train, method=method)
    explained_pairs = 0
    for e, (targets, evidence) in enumerate(zip(out.forward.indices, out.forward.evidence, strict=True)):
        for e2, expected in zip(targets[targets >= 0].tolist(), evidence[targets >= 0].tolist(), strict=True):
            facts = out.explain(e, e2)
            assert sum(fact.evidence for fact in facts) == pytest.approx(expected, rel=1e-5, abs=1e-7)
            explained_pairs += len(facts) > 1
    assert explained_pairs > 50


@pytest.mark.parametrize("method", ["joint", "product", "paper"])
def test_shares_sum_to_one_and_the_strongest_fact_comes_first(method):
    pair = sf.synthetic_pair(70, 2, num_relations=5)
    out = sf.refine(candidates(pair, 6), pair.kg1, pair.kg2, seeds=pair.train, method=method)
    several = 0
    for e, e2 in reveal(pair.links).tolist():
        facts = out.explain(e, e2)
        evidence = [fact.evidence for fact in facts]
        assert evidence == sorted(evidence, reverse=True)
        assert all(fact.evidence > 0 and 0 < fact.weight <= 1 for fact in facts)
        if len(facts):
            assert sum(fact.share for fact in facts) == pytest.approx(1.0)
            assert facts[0].share == pytest.approx(facts[0].evidence / facts.evidence)
        several += len(set(evidence)) > 2
    assert several > 10


def test_every_fact_is_a_triple_of_each_graph():
    pair = sf.synthetic_pair(70, 3, num_relations=5)
    out = sf.refine(candidates(pair, 6), pair.kg1, pair.kg2, seeds=pair.train, method="product")
    for e, e2 in pair.train.tolist():
        for fact in out.explain(e, e2):
            assert [fact.neighbor, fact.relation] in pair.kg1.edges_of(e).tolist()
            assert [fact.neighbor2, fact.relation2] in pair.kg2.edges_of(e2).tolist()


def test_relations_of_which_nothing_is_stored_count_with_the_default():
    out = explained(relations=RelationAlignment.uniform(KG1, KG2, 0.25))
    facts = out.explain(0, 0)
    assert facts.evidence == pytest.approx(evidence_of(out.forward, 0, 0), rel=1e-5)
    # All four pairs of edges count now, the doubtful neighbours with weight 0.1.
    assert [round(fact.weight, 3) for fact in facts] == [0.6, 0.6, 0.1, 0.1]


def test_the_default_holds_only_where_neither_matrix_has_the_pair():
    shape = (4, 4)
    sub12 = np.zeros(shape)
    sub12[0, 0] = 0.5
    out = explained(relations=RelationAlignment(sub12, np.zeros(shape), default=0.25), evidence="argmax")
    facts = out.explain(3, 3)
    # P(r ⊆ r') = 0.5 is stored, P(r' ⊆ r) is then 0 and not the default.
    assert facts.evidence == pytest.approx(-np.log(1 - 0.5 * 0.5), rel=1e-5)
    assert facts.evidence == pytest.approx(evidence_of(out.forward, 3, 3), rel=1e-5)


def test_a_refinement_of_tensors_explains_itself_too():
    torch = pytest.importorskip("torch")
    out = sf.refine(
        (torch.tensor(ALL), torch.tensor(DIAGONAL)), KG1, KG2, method=sf.Product(normalisation="none", sweeps=1)
    )
    assert out.explain(0, 0).evidence == pytest.approx(evidence_of(out.forward, 0, 0), rel=1e-5)


@pytest.mark.parametrize(
    ("e", "e2", "error", "message"),
    [
        (5, 0, ValueError, "^e must be between 0 and 4, got 5"),
        (-1, 0, ValueError, "^e must be between 0 and 4, got -1"),
        (0, 5, ValueError, "^e2 must be between 0 and 4, got 5"),
        (0, -1, ValueError, "^e2 must be between"),
        (0.0, 0, TypeError, "^e must be an integer, got float"),
        (0, "0", TypeError, "^e2 must be an integer, got str"),
    ],
)
def test_ids_outside_the_graphs_are_an_error(e, e2, error, message):
    out = explained()
    with pytest.raises(error, match=message):
        out.explain(e, e2)


@pytest.mark.parametrize("rows_per_block", [1, 50, 2_000_000])
@pytest.mark.parametrize("method", ["joint", "paper"])
def test_the_facts_of_many_pairs_are_those_of_each(method, rows_per_block, monkeypatch):
    monkeypatch.setattr("stea_fast.refinement.facts.ROWS_PER_BLOCK", rows_per_block)
    pair = sf.synthetic_pair(70, 2, num_relations=5)
    out = sf.refine(candidates(pair, 6), pair.kg1, pair.kg2, seeds=pair.train, method=method)
    pairs = reveal(pair.links)[::-1]
    facts, strongest = out.facts(pairs), out.facts(pairs, most=2)
    for i, (e, e2) in enumerate(pairs.tolist()):
        expected = out.explain(e, e2)
        assert facts.totals[i] == strongest.totals[i] == pytest.approx(expected.evidence)
        for table, most in ((facts, None), (strongest, 2)):
            rows = slice(table.indptr[i], table.indptr[i + 1])
            columns = (table.relation, table.neighbor, table.relation2, table.neighbor2, table.weight, table.evidence)
            listed = list(zip(*(column[rows].tolist() for column in columns), strict=True))
            assert listed == [
                (fact.relation, fact.neighbor, fact.relation2, fact.neighbor2, fact.weight, fact.evidence)
                for fact in expected[:most]
            ]


def test_no_pairs_have_no_facts_and_unknown_entities_are_an_error():
    out = explained()
    assert (out.facts([]).indptr.tolist(), len(out.facts([]).evidence)) == ([0], 0)
    with pytest.raises(ValueError, match=r"^pairs\[:, 1\] holds 5, but there are only 5 entities"):
        out.facts([[0, 5]])
