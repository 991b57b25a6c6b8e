"""Workers that run out of something in the second round of a run: clear words, and a checkpoint that continues.

What runs out is played: a shard says what the system or Ray would have said in its worker.
"""

from __future__ import annotations

import errno

import pytest
from test_executors import assert_same_bits

import stea_fast as sf
from stea_fast._executors.base import ExecutorError
from stea_fast.refinement.shard import Shard

pytest.importorskip("safetensors")


class WithoutMemory(Shard):
    """Its worker has no memory left."""

    def weigh(self, *given):
        raise MemoryError


class WithoutDisk(Shard):
    """Nor does the disk take another byte."""

    def weigh(self, *given):
        raise OSError(errno.ENOSPC, "No space left on device")


class WithoutStore(Shard):
    """Ray's store takes no object, and has spilled none."""

    def weigh(self, *given):
        from ray.exceptions import ObjectStoreFullError

        raise ObjectStoreFullError("full")


class WithoutSpillDisk(Shard):
    """Ray's store spills to a disk that is full."""

    def weigh(self, *given):
        from ray.exceptions import OutOfDiskError

        raise OutOfDiskError("full")


def check_shortage(make_executor, shard, advice, folder, monkeypatch):
    pair = sf.synthetic_pair(num_entities=300, seed=3, seed_fraction=0.1)
    told = []

    def run_out(record):
        told.append(record.number)
        monkeypatch.setattr("stea_fast.refinement.joint.Shard", shard)

    run = {"preset": "fast", "rounds": 1, "progress": False}
    message = rf"{advice}.*checkpoint is whole: the same call"
    with make_executor() as executor, pytest.raises(ExecutorError, match=message):
        sf.SelfTraining(pair, **run, executor=executor, checkpoint=folder, callbacks=[run_out]).run()
    monkeypatch.setattr("stea_fast.refinement.joint.Shard", Shard)
    with make_executor() as executor:
        note = [lambda record: told.append(record.number)]
        found = sf.SelfTraining(pair, **run, executor=executor, checkpoint=folder, callbacks=note).run()
        expected = sf.SelfTraining(pair, **run, executor=executor).run()
    assert told == [0, 1], "the first round is not made again"
    assert_same_bits(found.refinement, expected.refinement)


@pytest.mark.parametrize(
    ("shard", "advice"),
    [(WithoutMemory, "a worker process ran out of memory: use fewer workers"), (WithoutDisk, "no room for arrays in")],
)
def test_worker_processes_that_run_out_of_something(shard, advice, tmp_path, monkeypatch):
    check_shortage(lambda: sf.ProcessExecutor(1), shard, advice, tmp_path, monkeypatch)
