"""Checkpoints: a run that is killed continues to the same bits; what does not belong to it is refused."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import stea_fast as sf
from stea_fast._util import disk
from stea_fast.evaluation.auditing import arrays_of
from stea_fast.selftraining import checkpoint as module

pytest.importorskip("safetensors")
ROUNDS = 3


@pytest.fixture(scope="module")
def pair():
    return small_pair()


class Learner:
    """Learns slowly, with a random state of its own, so that every bit depends on the way there."""

    first_epochs = round_epochs = 3

    def __init__(self, pair, stop_after=None):
        rng = np.random.default_rng(0)
        self.sides = [rng.standard_normal((kg.num_entities, 16)).astype(np.float32) for kg in (pair.kg1, pair.kg2)]
        self.epochs, self.stop_after = np.zeros(1, dtype=np.int64), stop_after

    def fit(self, pairs, epochs):
        for _ in range(epochs):
            if self.stop_after is not None and self.epochs[0] >= self.stop_after:
                raise KeyboardInterrupt
            noise = np.random.default_rng(self.epochs[0]).standard_normal((len(pairs), 16)).astype(np.float32)
            middle = (self.sides[0][pairs[:, 0]] + self.sides[1][pairs[:, 1]]) / 2 + 0.01 * noise
            self.sides[0][pairs[:, 0]] = self.sides[1][pairs[:, 1]] = middle
            self.epochs += 1

    def embeddings(self):
        return self.sides[0], self.sides[1]

    def state(self):
        return {"one": self.sides[0], "two": self.sides[1], "epochs": self.epochs}

    def load_state(self, state):
        self.sides, self.epochs = [state["one"], state["two"]], state["epochs"]


def training(pair, folder, *, stop_after=None, start_rounds=0, **options):
    schedule = sf.Schedule(thresholds=[0.0])  # a learner of random vectors is never sure
    method = sf.Stea(refinement=schedule, start_rounds=start_rounds)
    learner = Learner(pair, stop_after)
    return sf.SelfTraining(pair, learner, method=method, rounds=ROUNDS, checkpoint=folder, **options)


@pytest.mark.parametrize("stop_after", [4, 6, 8])
def test_an_interrupted_run_ends_in_the_same_bits(pair, tmp_path, stop_after):
    expected = training(pair, None).run()
    with pytest.raises(KeyboardInterrupt):
        training(pair, tmp_path, stop_after=stop_after).run()
    resumed = training(pair, tmp_path).run()
    assert_same_bits(resumed, expected)


@pytest.mark.parametrize("stop_after", [1, 4])
def test_a_run_that_begins_with_propagation_resumes_with_the_right_encoder(pair, tmp_path, stop_after):
    """Interrupted in the encoder's first training, when the checkpoint is of propagation, and in its second."""
    expected = training(pair, None, start_rounds=1).run()
    with pytest.raises(KeyboardInterrupt):
        training(pair, tmp_path, stop_after=stop_after, start_rounds=1).run()
    assert_same_bits(training(pair, tmp_path, start_rounds=1).run(), expected)


KILLED = """
import sys; sys.path.insert(0, {tests!r})
import test_checkpoint as t
pair = t.small_pair()
run = t.{run}(pair, {folder!r})
print("begin", flush=True)
run.run()
print("done", flush=True)
"""


def small_pair():
    return sf.synthetic_pair(300, seed=5, seed_fraction=0.1)


def real_training(pair, folder):
    """A trained encoder: weights, dropout masks and negatives depend on every random number before them."""
    options = {"dim": 8, "num_negatives": 300}
    encoder = sf.EncoderConfig(name="dual_amn", options=options, first_epochs=40, round_epochs=40)
    return sf.SelfTraining(pair, encoder, rounds=ROUNDS, checkpoint=folder)


def start(run, folder):
    code = KILLED.format(tests=os.path.dirname(__file__), run=run, folder=str(folder))
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "begin\n"
    return process


def kill(process):
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()


def assert_same_bits(one, other):
    for (name, a), (_, b) in zip(arrays_of(one), arrays_of(other), strict=True):
        assert a.tobytes() == b.tobytes(), name
    assert [record.metrics for record in one.history] == [record.metrics for record in other.history]


@pytest.fixture(scope="module")
def uninterrupted(pair):
    pytest.importorskip("torch", reason="the trained encoders need PyTorch")
    real_training(pair, None).run()  # compiles
    begin = time.perf_counter()
    return real_training(pair, None).run(), time.perf_counter() - begin


@pytest.mark.slow
@pytest.mark.parametrize("share", np.random.default_rng(0).uniform(size=4).round(3).tolist())
def test_a_run_killed_at_a_random_moment_ends_in_the_same_bits(pair, uninterrupted, tmp_path, share):
    expected, seconds = uninterrupted
    process = start("real_training", tmp_path)
    time.sleep(share * seconds)
    kill(process)
    assert_same_bits(real_training(pair, tmp_path).run(), expected)


@pytest.mark.slow
def test_a_run_killed_again_and_again_ends_in_the_same_bits(pair, tmp_path):
    path = tmp_path / module.NAME
    for _ in range(2):
        before = path.stat() if path.exists() else None
        process = start("training", tmp_path)
        while process.poll() is None and (path.stat() if path.exists() else None) == before:
            time.sleep(0.001)
        kill(process)
    assert_same_bits(training(pair, tmp_path).run(), training(pair, None).run())
    assert [path.name for path in tmp_path.iterdir()] == [module.NAME]


def test_a_checkpoint_of_something_else_is_refused(pair, tmp_path, monkeypatch):
    training(pair, tmp_path).run()
    with pytest.raises(sf.CheckpointError, match="of another settings"):
        training(pair, tmp_path, search=sf.SearchConfig(csls=3)).run()
    with pytest.raises(sf.CheckpointError, match="of another data"):
        training(sf.synthetic_pair(300, seed=6, seed_fraction=0.1), tmp_path).run()
    monkeypatch.setattr(module, "__version__", "99")
    with pytest.raises(sf.CheckpointError, match="of another version"):
        training(pair, tmp_path).run()


def test_a_broken_checkpoint_is_named(pair, tmp_path):
    (tmp_path / module.NAME).write_bytes(b"no checkpoint")
    with pytest.raises(sf.CheckpointError, match="cannot read"):
        training(pair, tmp_path).run()


def test_a_checkpoint_that_cannot_be_renamed_leaves_the_last_good_one(pair, tmp_path, monkeypatch):
    training(pair, tmp_path).run()
    before = (tmp_path / module.NAME).read_bytes()

    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(disk, "rename", full)
    run = training(pair, tmp_path)
    with pytest.raises(sf.CheckpointError, match="No space left"):
        run.checkpoint.save(run.encoder.state(), np.zeros((0, 2), dtype=np.int64), [], {})
    assert (tmp_path / module.NAME).read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == [module.NAME]


FULL_DISK = """
import resource, sys; sys.path.insert(0, {tests!r})
import test_checkpoint as t, stea_fast as sf
pair = t.small_pair()
run = t.training(pair, {folder!r}, callbacks=[lambda record: resource.setrlimit(resource.RLIMIT_FSIZE, (9999, 9999))])
try:
    run.run()
except sf.CheckpointError as error:
    print(error)
"""


@pytest.mark.slow
def test_a_disk_that_fills_up_during_a_run_leaves_the_last_good_checkpoint(pair, tmp_path):
    pytest.importorskip("resource", reason="this system has no limits of file sizes")
    code = FULL_DISK.format(tests=os.path.dirname(__file__), folder=str(tmp_path))
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "cannot write" in shown and "File too large" in shown and "what was there before is untouched" in shown
    assert [path.name for path in tmp_path.iterdir()] == [module.NAME]
    assert_same_bits(training(pair, tmp_path).run(), training(pair, None).run())
