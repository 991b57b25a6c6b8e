"""Runs by structure alone: seeds spread over the graphs, and no encoder takes part."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import stea_fast as sf
from stea_fast.refinement.structural import ALONE, STRUCTURAL, refine_by_structure
from stea_fast.selftraining import loop


@pytest.fixture(scope="module")
def pair():
    return sf.synthetic_pair(num_entities=300, seed=0)


def test_seeds_spread_without_an_encoder(pair):
    result = sf.SelfTraining(pair, preset="structural").run()
    assert sf.evaluate(result, pair.test).hit1 > 0.9
    assert result.candidates is None and result.embeddings is None
    assert sorted(result.history[0].metrics) == ["pairs", "refined"] and list(result.history[0].seconds) == ["select"]


def test_the_ranking_is_that_of_the_refinement_without_candidates(pair):
    result = sf.SelfTraining(pair, method="structural").run()
    alone = refine_by_structure(pair.kg1, pair.kg2, pair.train, k=10, method=ALONE)
    assert np.array_equal(result.forward.indices, alone.forward.indices)
    assert np.array_equal(result.backward.probs, alone.backward.probs)


def test_pairs_given_out_exceed_the_threshold_and_are_no_seeds(pair):
    result = sf.SelfTraining(pair, method=sf.Structural(threshold=0.9)).run()
    more = sf.SelfTraining(pair, method=sf.Structural(threshold=0.1)).run()
    assert 0 < len(result.pairs) < len(more.pairs)
    assert result.pair_probs.min() > 0.9
    assert not set(result.pairs[:, 0]) & set(pair.train[:, 0])


def test_the_number_of_sweeps_says_how_far_seeds_spread(pair):
    few = sf.SelfTraining(pair, method=sf.Structural(refinement=replace(ALONE, sweeps=1))).run()
    assert len(few.pairs) < len(sf.SelfTraining(pair, method="structural").run().pairs)


def test_a_finished_run_is_not_repeated(pair, tmp_path):
    first = sf.SelfTraining(pair, preset="structural", checkpoint=tmp_path).run()
    told = []
    again = sf.SelfTraining(pair, preset="structural", checkpoint=tmp_path, callbacks=[told.append]).run()
    assert told == [] and again.candidates is None and again.embeddings is None
    assert np.array_equal(first.forward.probs, again.forward.probs) and np.array_equal(first.pairs, again.pairs)


def test_align_gives_links_with_probabilities(pair, tmp_path):
    alignment = sf.align(pair, preset="structural", calibration="holdout", progress=False)
    assert sf.evaluate(alignment, pair.test).precision > 0.8
    assert "encoder" not in str(alignment.quality())
    alignment.write_report(tmp_path / "report.html")
    assert (tmp_path / "report.html").stat().st_size > 1000


def test_the_audit_passes(pair):
    proof = sf.audit(pair, lambda shuffled: sf.SelfTraining(shuffled, preset="structural").run())
    assert "all bits equal" in str(proof)


@pytest.mark.parametrize("options", [{"encoder": "propagation"}, {"method": "stea"}])
def test_an_encoder_and_structure_alone_exclude_each_other(pair, options):
    with pytest.raises(ValueError, match=r"sf\.Structural, and no other method, goes with the encoder 'none'"):
        sf.SelfTraining(pair, preset="structural", **options)


def test_wrong_options_are_named():
    with pytest.raises(TypeError, match=r"refinement must be an sf\.Joint, got Product"):
        sf.Structural(refinement=sf.Product())
    with pytest.raises(ValueError, match="threshold"):
        sf.Structural(threshold=2.0)


@pytest.mark.parametrize("preset", ["fast", "large"])
@pytest.mark.parametrize(("profile", "expected"), [("dense", STRUCTURAL), ("dbp1m", ALONE)])
def test_the_view_from_structure_is_made_as_the_method_says_or_as_suits_the_graphs(
    preset, profile, expected, monkeypatch
):
    """Sparse graphs have no weak proposals."""
    made, pair = [], sf.synthetic_pair(num_entities=300, seed=0, profile=profile)

    def refine(*given, method, **options):
        made.append(method)
        return refine_by_structure(*given, method=method, **options)

    monkeypatch.setattr(loop, "refine_by_structure", refine)
    sf.SelfTraining(pair, preset=preset, rounds=1, progress=False).run()
    assert made == [expected, replace(expected, sweeps=10)], "pairs that are spread already have a short way to go"
    few = replace(expected, sweeps=3)
    made.clear()
    method = sf.Stea(two_views=True, structure=few)
    sf.SelfTraining(pair, preset=preset, method=method, rounds=1, progress=False).run()
    assert made == [few, few]
    config = replace(sf.preset(preset), method=method)
    assert sf.SelfTrainingConfig.from_dict(config.to_dict()) == config


def test_a_view_that_is_no_joint_refinement_is_refused():
    with pytest.raises(TypeError, match=r"structure must be an sf\.Joint, got Product"):
        sf.Stea(two_views=True, structure=sf.Product())
