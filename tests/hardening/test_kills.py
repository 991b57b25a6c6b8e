"""Processes that are killed while they write: nothing is lost, nothing is half there, nothing is left."""

from __future__ import annotations

import pytest

from bench.hardening.kills import kill_all
from bench.hardening.writers import writers

for package in ("pyoxigraph", "pyarrow", "safetensors", "zstandard"):
    pytest.importorskip(package, reason=f"a format needs {package}")


@pytest.mark.slow
def test_two_kills_of_every_writer_lose_nothing(tmp_path):
    names = list(writers())
    assert kill_all(names, 2 * len(names), seed=1, rows=500, folder=tmp_path) == []
