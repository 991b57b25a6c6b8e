"""The runs behind an alignment: none is made twice, whatever interrupts them and whatever is decided anew."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

import stea_fast as sf
from stea_fast.evaluation.auditing import arrays_of
from stea_fast.selftraining import checkpoint

pytest.importorskip("safetensors")
ROUNDS = 2  # in every run, counted from 0 to ROUNDS - 1


def small_pair() -> sf.Pair:
    return sf.synthetic_pair(200, seed=0, seed_fraction=0.3)


@pytest.fixture(scope="module")
def pair() -> sf.Pair:
    return small_pair()


def align(pair: sf.Pair, folder=None, **options) -> sf.Alignment:
    encoder = sf.EncoderConfig(options={"dim": 16, "relation_dim": 4})
    preset = sf.SelfTrainingConfig(encoder=encoder, rounds=ROUNDS - 1)
    return sf.align(pair, preset=preset, checkpoint=folder, progress=False, **{"calibration": "crossfit", **options})


@pytest.fixture(scope="module")
def expected(pair) -> sf.Alignment:
    return align(pair)


def assert_same_bits(one: sf.Alignment, other: sf.Alignment) -> None:
    for left, right in ((one.links, other.links), (one.calibrator, other.calibrator), (one.result, other.result)):
        for (name, a), (_, b) in zip(arrays_of(left), arrays_of(right), strict=True):
            assert a.tobytes() == b.tobytes(), name
    assert one.expected_precision == other.expected_precision


class Told:
    """A callback that remembers (run, round), and interrupts the alignment after some of them."""

    def __init__(self, stop_after: int | None = None) -> None:
        self.rounds: list[tuple[int, int]] = []
        self.stop_after = stop_after

    def __call__(self, done: sf.Round) -> None:
        assert done.runs == 6
        self.rounds.append((done.run, done.number))
        if len(self.rounds) == self.stop_after:
            raise KeyboardInterrupt


@pytest.mark.parametrize("stop_after", [1, 3, 4, 10, 11, 12])
def test_an_interrupted_alignment_continues_to_the_same_bits_and_repeats_no_finished_run(
    pair, expected, tmp_path, stop_after
):
    with pytest.raises(KeyboardInterrupt):
        align(pair, tmp_path, callbacks=[Told(stop_after)])
    told = Told()
    assert_same_bits(align(pair, tmp_path, callbacks=[told]), expected)
    everything = [(run, number) for run in range(1, 7) for number in range(ROUNDS)]
    assert told.rounds == everything[stop_after - 1 :]  # the round whose callback failed is the last that is repeated


DECISIONS = [{"min_prob": 0.9}, {"one_to_one": True}, {"precision": 0.97}, {"min_prob": 0.2, "one_to_one": True}]


def test_other_decisions_on_finished_runs_repeat_nothing_and_say_so(pair, tmp_path, caplog):
    align(pair, tmp_path)
    caplog.set_level(logging.INFO, logger=checkpoint.LOGGER)
    for decision in DECISIONS:
        caplog.clear()
        told = Told()
        anew = align(pair, tmp_path, callbacks=[told], **decision)
        assert told.rounds == []
        assert caplog.messages[-1] == "all runs are finished: only the decisions are made anew"
        assert sum("nothing of it is repeated" in message for message in caplog.messages) == 6
        assert_same_bits(anew, align(pair, **decision))


def test_another_calibration_uses_the_last_run_that_is_there(pair, expected, tmp_path):
    align(pair, tmp_path, calibration="none")
    told = Told()
    assert_same_bits(align(pair, tmp_path, callbacks=[told]), expected)
    assert {run for run, _ in told.rounds} == {1, 2, 3, 4, 5}
    align(pair, tmp_path, calibration="holdout")  # has a run of its own, which is none of the five
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == [
        *(f"crossfit-{number}" for number in range(1, 6)),
        "holdout-1",
    ]


def test_runs_of_other_data_or_another_method_are_refused(pair, tmp_path):
    align(pair, tmp_path)
    with pytest.raises(sf.CheckpointError, match="of another data"):
        align(replace(pair, train=pair.train[:-1]), tmp_path)
    with pytest.raises(sf.CheckpointError, match="of another settings"):
        align(pair, tmp_path, rounds=5)


def test_rounds_say_of_how_many_runs_they_are_where_seeds_are_few(pair):
    places = []
    few = replace(pair, train=pair.train[:3])
    align(few, callbacks=[lambda done: places.append((done.run, done.runs))])
    assert sorted(set(places)) == [(1, 4), (2, 4), (3, 4), (4, 4)]  # each of three seeds is held out once


KILLED = """
import sys; sys.path.insert(0, {tests!r})
import test_runs as t
pair = t.small_pair()
print("begin", flush=True)
t.align(pair, {folder!r})
"""


@pytest.mark.slow
@pytest.mark.parametrize("share", np.random.default_rng(1).uniform(size=3).round(3).tolist())
def test_an_alignment_killed_at_a_random_moment_ends_in_the_same_bits(pair, expected, tmp_path, share):
    begin = time.perf_counter()
    align(pair)
    seconds = time.perf_counter() - begin
    code = KILLED.format(tests=os.path.dirname(__file__), folder=str(tmp_path))
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "begin\n"
        time.sleep(share * seconds)
        process.send_signal(signal.SIGKILL)
    assert_same_bits(align(pair, tmp_path), expected)
