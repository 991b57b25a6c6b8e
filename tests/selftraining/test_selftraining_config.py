"""Configurations: misspelt options are named, everything is checked, and what JSON holds comes back the same."""

from __future__ import annotations

import inspect
import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import stea_fast as sf
from stea_fast.encoders import NAMES, demo
from stea_fast.refinement.selection import STRATEGIES
from stea_fast.selftraining.methods import METHODS
from stea_fast.selftraining.presets import PRESETS, configured

PAIR = sf.synthetic_pair(120, seed=2, seed_fraction=0.2)


class Stand:
    """A foreign encoder, with epochs of its own."""

    first_epochs = round_epochs = 1

    def __init__(self):
        self.epochs = []

    def fit(self, pairs, epochs):
        self.epochs.append(epochs)

    def embeddings(self):
        return demo.encode(PAIR)


def self_training(**options: object) -> sf.SelfTraining:
    return sf.SelfTraining(PAIR, **options)


def align(**options: object) -> sf.Alignment:
    return sf.align(PAIR, **options)


@pytest.mark.parametrize(
    ("call", "wrong", "nearest"),
    [
        (self_training, "presets", "preset"),
        (self_training, "check_point", "checkpoint"),
        (self_training, "round", "rounds"),
        (align, "minprob", "min_prob"),
        (align, "callback", "callbacks"),
        (sf.SelfTrainingConfig, "tolerence", "tolerance"),
        (sf.EncoderConfig, "first_epoch", "first_epochs"),
        (sf.SearchConfig, "clsl", "csls"),
        (sf.Stea, "refine", "refinement"),
        (sf.SimilarityThreshold, "treshold", "threshold"),
        (sf.OneToOne, "treshold", "threshold"),
    ],
)
def test_a_misspelt_option_names_the_nearest(call, wrong, nearest):
    with pytest.raises(TypeError, match=rf"has no option '{wrong}'; did you mean '{nearest}'\?"):
        call(**{wrong: 1})


@pytest.mark.parametrize(
    ("call", "old", "new"),
    [
        (self_training, "refine_options", "method=sf.Stea(refinement=...)"),
        (self_training, "schedule", "method=sf.Stea(refinement=sf.Schedule(...))"),
        (self_training, "start_rounds", "method=sf.Stea(start_rounds=...)"),
        (self_training, "relations", "method=sf.Stea(relations=...)"),
        (self_training, "encoder_options", "encoder=sf.EncoderConfig(name=..., options=...)"),
        (self_training, "round_epochs", "encoder=sf.EncoderConfig(round_epochs=...)"),
        (self_training, "k", "search=sf.SearchConfig(k=...)"),
        (self_training, "csls", "search=sf.SearchConfig(csls=...)"),
        (self_training, "validation", "preset=dataclasses.replace(sf.preset('fast'), validation=...)"),
        (align, "method", "preset=dataclasses.replace(sf.preset('fast'), method=...)"),
        (align, "encoder", "preset=dataclasses.replace(sf.preset('fast'), encoder=...)"),
    ],
)
def test_an_option_that_moved_says_how_it_is_written_now(call, old, new):
    with pytest.raises(TypeError) as raised:
        call(**{old: 3})
    assert str(raised.value).endswith(f"has no option {old!r}; write {new}")


@pytest.mark.parametrize(
    ("cls", "options", "error", "message"),
    [
        (sf.EncoderConfig, {"name": None}, TypeError, "^name must be the name of an encoder, got NoneType"),
        (sf.EncoderConfig, {"options": 5}, TypeError, "^options must be a dictionary, got int"),
        (sf.EncoderConfig, {"first_epochs": -1}, ValueError, "^first_epochs must be between 0"),
        (sf.EncoderConfig, {"round_epochs": 1.5}, TypeError, "^round_epochs must be an integer, got float"),
        (sf.SearchConfig, {"k": 0}, ValueError, "^k must be between 1"),
        (sf.SearchConfig, {"csls": -1}, ValueError, "^csls must be between 0"),
        (sf.Stea, {"refinement": "magic"}, ValueError, "must be one of 'joint', 'product', 'paper'; got 'magic'"),
        (sf.Stea, {"refinement": None}, TypeError, "sf.Joint, sf.Product or sf.Paper; got None"),
        (sf.Stea, {"select": "uni"}, ValueError, "^select must be one of 'mutual', 'forward', 'backward', 'either'"),
        (sf.Stea, {"threshold": 1.5}, ValueError, "^threshold must be a finite number between 0.0 and 1.0"),
        (sf.Stea, {"relations": "guessed"}, ValueError, "^relations must be one of 'estimated', 'oracle'"),
        (sf.Stea, {"start_rounds": -1}, ValueError, "^start_rounds must be between 0"),
        (sf.Stea, {"first_epochs": "5"}, TypeError, "^first_epochs must be an integer, got str"),
        (sf.SimilarityThreshold, {"threshold": np.nan}, ValueError, "^threshold must be a finite number"),
        (sf.OneToOne, {"threshold": "high"}, TypeError, "^threshold must be a number, got str"),
        (sf.SelfTrainingConfig, {"encoder": "dual_amn"}, TypeError, "^encoder must be an sf.EncoderConfig"),
        (sf.SelfTrainingConfig, {"search": {"k": 5}}, TypeError, "^search must be an sf.SearchConfig"),
        (
            sf.SelfTrainingConfig,
            {"method": sf.Joint()},
            TypeError,
            "^method must be an sf.Stea or one of the baselines",
        ),
        (sf.SelfTrainingConfig, {"rounds": -1}, ValueError, "^rounds must be between 0 and 1000"),
        (sf.SelfTrainingConfig, {"validation": 1.0}, ValueError, "^validation must be"),
        (sf.SelfTrainingConfig, {"tolerance": 2}, ValueError, "^tolerance must be"),
        (sf.SelfTrainingConfig, {"seed": 0.5}, TypeError, "^seed must be an integer, got float"),
    ],
)
def test_every_class_is_checked_when_it_is_written_down(cls, options, error, message):
    with pytest.raises(error, match=message):
        cls(**options)


@pytest.mark.parametrize("wrong", [5, {"rounds": 3}])
def test_a_preset_is_a_name_or_a_configuration(wrong):
    for call in (self_training, align):
        with pytest.raises(TypeError, match=r"preset must be a name or an sf\.SelfTrainingConfig"):
            call(preset=wrong)
    with pytest.raises(ValueError, match="preset must be one of 'structural', 'fast', 'large', 'full'; got 'quick'"):
        sf.preset("quick")


probabilities = st.floats(0, 1)
weights = st.floats(0, 1e6)
counts = st.integers(1, 50)
optional_betas = st.none() | weights
REFINEMENTS = st.one_of(
    st.sampled_from(["joint", "product", "paper"]),
    st.builds(sf.Joint, evidence_weight=weights, sweeps=counts, proposals=counts, beta=optional_betas),
    st.builds(
        sf.Product,
        evidence=st.sampled_from([None, "soft", "argmax", "mutual"]),
        blanket=st.sampled_from(["local", "full"]),
        normalisation=st.sampled_from(["softmax", "minmax", "none"]),
        k=st.none() | counts,
    ),
    st.builds(sf.Paper, sweeps=counts, beta=optional_betas),
    st.builds(
        sf.Schedule,
        beta=weights,
        evidence_weights=st.lists(weights, min_size=1, max_size=3),
        thresholds=st.lists(probabilities, min_size=1, max_size=3),
        final_weight=weights,
    ),
)
STEA = {
    "refinement": REFINEMENTS,
    "relations": st.sampled_from(["estimated", "oracle"]),
    "start_rounds": counts,
    "first_epochs": st.none() | counts,
}
SELF_TRAINING_METHODS = st.one_of(
    st.builds(sf.Stea, select=st.sampled_from(STRATEGIES), threshold=probabilities, **STEA),
    st.builds(sf.Stea, select=st.sampled_from(["mutual", "none"]), **STEA),
    st.builds(sf.Supervised),
    st.builds(sf.MutualNearest),
    st.builds(sf.SimilarityThreshold, threshold=st.none() | probabilities),
    st.builds(sf.OneToOne, threshold=st.none() | probabilities),
)
CONFIGURATIONS = st.builds(
    sf.SelfTrainingConfig,
    encoder=st.builds(
        sf.EncoderConfig,
        name=st.sampled_from(NAMES),
        options=st.dictionaries(st.sampled_from(["dim", "relation_dim"]), counts),
        first_epochs=st.none() | counts,
        round_epochs=st.none() | counts,
    ),
    search=st.builds(sf.SearchConfig, k=counts, csls=st.integers(0, 20)),
    method=SELF_TRAINING_METHODS,
    rounds=st.integers(0, 20),
    validation=st.floats(0, 0.9),
    tolerance=probabilities,
    seed=st.integers(0, 2**63 - 1),
)


@given(CONFIGURATIONS)
def test_a_configuration_comes_back_from_json_the_same(config):
    read = sf.SelfTrainingConfig.from_dict(json.loads(json.dumps(config.to_dict())))
    assert read == config
    assert type(read.method) is type(config.method)


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_presets_come_back_from_json_the_same(name):
    assert sf.SelfTrainingConfig.from_dict(json.loads(json.dumps(sf.preset(name).to_dict()))) == sf.preset(name)


def test_numbers_of_numpy_are_written_as_numbers(tmp_path):
    method = sf.Stea(threshold=np.float32(0.5), refinement=sf.Joint(sweeps=np.int64(2), beta=np.float64(5)))
    config = sf.SelfTrainingConfig(method=method, rounds=np.int64(1), search=sf.SearchConfig(k=np.int32(5)))
    assert sf.SelfTrainingConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config
    pytest.importorskip("safetensors")
    assert len(self_training(preset=config, checkpoint=tmp_path).run().history) == 2


def test_what_is_left_out_has_its_default_and_a_string_stands_for_a_method():
    assert sf.SelfTrainingConfig.from_dict({}) == sf.SelfTrainingConfig()
    assert sf.SelfTrainingConfig.from_dict({"method": "one_to_one"}).method == sf.OneToOne()
    read = sf.SelfTrainingConfig.from_dict({"method": {"name": "stea", "refinement": {"name": "paper"}}})
    assert read.method == sf.Stea(refinement=sf.Paper())


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        ({"round": 3}, TypeError, "SelfTrainingConfig has no option 'round'; did you mean 'rounds'"),
        ({"encoder": {"option": {}}}, TypeError, "EncoderConfig has no option 'option'; did you mean 'options'"),
        ({"encoder": "dual_amn"}, TypeError, "EncoderConfig must be a dictionary, got str"),
        ({"search": {"clsl": 3}}, TypeError, "SearchConfig has no option 'clsl'; did you mean 'csls'"),
        ({"method": {"name": "stea", "selects": 1}}, TypeError, "Stea has no option 'selects'; did you mean 'select'"),
        (
            {"method": {"name": "stea", "refinement": {"name": "joint", "sweep": 1}}},
            TypeError,
            "Joint has no option 'sweep'; did you mean 'sweeps'",
        ),
        ({"method": {"name": "magic"}}, ValueError, "name must be one of 'stea', .*; got 'magic'"),
        ({"method": {"select": "mutual"}}, ValueError, "name must be one of .*; got None"),
        ({"method": None}, TypeError, "a method must be a dictionary with a 'name', got NoneType"),
        ([], TypeError, "SelfTrainingConfig must be a dictionary, got list"),
    ],
)
def test_what_no_configuration_has_is_named_when_it_is_read(values, error, message):
    with pytest.raises(error, match=message):
        sf.SelfTrainingConfig.from_dict(values)


@pytest.mark.parametrize("name", sorted(METHODS))
def test_strings_stand_for_methods(name):
    preset = sf.preset("fast").method
    assert self_training(method=name).method == (preset if name == preset.name else METHODS[name]())
    assert METHODS[name].name == name


def test_a_name_that_the_preset_uses_as_well_keeps_the_preset_s_options():
    full = sf.preset("full")
    assert configured("full", encoder="dual_amn", method="stea") == full
    assert configured("full", encoder="rrea").encoder == sf.EncoderConfig(name="rrea")
    assert configured(full, method="supervised", rounds=2) == replace(full, method=sf.Supervised(), rounds=2)
    assert configured(full) is not None and configured(full) == full


def test_a_foreign_encoder_keeps_the_epochs_of_the_preset():
    config = replace(sf.preset("fast"), encoder=sf.EncoderConfig(first_epochs=5, round_epochs=3), rounds=1)
    encoder, alone = Stand(), Stand()
    training = sf.SelfTraining(PAIR, encoder, preset=config)
    training.run()
    assert encoder.epochs == [5, 3]
    assert training.config.encoder == sf.EncoderConfig(name="Stand", first_epochs=5, round_epochs=3)
    sf.SelfTraining(PAIR, alone, rounds=1).run()
    assert alone.epochs == [1, 1]


def test_an_explicit_schedule_reaches_the_refinement(monkeypatch):
    from stea_fast.selftraining import loop

    seen = []

    refined = loop.refined

    def spied(problem, method, select, threshold):
        seen.append((method, threshold))
        return refined(problem, method, select, threshold)

    monkeypatch.setattr(loop, "refined", spied)
    schedule = sf.Schedule(
        evidence_weights=(3.0, 2.0), thresholds=(0.1, 0.95), final_weight=7.0, final_threshold=0.25, sweeps=2
    )
    self_training(method=sf.Stea(refinement=schedule), rounds=2).run()
    weights = [method.evidence_weight for method, _ in seen]
    assert (weights, [threshold for _, threshold in seen]) == ([3.0, 2.0, 7.0], [0.1, 0.95, 0.25])
    assert {method.sweeps for method, _ in seen} == {2}
    seen.clear()
    self_training(method=sf.Stea(refinement=sf.Joint(sweeps=3), threshold=0.5), rounds=1).run()
    assert set(seen) == {(sf.Joint(sweeps=3), 0.5)}


@pytest.mark.parametrize("select", ["forward", "backward", "either"])
@pytest.mark.parametrize("refinement", ["product", "paper", sf.Joint()])
def test_a_selection_without_its_threshold_is_refused_before_anything_is_trained(select, refinement):
    with pytest.raises(ValueError, match=f"select='{select}' needs a threshold"):
        sf.Stea(refinement=refinement, select=select)
    with pytest.raises(ValueError, match=f"select='{select}' needs a threshold"):
        sf.Refiner(PAIR.kg1, PAIR.kg2, PAIR.train, refinement=refinement, select=select)
    assert sf.Stea(refinement=refinement, select=select, threshold=0.5).threshold == 0.5
    assert sf.Stea(select=select).plan.threshold(0, last=False) > 0  # a schedule has thresholds of its own


def test_the_default_method_is_the_same_everywhere():
    default = inspect.signature(sf.refine).parameters["method"].default
    assert default == inspect.signature(sf.Refiner).parameters["refinement"].default == "joint"
    assert sf.Stea().refinement == default
    assert sf.Refiner(PAIR.kg1, PAIR.kg2, PAIR.train).plan == sf.Stea().plan == sf.Schedule()
    assert {name for name, preset in PRESETS.items() if preset.method.refinement != default} == {"structural"}
    assert sf.SelfTraining(PAIR).config == sf.preset("fast")
    settings = sf.align(PAIR, rounds=0, calibration="none").settings
    assert settings["preset"] == "fast"
    assert (settings["method"]["name"], settings["method"]["refinement"]) == ("stea", "joint")


def test_align_takes_a_configuration_and_tells_its_settings():
    config = replace(
        sf.preset("fast"), encoder=sf.EncoderConfig(options={"dim": 32, "relation_dim": 8}),
        method=sf.Stea(refinement=sf.Product(sweeps=1)), search=sf.SearchConfig(k=4), rounds=3, seed=5,
    )  # fmt: skip
    alignment = sf.align(PAIR, preset=config, rounds=1, calibration="none")
    assert alignment.result.refinement.sweeps == 1
    assert alignment.result.forward.indices.shape == (PAIR.kg1.num_entities, 4)
    settings = json.loads(json.dumps(alignment.settings))
    wanted = {name: settings[name] for name in replace(config, rounds=1).to_dict()}
    assert sf.SelfTrainingConfig.from_dict(wanted) == replace(config, rounds=1)
    with pytest.raises(ValueError, match=r"only sf\.Stea and sf\.Structural give"):
        sf.align(PAIR, preset=sf.SelfTrainingConfig(method=sf.MutualNearest()))
