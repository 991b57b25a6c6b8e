"""The stages in torch equal the NumPy stages, on CPU tensors: what they do does not depend on the device."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stea_fast import KG, RelationAlignment
from stea_fast._backends import numba
from stea_fast._backends.counts import RelationCounts, containment
from stea_fast.refinement import beliefs, posterior, temperature

torch = pytest.importorskip("torch")
from stea_fast._backends.device_data import DeviceAlignment, DeviceBeliefs, Strengths  # noqa: E402
from stea_fast.data.device_graph import DeviceGraph  # noqa: E402
from stea_fast.refinement.device import relations as device_relations  # noqa: E402
from stea_fast.refinement.device import select as device_select  # noqa: E402
from stea_fast.refinement.device import stages  # noqa: E402
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
    for ours, theirs in zip(found, (wanted.indptr, wanted.targets, wanted.weights), strict=True):
        np.testing.assert_array_equal(ours.numpy(), theirs)


@given(scored(), st.sampled_from([0.0, 0.5, 20.0]))
def test_probabilities(case, beta):
    _, scores, rng = case
    tensor = torch.tensor(scores)
    np.testing.assert_allclose(stages.softmax(tensor, beta), temperature.softmax(scores, beta), rtol=1e-12)
    np.testing.assert_allclose(stages.minmax(tensor), temperature.minmax(scores), rtol=1e-12)
    partition = rng.random(len(scores)) + 100
    np.testing.assert_allclose(
        stages.softmax(tensor, beta, torch.tensor(partition)), temperature.softmax(scores, beta, partition), rtol=1e-9
    )


@given(scored(), st.sampled_from([0.3, 0.7]))
def test_the_choice_of_beta(case, confidence):
    _, scores, _ = case
    limits = temperature.MIN_BETA, temperature.MAX_BETA
    found = stages.beta_for_confidence(torch.tensor(scores), confidence, temperature.CONFIDENCE_ROWS, limits)
    assert found == pytest.approx(temperature.beta_for_confidence(scores, confidence), rel=1e-9)
    rows = scores[np.isfinite(scores[:, 0])]
    if len(rows):
        truth = np.zeros(len(rows), dtype=np.int64)
        derivatives = stages.likelihood_derivatives(torch.tensor(rows), torch.tensor(truth), 1.5)
        assert derivatives == pytest.approx(temperature._derivatives([(rows, truth)], 1.5), rel=1e-9, abs=1e-12)


@given(scored())
def test_clamped_seeds(case):
    indices, scores, rng = case
    seeds = np.stack([rng.permutation(len(indices))[:3], rng.permutation(9)[: min(3, len(indices))]], axis=1)
    probs = temperature.softmax(scores, 1.0)
    found = stages.clamp(torch.tensor(indices), torch.tensor(probs), torch.tensor(seeds))
    for ours, theirs in zip(found, posterior.clamp(indices, probs, seeds), strict=True):
        np.testing.assert_array_equal(ours.numpy(), theirs)


@given(scored())
def test_beliefs_from_probabilities(case):
    indices, scores, _ = case
    probs = temperature.softmax(scores, 1.0)
    tensors = torch.tensor(indices), torch.tensor(probs)
    soft = beliefs.soft(indices, probs)
    assert_beliefs(stages.soft(*tensors), soft)
    assert_beliefs(stages.argmax(*tensors), beliefs.argmax(indices, probs))
    assert_beliefs(stages.transpose(stages.soft(*tensors), 9), beliefs.transpose(soft, 9))
    assert_beliefs(DeviceBeliefs.upload(soft, CPU), DeviceBeliefs.upload(soft, CPU).download())


@given(scored(), st.booleans())
def test_posterior_and_order(case, product):
    indices, scores, rng = case
    prior = temperature.softmax(scores, 1.0) * 0.9
    evidence = rng.random(indices.shape, dtype=np.float32)
    seeds = np.array([0])
    exponent = (
        posterior.product_exponent(prior, evidence, None, 4.0)
        if product
        else posterior.compatibility_exponent(evidence, None)
    )
    wanted = posterior.normalise(exponent, indices, prior, seeds)
    found = stages.posterior(
        torch.tensor(indices), torch.tensor(prior), torch.tensor(evidence), torch.tensor(seeds),
        product=product, evidence_weight=4.0,
    )  # fmt: skip
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-15)
    order = np.argsort(np.where(indices >= 0, -wanted, np.inf), axis=1, kind="stable")
    np.testing.assert_array_equal(stages.best_first(torch.tensor(indices), torch.tensor(wanted)), order)


@given(scored(), st.sampled_from(["uni", "uni_backward", "bi", "none"]))
def test_selection_by_threshold(case, strategy):
    indices, _, rng = case
    probs = -np.sort(-np.where(indices >= 0, rng.random(indices.shape), 0.0), axis=1).astype(np.float32)
    indices = np.take_along_axis(indices, np.argsort(indices < 0, axis=1, kind="stable"), axis=1)
    ranking = RefinedRanking(indices, probs, probs)
    seeds = np.array([[0, 3]])
    wanted = select(strategy, ranking, ranking, 0.4, seeds)
    tensors = torch.tensor(indices), torch.tensor(probs)
    found = device_select.select(None, strategy, tensors, tensors, 0.4, torch.tensor(seeds))
    np.testing.assert_array_equal(found[0].numpy(), wanted[0])
    np.testing.assert_array_equal(found[1].numpy(), wanted[1])


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.1]))
def test_relations_and_strengths(seed, default):
    rng = np.random.default_rng(seed)
    r1, r2, n = 3, 4, 12
    keys = np.sort(rng.permutation(r1 * 2 * r2)[: rng.integers(0, 20)]).astype(np.int64)
    counts = RelationCounts(keys, rng.integers(1, 99, len(keys)), rng.integers(99, 200, r1), 5)
    tensors = RelationCounts(*map(torch.tensor, (counts.keys, counts.num, counts.den)), counts.scale_bits)
    wanted = containment(counts, r2, 1.0, 0.1)
    found = device_relations.containment(tensors, r2, 1.0, 0.1)
    np.testing.assert_array_equal(found.download().toarray(), wanted.toarray())
    kg1, kg2 = (KG(rng.integers(0, (n, r, n), (30, 3)), n, r) for r in (r1, r2))
    dense = wanted.toarray().T * (rng.random((2 * r2, 2 * r1)) < 0.7)
    alignment = RelationAlignment(wanted, dense, default)
    on_device = DeviceAlignment.upload(alignment, CPU)
    np.testing.assert_array_equal(on_device.sub21.toarray(), alignment.sub21.toarray())
    table = numba.strengths(alignment, kg1, kg2)
    ours = Strengths.of(on_device, DeviceGraph.upload(kg1, CPU), DeviceGraph.upload(kg2, CPU))
    for tensor, array in zip(ours.forward, table.forward, strict=True):
        np.testing.assert_array_equal(tensor.numpy(), array)
    swapped = numba.strengths(alignment.swapped(), kg2, kg1).forward
    for tensor, array in zip(ours.backward, swapped, strict=True):
        np.testing.assert_array_equal(tensor.numpy(), array)
