"""Propagation over tensors equals that over NumPy arrays, on whatever device."""

from __future__ import annotations

import numpy as np
import pytest

import stea_fast as sf
from stea_fast.encoders.propagation import Propagation

torch = pytest.importorskip("torch")
from stea_fast.encoders import _propagation_on_device  # noqa: E402

RELATION_DIM = 11  # two batches, of which the second is not full


def on_tensors(encoder, side, steps=None):
    kg, noted = (encoder.kg1, encoder.kg2)[side], [] if steps is None else steps
    sizes = encoder.dim, encoder.relation_dim, encoder.seed
    found = _propagation_on_device.embed(kg, encoder.pairs[:, side], *sizes, torch.device("cpu"), noted.append)
    return found.numpy()


@pytest.fixture(scope="module")
def encoder():
    pair = sf.synthetic_pair(200, seed=3)
    made = Propagation(pair.kg1, pair.kg2, dim=150, relation_dim=RELATION_DIM, seed=5)
    made.fit(np.concatenate([pair.train, pair.train[:1]]))  # an entity may occur twice
    return made


@pytest.mark.parametrize("side", [0, 1])
def test_embeddings_are_those_of_the_host(encoder, side):
    wanted, steps = encoder.embeddings()[side], []
    found = on_tensors(encoder, side, steps)
    assert found.dtype == np.float32 and found.shape == wanted.shape and steps == [1.0, 1.0]
    np.testing.assert_allclose(found, wanted, atol=2e-6)


def test_how_much_is_gathered_at_a_time_changes_no_bit(encoder, monkeypatch):
    wanted = on_tensors(encoder, 0)
    for size in (1, 5000, 100_000):
        monkeypatch.setattr(_propagation_on_device, "GATHERED_BYTES", size)
        np.testing.assert_array_equal(on_tensors(encoder, 0), wanted)


def test_entities_that_nothing_reaches_are_zero():
    kgs = [sf.KG([[0, 0, 1], [2, 1, 3]], 5, 2) for _ in range(2)]
    encoder = Propagation(*kgs, dim=8, relation_dim=2)
    encoder.fit([[0, 0]])
    found = on_tensors(encoder, 0)
    assert not found[2:].any() and (np.linalg.norm(found[:2], axis=1) > 0.99).all()
    np.testing.assert_allclose(found, encoder.embeddings()[0], atol=2e-6)
