"""Calibrated probabilities: as often right as they say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import stea_fast as sf
from stea_fast.alignment import calibration, link_model
from stea_fast.alignment.calibration import (
    ENOUGH_HIDDEN,
    HIDDEN_WEIGHT,
    THIN_BASIS,
    _in_neighbourhoods,
    _number_held_out,
    _parts,
    by_prior,
    cross_fit,
)
from stea_fast.alignment.joint_probabilities import joint_probabilities
from stea_fast.alignment.link_features import FAR, FEATURES, describe_links
from stea_fast.evaluation.metrics import reliability

NEARNESS, SUPPORTERS = FEATURES.index("nearness to a seed"), FEATURES.index("supporting neighbours")


def described(n: int, seed: int = 0, shift: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Random features, scaled as the prior has them, and links that are right as often as it says, but for a shift."""
    prior = link_model.shipped_prior()
    rng = np.random.default_rng(seed)
    features = prior.means + prior.scales * rng.normal(size=(n, len(FEATURES)))
    logits = link_model.with_intercept((features - prior.means) / prior.scales) @ prior.theta + shift
    return features, rng.random(n) < 1 / (1 + np.exp(-logits))


def test_many_held_out_links_replace_the_prior():
    prior = link_model.shipped_prior()
    model = link_model.fit(*described(20_000, shift=-1.5), prior)
    features, right = described(4000, seed=1, shift=-1.5)
    assert reliability(model(features), right).error < 0.03 < reliability(prior.model()(features), right).error


def test_a_few_held_out_links_change_the_prior_a_little():
    prior = link_model.shipped_prior()
    features, right = described(8)
    before, after = prior.model()(features), link_model.fit(features, ~right, prior)(features)
    many = link_model.fit(*(np.repeat(array, 100, axis=0) for array in (features, ~right)), prior)(features)
    assert np.abs(after - before).mean() < 0.5 * np.abs(many - before).mean()
    assert link_model.fit(features[:0], right[:0], prior)(features) == pytest.approx(before)


def test_sources_without_counterpart_have_a_fixed_share_of_the_weight():
    weak = replace(link_model.shipped_prior(), deviations=np.full(1 + len(FEATURES), 100.0))
    features = np.tile(weak.means, (100, 1))  # alike, so that the probability is the share of right links
    for num_absent in (5, 50, 90):
        absent = np.arange(100) < num_absent
        model = link_model.fit(features, ~absent, weak, absent)
        assert model(features) == pytest.approx(1.0 - link_model.ABSENT_SHARE, abs=0.01)


def test_a_link_counts_as_often_as_its_weight_says():
    features, right = described(60, 0)
    counts = np.arange(60) % 3 + 1
    absent = np.arange(60) % 5 == 0
    repeated = (np.repeat(array, counts, axis=0) for array in (features, right, absent))
    weighted = link_model.fit(features, right, link_model.shipped_prior(), absent, counts.astype(float))
    first, second, third = repeated
    model = link_model.fit(first, second, link_model.shipped_prior(), third)
    assert weighted.theta == pytest.approx(model.theta, abs=1e-3)
    assert weighted.covariance == pytest.approx(model.covariance, rel=1e-2, abs=1e-4)


def test_a_hidden_name_counts_less_than_a_held_out_seed(monkeypatch):
    pair = sf.synthetic_pair(200, seed=0, name_noise=0.02)
    clues = sf.find_clues(pair)
    named = len(clues.anchors_beside(pair.train))
    seen = []
    monkeypatch.setattr(calibration, "fit", lambda *given: seen.append(given) or link_model.fit(*given))

    def method(part: sf.Pair, clues: sf.Clues | None) -> sf.SelfTrainingResult:
        return sf.SelfTraining(part, preset="structural", clues=clues, progress=False).run()

    cross_fit(pair, method, clues=clues, folds=5)
    weights = seen[-1][4]
    assert len(pair.train) and named
    assert sorted(weights.tolist()) == [HIDDEN_WEIGHT] * named + [1.0] * len(pair.train)
    assert HIDDEN_WEIGHT < 1.0


@given(st.integers(0, 10**6), st.integers(1, 60))
def test_no_feature_ever_speaks_against_a_link(seed, n):
    rng = np.random.default_rng(seed)
    features, _ = described(n, seed)
    model = link_model.fit(features, rng.random(n) < 0.5, link_model.shipped_prior())
    assert (model.theta[1:] >= 0).all()
    more = features + np.abs(rng.normal(size=features.shape))
    assert (model(more) >= model(features)).all()


def test_an_interval_holds_the_share_of_right_links():
    prior = link_model.shipped_prior()
    held = 0
    for seed in range(40):
        model = link_model.fit(*described(300, seed), prior)
        features, right = described(500, seed + 1000)
        mean, deviation = model.mean_and_deviation(features)
        held += abs(right.mean() - mean) < 1.96 * deviation
    assert held >= 34  # 38 are to be expected


@pytest.mark.parametrize(("folds", "runs"), [(1, 1), (4, 4)])
def test_held_out_seeds_take_no_part_in_the_run_that_is_judged(folds, runs):
    pair = sf.synthetic_pair(300, seed=0, seed_fraction=0.4)
    seen = []

    def method(part: sf.Pair, clues: sf.Clues | None) -> sf.SelfTrainingResult:
        seen.append(part)
        return sf.SelfTraining(part, rounds=0, progress=False).run()

    calibrator = cross_fit(pair, method, folds=folds)
    everything = {tuple(link) for link in pair.train.tolist()}
    held_out = [everything - {tuple(link) for link in part.train.tolist()} for part in seen]
    assert len(seen) == runs and all(held_out)
    assert sum(map(len, held_out)) == len(set.union(*held_out)) == calibrator.num_links
    alone = [np.flatnonzero((part.kg2.degrees == 0) & (pair.kg2.degrees > 0)) for part in seen]
    assert sum(map(len, alone)) >= calibrator.num_absent > 0
    for part, links in zip(seen, held_out, strict=True):
        hidden = {target for _, target in links if part.kg2.degrees[target] == 0}
        assert 0 < len(hidden) < len(links)  # some, not all, lose their counterpart


def test_without_held_out_seeds_the_prior_decides_and_says_so():
    pair = sf.synthetic_pair(200, seed=0)
    few = replace(pair, train=pair.train[:3])
    calibrator = cross_fit(few, lambda part, clues: pytest.fail("must not run"))
    assert calibrator.is_thin and "3 seeds are too few to hold any out" in calibrator.note
    assert link_model.shipped_prior().data in calibrator.note
    assert by_prior("no time").num_links == 0 and by_prior("no time").basis == "prior only"


@pytest.mark.parametrize(("seeds", "held_out"), [(3, 0), (15, 3), (39, 7), (40, 20), (150, 75), (370, 75), (1500, 300)])
def test_a_fifth_of_the_seeds_is_held_out_and_of_few_up_to_half(seeds, held_out):
    links = np.stack([np.arange(seeds), np.arange(seeds)], axis=1)
    assert sum(len(part) for part, _ in _parts(links, folds=1, seed=0)) == held_out


def test_a_thin_basis_is_named(caplog):
    pair = sf.synthetic_pair(200, seed=0, seed_fraction=0.2)
    calibrator = cross_fit(pair, lambda part, clues: sf.SelfTraining(part, rounds=0, progress=False).run())
    assert 0 < calibrator.num_links < THIN_BASIS and calibrator.is_thin
    assert "so few that a prior" in calibrator.note
    assert calibrator.basis == f"{calibrator.num_links} held-out seeds and a prior"
    sf.align(pair, rounds=0, calibration="holdout", progress=False)
    warned = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert len(warned) == 1 and f"thin basis ({calibrator.basis})" in warned[0]


@pytest.fixture(scope="module")
def chain() -> tuple[sf.Pair, sf.SelfTrainingResult]:
    """A path 0-1-2-3-4 and its copy, with 0 as the seed; 5-6 is an island."""
    kg = sf.KG([[0, 0, 1], [1, 1, 2], [2, 2, 3], [3, 3, 4], [5, 4, 6]])
    rows = sf.RefinedRanking(np.arange(7)[:, None], np.full((7, 1), 0.9, np.float32), np.ones((7, 1), np.float32))
    return sf.make_pair(kg, kg, [[0, 0]]), sf.Candidates(rows, rows)


def test_a_link_is_described_by_its_supporters_and_by_how_they_rest_on_seeds(chain):
    pair, rankings = chain
    joint = joint_probabilities(rankings)
    links = describe_links(pair, joint, rankings)
    assert links.targets.tolist() == list(range(7))
    assert np.expm1(links.features[:, SUPPORTERS]) == pytest.approx([1, 2, 2, 2, 1, 1, 1])
    assert 1 / links.features[:, NEARNESS] - 1 == pytest.approx([0, 1, 2, 3, 4, FAR, FAR])


def test_a_wrong_candidate_has_fewer_supporters(chain):
    pair, rankings = chain
    joint = joint_probabilities(rankings)
    wrong = np.array([0, 1, 4, 3, 4, 5, 6])  # 2 is said to be 4: of its neighbours 1 and 3 only 3 is beside 4
    right, other = (describe_links(pair, joint, rankings, None, targets).features for targets in (None, wrong))
    assert np.expm1(other[2, SUPPORTERS]) == pytest.approx(1)
    share = FEATURES.index("share of believed neighbours that support it")
    assert other[2, share] < right[2, share]


def test_align_refuses_a_method_that_gives_no_probabilities():
    with pytest.raises(ValueError, match=r"which only sf\.Stea and sf\.Structural give; got Supervised\(\)"):
        sf.align(sf.synthetic_pair(60), preset=sf.SelfTrainingConfig(method=sf.Supervised()))


def test_align_is_calibrated_and_finds_entities_without_counterpart():
    pair = sf.synthetic_pair(400, seed=0, seed_fraction=0.3)
    alignment = sf.align(pair, rounds=1, calibration="crossfit")
    assert alignment.calibrator.num_links == len(pair.train)
    assert alignment.calibrator.basis == f"{len(pair.train)} held-out seeds"
    metrics = sf.evaluate(alignment, pair.test)
    assert metrics.precision > 0.8 and metrics.recall > 0.8
    mean, low, high = alignment.expected_precision
    assert low <= mean <= high
    links = alignment.links
    assert links.count("no_counterpart") + links.count("uncertain") > 0.5 * (pair.kg1.num_entities - len(pair.links))
    probs = links.probs[links.status == 1]
    assert len(np.unique(probs)) > 0.99 * len(probs)  # no ties: probabilities rank


def test_a_precision_can_be_asked_for():
    pair = sf.synthetic_pair(400, seed=1, seed_fraction=0.3)
    sure = sf.align(pair, rounds=1, calibration="holdout", precision=0.99)
    assert sure.expected_precision[0] >= 0.99
    assert sure.settings["min_prob"] > 0.5
    with pytest.raises(ValueError, match="precision must be"):
        sf.align(pair, precision=2.0)


def test_neither_links_nor_probabilities_depend_on_test_links():
    pair = sf.synthetic_pair(200, seed=0, seed_fraction=0.3)

    def method(part: sf.Pair) -> list[np.ndarray]:
        alignment = sf.align(part, rounds=1, calibration="holdout", progress=False)
        links = alignment.links
        return [links.targets, links.probs, links.status, alignment.calibrator.model.theta]

    assert sf.audit(pair, method).numbers > 600


def test_known_links_by_names_are_hidden_with_those_next_to_them():
    """Two chains: whoever is hidden first takes its neighbours along."""
    kg = sf.KG([[e, 0, e + 1] for e in (0, 1, 2, 4, 5, 6)], 8)
    links = np.stack([np.arange(8), np.arange(8)], axis=1)
    order = _in_neighbourhoods(kg, links[:, 0], np.array([5, 1, 0, 2, 3, 4, 6, 7]))
    assert order[:3].tolist() == [5, 4, 6] and set(order[3:6].tolist()) == {0, 1, 2} and set(order[6:]) == {3, 7}


@pytest.mark.parametrize(("known", "hidden"), [(30, 6), (60, 30), (827, 400), (4000, 800), (20_000, 1000)])
def test_of_few_names_up_to_half_are_hidden(known, hidden):
    assert _number_held_out(known, ENOUGH_HIDDEN) == hidden
