"""The comparisons behind the defaults hold the defaults themselves, and run."""

from __future__ import annotations

from dataclasses import replace

import pytest

import stea_fast as sf
from bench.lib import inputs
from bench.tuning import choose_defaults, choose_schedule
from stea_fast.refinement.config import DEFAULT_METHOD, method_of


def test_all_methods_are_compared_and_the_default_is_one_of_them():
    methods = list(choose_defaults.methods())
    assert [sum(isinstance(each, cls) for each in methods) for cls in (sf.Product, sf.Joint, sf.Paper)] == [60, 10, 1]
    labels = {choose_defaults.describe(each): each for each in methods}
    assert len(labels) == len(methods) == len(set(methods))
    assert [each for label, each in labels.items() if label.endswith("(default)")] == [method_of(DEFAULT_METHOD)]
    assert labels["product, evidence mutual, evidence_weight 4, sweeps 4 (default of product)"].evidence == "mutual"
    assert labels["joint, evidence_weight 16, sweeps 10"] == sf.Joint(evidence_weight=16.0, sweeps=10)


def test_hidden_seeds_judge_a_method_and_nothing_else_is_known(monkeypatch):
    full = sf.synthetic_pair(num_entities=300, seed=0, seed_fraction=0.3)
    monkeypatch.setattr(inputs, "pair", lambda name, fraction: full)
    trial = choose_defaults.make_trial("small", 0.3)
    assert len(trial.hidden) == round(0.2 * len(full.train)) and len(trial.pair.test) == 0
    known = {*map(tuple, trial.pair.train.tolist())}
    assert len(trial.pair.links) == len(known) and not known & {*map(tuple, trial.hidden.tolist())}
    encoder = sf.evaluate(trial.candidates, trial.hidden, pool="all").hit1
    for method in (sf.Joint(), sf.Product(evidence="mutual"), sf.Paper()):
        assert choose_defaults.hit1(trial, method) > encoder


@pytest.mark.parametrize("preset", ["fast", "full"])
def test_a_setting_changes_nothing_else_of_a_preset(preset):
    chosen = sf.preset(preset)
    assert choose_schedule.configuration("default", preset) == chosen
    found = {name: choose_schedule.configuration(name, preset) for name in choose_schedule.SETTINGS}
    for each in found.values():
        own = {name: getattr(chosen.method, name) for name in ("two_views", "refinement", "structure")}
        assert replace(each, method=replace(each.method, **own)) == chosen
    assert len({str(each.to_dict()) for each in found.values()}) == len(found), "no two settings are the same"
    both = choose_schedule.configuration("one_view+exact", preset)
    assert both == replace(found["one_view"], search=replace(chosen.search, budget=1e18))
    assert not found["one_view"].method.two_views
