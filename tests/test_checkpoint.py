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
from stea_fast import checkpoint as module

pytest.importorskip("safetensors")
ROUNDS = 3


@pytest.fixture(scope="module")
def pair():
    return sf.synthetic_pair(300, seed=5, seed_fraction=0.1)


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


def training(pair, folder, **options):
    stop_after = options.pop("stop_after", None)
    return sf.SelfTraining(pair, Learner(pair, stop_after), rounds=ROUNDS, checkpoint=folder, **options)


@pytest.mark.parametrize("stop_after", [4, 6, 8])
def test_an_interrupted_run_ends_in_the_same_bits(pair, tmp_path, stop_after):
    expected = training(pair, None).run()
    with pytest.raises(KeyboardInterrupt):
        training(pair, tmp_path, stop_after=stop_after).run()
    resumed = training(pair, tmp_path).run()
    np.testing.assert_array_equal(resumed.pairs, expected.pairs)
    np.testing.assert_array_equal(resumed.forward.probs, expected.forward.probs)
    np.testing.assert_array_equal(resumed.embeddings[0], expected.embeddings[0])
    assert [record.metrics for record in resumed.history] == [record.metrics for record in expected.history]


KILLED = """
import sys; sys.path.insert(0, {tests!r})
import test_checkpoint as t, stea_fast as sf, time
pair = sf.synthetic_pair(300, seed=5, seed_fraction=0.1)
slow = lambda record: (print("round", flush=True), time.sleep(0.15))
t.training(pair, {folder!r}, callbacks=[slow]).run()
print("done", flush=True)
"""


@pytest.mark.parametrize("after_rounds", [1, 2])
def test_a_killed_process_leaves_a_checkpoint_to_continue_from(pair, tmp_path, after_rounds):
    code = KILLED.format(tests=os.path.dirname(__file__), folder=str(tmp_path))
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    for _ in range(after_rounds):
        assert process.stdout.readline() == "round\n"
    time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    resumed = training(pair, tmp_path).run()
    np.testing.assert_array_equal(resumed.forward.probs, training(pair, None).run().forward.probs)


def test_a_checkpoint_of_something_else_is_refused(pair, tmp_path, monkeypatch):
    training(pair, tmp_path).run()
    with pytest.raises(sf.CheckpointError, match="of another settings"):
        training(pair, tmp_path, csls=3).run()
    with pytest.raises(sf.CheckpointError, match="of another data"):
        training(sf.synthetic_pair(300, seed=6, seed_fraction=0.1), tmp_path).run()
    monkeypatch.setattr(module, "__version__", "99")
    with pytest.raises(sf.CheckpointError, match="of another version"):
        training(pair, tmp_path).run()


def test_a_broken_checkpoint_is_named(pair, tmp_path):
    (tmp_path / module.NAME).write_bytes(b"no checkpoint")
    with pytest.raises(sf.CheckpointError, match="cannot read"):
        training(pair, tmp_path).run()


def test_a_full_disk_leaves_the_last_good_checkpoint(pair, tmp_path, monkeypatch):
    training(pair, tmp_path).run()
    before = (tmp_path / module.NAME).read_bytes()

    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module.os, "replace", full)
    run = training(pair, tmp_path)
    with pytest.raises(sf.CheckpointError, match="No space left"):
        run.checkpoint.save(run.encoder.state(), np.zeros((0, 2), dtype=np.int64), [], {})
    assert (tmp_path / module.NAME).read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == [module.NAME]
