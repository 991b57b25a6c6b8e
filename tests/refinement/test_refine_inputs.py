"""What may go into `refine` and what comes out: kinds of arrays, missing candidates, calibration."""

from __future__ import annotations

import logging

import numpy as np
import pytest

import stea_fast as sf
from stea_fast.data.sealed import reveal
from stea_fast.encoders.demo import candidates, encode
from stea_fast.refinement.temperature import minmax, softmax
from stea_fast.types import Candidates, Ranking

PAIR = sf.synthetic_pair(80, 0, num_relations=6)
CANDIDATES = candidates(PAIR, 5)
FORWARD, BACKWARD = ((side.indices, side.scores) for side in (CANDIDATES.forward, CANDIDATES.backward))
UNLABELLED = np.setdiff1d(np.arange(80), PAIR.train[:, 0])


def refine(given: object = CANDIDATES, **options: object) -> sf.Refinement:
    return sf.refine(given, PAIR.kg1, PAIR.kg2, **{"seeds": PAIR.train, "method": "product", **options})


def arrays_of(out: sf.Refinement) -> list[np.ndarray]:
    sides = (out.forward, out.backward)
    ranked = [array for side in sides for array in (side.indices, side.probs, side.evidence)]
    return [*ranked, out.pairs, out.pair_probs]


def converted(indices: object, scores: object) -> Candidates:
    """The same candidates with other arrays, made by two functions."""
    return Candidates(*(Ranking(indices(side[0]), scores(side[1])) for side in (FORWARD, BACKWARD)))


def assert_same(one: sf.Refinement, other: sf.Refinement) -> None:
    for left, right in zip(arrays_of(one), arrays_of(other), strict=True):
        np.testing.assert_array_equal(left, right)


def test_results_are_int32_and_float32_rankings_and_int64_pairs():
    dtypes = [array.dtype for array in arrays_of(refine())]
    assert dtypes == [np.int32, np.float32, np.float32] * 2 + [np.int64, np.float32]


@pytest.mark.parametrize("dtype", ["int16", "int32", "int64", "uint32"])
def test_indices_may_be_of_any_integer_dtype(dtype):
    assert_same(refine(converted(lambda i: i.astype(dtype), np.array)), refine())


@pytest.mark.parametrize("convert", [np.asfortranarray, np.ndarray.tolist, lambda a: a[::-1].copy()[::-1]])
def test_arrays_may_have_any_layout_and_be_lists(convert):
    assert_same(refine(converted(convert, convert)), refine())


def test_tensors_in_give_tensors_out_with_the_same_values():
    torch = pytest.importorskip("torch")
    given = converted(torch.tensor, lambda s: torch.tensor(s, requires_grad=True))
    out = refine(given, seeds=torch.tensor(PAIR.train))
    for tensor, array in zip(arrays_of(out), arrays_of(refine()), strict=True):
        assert isinstance(tensor, torch.Tensor) and tensor.device == given.forward.indices.device
        assert not tensor.requires_grad
        np.testing.assert_array_equal(tensor.numpy(), array)
        assert tensor.numpy().dtype == array.dtype


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_tensors_of_other_precisions_are_taken_as_the_numbers_they_hold(dtype):
    torch = pytest.importorskip("torch")
    given = converted(torch.tensor, lambda s: torch.tensor(s).to(getattr(torch, dtype)))
    rounded = converted(np.array, lambda s: torch.tensor(s).to(getattr(torch, dtype)).float().numpy())
    for tensor, array in zip(arrays_of(refine(given)), arrays_of(refine(rounded)), strict=True):
        np.testing.assert_array_equal(tensor.numpy(), array)


def test_what_goes_in_is_not_modified():
    given = converted(np.array, np.array)
    seeds = PAIR.train.copy()
    arrays = [*given.forward, *given.backward, seeds]
    for array in arrays:
        array.flags.writeable = False  # a write would raise
    assert_same(refine(given, seeds=seeds), refine())
    out = refine(given, seeds=seeds)
    for array in arrays_of(out):
        assert not any(np.shares_memory(array, mine) for mine in arrays)


@pytest.mark.parametrize("backend", ["native", "numba"])
def test_graphs_may_be_memory_mapped(tmp_path, backend):
    if not sf.backends()[backend].usable:
        pytest.skip(sf.backends()[backend].detail)
    for kg, name in ((PAIR.kg1, "one"), (PAIR.kg2, "two")):
        kg.save(tmp_path / name)
    mapped = [sf.KG.load(tmp_path / name, mmap=True) for name in ("one", "two")]
    assert_same(
        sf.refine(CANDIDATES, *mapped, seeds=PAIR.train, method="product", backend=backend), refine(backend=backend)
    )


@pytest.mark.parametrize(
    "method", ["product", "paper", sf.Product(normalisation="minmax"), sf.Product(blanket="full")], ids=str
)
def test_minus_one_means_no_candidate_wherever_it_stands(method):
    indices, scores = FORWARD[0].copy(), FORWARD[1].copy()
    partial, empty = UNLABELLED[:2]
    indices[partial, [1, 3]] = -1
    indices[empty] = -1
    scores[partial, 1], scores[empty, 2] = np.nan, 7.0  # not read
    out = refine(Candidates(Ranking(indices, scores), CANDIDATES.backward), method=method)
    assert set(out.forward.indices[partial, :3]) == set(FORWARD[0][partial, [0, 2, 4]])
    assert out.forward.indices[partial, 3:].tolist() == [-1, -1]
    assert out.forward.probs[partial, 3:].tolist() == [0, 0]
    assert out.forward.probs[partial].sum() == pytest.approx(1.0)
    assert out.forward.indices[empty].tolist() == [-1] * 5
    assert out.forward.probs[empty].tolist() == out.forward.evidence[empty].tolist() == [0] * 5
    assert empty not in out.pairs[:, 0]


def test_a_seed_of_a_row_without_candidates_is_its_only_candidate():
    source, target = PAIR.train[0]
    indices = FORWARD[0].copy()
    indices[source] = -1
    out = refine((indices, FORWARD[1]))
    assert out.forward.indices[source].tolist() == [target, -1, -1, -1, -1]
    assert out.forward.probs[source].tolist() == [1, 0, 0, 0, 0]


def test_an_entity_without_triples_keeps_what_the_encoder_said():
    triples = PAIR.kg1.triples
    lonely = int(UNLABELLED[3])
    kg1 = sf.KG(triples[(triples[:, [0, 2]] != lonely).all(axis=1)], 80, PAIR.kg1.num_relations)
    out = sf.refine(CANDIDATES, kg1, PAIR.kg2, seeds=PAIR.train, method=sf.Product(beta=5.0))
    assert (out.forward.evidence[lonely] == 0).all()
    np.testing.assert_array_equal(out.forward.indices[lonely], FORWARD[0][lonely])
    np.testing.assert_allclose(out.forward.probs[lonely], softmax(FORWARD[1], 5.0)[lonely], rtol=1e-5)


def test_a_target_that_nobody_has_as_candidate_is_normal_input():
    unwanted = np.setdiff1d(np.arange(80), FORWARD[0])
    assert len(unwanted) > 0  # entities without counterpart
    out = refine()
    assert not np.isin(out.pairs[:, 1], unwanted).any() and len(out.pairs) > 20


def test_a_given_beta_is_used_in_both_directions():
    out = refine(method=sf.Product(beta=5.0, evidence_weight=0.0))
    assert out.betas == (5.0, 5.0)
    np.testing.assert_allclose(out.forward.probs[UNLABELLED], softmax(FORWARD[1], 5.0)[UNLABELLED], rtol=1e-5)


def test_without_held_out_links_the_mean_confidence_is_the_share_of_mutual_rows():
    out = refine(method=sf.Product(evidence_weight=0.0))
    mutual = sf.mutual_nearest(CANDIDATES, seeds=PAIR.train)[0]
    share = len(mutual) / len(UNLABELLED)
    assert 0.3 < share < 0.95
    assert out.forward.probs[UNLABELLED, 0].mean() == pytest.approx(share, abs=0.02)


def test_held_out_links_decide_beta_where_there_are_any():
    holdout = reveal(PAIR.test)[:25]
    rows, truth = [], []
    for source, target in holdout:
        if target in FORWARD[0][source]:
            rows.append(FORWARD[1][source])
            truth.append(FORWARD[0][source].tolist().index(target))
    out = refine(FORWARD, holdout=holdout)
    assert out.betas == (pytest.approx(sf.fit_beta([(np.array(rows), np.array(truth))]), rel=1e-6),)
    assert out.betas != refine(FORWARD).betas


def test_held_out_links_that_no_candidate_meets_are_reported_and_not_used(caplog):
    source = int(UNLABELLED[0])
    missing = next(t for t in range(80) if t not in FORWARD[0][source])
    with caplog.at_level(logging.WARNING, logger="stea_fast"):
        out = refine(FORWARD, holdout=[[source, missing]])
    assert out.betas == refine(FORWARD).betas
    assert any("no held-out link" in record.message for record in caplog.records)


def test_minmax_gives_the_papers_ablation_and_no_beta():
    out = refine(method=sf.Product(normalisation="minmax", evidence_weight=0.0))
    assert out.betas == (None, None)
    np.testing.assert_allclose(out.forward.probs[UNLABELLED], minmax(FORWARD[1])[UNLABELLED], rtol=1e-5)


def test_given_probabilities_are_taken_as_they_are():
    probs = np.tile(np.array([0.4, 0.2, 0.1, 0.0, 0.0], dtype=np.float32), (80, 1))
    out = refine((FORWARD[0], probs), method=sf.Product(normalisation="none", evidence_weight=0.0))
    np.testing.assert_allclose(out.forward.probs[UNLABELLED], probs[UNLABELLED], rtol=1e-5)
    refined = refine((FORWARD[0], probs), method=sf.Product(normalisation="none"))
    np.testing.assert_allclose(refined.forward.probs[UNLABELLED].sum(axis=1), 0.7, rtol=1e-5)


@pytest.mark.parametrize("method", ["product", "paper"])
def test_a_partition_over_all_targets_leaves_mass_outside_the_candidates(method):
    emb1, emb2 = encode(PAIR)
    partition = sf.log_partition(emb1, emb2, 5.0)
    found = sf.topk(emb1, emb2, 5, csls=0, metric="ip")
    out = refine(sf.TopK(found.forward, found.backward, log_partition=partition, beta=5.0), method=method)
    assert out.betas == (5.0, 5.0)
    everything = softmax((emb1 @ emb2.T), 5.0)
    mass = np.take_along_axis(everything, FORWARD[0].astype(np.int64), axis=1).sum(axis=1)
    np.testing.assert_allclose(out.forward.probs.sum(axis=1)[UNLABELLED], mass[UNLABELLED], rtol=1e-4)
    assert mass[UNLABELLED].max() < 0.9
    assert (out.forward.probs[PAIR.train[:, 0], 0] == 1).all()


def test_a_partition_may_be_a_pair_of_tensors():
    torch = pytest.importorskip("torch")
    emb1, emb2 = encode(PAIR)
    arrays = sf.log_partition(emb1, emb2, 5.0)
    tensors = sf.log_partition(torch.tensor(emb1, requires_grad=True), torch.tensor(emb2), 5.0)
    one, other = (
        refine(sf.TopK(CANDIDATES.forward, CANDIDATES.backward, log_partition=sums, beta=5.0))
        for sums in (tensors, arrays)
    )
    assert_same(one, other)
    assert (one.forward.probs != refine(method=sf.Product(beta=5.0)).forward.probs).any()


def test_another_beta_than_that_of_the_partition_sums_does_without_them():
    partition = sf.log_partition(*encode(PAIR), 5.0)
    given = sf.TopK(CANDIDATES.forward, CANDIDATES.backward, log_partition=partition, beta=5.0)
    assert_same(refine(given, method=sf.Product(beta=5.0)), refine(given))
    assert_same(refine(given, method=sf.Product(beta=7.0)), refine(method=sf.Product(beta=7.0)))


def test_torch_candidates_keep_the_integer_type_that_torch_indexes_with():
    torch = pytest.importorskip("torch")
    indices, scores = (torch.from_numpy(part.copy()) for part in FORWARD)
    out = sf.refine((indices.long(), scores), PAIR.kg1, PAIR.kg2)
    assert out.forward.indices.dtype == torch.int64
    assert torch.gather(scores, 1, out.forward.indices.clamp(0, scores.shape[1] - 1)).shape == scores.shape
