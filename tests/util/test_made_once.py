"""What shards of a process share is made by one of them, and is made anew when it no longer holds."""

from __future__ import annotations

import gc
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from weakref import ref

import pytest

from stea_fast._util.made_once import MadeOnce


class Source:
    """Anything that can be referred to weakly."""


def test_threads_that_ask_at_the_same_time_get_the_same_object():
    made, source, together = [], Source(), Barrier(4)
    shared = MadeOnce()

    def ask(_):
        together.wait(timeout=60)
        return shared.of(source, lambda: made.append(object()) or made[-1])

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(ask, range(4)))
    assert len(made) == 1 and all(one is made[0] for one in found)


def test_what_no_longer_holds_is_made_anew():
    shared, source = MadeOnce(), Source()
    assert shared.of(source, lambda: 1) == shared.of(source, lambda: 2) == 1
    assert shared.of(source, lambda: 3, lambda made: made != 1) == 3
    assert shared.of(Source(), lambda: 4) == 4


def test_a_failure_keeps_nothing():
    shared, source = MadeOnce(), Source()
    with pytest.raises(ZeroDivisionError):
        shared.of(source, lambda: 1 // 0)
    assert shared.of(source, lambda: 5) == 5


def test_what_was_made_goes_with_its_object():
    shared, source, made = MadeOnce(), Source(), Source()
    alive = ref(made)
    shared.of(source, lambda made=made: made)
    del source, made
    gc.collect()
    assert alive() is None
