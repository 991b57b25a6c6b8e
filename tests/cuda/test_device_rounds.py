"""Whole rounds on a GPU that poses: the same links as on the host, and nothing but small arrays comes back."""

from __future__ import annotations

import numpy as np
import pytest
from device_calls import moved

import stea_fast as sf
from stea_fast.encoders import demo

torch = pytest.importorskip("torch", reason="GPUs pose through torch")
pytestmark = pytest.mark.slow  # compiles the kernels and the bindings for the CPU
MOST_COPIED = 1024  # elements of an array that may come to the host in a round
DEVICE = "cuda:1"


def same_ranking(found, wanted):
    np.testing.assert_allclose(found.probs.cpu().numpy(), wanted.probs, atol=1e-5)
    sure = wanted.probs > 1e-4  # which of two candidates of no weight comes first is not said
    np.testing.assert_array_equal(found.indices.cpu().numpy()[sure], wanted.indices[sure])


@pytest.mark.parametrize(
    "method",
    [
        sf.Joint(sweeps=4),
        sf.Joint(sweeps=3, damping=0.3, lone_witness=0.5, start_sweeps=3, evidence_weight=24.0),
        sf.Joint(sweeps=2, proposals=0, balance=0),
    ],
    ids=["default", "structural", "no proposals"],
)
def test_joint_refinement_stays_on_the_device(gpus, pair, method):
    found = demo.candidates(pair)
    candidates = sf.Candidates(found.forward, found.backward)  # scores beyond the lists are those of their ends
    wanted = sf.refine(candidates, pair.kg1, pair.kg2, seeds=pair.train, method=method, backend="native")
    there = moved(candidates, DEVICE)
    gpus.copied.clear()
    found = sf.refine(there, pair.kg1, pair.kg2, seeds=pair.train, method=method)
    assert max(gpus.copied, default=0) <= MOST_COPIED and gpus.exports
    assert found.sweeps == wanted.sweeps
    assert found.pairs.device == torch.device(DEVICE) and found.pairs.tolist() == wanted.pairs.tolist()
    same_ranking(found.forward, wanted.forward)
    same_ranking(found.backward, wanted.backward)
    best = wanted.pairs[0]
    np.testing.assert_allclose(
        [fact.evidence for fact in found.explain(*best)], [fact.evidence for fact in wanted.explain(*best)], rtol=1e-4
    )


@pytest.mark.parametrize("preset", ["structural", "fast"])
def test_presets_refine_on_the_device(gpus, pair, preset):
    rounds = 2 if preset == "fast" else None
    wanted = sf.align(pair, preset=preset, rounds=rounds, calibration="none")
    found = sf.align(pair, preset=sf.preset(preset, device=DEVICE), rounds=rounds, calibration="none")
    assert {number for number, _ in gpus.exports} == {1}
    np.testing.assert_array_equal(found.pairs, wanted.pairs)
    np.testing.assert_allclose(found.links.probs, wanted.links.probs, atol=1e-5)
