"""AliNet beyond what all encoders share: refitting on all pairs, and edges lent by guessed pairs."""

from __future__ import annotations

import numpy as np
import pytest

import stea_fast as sf
from stea_fast import encoders
from stea_fast.data.sealed import reveal

torch = pytest.importorskip("torch", reason="the trained encoders need PyTorch")


@pytest.fixture(scope="module")
def pair():
    return sf.synthetic_pair(num_entities=200, seed=3, seed_fraction=0.4)


def make(pair, **options):
    return encoders.make("alinet", pair.kg1, pair.kg2, dims=(64, 48, 32), learning_rate=0.01, **options)


def test_refits_on_all_pairs_for_as_many_epochs_as_the_first_training_took(pair):
    seen = []
    encoder = make(pair, check=2, refit=True)
    encoder.fit(pair.train, 200, progress=lambda done, total: seen.append((done, total)))
    begin = [done for done, _ in seen].index(1, 1)
    assert seen[begin - 1][0] == seen[-1][0] < 200  # stopped by the held-out pairs, then trained as long again
    assert np.array_equal(encoder.known - [0, pair.kg1.num_entities], pair.train)
    held_out = make(pair, check=2)
    held_out.fit(pair.train, 200)
    assert len(held_out.known) == len(pair.train) - int(0.2 * len(pair.train))


def test_augments_with_free_entities_nearest_to_each_other(pair):
    encoder = make(pair, check=2, augment=True)
    encoder.fit(pair.train, 9)  # the fourth check comes before the ninth epoch
    guessed = encoder.guessed - [0, pair.kg1.num_entities]
    assert len(guessed) > 0
    for side in (0, 1):
        assert not set(guessed[:, side]) & set(pair.train[: len(encoder.known), side])
        assert len(set(guessed[:, side])) == len(guessed)
    truth = {tuple(link) for link in reveal(pair.test)}
    assert sum(tuple(link) in truth for link in guessed) > 0.2 * len(guessed)  # chance: 1 in 120
    plain = make(pair, check=2)
    plain.load_state({**encoder.state(), "guessed": torch.zeros((0, 2), dtype=torch.int64)})
    copy = make(pair)
    copy.load_state(encoder.state())
    assert all(torch.equal(a, b) for a, b in zip(encoder.embeddings(), copy.embeddings(), strict=True))
    assert not torch.equal(encoder.embeddings()[0], plain.embeddings()[0])  # the guesses are part of the graph
