"""`refine`: what it improves, what it keeps, and that every option does what it says."""

from __future__ import annotations

import numpy as np
import pytest

import stea_fast as sf
from stea_fast import _backends
from stea_fast.encoders.demo import candidates
from stea_fast.types import Candidates, Ranking, RelationAlignment

PAIR = sf.synthetic_pair(80, 0, num_relations=6)
CANDIDATES = candidates(PAIR, 5)
FORWARD, BACKWARD = ((side.indices, side.scores) for side in (CANDIDATES.forward, CANDIDATES.backward))


def refine(given: object = CANDIDATES, **options: object) -> sf.Refinement:
    return sf.refine(given, PAIR.kg1, PAIR.kg2, **{"seeds": PAIR.train, "method": "product", **options})


def arrays_of(out: sf.Refinement) -> list[np.ndarray]:
    sides = [out.forward] if out.backward is None else [out.forward, out.backward]
    ranked = [array for side in sides for array in (side.indices, side.probs, side.evidence)]
    return [*ranked, out.pairs, out.pair_probs]


def assert_same(one: sf.Refinement, other: sf.Refinement) -> None:
    """The same to the last bit."""
    for left, right in zip(arrays_of(one), arrays_of(other), strict=True):
        assert left.dtype == right.dtype
        np.testing.assert_array_equal(left, right)


def by_candidate(side: sf.RefinedRanking, values: np.ndarray) -> np.ndarray:
    """Dense [n, 80]: the value of every candidate, wherever it is ranked."""
    table = np.zeros((len(side.indices), 80))
    np.put_along_axis(table, side.indices.astype(np.int64), values, axis=1)
    return table


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(
    "method", ["joint", "product", "paper", sf.Product(blanket="full"), sf.Product(evidence="mutual")], ids=str
)
def test_refinement_finds_many_more_true_targets_than_the_encoder(seed, method):
    pair = sf.synthetic_pair(300, seed)
    found = candidates(pair, 10)
    out = sf.refine(found, pair.kg1, pair.kg2, seeds=pair.train, method=method)
    for direction in ("forward", "backward"):
        before = sf.evaluate(found, pair.test, "all", direction=direction).hit1
        after = sf.evaluate(out, pair.test, "all", direction=direction)
        assert after.hit1 > before + 0.1
    assert after.precision > 0.8 and after.recall > 0.6


def test_candidates_stay_the_same_and_come_best_first():
    out = refine()
    for side, given in ((out.forward, CANDIDATES.forward), (out.backward, CANDIDATES.backward)):
        unlabelled = np.setdiff1d(np.arange(80), PAIR.train)
        np.testing.assert_array_equal(
            np.sort(side.indices[unlabelled], axis=1), np.sort(given.indices[unlabelled], axis=1)
        )
        assert (np.diff(side.probs, axis=1) <= 0).all()
        assert (side.probs >= 0).all() and (side.evidence >= 0).all()
        np.testing.assert_allclose(side.probs.sum(axis=1), 1.0, rtol=1e-5)


@pytest.mark.parametrize("method", ["product", "paper", sf.Product(k=1), sf.Product(normalisation="minmax")], ids=str)
def test_a_seed_stays_certain_even_if_the_encoder_missed_it(method):
    seeds = [(8, 39), (3, 50), (40, 60)]
    assert 39 in FORWARD[0][8]
    assert all(t not in FORWARD[0][s] and s not in BACKWARD[0][t] for s, t in seeds[1:])
    out = refine(seeds=seeds, method=method)
    for source, target in seeds:
        for side, row, expected in ((out.forward, source, target), (out.backward, target, source)):
            assert side.indices[row, 0] == expected
            assert side.probs[row].tolist() == [1.0] + [0.0] * (side.probs.shape[1] - 1)
            assert len(set(side.indices[row])) == side.indices.shape[1]
    assert not np.isin(out.pairs[:, 0], [8, 3, 40]).any() and not np.isin(out.pairs[:, 1], [39, 50, 60]).any()


def test_a_seed_among_the_candidates_moves_up_and_keeps_the_others_in_order():
    row, targets = 11, FORWARD[0][11]
    out = refine(FORWARD, seeds=[[row, targets[2]]])
    assert out.forward.indices[row].tolist() == targets[[2, 0, 1, 3, 4]].tolist()


def edges(kg: sf.KG) -> list[list[tuple[int, int]]]:
    """(relation, neighbor) of every entity, by the definition of the closure."""
    found: list[list[tuple[int, int]]] = [[] for _ in range(kg.num_entities)]
    for h, r, t in kg.triples.tolist():
        found[h].append((r, t))
        found[t].append((r + kg.num_relations, h))
    return found


def inverse_functionality(kg: sf.KG) -> np.ndarray:
    pairs = [set() for _ in range(2 * kg.num_relations)]
    for e, facts in enumerate(edges(kg)):
        for r, n in facts:
            pairs[r].add((e, n))
    return np.array([len({n for _, n in found}) / max(len(found), 1) for found in pairs])


def contained(kg: sf.KG, other: sf.KG, match: np.ndarray) -> np.ndarray:
    """P(r ⊆ r') under a certain match, smoothed by one statement at 0.1; 0 if never seen together."""
    num = np.zeros((2 * kg.num_relations, 2 * other.num_relations))
    den = np.zeros((2 * kg.num_relations, 1))
    facts = edges(other)
    for x, own in enumerate(edges(kg)):
        for r, y in own:
            den[r] += 1
            for r2, y2 in facts[match[x]]:
                num[r, r2] += y2 == match[y]
    return np.where(num > 0, (num + 0.1) / (den + 1), 0)


def compatibility(facts, facts2, match, strength, strength2) -> float:
    """g of one pair: 1 - the product of all factors, each at least 1e-4."""
    product = 1.0
    for r, n in facts:
        for r2, n2 in facts2:
            if match[n] == n2:
                product *= max(1 - strength[r2, r], 1e-4) * max(1 - strength2[r, r2], 1e-4)
    return 1 - product


def test_paper_mode_is_the_papers_step_computed_directly():
    kgs, rows, train = (PAIR.kg1, PAIR.kg2), (FORWARD[0], BACKWARD[0]), PAIR.train
    assert all(t in FORWARD[0][s] and s in BACKWARD[0][t] for s, t in train)  # no candidate has to make room
    match = [indices[:, 0].astype(np.int64) for indices in rows]
    match[0][train[:, 0]], match[1][train[:, 1]] = train[:, 1], train[:, 0]
    within = [contained(kgs[0], kgs[1], match[0]), contained(kgs[1], kgs[0], match[1])]
    out = refine(method=sf.Paper(beta=6.0))
    assert out.sweeps == 1
    for one, other in ((0, 1), (1, 0)):
        strength = within[other] * inverse_functionality(kgs[one])
        strength2 = within[one] * inverse_functionality(kgs[other])
        facts, facts2 = edges(kgs[one]), edges(kgs[other])
        refined = (out.forward, out.backward)[one]
        evidence, probs = by_candidate(refined, refined.evidence), by_candidate(refined, refined.probs)
        for e in range(80):
            g, expected = np.zeros(80), np.zeros(80)
            for e2 in rows[one][e]:
                g[e2] = compatibility(facts[e], facts2[e2], match[one], strength, strength2)
                expected[e2] = np.exp(g[e2]) if e not in train[:, one] else e2 == match[one][e]
            np.testing.assert_allclose(1 - np.exp(-evidence[e]), g, atol=1e-6)
            np.testing.assert_allclose(probs[e], expected / expected.sum(), rtol=1e-5, atol=1e-7)


def test_the_product_weighs_the_prior_by_the_exponential_of_the_evidence():
    out = refine(FORWARD, method=sf.Product(beta=6.0, evidence_weight=2.5, sweeps=1))
    prior = np.exp(6.0 * FORWARD[1].astype(np.float64))
    for e in np.setdiff1d(np.arange(80), PAIR.train[:, 0]):
        order = [FORWARD[0][e].tolist().index(t) for t in out.forward.indices[e]]
        expected = prior[e][order] * np.exp(2.5 * out.forward.evidence[e].astype(np.float64))
        np.testing.assert_allclose(out.forward.probs[e], expected / expected.sum(), rtol=1e-4, atol=1e-12)


def test_a_given_relation_alignment_is_used_and_returned():
    shape = (2 * PAIR.kg1.num_relations, 2 * PAIR.kg2.num_relations)
    nothing = RelationAlignment(np.zeros(shape), np.zeros(shape[::-1]))
    out = refine(FORWARD, seeds=(), relations=nothing)
    assert out.relations is nothing
    assert (out.forward.evidence == 0).all()
    np.testing.assert_array_equal(out.forward.indices, FORWARD[0])
    uniform = RelationAlignment.uniform(PAIR.kg1, PAIR.kg2)
    assert (refine(relations=uniform).forward.evidence > refine(relations=nothing).forward.evidence).any()


def test_one_direction_gives_one_direction():
    out = refine(FORWARD)
    assert out.backward is None and len(out.betas) == 1
    assert (out.pairs.shape, out.pair_probs.shape) == ((0, 2), (0,))
    chosen = refine(FORWARD, select="forward", threshold=0.9)
    certain = (chosen.forward.probs[:, 0] > 0.9).nonzero()[0]
    np.testing.assert_array_equal(chosen.pairs[:, 0], np.setdiff1d(certain, PAIR.train[:, 0]))
    assert len(chosen.pairs) > 10
    assert_same(refine(Candidates(CANDIDATES.forward)), out)
    assert_same(refine(CANDIDATES.forward), out)


def test_the_options_select_and_threshold_choose_the_pairs():
    everything, sure, none = refine(), refine(threshold=0.9), refine(select="none")
    assert (sure.pair_probs > 0.9).all() and 0 < len(sure.pairs) < len(everything.pairs)
    assert len(none.pairs) == 0
    assert len(refine(select="either", threshold=0.0).pairs) > len(everything.pairs)


def test_k_uses_only_the_best_candidates():
    short = Candidates(*(Ranking(indices[:, :3], scores[:, :3]) for indices, scores in (FORWARD, BACKWARD)))
    assert_same(refine(method=sf.Product(k=3)), refine(short))
    assert_same(refine(method=sf.Product(k=99)), refine())


def test_candidates_may_come_in_any_order():
    order, scores = [3, 0, 4, 1, 2], np.tile(np.linspace(0.9, 0.5, 5, dtype=np.float32), (80, 1))
    assert_same(refine((FORWARD[0][:, order], scores[:, order])), refine((FORWARD[0], scores)))


def test_sweeps_end_when_no_best_candidate_changes():
    out = refine(method=sf.Product(sweeps=50))
    assert 1 < out.sweeps < 50
    assert_same(refine(method=sf.Product(sweeps=out.sweeps)), out)
    before = refine(method=sf.Product(sweeps=out.sweeps - 1))
    np.testing.assert_array_equal(before.forward.indices[:, 0], out.forward.indices[:, 0])
    np.testing.assert_array_equal(before.backward.indices[:, 0], out.backward.indices[:, 0])
    assert refine(method=sf.Product(evidence_weight=0.0, sweeps=50)).sweeps == 1


@pytest.mark.parametrize("options", [{}, {"evidence": "argmax"}, {"evidence": "mutual"}, {"blanket": "full"}])
def test_every_backend_gives_the_same_pairs(options):
    pair = sf.synthetic_pair(40, 0, num_relations=4, mean_degree=3, seed_fraction=0.3)
    settings = {"seeds": pair.train, "method": sf.Product(sweeps=2, **options)}
    usable = [name for name, found in sf.backends().items() if found.usable and name != "reference"]
    expected = sf.refine(candidates(pair, 3), pair.kg1, pair.kg2, backend="reference", **settings)
    assert usable and len(expected.pairs) > 5
    for backend in usable:
        out = sf.refine(candidates(pair, 3), pair.kg1, pair.kg2, backend=backend, **settings)
        np.testing.assert_array_equal(out.pairs, expected.pairs)
        np.testing.assert_allclose(out.pair_probs, expected.pair_probs, rtol=1e-4)


@pytest.mark.parametrize("backend", ["native", "numba"])
@pytest.mark.parametrize("blanket", ["local", "full"])
def test_the_number_of_threads_does_not_change_a_bit(backend, blanket):
    if not _backends.status(backend).usable:
        pytest.skip(_backends.status(backend).detail)
    method = sf.Product(blanket=blanket)
    one = refine(backend=backend, method=method, n_threads=1)
    for n_threads in (2, 3, 7):
        assert_same(refine(backend=backend, method=method, n_threads=n_threads), one)


def test_the_full_blanket_changes_the_probabilities_but_not_the_first_evidence():
    local, full = (refine(method=sf.Product(sweeps=1, blanket=blanket)) for blanket in ("local", "full"))
    for one, other in ((local.forward, full.forward), (local.backward, full.backward)):
        assert np.abs(by_candidate(one, one.probs) - by_candidate(other, other.probs)).max() > 0.01
        np.testing.assert_array_equal(by_candidate(one, one.evidence), by_candidate(other, other.evidence))
