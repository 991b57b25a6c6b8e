"""Calibrated probabilities: as often right as they say."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import stea_fast as sf
from stea_fast.alignment.calibration import FEWEST_HELD_OUT, ProbabilityCalibrator, cross_fit, fit
from stea_fast.types import Ranking


def overconfident(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities that claim more than is true: logits twice as large as they should be."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(0.5, 1.5, n)
    right = rng.random(n) < 1 / (1 + np.exp(-logits))
    return 1 / (1 + np.exp(-2 * logits)), right


def test_an_overconfident_method_is_corrected():
    calibrator = fit(*overconfident(4000))
    assert calibrator.before is not None and calibrator.after is not None
    assert calibrator.after.error < 0.5 * calibrator.before.error
    fresh, right = overconfident(4000, seed=1)
    assert calibrator(fresh).mean() == pytest.approx(right.mean(), abs=0.02)


def test_the_curve_keeps_the_order_and_says_where_a_probability_is_reached():
    calibrator = fit(*overconfident(500))
    probs = np.linspace(0.0, 1.0, 101)
    calibrated = calibrator(probs)
    assert (np.diff(calibrated) > 0).all() and calibrated[0] >= 0 and calibrated[-1] <= 1
    for least in (0.2, 0.5, 0.7):
        reached = probs >= calibrator.inverse(least)
        assert (calibrated[reached] >= least - 1e-9).all() and (calibrated[~reached] < least).all()
    assert calibrator.inverse(1.0) > 1.0  # nothing is that sure
    assert calibrator.inverse(0.0) == 0.0


def test_a_method_that_is_always_right_keeps_its_own_probabilities():
    probs = np.full(40, 1.0)
    calibrator = fit(probs, np.ones(40, dtype=bool))
    assert "own probabilities" in calibrator.note
    assert calibrator(probs) == pytest.approx(probs)


def test_a_method_whose_probabilities_say_the_opposite_gets_no_falling_curve():
    probs, right = overconfident(400)
    calibrator = fit(probs, ~right)
    assert (np.diff(calibrator.curve) > 0).all()


@given(st.lists(st.tuples(st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0]), st.booleans()), min_size=20, max_size=60))
def test_any_held_out_links_give_a_rising_curve_between_0_and_1(links):
    probs, right = np.array([p for p, _ in links]), np.array([correct for _, correct in links])
    own, calibrated = fit(probs, right).curve
    assert own[0] == 0 and own[-1] == 1
    assert (np.diff(own) > 0).all() and (np.diff(calibrated) > 0).all()
    assert calibrated[0] >= 0 and calibrated[-1] <= 1


@pytest.mark.parametrize(("folds", "runs"), [(1, 1), (4, 4)])
def test_held_out_seeds_take_no_part_in_the_run_that_is_judged(folds, runs):
    pair = sf.synthetic_pair(2000, seed=0)
    seen = []

    def method(part: sf.Pair) -> SimpleNamespace:
        seen.append({tuple(link) for link in part.train.tolist()})
        indices = np.zeros((part.kg1.num_entities, 1), dtype=np.int64)
        return SimpleNamespace(forward=Ranking(indices, np.full(indices.shape, 0.7, dtype=np.float32)))

    calibrator = cross_fit(pair, method, folds=folds)
    everything = {tuple(link) for link in pair.train.tolist()}
    assert len(seen) == runs
    held_out = [everything - part for part in seen]
    assert all(part < everything for part in seen)
    assert sum(map(len, held_out)) == len(set.union(*held_out)) == calibrator.num_links
    assert calibrator(np.array([0.7]))[0] < 0.2  # it was nearly always wrong


@pytest.mark.parametrize(("seeds", "held_out"), [(39, 0), (40, 20), (96, 20), (150, 30)])
def test_a_single_run_holds_out_a_fifth_but_enough_to_calibrate(seeds, held_out):
    pair = sf.synthetic_pair(2000, seed=0)
    nothing = Ranking(np.full((2000, 1), -1), np.zeros((2000, 1), dtype=np.float32))
    calibrator = cross_fit(replace(pair, train=pair.train[:seeds]), lambda part: SimpleNamespace(forward=nothing))
    assert calibrator.num_links == held_out


def test_less_than_any_held_out_link_had_is_worth_less():
    rng = np.random.default_rng(0)
    calibrator = fit(np.full(200, 0.9), rng.random(200) < 0.97)
    assert calibrator(0.9) > 0.95
    assert calibrator(0.3) < 0.4


def test_too_few_seeds_are_said_to_be_too_few():
    pair = sf.synthetic_pair(500, seed=0)
    few = replace(pair, train=pair.train[: FEWEST_HELD_OUT - 1])
    calibrator = cross_fit(few, lambda part: pytest.fail("must not run"), folds=5)
    assert f"{FEWEST_HELD_OUT - 1} held-out seeds are too few" in calibrator.note
    assert calibrator(np.array([0.3])) == [0.3]
    assert calibrator.inverse(0.3) == 0.3
    assert ProbabilityCalibrator().note == "not calibrated"


def test_align_refuses_a_method_that_gives_no_probabilities():
    with pytest.raises(ValueError, match=r"which only sf\.Stea gives; got Supervised\(\)"):
        sf.align(sf.synthetic_pair(60), preset=sf.SelfTrainingConfig(method=sf.Supervised()))


def test_align_reports_its_calibration_and_finds_entities_without_counterpart():
    pair = sf.synthetic_pair(300, seed=0, seed_fraction=0.3)
    alignment = sf.align(pair, rounds=1, calibration="crossfit")
    assert alignment.calibrator.num_links == len(pair.train)
    metrics = sf.evaluate(alignment, pair.test)
    assert metrics.precision > 0.8 and metrics.recall > 0.8
    assert alignment.links.count("no_counterpart") > 0.5 * (pair.kg1.num_entities - len(pair.links))
