"""Helper threads are kept from call to call; forks, concurrent calls and the end of a process must not notice."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import stea_fast as sf
from stea_fast._backends import native
from stea_fast.encoders import demo
from stea_fast.refinement.beliefs import soft

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
    return subprocess.run([sys.executable, "-c", COUNT + code], check=True, timeout=120, capture_output=True, text=True)


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


IN_THE_BACKGROUND = """
import threading, time
import numpy as np
from stea_fast._backends import native
from stea_fast.refinement.beliefs import soft
targets = np.tile(np.arange({targets}, dtype=np.int32), (pair.kg1.num_entities, 1))
beliefs = soft(candidates.forward.indices, np.ones(candidates.forward.indices.shape, dtype=np.float32))
relations = native.strengths(sf.RelationAlignment.uniform(pair.kg1, pair.kg2, 0.3), pair.kg1, pair.kg2)
begun = threading.Event()
problem = pair.kg1, pair.kg2, targets, beliefs, relations
def work():
    while True:
        begun.set()
        native.evidence(*problem, forward=True, rows=(0, len(targets)), n_threads=2)
for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
begun.wait()
class Last:
    def __del__(self, sleep=time.sleep):
        sleep(0.5)  # the interpreter has begun to end, and others may ask for its lock
last = Last()
"""


@pytest.mark.parametrize("targets", [1, 300])
def test_a_process_ends_while_daemon_threads_are_inside_native_calls(targets):
    """Short calls ask for the interpreter's lock when they return, long ones also in between."""
    assert python(IN_THE_BACKGROUND.format(targets=targets)).stderr == ""


def test_no_binding_takes_the_lock_of_an_interpreter_that_has_ended():
    """pybind11's own guards abort the process then; `ReleasedGil` does not."""
    for path in (Path(__file__).resolve().parents[1] / "csrc").rglob("*.*"):
        assert "gil_scoped" not in path.read_text(encoding="utf-8"), path


def test_calls_from_several_threads_share_the_helpers():
    pair = sf.synthetic_pair(400, seed=0)
    candidates = demo.candidates(pair)

    def refine(n_threads):
        return sf.refine(candidates, pair.kg1, pair.kg2, seeds=pair.train, backend="native", n_threads=n_threads).pairs

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(refine, [2, 3, 5, 2, 3, 5, 2, 3]))
    expected = refine(1)
    assert all(np.array_equal(pairs, expected) for pairs in found)


@pytest.mark.parametrize("n_threads", [1, 4])
def test_no_bit_depends_on_how_the_calling_thread_treats_denormal_numbers(n_threads):
    torch = pytest.importorskip("torch")
    kg = sf.KG([[i, 0, i + 1] for i in range(500)])
    rows = (0, kg.num_entities)
    candidates = np.arange(kg.num_entities, dtype=np.int32)[:, None]
    beliefs = soft(candidates, np.full(candidates.shape, 1e-40, dtype=np.float32))
    strengths = native.strengths(sf.RelationAlignment.uniform(kg, kg, 0.9), kg, kg)

    def evidence():
        return native.evidence(kg, kg, candidates, beliefs, strengths, forward=True, rows=rows, n_threads=n_threads)

    expected = evidence()
    assert expected.max() > 0 and torch.set_flush_denormal(True)
    try:
        found = evidence()
    finally:
        torch.set_flush_denormal(False)
    np.testing.assert_array_equal(found.view(np.uint32), expected.view(np.uint32))
