"""Self-training on extreme and unusable input: it runs, or says what is wrong and leaves the last good checkpoint."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import stea_fast as sf
from stea_fast import encoders
from stea_fast.encoders.base import TrainingError
from stea_fast.selftraining import checkpoint
from stea_fast.selftraining.methods import METHODS

WITH_ENCODER = sorted({*METHODS} - {"structural"})
SMALL = {
    "propagation": {"dim": 16, "relation_dim": 4},
    "dual_amn": {"dim": 8},
    "rrea": {"dim": 8},
    "gcn_align": {"dim": 8},
    "alinet": {"dims": (16, 8, 8)},
}
EMPTY = sf.KG(np.zeros((0, 3), dtype=np.int64), 60, 1)


@pytest.fixture(scope="module")
def pair():
    return sf.synthetic_pair(60, seed=1)


def training(pair, encoder="propagation", **options):
    if encoder != "propagation":
        pytest.importorskip("torch", reason="the trained encoders need PyTorch")
    config = sf.EncoderConfig(name=encoder, options=SMALL[encoder], first_epochs=2, round_epochs=2)
    return sf.SelfTraining(pair, config, **{"rounds": 1, **options})


@pytest.mark.parametrize("encoder", encoders.NAMES)
def test_without_seeds_there_is_nothing_to_train_on(pair, encoder):
    with pytest.raises(ValueError, match="train is empty, and there are no clues: self-training needs a seed"):
        training(replace(pair, train=pair.train[:0]), encoder)


@pytest.mark.parametrize("encoder", encoders.NAMES)
@pytest.mark.parametrize("method", WITH_ENCODER)
def test_one_seed_is_enough_to_begin(pair, encoder, method):
    alone = replace(pair, train=pair.train[:1])
    result = training(alone, encoder, method=method).run()
    assert len(result.history) == (1 if method == "supervised" else 2)
    assert pair.train[0, 0] not in result.pairs[:, 0]


@pytest.mark.parametrize("encoder", encoders.NAMES)
@pytest.mark.parametrize("method", WITH_ENCODER)
def test_seeds_that_cover_everything_leave_nothing_to_find(encoder, method):
    known = sf.synthetic_pair(60, seed=1, overlap=1.0, seed_fraction=1.0)
    result = training(known, encoder, method=method).run()
    assert len(known.test) == len(result.pairs) == 0
    assert result.history[-1].metrics == {}
    if method == "stea":
        np.testing.assert_array_equal(result.forward.indices[known.train[:, 0], 0], known.train[:, 1])


@pytest.mark.parametrize("side", ["kg1", "kg2"])
@pytest.mark.parametrize("method", WITH_ENCODER)
def test_a_graph_without_edges_is_named_before_anything_is_trained(pair, side, method):
    with pytest.raises(ValueError, match=rf"pair\.{side} has no triples"):
        training(replace(pair, **{side: EMPTY}), method=method)


class Failing:
    """Good embeddings after the first training, and what it is given after the second."""

    first_epochs = round_epochs = 1

    def __init__(self, pair, later):
        self.sizes = pair.kg1.num_entities, pair.kg2.num_entities
        self.later, self.trained = later, np.zeros(1, dtype=np.int64)

    def fit(self, pairs, epochs):
        self.trained += 1

    def embeddings(self):
        rng = np.random.default_rng(0)
        good = [rng.standard_normal((size, 4)).astype(np.float32) for size in self.sizes]
        return good if self.trained[0] < 2 else self.later(*good)

    def state(self):
        return {"trained": self.trained}

    def load_state(self, state):
        self.trained = state["trained"]


@pytest.mark.parametrize(
    ("later", "error", "words"),
    [
        (lambda a, b: (a, b + np.nan), ValueError, "embeddings of kg2 hold NaN or infinity, first in row 0"),
        (
            lambda a, b: (np.where(np.arange(60)[:, None] == 7, np.inf, a), b),
            ValueError,
            "kg1 hold NaN or infinity, first in row 7",
        ),
        (lambda a, b: (a[:-1], b), ValueError, "must give a row per entity, 60 and 60; got shapes"),
        (lambda a, b: (b[0], a[0]), ValueError, "must give a row per entity"),
        (lambda a, b: (a, b[:, :3]), ValueError, "equally many columns"),
        (lambda a, b: (a, b, b), ValueError, "must give a row per entity"),
        (lambda a, b: None, TypeError, "must return two matrices"),
    ],
)
def test_an_encoder_that_fails_later_leaves_the_last_good_checkpoint(pair, tmp_path, later, error, words):
    pytest.importorskip("safetensors")
    run = sf.SelfTraining(pair, Failing(pair, later), rounds=2, checkpoint=tmp_path)
    with pytest.raises(error, match=words):
        run.run()
    assert [path.name for path in tmp_path.iterdir()] == [checkpoint.NAME]
    saved = run.checkpoint.load()
    assert len(saved.history) == 0 and saved.encoder["trained"] == 1  # of the first training, which went well


def test_an_encoder_whose_loss_becomes_nan_keeps_the_checkpoint_before_it(pair, tmp_path):
    pytest.importorskip("safetensors")
    run = training(pair, "dual_amn", rounds=2, checkpoint=tmp_path)
    spoil = lambda record: run.encoder.parameters["entities"].data.fill_(np.nan)  # noqa: E731
    run.callbacks = (spoil,)
    with pytest.raises(TrainingError, match="the loss became nan in epoch 1 of 2"):
        run.run()
    assert run.checkpoint.load().encoder["entities"].isfinite().all()
