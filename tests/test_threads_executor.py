"""The default executor: a part for each thread where there are many, and threads within a part where there are few."""

from __future__ import annotations

from threading import Barrier

import pytest
from test_executors import METHOD, Part, assert_same_bits

import stea_fast as sf
from stea_fast._executors.threads import ThreadsExecutor
from stea_fast.encoders import demo
from stea_fast.refinement.shard import parts_of


@pytest.mark.parametrize("threads", [2, 3])
def test_any_number_of_threads_gives_the_same_bits(monkeypatch, threads):
    pair = sf.synthetic_pair(num_entities=300, seed=3, seed_fraction=0.1)
    given, graphs = demo.candidates(pair), (pair.kg1, pair.kg2)
    monkeypatch.setattr("stea_fast.refinement.shard.EDGES_PER_SHARD", 400)
    assert len(parts_of(graphs)) == 16
    executors = ThreadsExecutor(threads), ThreadsExecutor(1)
    some, one = (sf.refine(given, *graphs, seeds=pair.train, method=METHOD, executor=each) for each in executors)
    assert_same_bits(some, one)


def test_parts_are_computed_at_the_same_time():
    """Two parts that wait for each other come to an end."""
    both = Barrier(2)

    class Waiting:
        def meet(self):
            return both.wait(timeout=60) in (0, 1)

    with ThreadsExecutor(2).session(lambda part, n_threads: Waiting(), range(8)) as session:
        done = []
        assert session.map("meet", done=done.append) == [True] * 8 and sum(done) == 8


def test_few_parts_get_all_threads_one_after_the_other():
    with ThreadsExecutor(2).session(lambda part, n_threads: Part(part, n_threads, {}), range(7)) as session:
        assert [part.n_threads for part in session.objects] == [2] * 7
    with ThreadsExecutor(2).session(lambda part, n_threads: Part(part, n_threads, {}), range(8)) as session:
        assert [part.n_threads for part in session.objects] == [1] * 8
