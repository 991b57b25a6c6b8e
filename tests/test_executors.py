"""Executors: the same bits wherever the shards are, and other workers for those that are lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import nullcontext
from itertools import pairwise

import numpy as np
import pytest

import stea_fast as sf
from stea_fast._executors import messages
from stea_fast._executors.base import ExecutorError, WorkersReplaced
from stea_fast._executors.crew import MOST_LOSSES
from stea_fast._executors.spread import spread
from stea_fast.encoders import demo
from stea_fast.encoders.propagation import Propagation
from stea_fast.refinement.api import refined as joint_refined
from stea_fast.refinement.problem import Execution, problem_of
from stea_fast.refinement.shard import Shard
from stea_fast.refinement.structural import refine_by_structure

METHOD = sf.Joint(sweeps=4, damping=0.3, lone_witness=0.5)


@pytest.fixture(scope="module")
def pair():
    return sf.synthetic_pair(num_entities=300, seed=3, seed_fraction=0.1)


@pytest.fixture(autouse=True)
def small_shards(monkeypatch):
    """Eight shards of a graph that would be one."""
    monkeypatch.setattr("stea_fast.refinement.shard.EDGES_PER_SHARD", 700)


def refined(pair, executor=None, **options):
    given = demo.candidates(pair)
    return sf.refine(given, pair.kg1, pair.kg2, seeds=pair.train, method=METHOD, executor=executor, **options)


def assert_same_bits(found, expected):
    assert found.sweeps == expected.sweeps
    for side in ("forward", "backward"):
        for name in ("indices", "probs", "evidence", "support"):
            one, other = getattr(getattr(found, side), name), getattr(getattr(expected, side), name)
            assert one.dtype == other.dtype and one.tobytes() == other.tobytes(), (side, name)
    assert found.pairs.tobytes() == expected.pairs.tobytes()
    assert found.relations.sub12.data.tobytes() == expected.relations.sub12.data.tobytes()


class Part:
    """What a session holds in the tests: it adds, remembers, and fails or dies when it is told to."""

    def __init__(self, part, n_threads, common):
        self.part, self.n_threads, self.common, self.kept = part, n_threads, common, 0

    def add(self, numbers, own=0):
        return self.part + int(numbers.sum()) + self.common["base"] + own

    def keep(self):
        self.kept += 1
        return self.kept

    def arrays(self, size):
        return {"zeros": np.zeros(size), "part": self.part}

    def fail(self):
        if self.part == 2:
            raise ValueError("the second part fails")

    def die(self, marker):
        if self.part == 1 and not os.path.exists(marker):
            with open(marker, "w", encoding="utf-8"):
                os.kill(os.getpid(), signal.SIGKILL)
        return self.part

    def die_always(self):
        if self.part == 1:
            os.kill(os.getpid(), signal.SIGKILL)

    def exhaust(self):
        raise MemoryError


def doubled(part, n_threads, base):
    """Work without state; the third part dies once, and says "no" where it is asked for."""
    if part == "no":
        raise ValueError("this part fails")
    if isinstance(part, tuple) and not os.path.exists(part[1]):
        with open(part[1], "w", encoding="utf-8"):
            os.kill(os.getpid(), signal.SIGKILL)
    return base + 2 * (part[0] if isinstance(part, tuple) else part)


class ExecutorContract:
    """What every executor does; subclasses offer `executor(workers)`."""

    @staticmethod
    def marker(monkeypatch, tmp_path):
        """A file by which workers know that one of them has died; its name is in their environment."""
        monkeypatch.setenv("STEA_TEST_DEATH", str(tmp_path / "died"))
        return tmp_path / "died"

    @pytest.mark.parametrize("workers", [1, 2, 3])
    def test_refining_gives_the_bits_of_threads(self, pair, workers):
        with self.executor(workers) as executor:
            assert_same_bits(refined(pair, executor), refined(pair))

    def test_results_come_in_the_order_of_the_parts(self):
        with self.executor(2) as executor, executor.session(Part, range(5), {"base": 100}) as session:
            numbers = np.arange(4)
            assert session.map("add", numbers) == [106, 107, 108, 109, 110]
            assert session.map("add", numbers, each=[0, 10, 20, 30, 40]) == [106, 117, 128, 139, 150]
            assert [len(found["zeros"]) for found in session.map("arrays", 1000)] == [1000] * 5
            finished = []
            assert session.map("keep", done=finished.append) == [1] * 5
            assert session.map("keep") == [2] * 5 and sum(finished) == 5

    @pytest.mark.parametrize("workers", [1, 3])
    def test_work_without_state_is_spread(self, workers):
        with self.executor(workers) as executor:
            assert list(spread(executor, doubled, range(20), 1, 100)) == [100 + 2 * i for i in range(20)]
            assert list(spread(executor, doubled, [], 1, 100)) == []
            with pytest.raises(ValueError, match="this part fails"):
                list(spread(executor, doubled, [1, "no", 2], 1, 100))
            assert list(spread(executor, doubled, [1], 1, 0)) == [2]

    def test_a_part_of_a_lost_worker_is_computed_by_another(self, tmp_path):
        with self.executor(2) as executor:
            parts = [1, 2, (3, str(tmp_path / "died")), 4, 5]
            assert list(spread(executor, doubled, parts, 1, 0)) == [2, 4, 6, 8, 10]
        assert (tmp_path / "died").exists()

    def test_a_run_with_embeddings_and_cells_gives_the_bits_of_threads(self, pair):
        found = []
        for workers in (None, 1, 2):
            with nullcontext() if workers is None else self.executor(workers) as executor:
                search = sf.SearchConfig(engine="partitioned")
                run = sf.SelfTraining(pair, preset="large", search=search, rounds=1, executor=executor, progress=False)
                found.append(run.run())
        for other in found[1:]:
            assert other.refinement.forward.probs.tobytes() == found[0].refinement.forward.probs.tobytes()
            assert all(np.array_equal(*sides) for sides in zip(other.embeddings, found[0].embeddings, strict=True))
            for side in ("forward", "backward"):
                one, two = getattr(other.candidates, side), getattr(found[0].candidates, side)
                assert one.indices.tobytes() == two.indices.tobytes() and one.scores.tobytes() == two.scores.tobytes()

    def test_candidates_by_name_are_those_of_threads(self, monkeypatch):
        named = sf.synthetic_pair(num_entities=300, seed=3, name_noise=0.2)
        here = sf.find_clues(named)
        monkeypatch.setattr("stea_fast.values.candidates.QUERIES_PER_PART", 64)
        with self.executor(2) as executor:
            there = sf.find_clues(named, executor=executor)
        assert there.fingerprint == here.fingerprint and len(here.anchors)
        assert there.names.scores.tobytes() == here.names.scores.tobytes()

    def test_the_progress_of_all_workers_is_counted_in_one_place(self, pair, monkeypatch):
        """Of sweeps, cells, embeddings and names: it only grows, and ends when everything is done."""
        monkeypatch.setattr("stea_fast.values.candidates.QUERIES_PER_PART", 64)
        shown = {}

        def showing(name):
            return lambda done, total: shown.setdefault(name, []).append((done, total))

        named = sf.synthetic_pair(num_entities=300, seed=3, name_noise=0.2)
        with self.executor(2) as executor:
            encoder = Propagation(pair.kg1, pair.kg2)
            encoder.executor, encoder.progress = executor, showing("embeddings")
            encoder.fit(pair.train)
            sides = encoder.embeddings()
            sf.topk(*sides, engine="partitioned", executor=executor, progress=showing("cells"))
            sf.find_clues(named, executor=executor, progress=showing("names"))
            execution = Execution(executor=executor, progress=showing("sweeps"))
            refine_by_structure(pair.kg1, pair.kg2, pair.train, k=10, execution=execution)
        totals = {name: steps[0][1] for name, steps in shown.items()}
        assert totals["embeddings"] == 2 * 64 and totals["names"] >= 10 and totals["sweeps"] == 24 * 8
        for name, steps in shown.items():
            done = [amount for amount, _ in steps]
            assert len(done) >= (4 if name == "cells" else 10) and done == sorted(done), name
            assert done[-1] == pytest.approx(totals[name]), name

    def test_an_error_of_a_part_is_the_callers(self):
        with self.executor(2) as executor, executor.session(Part, range(3), {}) as session:
            with pytest.raises(ValueError, match="the second part fails"):
                session.map("fail")
            with executor.session(Part, range(3), {"base": 0}) as another:
                assert another.map("add", np.zeros(1, dtype=int)) == [0, 1, 2]

    def test_no_memory_is_said_with_advice(self):
        message = pytest.raises(ExecutorError, match=r"fewer workers.*checkpoint is whole")
        with self.executor(1) as executor, executor.session(Part, [0], {}) as session, message:
            session.map("exhaust")

    def test_a_lost_worker_is_replaced(self, tmp_path):
        with self.executor(2) as executor, executor.session(Part, range(4), {}) as session:
            with pytest.raises(WorkersReplaced):
                session.map("die", str(tmp_path / "died"))
            assert session.map("die", str(tmp_path / "died")) == [0, 1, 2, 3]

    def test_losses_have_an_end(self):
        with self.executor(2) as executor, executor.session(Part, range(2), {}) as session:
            for _ in range(MOST_LOSSES):
                with pytest.raises(WorkersReplaced):
                    session.map("die_always")
            with pytest.raises(ExecutorError, match=r"workers were lost.*fewer workers"):
                session.map("die_always")

    def test_a_worker_that_dies_in_a_sweep_changes_no_bit(self, pair, monkeypatch, tmp_path):
        marker = self.marker(monkeypatch, tmp_path)
        monkeypatch.setattr("stea_fast.refinement.joint.Shard", MortalShard)
        with self.executor(2) as executor:
            shown = []
            graphs = pair.kg1, pair.kg2
            problem = problem_of(
                demo.candidates(pair), *graphs, pair.train, (), None,
                Execution(executor=executor, progress=lambda done, total: shown.append((done, total))),
            )  # fmt: skip
            found = joint_refined(problem, METHOD)
        assert marker.exists()
        # What the lost worker's sweep had counted is taken back once, and counted again.
        assert sum(after < before for (before, _), (after, _) in pairwise(shown)) <= 1
        assert shown[-1] == (4 * 8, 4 * 8) and max(shown) == shown[-1]
        monkeypatch.undo()
        monkeypatch.setattr("stea_fast.refinement.shard.EDGES_PER_SHARD", 700)
        assert_same_bits(found, refined(pair))


class MortalShard(Shard):
    """Dies once, in the middle of the third sweep."""

    sweeps = 0

    def weigh(self, *given):
        self.sweeps += 1
        marker = os.environ["STEA_TEST_DEATH"]
        if self.sweeps == 3 and self.part.sources[0] == 0 and not os.path.exists(marker):
            with open(marker, "w", encoding="utf-8"):
                os.kill(os.getpid(), signal.SIGKILL)
        return super().weigh(*given)


class TestProcesses(ExecutorContract):
    @staticmethod
    def executor(workers):
        return sf.ProcessExecutor(workers)

    def test_what_cannot_be_sent_is_named(self, pair):
        given = demo.candidates(pair)
        scored = sf.TopK(given.forward, given.backward, score=lambda rows, columns: np.zeros(len(rows)))
        with sf.ProcessExecutor(1) as executor, pytest.raises(ExecutorError, match="cannot be sent to another process"):
            sf.refine(scored, pair.kg1, pair.kg2, seeds=pair.train, executor=executor)

    def test_a_full_disk_is_said_with_advice(self, monkeypatch):
        def full(value, path):
            raise OSError(28, "No space left on device")

        with sf.ProcessExecutor(1) as executor:
            monkeypatch.setattr(messages, "write", full)
            with pytest.raises(ExecutorError, match=r"no room for arrays.*folder=.*checkpoint is whole"):
                executor.session(Part, [0], {})

    def test_nothing_is_left_behind(self, tmp_path):
        executor = sf.ProcessExecutor(1, folder=tmp_path)
        with executor.session(Part, range(2), {"base": 0}) as session:
            session.map("add", np.zeros(3, dtype=int))
            kept = session.map("arrays", 50)
            assert len(list(tmp_path.rglob("*.message"))) == 1  # what the session was made with
        executor.close()
        assert not list(tmp_path.iterdir()) and kept[1]["zeros"].sum() == 0
        with pytest.raises(ExecutorError, match="closed"):
            executor.session(Part, [0], {})


def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path):
    """Folders in use stay: those of this process, and those of another one that lives."""
    code = (
        "import sys, stea_fast as sf; executor = sf.ProcessExecutor(1, folder=sys.argv[1])\n"
        "print('made', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    other = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert other.stdout.readline() == "made\n"
    with sf.ProcessExecutor(1, folder=tmp_path), sf.ProcessExecutor(1, folder=tmp_path):
        assert len(list(tmp_path.iterdir())) == 3
    assert len(list(tmp_path.iterdir())) == 1
    other.kill()
    other.communicate()
    with sf.ProcessExecutor(1, folder=tmp_path) as executor:
        assert list(tmp_path.iterdir()) == [executor.crew.folder]


def test_messages_keep_values_and_share_arrays(tmp_path):
    value = {"a": np.arange(5), "b": [np.zeros((2, 3), dtype=np.float32), "text"], "c": np.zeros(0)}
    messages.write(value, tmp_path / "m")
    found = messages.read(tmp_path / "m")
    (tmp_path / "m").unlink()
    assert found["b"][1] == "text" and found["c"].shape == (0,)
    np.testing.assert_array_equal(found["a"], value["a"])
    np.testing.assert_array_equal(found["b"][0], value["b"][0])
    with pytest.raises(ValueError, match="read-only"):
        found["a"][0] = 1


def test_executors_by_name_and_not_by_nonsense(pair):
    assert_same_bits(refined(pair, "threads"), refined(pair))
    with pytest.raises(ValueError, match="executor"):
        refined(pair, "proceses")
    with pytest.raises(TypeError, match="executor must be a name"):
        refined(pair, 3)


def test_shards_change_hardly_anything(pair, monkeypatch):
    """How columns are added up depends on the shards; what comes out does not, beyond rounding."""
    several = refined(pair)
    monkeypatch.setattr("stea_fast.refinement.shard.EDGES_PER_SHARD", 1 << 18)
    one = refined(pair)
    assert (several.forward.indices[:, 0] == one.forward.indices[:, 0]).mean() > 0.99
    np.testing.assert_allclose(np.sort(several.forward.probs, axis=1), np.sort(one.forward.probs, axis=1), atol=1e-3)


@pytest.mark.parametrize("preset", ["structural", "fast"])
def test_self_training_gives_the_bits_of_threads(pair, preset):
    with sf.ProcessExecutor(2) as executor:
        found = sf.SelfTraining(pair, preset=preset, rounds=0, executor=executor).run()
    expected = sf.SelfTraining(pair, preset=preset, rounds=0).run()
    assert found.pairs.tobytes() == expected.pairs.tobytes() and len(found.pairs)
    assert_same_bits(found.refinement, expected.refinement)
