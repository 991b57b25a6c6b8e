"""Encoders side by side."""

from __future__ import annotations

import numpy as np
import pytest

import stea_fast as sf
from stea_fast.encoders import make


@pytest.fixture(scope="module")
def pair():
    return sf.synthetic_pair(num_entities=120, seed=2, seed_fraction=0.3)


class Fixed:
    """Gives the matrices it was made with, and notes what it was trained on."""

    first_epochs, round_epochs = 3, 2

    def __init__(self, *sides):
        self.sides, self.trained = sides, []

    def fit(self, pairs, epochs, *, progress=None):
        self.trained.append((len(pairs), epochs))

    def embeddings(self):
        return self.sides

    def state(self):
        return {"one": self.sides[0]}

    def load_state(self, state):
        self.sides = state["one"], self.sides[1]


def test_the_cosine_is_the_weighted_mean_of_the_cosines():
    from stea_fast.encoders.combined import Combined

    rng = np.random.default_rng(0)
    parts = {name: Fixed(rng.standard_normal((5, d)), rng.standard_normal((4, d))) for name, d in (("a", 3), ("b", 6))}
    first, second = Combined(parts, [1.0, 2.0]).embeddings()

    def cosine(x, y):
        return (x / np.linalg.norm(x, axis=1)[:, None]) @ (y / np.linalg.norm(y, axis=1)[:, None]).T

    expected = (cosine(*parts["a"].sides) + 4 * cosine(*parts["b"].sides)) / 5
    np.testing.assert_allclose(cosine(first, second), expected, atol=1e-6)
    assert first.dtype == np.float32


def test_every_part_is_trained_and_comes_back():
    from stea_fast.encoders.combined import Combined

    parts = {"a": Fixed(np.ones((2, 2)), np.ones((2, 2))), "b": Fixed(np.zeros((2, 3)), np.zeros((2, 3)))}
    both = Combined(parts)
    both.fit(np.zeros((7, 2)), 4)
    assert parts["a"].trained == parts["b"].trained == [(7, 4)]
    assert (both.embeddings()[0][:, 2:] == 0).all()  # zero rows stay zero
    state = both.state()
    assert set(state) == {"a.one", "b.one"}
    both.load_state({**state, "a.one": np.full((2, 2), 3.0)})
    assert parts["a"].sides[0][0, 0] == 3.0 and parts["b"].sides[0].shape == (2, 3)


def test_names_joined_by_plus_make_one_encoder(pair):
    torch = pytest.importorskip("torch")
    options = {"dual_amn": {"dim": 8}, "propagation": {"relation_dim": 4}}
    encoder = make("dual_amn+propagation", pair.kg1, pair.kg2, **options)
    encoder.fit(pair.train, 1)
    first, second = encoder.embeddings()
    assert isinstance(first, torch.Tensor) and first.shape == (pair.kg1.num_entities, 6 * 8 + 16 * 4)
    again = make("dual_amn+propagation", pair.kg1, pair.kg2, **options)
    again.load_state(encoder.state())
    assert torch.equal(again.embeddings()[1], second)


def test_what_does_not_fit_is_named(pair):
    with pytest.raises(TypeError, match="no part rrea"):
        make("propagation+propagation", pair.kg1, pair.kg2, rrea={})
    with pytest.raises(ValueError, match="unknown encoder 'bert'"):
        make("propagation+bert", pair.kg1, pair.kg2)
    with pytest.raises(ValueError, match="weights must be 1 numbers"):
        make("propagation+propagation", pair.kg1, pair.kg2, weights=[1.0, 2.0, 3.0])
