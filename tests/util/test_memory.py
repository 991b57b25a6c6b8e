"""Memory of the process: the peak of a stage is its own where the kernel can tell."""

from __future__ import annotations

import ctypes
import platform
from pathlib import Path

import numpy as np
import pytest

from stea_fast._util import memory

MB = 1e6


def test_the_peak_never_falls_and_is_at_least_what_is_resident():
    before = memory.peak()
    block = np.ones(10_000_000)
    assert memory.peak() >= before
    del block
    memory.mark()
    assert memory.peak() >= before
    assert memory.peak() >= memory.resident() > MB


def test_a_stage_does_not_answer_for_the_stage_before():
    if not Path("/proc/self/clear_refs").exists():
        pytest.skip("this system cannot reset the peak of a process")
    memory.mark()
    block = np.ones(20_000_000)  # 160 MB
    large = memory.peak_since_mark()
    del block
    memory.mark()
    small = memory.peak_since_mark()
    assert large - small > 100 * MB
    assert memory.peak() > 0.98 * large  # the kernel counts pages in batches


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the C library is not glibc")
def test_memory_is_recycled_while_asked_for_and_given_back_afterwards():
    with memory.recycled():
        block = np.ones(int(100 * MB), dtype=np.uint8)
        full = memory.resident()
        del block
        assert memory.resident() > full - 10 * MB  # kept
        block = np.ones(int(100 * MB), dtype=np.uint8)
        assert memory.resident() < full + 10 * MB  # and used again
        del block
    assert memory.resident() < full - 90 * MB


def test_where_memory_cannot_be_recycled_nothing_happens(monkeypatch):
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())
    with pytest.raises(ZeroDivisionError), memory.recycled():
        raise ZeroDivisionError
