"""The options of the refinement: misspelt ones are named, old ones say how they are written now, all are checked."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import stea_fast as sf
from stea_fast.encoders import demo
from stea_fast.refinement.config import METHODS, method_of
from stea_fast.refinement.schedule import plan_of

PAIR = sf.synthetic_pair(80, 0, num_relations=6)
CANDIDATES = demo.candidates(PAIR, 5)


def refine(**options: object) -> sf.Refinement:
    return sf.refine(CANDIDATES, PAIR.kg1, PAIR.kg2, **{"seeds": PAIR.train, **options})


def refiner(**options: object) -> sf.Refiner:
    return sf.Refiner(PAIR.kg1, PAIR.kg2, PAIR.train, **options)


def assert_same(one: sf.Refinement, other: sf.Refinement) -> None:
    for side in ("forward", "backward"):
        for part in ("indices", "probs", "evidence"):
            left, right = (getattr(getattr(out, side), part) for out in (one, other))
            np.testing.assert_array_equal(left, right)
    np.testing.assert_array_equal(one.pairs, other.pairs)


@pytest.mark.parametrize(
    ("call", "wrong", "nearest"),
    [
        (refine, "treshold", "threshold"),
        (refine, "hold_out", "holdout"),
        (refine, "methods", "method"),
        (refiner, "refinemant", "refinement"),
        (refiner, "cls", "csls"),
        (sf.Joint, "evidence_wieght", "evidence_weight"),
        (sf.Joint, "sweep", "sweeps"),
        (sf.Product, "normalization", "normalisation"),
        (sf.Paper, "blankets", "blanket"),
        (sf.Schedule, "treshold", "thresholds"),
    ],
)
def test_a_misspelt_option_names_the_nearest(call, wrong, nearest):
    with pytest.raises(TypeError, match=rf"has no option '{wrong}'; did you mean '{nearest}'\?"):
        call(**{wrong: 1})


def test_an_option_like_no_other_is_answered_with_all_there_are():
    with pytest.raises(TypeError, match=r"Joint\(\) has no option 'colour'; it has evidence_weight, .*, beta, k$"):
        sf.Joint(colour="red")
    with pytest.raises(TypeError, match=r"refine\(\) has no option 'x'; it has candidates, kg1, .*backend"):
        refine(x="red")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("sweeps", "method=sf.Joint(sweeps=...)"),
        ("evidence_weight", "method=sf.Joint(evidence_weight=...)"),
        ("proposals", "method=sf.Joint(proposals=...)"),
        ("beta", "method=sf.Joint(beta=...)"),
        ("k", "method=sf.Joint(k=...)"),
        ("evidence", "method=sf.Product(evidence=...)"),
        ("blanket", "method=sf.Product(blanket=...)"),
        ("calibrate", "method=sf.Product(normalisation=...)"),
        ("paper", "method='paper'"),
        ("combine", "method='joint', 'product' or 'paper'"),
        ("log_partition", "sf.TopK(forward, backward, log_partition=..., beta=...) as the candidates"),
    ],
)
def test_an_option_that_moved_says_how_it_is_written_now(old, new):
    with pytest.raises(TypeError) as raised:
        refine(**{old: 3})
    assert str(raised.value) == f"refine() has no option {old!r}; write {new}"


def test_options_of_a_method_are_found_from_a_refiner_too():
    with pytest.raises(
        TypeError, match=r"Refiner\(\) has no option 'sweeps'; write refinement=sf\.Joint\(sweeps=\.\.\.\)"
    ):
        refiner(sweeps=3)
    with pytest.raises(
        TypeError, match=r"Refiner\(\) has no option 'schedule'; write refinement=sf\.Schedule\(\.\.\.\)"
    ):
        refiner(schedule=sf.Schedule())


@pytest.mark.parametrize("cls", [*METHODS.values(), sf.Schedule])
def test_options_are_frozen_keywords_that_can_be_compared_and_replaced(cls):
    options = cls()
    with pytest.raises(dataclasses.FrozenInstanceError):
        options.sweeps = 7
    with pytest.raises(TypeError, match="positional"):
        cls(4.0)
    changed = dataclasses.replace(options, sweeps=7)
    assert changed == cls(sweeps=7) != options and hash(changed) == hash(cls(sweeps=7))
    with pytest.raises(TypeError, match="did you mean 'sweeps'"):
        dataclasses.replace(options, sweps=7)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"beta": -1}, ValueError, "^beta must be"),
        ({"evidence_weights": []}, ValueError, "^evidence_weights is empty"),
        ({"evidence_weights": [-1.0]}, ValueError, "^evidence_weights must be"),
        ({"evidence_weights": ["4"]}, TypeError, "^evidence_weights must be a number, got str"),
        ({"evidence_weights": 4.0}, TypeError, "^evidence_weights must be a list of numbers, got float"),
        ({"thresholds": []}, ValueError, "^thresholds is empty"),
        ({"thresholds": [0.5, 1.5]}, ValueError, "^thresholds must be a finite number between 0.0 and 1.0, got 1.5"),
        ({"final_weight": -1.0}, ValueError, "evidence_weight must be"),
        ({"final_threshold": 2}, ValueError, "^final_threshold must be"),
        ({"sweeps": 0}, ValueError, "^sweeps must be"),
        ({"proposals": -1}, ValueError, "^proposals must be"),
        ({"balance": 1.5}, TypeError, "^balance must be an integer"),
    ],
)
def test_a_schedule_is_checked_when_it_is_written_down(options, error, message):
    with pytest.raises(error, match=message):
        sf.Schedule(**options)


def test_a_schedule_takes_arrays_and_keeps_numbers():
    schedule = sf.Schedule(thresholds=np.array([0.25, 0.5]), evidence_weights=np.array([1, 2]))
    assert schedule == sf.Schedule(thresholds=(0.25, 0.5), evidence_weights=(1.0, 2.0))


@pytest.mark.parametrize(("name", "cls"), [("joint", sf.Joint), ("product", sf.Product), ("paper", sf.Paper)])
def test_a_string_stands_for_a_method_with_its_defaults(name, cls):
    assert method_of(name) == cls()
    assert_same(refine(method=name), refine(method=cls()))


def test_strings_stand_for_methods_in_a_refiner():
    assert plan_of("joint") == sf.Schedule()
    assert plan_of("paper").method(3, last=True) == sf.Paper()
    assert plan_of("product").threshold(0, last=False) is None
    assert plan_of(sf.Joint(sweeps=2)).method(0, last=False) == sf.Joint(sweeps=2)
    with pytest.raises(ValueError, match="method must be one of 'joint', 'product', 'paper'; got 'magic'"):
        refiner(refinement="magic")
    with pytest.raises(TypeError, match=r"sf\.Joint, sf\.Product or sf\.Paper; got 5"):
        refiner(refinement=5)


def test_the_default_of_refine_is_the_joint_refinement():
    assert_same(refine(), refine(method="joint"))
    assert (refine().forward.probs != refine(method="product").forward.probs).any()


def test_a_schedule_reaches_the_refinement_call_by_call():
    schedule = sf.Schedule(
        beta=7.0, evidence_weights=(3.0, 1.0), thresholds=(0.2, 0.9), sweeps=2, proposals=1, balance=3
    )
    step, embeddings = refiner(refinement=schedule), demo.encode(PAIR)
    candidates = sf.topk(*embeddings, 10, 10, beta=7.0)
    for weight, threshold in ((3.0, 0.2), (1.0, 0.9), (1.0, 0.9)):
        pairs = step(*embeddings)
        method = sf.Joint(evidence_weight=weight, sweeps=2, proposals=1, balance=3)
        expected = sf.refine(candidates, PAIR.kg1, PAIR.kg2, seeds=PAIR.train, method=method, threshold=threshold)
        assert_same(step.refinement, expected)
        np.testing.assert_array_equal(pairs, expected.pairs)
        assert step.refinement.betas == (7.0, 7.0) and (step.refinement.pair_probs > threshold).all()


def test_a_threshold_of_a_refiner_replaces_the_schedule_s():
    default = refiner()
    found = default(*demo.encode(PAIR))
    probs = default.refinement.pair_probs
    middle = float(np.median(probs))
    assert 0.5 < probs.min() < middle < probs.max()
    np.testing.assert_array_equal(refiner(threshold=middle)(*demo.encode(PAIR)), found[probs > middle])


def test_one_method_for_all_calls_has_no_schedule():
    step = refiner(refinement=sf.Product(sweeps=1), select="either", threshold=0.5)
    step(*demo.encode(PAIR))
    expected = sf.refine(
        sf.topk(*demo.encode(PAIR), 10, 10), PAIR.kg1, PAIR.kg2, seeds=PAIR.train, method=sf.Product(sweeps=1),
        select="either", threshold=0.5,
    )  # fmt: skip
    assert_same(step.refinement, expected)
