"""The stages over tensors equal those over NumPy arrays: what they do does not depend on the device."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stea_fast import KG, RelationAlignment
from stea_fast._backends import numba
from stea_fast._backends.counts import RelationCounts, containment
from stea_fast._util import validate
from stea_fast.refinement import beliefs, normalisation, posterior, temperature

torch = pytest.importorskip("torch")
from stea_fast._backends import tensors as device_backend  # noqa: E402
from stea_fast._backends.device_data import DeviceAlignment, DeviceBeliefs, Strengths  # noqa: E402
from stea_fast.data.device_graph import DeviceGraph  # noqa: E402
from stea_fast.refinement.selection import select  # noqa: E402
from stea_fast.types import RefinedRanking  # noqa: E402

CPU = torch.device("cpu")


@st.composite
def scored(draw):
    """Candidates with gaps, ties and rows without any; and scores, best first, -inf where there is none."""
    n, k, targets = draw(st.integers(1, 8)), draw(st.integers(1, 6)), draw(st.integers(6, 9))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    indices = np.stack([rng.permutation(targets)[:k] for _ in range(n)]).astype(np.int32)
    indices[rng.random(indices.shape) < draw(st.sampled_from([0.0, 0.3, 1.0]))] = -1
    scores = -np.sort(-rng.integers(-3, 4, indices.shape).astype(np.float32), axis=1)
    return indices, np.where(indices >= 0, scores, -np.inf).astype(np.float32), rng


def assert_beliefs(found, wanted):
    for ours, theirs in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(ours.numpy(), theirs)
        assert str(ours.dtype) == f"torch.{theirs.dtype}"


@given(scored(), st.sampled_from([0.0, 0.5, 20.0]))
def test_probabilities(case, beta):
    _, scores, rng = case
    tensor = torch.tensor(scores)
    np.testing.assert_allclose(temperature.softmax(tensor, beta), temperature.softmax(scores, beta), rtol=1e-12)
    np.testing.assert_allclose(temperature.minmax(tensor), temperature.minmax(scores), rtol=1e-12)
    partition = rng.random(len(scores)) + 100
    found = temperature.softmax(tensor, beta, torch.tensor(partition))
    assert found.dtype == torch.float64
    np.testing.assert_allclose(found, temperature.softmax(scores, beta, partition), rtol=1e-9)


@given(scored(), st.sampled_from([0.3, 0.7]))
def test_the_choice_of_beta(case, confidence):
    _, scores, _ = case
    found = temperature.beta_for_confidence(torch.tensor(scores), confidence)
    assert found == pytest.approx(temperature.beta_for_confidence(scores, confidence), rel=1e-9)
    rows = scores[np.isfinite(scores[:, 0])]
    if len(rows):
        truth = np.zeros(len(rows), dtype=np.int64)
        derivatives = temperature.likelihood_derivatives(torch.tensor(rows), torch.tensor(truth), 1.5)
        assert derivatives == pytest.approx(temperature._derivatives([(rows, truth)], 1.5), rel=1e-9, abs=1e-12)


@given(scored())
def test_clamped_seeds(case):
    indices, scores, rng = case
    seeds = np.stack([rng.permutation(len(indices))[:3], rng.permutation(9)[: min(3, len(indices))]], axis=1)
    probs = temperature.softmax(scores, 1.0)
    found = posterior.clamp(torch.tensor(indices), torch.tensor(probs), torch.tensor(seeds))
    for ours, theirs in zip(found, posterior.clamp(indices, probs, seeds), strict=True):
        np.testing.assert_array_equal(ours.numpy(), theirs)


@given(scored())
def test_beliefs_from_probabilities(case):
    indices, scores, _ = case
    probs = temperature.softmax(scores, 1.0)
    tensors = torch.tensor(indices), torch.tensor(probs)
    soft = beliefs.soft(indices, probs)
    assert_beliefs(beliefs.soft(*tensors), soft)
    assert_beliefs(beliefs.argmax(*tensors), beliefs.argmax(indices, probs))
    assert_beliefs(beliefs.transpose(beliefs.soft(*tensors), 9), beliefs.transpose(soft, 9))
    assert_beliefs(DeviceBeliefs.upload(soft, CPU), DeviceBeliefs.upload(soft, CPU).download())


@given(scored(), st.booleans())
def test_posterior_and_order(case, product):
    indices, scores, rng = case
    before = temperature.softmax(scores, 1.0) * 0.9
    evidence = rng.random(indices.shape, dtype=np.float32)
    seeds = np.array([0])

    def refined(indices, before, evidence, seeds):
        exponent = (
            posterior.product_exponent(before, evidence, None, 4.0)
            if product
            else posterior.compatibility_exponent(evidence, None)
        )
        return posterior.normalise(exponent, indices, before, seeds)

    wanted = refined(indices, before, evidence, seeds)
    found = refined(*map(torch.tensor, (indices, before, evidence, seeds)))
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-15)
    order = np.argsort(np.where(indices >= 0, -wanted, np.inf), axis=1, kind="stable")
    ranked = posterior.ranked(*map(torch.tensor, (indices, wanted, evidence)))
    for ours, theirs in ((ranked.indices, indices), (ranked.probs, wanted), (ranked.evidence, evidence)):
        sorted_rows = np.take_along_axis(theirs, order, axis=1)
        np.testing.assert_array_equal(ours, sorted_rows.astype(theirs.dtype if theirs is not wanted else np.float32))


@given(scored(), st.sampled_from(["forward", "backward", "either", "none"]))
def test_selection_by_threshold(case, strategy):
    indices, _, rng = case
    probs = -np.sort(-np.where(indices >= 0, rng.random(indices.shape), 0.0), axis=1).astype(np.float32)
    indices = np.take_along_axis(indices, np.argsort(indices < 0, axis=1, kind="stable"), axis=1)
    ranking = RefinedRanking(indices, probs, probs)
    seeds = np.array([[0, 3]])
    wanted = select(strategy, ranking, ranking, 0.4, seeds)
    tensors = RefinedRanking(*map(torch.tensor, (indices, probs, probs)))
    found = select(strategy, tensors, tensors, 0.4, torch.tensor(seeds))
    assert found[0].dtype == torch.int64 and found[1].dtype == torch.float32
    np.testing.assert_array_equal(found[0].numpy(), wanted[0])
    np.testing.assert_array_equal(found[1].numpy(), wanted[1])


@given(scored(), st.integers(1, 4))
def test_mutual_pairs(case, k):
    indices, scores, rng = case
    back = np.stack([np.append(rng.permutation(len(indices)), [-1] * k)[:k] for _ in range(9)]).astype(np.int32)
    probs = [temperature.softmax(scores, 1.0), np.where(back >= 0, rng.integers(0, 3, back.shape) / 4, 0.0)]
    directions = list(zip((indices, back), probs, strict=True))
    tensors = [tuple(map(torch.tensor, ranking)) for ranking in directions]
    for ours, theirs in zip(beliefs.mutual(*tensors), beliefs.mutual(*directions), strict=True):
        assert_beliefs(ours, theirs)
    rankings = [RefinedRanking(*ranking, None) for ranking in directions]
    on_device = [RefinedRanking(*ranking, None) for ranking in tensors]
    seeds = np.array([[0, 3]])
    wanted = select("mutual", *rankings, 0.2, seeds)
    found = select("mutual", *on_device, 0.2, torch.tensor(seeds))
    for ours, theirs in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(ours.numpy(), theirs)
    count = normalisation._mutual_count
    assert count(tensors, torch.tensor(seeds)) == count(directions, seeds)


@given(scored(), st.booleans())
def test_the_prior(case, fitted):
    indices, scores, rng = case
    seeds = np.zeros((0, 2), dtype=np.int64)
    held_out = np.stack([np.arange(len(indices)), np.maximum(indices[:, 0], 0)], axis=1)[: 2 * fitted]
    wanted = normalisation._choose_beta(indices, scores, seeds, held_out, None)
    found = normalisation._choose_beta(*map(torch.tensor, (indices, scores, seeds, held_out)), None)
    assert found == pytest.approx(wanted, rel=1e-6)
    chances = np.where(indices >= 0, rng.random(indices.shape) / 6, -np.inf).astype(np.float32)
    for calibrate, values in (("softmax", scores), ("minmax", scores), ("none", chances)):
        ours = normalisation.probabilities(torch.tensor(values), calibrate, wanted)
        np.testing.assert_allclose(ours, normalisation.probabilities(values, calibrate, wanted), rtol=1e-9, atol=1e-300)


@pytest.mark.parametrize("to", [np.asarray, torch.tensor])
def test_priors_that_cannot_be_are_refused(to):
    with pytest.raises(ValueError, match=r"probabilities in \[0, 1\], got -0.5 to 0.5"):
        normalisation.probabilities(to(np.array([[0.5, -0.5]])), "none", None)
    with pytest.raises(ValueError, match=r"a row with sum 1\.6000"):
        normalisation.probabilities(to(np.array([[0.8, 0.8], [0.1, 0.1]])), "none", None)
    device = None if to is np.asarray else CPU
    partition, scores = normalisation.checked_partition, to(np.zeros((2, 1)))
    with pytest.raises(ValueError, match="other scores or another beta"):
        partition((to(np.array([0.0])), None), True, to(np.array([[0.8, 0.8]])), 1.0, device)
    with pytest.raises(ValueError, match=r"2 finite numbers for the backward direction, got shape \(1,\)"):
        partition((to(np.zeros(2)), to(np.zeros(1))), False, scores, 1.0, device)
    with pytest.raises(TypeError, match="must be a pair of arrays"):
        partition(3.0, True, scores, 1.0, device)
    found = partition((to(np.ones(2, dtype=np.float32)),), True, scores, 1.0, device)
    assert type(found) is type(to(np.ones(2))) and found.dtype == to(np.ones(2)).dtype


@given(scored())
def test_candidates_are_checked_alike(case):
    indices, scores, rng = case
    shuffled = rng.permutation(scores, axis=1)
    shuffled = np.where(np.isfinite(shuffled), shuffled, 0.0)
    wanted = validate.ranking(indices, shuffled, "forward", len(indices), 9)
    found = validate.ranking(indices, torch.tensor(shuffled), "forward", len(indices), 9, CPU)
    for ours, theirs in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(ours.numpy(), theirs)


@pytest.mark.parametrize("device", [None, CPU])
@pytest.mark.parametrize(
    ("indices", "scores", "message"),
    [
        ([[0, 1], [2, 2]], [[1.0, 0.0], [1.0, 0.0]], r"x.indices\[1\] holds candidate 2 twice"),
        ([[0, 1], [2, 3]], [[1.0, 0.0], [np.nan, 0.0]], r"x.scores\[1, 0\] is nan; scores must be finite"),
        ([[0, 1], [2, 3]], [[1.0, 0.0], [0.0, 1e39]], r"x.scores\[1, 1\] is 1e\+39; scores must be finite"),
        ([[0, -2], [2, 3]], np.zeros((2, 2)), "x.indices holds -2: candidates must not be negative"),
        ([[0, 5], [2, 3]], np.zeros((2, 2)), r"x.indices holds 5, but there are only 5 targets \(0 to 4\)"),
        (np.zeros((2, 0), dtype=np.int64), np.zeros((2, 0)), r"x.indices is empty, with shape \(2, 0\)"),
        (np.tile(np.arange(6), (2, 1)), np.zeros((2, 6)), "rows of 6 candidates, but there are only 5 targets"),
    ],
)
def test_what_is_wrong_with_candidates_is_said_alike(device, indices, scores, message):
    with pytest.raises(ValueError, match=message):
        validate.ranking(np.array(indices), np.array(scores), "x", 2, 5, device)


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.1]))
def test_relations_and_strengths(seed, default):
    rng = np.random.default_rng(seed)
    r1, r2, n = 3, 4, 12
    keys = np.sort(rng.permutation(r1 * 2 * r2)[: rng.integers(0, 20)]).astype(np.int64)
    counts = RelationCounts(keys, rng.integers(1, 99, len(keys)), rng.integers(99, 200, r1), 5)
    tensors = RelationCounts(*map(torch.tensor, (counts.keys, counts.num, counts.den)), counts.scale_bits)
    wanted = containment(counts, r2, 1.0, 0.1)
    found = device_backend.containment(tensors, r2, 1.0, 0.1)
    np.testing.assert_array_equal(found.download().toarray(), wanted.toarray())
    kg1, kg2 = (KG(rng.integers(0, (n, r, n), (30, 3)), n, r) for r in (r1, r2))
    dense = wanted.toarray().T * (rng.random((2 * r2, 2 * r1)) < 0.7)
    alignment = RelationAlignment(wanted, dense, default)
    on_device = DeviceAlignment.upload(alignment, CPU)
    np.testing.assert_array_equal(on_device.sub21.toarray(), alignment.sub21.toarray())
    table = numba.strengths(alignment, kg1, kg2)
    ours = Strengths.of(on_device, DeviceGraph.upload(kg1, CPU), DeviceGraph.upload(kg2, CPU))
    for tensor, array in zip(ours.forward[:5], table.forward, strict=True):
        np.testing.assert_array_equal(tensor.numpy(), array)
    swapped = numba.strengths(alignment.swapped(), kg2, kg1).forward
    for tensor, array in zip(ours.backward[:5], swapped, strict=True):
        np.testing.assert_array_equal(tensor.numpy(), array)
    for held in ours:
        assert_pairs_are_in_their_buckets(held)


def assert_pairs_are_in_their_buckets(held):
    """Every stored pair is once in the bucket in which the kernel looks for it, with both strengths."""
    starts, pairs = held.starts.numpy(), held.pairs.numpy()
    buckets = len(starts) - 1
    assert buckets >= max(2, 2 * len(pairs))
    assert buckets & (buckets - 1) == 0
    rows = np.repeat(np.arange(len(held.indptr) - 1), np.diff(held.indptr.numpy()))
    stored = zip(rows.tolist(), held.columns.tolist(), held.values.numpy(), strict=True)
    for r, r2, strengths in stored:
        bucket = (((r * 0x9E3779B1 + r2) % 2**32 * 0x85EBCA6B) % 2**32) * buckets >> 32
        there = pairs[starts[bucket] : starts[bucket + 1]]
        (own,) = there[(there[:, :2] == [r, r2]).all(axis=1)]
        np.testing.assert_array_equal(own[2:].view(np.float32), strengths)
    assert starts[0] == 0
    assert starts[-1] == len(pairs) == len(held.columns)
