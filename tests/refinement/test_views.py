"""Two views of the same graphs: what both find is trained on, and the mean of both ranks."""

from __future__ import annotations

import numpy as np
import pytest

import stea_fast as sf
from stea_fast.refinement.structural import refine_by_structure
from stea_fast.refinement.views import agreed_pairs, mean_of_views


@pytest.fixture(scope="module")
def pair():
    return sf.synthetic_pair(num_entities=400, seed=3)


@pytest.fixture(scope="module")
def views(pair):
    """The view with a stand-in encoder, and the one from structure alone."""
    encoder = sf.refine(sf.demo.candidates(pair), pair.kg1, pair.kg2, seeds=pair.train)
    return encoder, refine_by_structure(pair.kg1, pair.kg2, pair.train, k=10)


def keys(pairs):
    return {tuple(each) for each in np.asarray(pairs).tolist()}


def test_structure_alone_finds_links_from_seeds(pair, views):
    _, structural = views
    assert sf.evaluate(structural, pair.test).hit1 > 0.5
    assert not keys(structural.pairs) & keys(pair.train)


def test_pairs_that_both_views_find_are_kept_with_their_probability(views):
    encoder, structural = views
    pairs, probs = agreed_pairs(encoder.pairs, encoder.pair_probs, structural, np.zeros((0, 2), dtype=np.int64))
    likely = structural.pairs[structural.pair_probs > 0.5]
    assert keys(pairs) == keys(encoder.pairs) & keys(likely)
    assert 0 < len(pairs) < len(encoder.pairs)
    before = dict(zip(map(tuple, encoder.pairs.tolist()), encoder.pair_probs.tolist(), strict=True))
    assert [before[tuple(each)] for each in pairs.tolist()] == probs.tolist()


def test_pairs_that_structure_was_given_count_as_found(views):
    encoder, structural = views
    only_encoder = [each for each in encoder.pairs.tolist() if tuple(each) not in keys(structural.pairs)][:1]
    assert only_encoder, "the views must differ for this test"
    pairs, _ = agreed_pairs(encoder.pairs, encoder.pair_probs, structural, np.array(only_encoder))
    assert tuple(only_encoder[0]) in keys(pairs)


def test_a_structural_view_that_died_out_is_not_asked(pair, views):
    encoder, _ = views
    nothing = refine_by_structure(pair.kg1, pair.kg2, np.zeros((0, 2), dtype=np.int64), k=10)
    assert len(nothing.pairs) == 0
    pairs, _ = agreed_pairs(encoder.pairs, encoder.pair_probs, nothing, pair.train[:0])
    assert keys(pairs) == keys(encoder.pairs)
    assert mean_of_views(encoder, nothing, seeds=pair.train, strategy="mutual", threshold=0.5) is encoder


def test_the_mean_holds_half_of_each_probability(pair, views):
    encoder, structural = views
    mean = mean_of_views(encoder, structural, seeds=pair.train, strategy="mutual", threshold=0.5)
    for side in ("forward", "backward"):
        one, other, both = (getattr(view, side) for view in (encoder, structural, mean))
        for row in range(0, len(both.indices), 7):
            listed = [
                {int(i): float(p) for i, p in zip(view.indices[row], view.probs[row], strict=True) if i >= 0}
                for view in (one, other)
            ]
            for target, prob in zip(both.indices[row].tolist(), both.probs[row].tolist(), strict=True):
                if target >= 0:
                    assert prob == pytest.approx(sum(view.get(target, 0.0) for view in listed) / 2, abs=1e-6)
        assert (np.diff(both.probs, axis=1) <= 0).all(), "best first"
    assert (mean.pair_probs > 0.5).all()


def test_the_mean_is_of_the_kind_of_the_encoders_arrays(pair, views):
    torch = pytest.importorskip("torch")
    _, structural = views
    given = sf.demo.candidates(pair)
    sides = (
        sf.Ranking(torch.tensor(side.indices, dtype=torch.int64), torch.tensor(side.scores))
        for side in (given.forward, given.backward)
    )
    encoder = sf.refine(sf.Candidates(*sides), pair.kg1, pair.kg2, seeds=pair.train)
    mean = mean_of_views(encoder, structural, seeds=pair.train, strategy="mutual", threshold=0.5)
    assert isinstance(mean.forward.probs, torch.Tensor) and mean.forward.indices.dtype == torch.int64
    assert isinstance(mean.pairs, torch.Tensor)


def test_a_loop_with_two_views_trains_on_what_both_find(pair):
    one = sf.SelfTraining(pair, method=sf.Stea(), rounds=1).run()
    two = sf.SelfTraining(pair, method=sf.Stea(two_views=True), rounds=1).run()
    assert two.history[0].num_pairs < one.history[0].num_pairs
    assert sf.evaluate(two, pair.test).hit1 >= sf.evaluate(one, pair.test).hit1 - 0.02
