"""Top-K search: what it does with unusable input, and while it runs."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import stea_fast as sf
from stea_fast.search.engines import cpu

N1, N2 = 230, 310


def vectors():
    rng = np.random.default_rng(0)
    return rng.standard_normal((N1, 8)), rng.standard_normal((N2, 8))


def test_a_missing_faiss_is_named():
    code = (
        "import sys; sys.modules['faiss'] = None\n"
        "import numpy as np, stea_fast as sf\n"
        "sf.topk(np.eye(3), np.eye(3), 1)\n"
        "try:\n    sf.topk(np.eye(3), np.eye(3), 1, engine='faiss')\n"
        "except sf.BackendUnavailable as error:\n    print(error)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "stea-fast[faiss]" in out


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"emb1": np.full((3, 4), np.nan)}, ValueError, r"emb1\[0\] holds NaN"),
        ({"emb2": np.where(np.eye(4) > 0, np.inf, 1.0)}, ValueError, r"emb2\[0\] holds"),
        ({"emb2": np.ones((5, 3))}, ValueError, "same width, got 4 and 3"),
        ({"emb1": np.ones((0, 4))}, ValueError, "emb1 must be a matrix with a row per entity"),
        ({"emb1": np.ones(4)}, ValueError, "emb1 must be a matrix"),
        ({"emb1": np.array([["a", "b", "c", "d"]])}, TypeError, "emb1 must hold numbers"),
        ({"emb1": 1e30 * np.ones((3, 4)), "metric": "ip"}, ValueError, "too large for metric='ip'"),
        ({"k": 0}, ValueError, "k must be between 1"),
        ({"k": 2.5}, TypeError, "k must be an integer"),
        ({"csls": -1}, ValueError, "csls must be between 0"),
        ({"metric": "manhattan"}, ValueError, "metric must be one of 'cosine', 'ip', 'l2'"),
        ({"engine": "gpu"}, ValueError, "engine must be one of"),
        ({"engine": "torch"}, TypeError, "engine='torch' needs tensors"),
        ({"engine": "reference", "beta": 1.0}, ValueError, "gives no partition sums"),
        ({"beta": -1.0}, ValueError, "beta must be"),
        ({"n_threads": 0}, ValueError, "n_threads must be"),
    ],
)
def test_bad_input_is_named(change, error, words):
    options = {"emb1": np.ones((3, 4)), "emb2": np.ones((5, 4)), **change}
    with pytest.raises(error, match=words):
        sf.topk(options.pop("emb1"), options.pop("emb2"), **options)


def test_progress_is_reported_to_the_end(monkeypatch):
    monkeypatch.setattr(cpu, "BLOCK_ROWS", 64)
    seen = []
    sf.topk(*vectors(), 3, 2, progress=lambda done, total: seen.append((done, total)))
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert len(seen) > 5 and seen[-1] == (2.0 * N1 * N2, 2.0 * N1 * N2)


def test_an_exception_in_progress_stops_the_search_at_once(monkeypatch):
    """Ctrl-C arrives as an exception between two blocks, too."""
    monkeypatch.setattr(cpu, "BLOCK_ROWS", 16)
    calls = []

    def stop(done, total):
        calls.append(done)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sf.topk(*vectors(), progress=stop)
    assert len(calls) == 1
