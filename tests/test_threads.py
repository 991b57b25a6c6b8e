"""Helper threads are kept from call to call; forks, concurrent calls and the end of a process must not notice."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import stea_fast as sf
from stea_fast.encoders import demo

COUNT = """
import os, stea_fast as sf
from stea_fast.encoders import demo
pair = sf.synthetic_pair(400, seed=0)
candidates = demo.candidates(pair)
def refine(n_threads):
    return sf.refine(candidates, pair.kg1, pair.kg2, seeds=pair.train, backend="native", n_threads=n_threads).pairs
expected = refine(1).tolist()
assert refine(3).tolist() == expected
"""


def python(code):
    subprocess.run([sys.executable, "-c", COUNT + code], check=True, timeout=120)


@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
def test_a_fork_makes_its_own_threads():
    python(
        """
child = os.fork()
if child == 0:
    os._exit(0 if refine(3).tolist() == expected else 1)
assert os.waitpid(child, 0)[1] == 0
assert refine(3).tolist() == expected
"""
    )


@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
@pytest.mark.parametrize("engine", ["native", "numba"])
def test_a_fork_searches_as_its_parent_did(engine):
    """Numba's parallel loops would end the child where they run on GNU's OpenMP."""
    python(
        f"""
from stea_fast import topk
emb1, emb2 = demo.encode(pair)
def search():
    return topk(emb1, emb2, beta=2.0, engine="{engine}", n_threads=3).log_partition[0].tolist()
expected = search()
child = os.fork()
if child == 0:
    os._exit(0 if search() == expected else 1)
assert os.waitpid(child, 0)[1] == 0
assert search() == expected
"""
    )


def test_a_process_ends_while_threads_wait():
    python("")


def test_calls_from_several_threads_share_the_helpers():
    pair = sf.synthetic_pair(400, seed=0)
    candidates = demo.candidates(pair)

    def refine(n_threads):
        return sf.refine(candidates, pair.kg1, pair.kg2, seeds=pair.train, backend="native", n_threads=n_threads).pairs

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(refine, [2, 3, 5, 2, 3, 5, 2, 3]))
    expected = refine(1)
    assert all(np.array_equal(pairs, expected) for pairs in found)
