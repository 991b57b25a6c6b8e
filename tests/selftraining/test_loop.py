"""Self-training: the loop, its methods and its history."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import stea_fast as sf
from stea_fast.encoders import demo
from stea_fast.selftraining.methods import METHODS


@pytest.fixture(scope="module")
def pair():
    return sf.synthetic_pair(400, seed=2, seed_fraction=0.15)


class Stand:
    """A foreign encoder in ten lines: the stand-in of the demo, told which pairs to start from."""

    first_epochs = round_epochs = 1

    def __init__(self, pair):
        self.pair = pair
        self.trained_on = []

    def fit(self, pairs, epochs):
        self.trained_on.append((np.array(pairs), epochs))

    def embeddings(self):
        return demo.encode(replace(self.pair, train=self.trained_on[-1][0]))


def run(pair, **options):
    return sf.SelfTraining(pair, Stand(pair), **options).run()


def test_self_training_finds_more_than_the_seeds_alone(pair):
    supervised = sf.evaluate(run(pair, method="supervised"), pair.test)
    stea = sf.evaluate(run(pair, rounds=3), pair.test)
    assert stea.hit1 > supervised.hit1 + 0.05


def test_the_encoder_begins_with_the_pairs_that_propagation_found(pair):
    encoder = Stand(pair)
    method = sf.Stea(refinement=sf.Schedule(thresholds=[0.3]), start_rounds=2, first_epochs=7)
    result = sf.SelfTraining(pair, encoder, rounds=3, method=method).run()
    (first, epochs), (later, later_epochs) = encoder.trained_on
    assert len(first) == len(pair.train) + result.history[1].num_pairs > len(pair.train)
    assert len(later) == len(pair.train) + result.history[2].num_pairs
    assert (epochs, later_epochs) == (7, 1)
    np.testing.assert_array_equal(result.embeddings[0], encoder.embeddings()[0])


def test_the_last_round_is_the_encoder_s_whatever_the_number_of_rounds(pair):
    encoder = Stand(pair)
    sf.SelfTraining(pair, encoder, rounds=1, method=sf.Stea(start_rounds=5)).run()
    assert len(encoder.trained_on) == 1
    supervised = Stand(pair)
    sf.SelfTraining(pair, supervised, method="supervised", preset="full").run()  # whose own method has start rounds
    np.testing.assert_array_equal(supervised.trained_on[0][0], pair.train)


@pytest.mark.parametrize("method", sorted({*METHODS} - {"structural"}))  # which takes no encoder
def test_every_method_runs_and_selects_no_seed(pair, method):
    result = run(pair, method=method, rounds=2)
    assert not set(result.pairs[:, 0].tolist()) & set(pair.train[:, 0].tolist())
    assert (len(result.pairs) == 0) == (method == "supervised")
    assert (result.refinement is None) == (method != "stea")
    assert result.forward.indices.shape == (pair.kg1.num_entities, 10)


def test_every_round_trains_on_the_seeds_and_the_pairs_of_the_round_before(pair):
    encoder = Stand(pair)
    seen = []
    schedule = sf.Schedule(thresholds=[0.1, 0.99])  # no two rounds find the same pairs, which would end the run
    config = sf.SelfTrainingConfig(
        encoder=sf.EncoderConfig(round_epochs=7), method=sf.Stea(refinement=schedule), rounds=2
    )
    result = sf.SelfTraining(pair, encoder, preset=config, callbacks=[seen.append]).run()
    assert [epochs for _, epochs in encoder.trained_on] == [1, 7, 7]
    np.testing.assert_array_equal(encoder.trained_on[0][0], pair.train)
    for (pairs, _), record in zip(encoder.trained_on[1:], seen, strict=False):
        np.testing.assert_array_equal(pairs[: len(pair.train)], pair.train)
        assert len(pairs) == len(pair.train) + record.num_pairs
    assert tuple(seen) == result.history
    assert [record.number for record in seen] == [0, 1, 2]


def test_pairs_that_are_given_out_have_support(pair):
    """Some mutual best pairs above the threshold are only left over for each other; they stay behind."""
    result = run(pair, rounds=1)
    support = result.refinement.forward.support[result.pairs[:, 0], 0]
    assert (support > sf.Schedule().final_threshold).all()
    assert 0 < len(result.pairs) < len(result.refinement.pairs)


def test_the_history_holds_quality_time_and_memory(pair):
    record = run(pair, rounds=1).history[-1]
    assert set(record.metrics) == {"encoder", "refined", "pairs"}
    assert set(record.seconds) == set(record.stage_mb) == {"train", "topk", "select"}
    assert 10 < max(record.stage_mb.values()) <= record.peak_mb


def test_without_test_links_there_is_nothing_to_measure(pair):
    blind = replace(pair, test=pair.train[:0], links=pair.train)
    result = run(blind, rounds=1)
    assert result.history[-1].metrics == {}
    np.testing.assert_array_equal(result.pairs, run(pair, rounds=1).pairs)


def test_it_stops_when_the_pairs_have_settled(pair):
    config = replace(sf.preset("fast"), rounds=50, tolerance=0.5)
    assert len(run(pair, preset=config).history) < 10


def test_held_out_seeds_are_not_trained_on(pair):
    encoder = Stand(pair)
    sf.SelfTraining(pair, encoder, preset=replace(sf.preset("fast"), rounds=0, validation=0.25)).run()
    trained = encoder.trained_on[0][0]
    assert len(trained) == len(pair.train) - len(pair.train) // 4


def test_the_refinement_of_the_method_is_used(pair):
    result = run(pair, rounds=1, method=sf.Stea(refinement="paper"))
    assert result.refinement.sweeps == 1 and result.refinement.forward.support is None
    with pytest.raises(TypeError, match="Stea\\(\\) has no option 'colour'"):
        run(pair, method=sf.Stea(colour="red"))


def test_a_refiner_is_a_step_of_anyone_s_loop(pair):
    step = sf.Refiner(pair.kg1, pair.kg2, pair.train)
    pairs = step(*demo.encode(pair))
    assert len(pairs) > 20 and step.refinement is not None
    torch = pytest.importorskip("torch")
    tensors = sf.Refiner(pair.kg1, pair.kg2, pair.train)(*map(torch.from_numpy, demo.encode(pair)))
    np.testing.assert_array_equal(tensors.numpy(), pairs)


def test_bad_options_are_named(pair):
    with pytest.raises(ValueError, match="method must be one of"):
        sf.SelfTraining(pair, Stand(pair), method="magic")
    with pytest.raises(ValueError, match=r"encoder must be one of .*; got 'bert'"):
        sf.SelfTraining(pair, "bert")
    with pytest.raises(ValueError, match="unknown encoder 'bert'"):
        sf.SelfTraining(pair, sf.EncoderConfig(name="bert"))
