"""The product on two GPUs that torch believes in: the same results as on the host, and clear errors."""

from __future__ import annotations

import logging

import numpy as np
import pytest

import stea_fast as sf
from stea_fast.encoders import demo

torch = pytest.importorskip("torch", reason="GPUs pose through torch")


@pytest.fixture(scope="module")
def pair():
    return sf.synthetic_pair(120, seed=2)


def test_tensors_of_two_gpus_do_not_mix(plain_gpus):
    there, elsewhere = (torch.ones(3, device=f"cuda:{number}") for number in (0, 1))
    assert (there + 1).device == torch.device("cuda:0") and (there + 1).tolist() == [2, 2, 2]
    for other in (elsewhere, torch.ones(3)):
        with pytest.raises(RuntimeError, match="on the same device"):
            there + other
    with pytest.raises(TypeError, match="CUDA tensor"):
        np.asarray(there)
    with pytest.raises(BufferError):
        elsewhere.__dlpack__(stream=1)
    assert plain_gpus.copied == [3]


@pytest.mark.parametrize("preset", ["structural", "fast"])
def test_presets_align_on_a_gpu_as_on_the_host(plain_gpus, pair, preset):
    rounds = 2 if preset == "fast" else None
    wanted = sf.align(pair, preset=preset, rounds=rounds, calibration="none")
    found = sf.align(pair, preset=sf.preset(preset, device="cuda:1"), rounds=rounds, calibration="none")
    np.testing.assert_array_equal(found.pairs, wanted.pairs)
    np.testing.assert_allclose(found.links.probs, wanted.links.probs, atol=1e-5)
    if preset == "fast":
        assert all(side.device == torch.device("cuda:1") for side in found.result.embeddings)
        assert found.result.candidates.engine == "torch"


def test_a_search_stays_on_the_device_of_its_embeddings(plain_gpus, pair):
    emb1, emb2 = demo.encode(pair, dim=16)
    wanted = sf.topk(emb1, emb2, 8, beta=12.0)
    found = sf.topk(torch.tensor(emb1, device="cuda:1"), torch.tensor(emb2, device="cuda:1"), 8, beta=12.0)
    assert found.forward.indices.device == torch.device("cuda:1")
    assert found.forward.indices.tolist() == wanted.forward.indices.tolist()
    assert found.backward.indices.tolist() == wanted.backward.indices.tolist()
    np.testing.assert_allclose(found.log_partition[1].tolist(), wanted.log_partition[1], atol=1e-3)


@pytest.mark.parametrize("moved", [False, True])
def test_a_refiner_of_the_joint_refinement_says_that_it_does_not_use_graphs_on_a_device(
    plain_gpus, pair, moved, caplog
):
    graphs = [kg.to("cuda:1") if moved else kg for kg in (pair.kg1, pair.kg2)]
    embeddings = demo.encode(pair, dim=16)
    wanted = sf.Refiner(pair.kg1, pair.kg2, pair.train)(*embeddings)
    with caplog.at_level(logging.WARNING, logger="stea_fast"):
        found = sf.Refiner(*graphs, pair.train)(*(torch.tensor(side, device="cuda:1") for side in embeddings))
    assert found.device == torch.device("cuda:1") and found.tolist() == wanted.tolist()
    assert ("copies of the graphs on cuda:1" in caplog.text) == moved
