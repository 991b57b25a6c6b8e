"""Memory of the process: the peak of a stage is its own where the kernel can tell."""

from __future__ import annotations

import ctypes
import platform
from pathlib import Path

import numpy as np
import pytest

from stea_fast import _memory

MB = 1e6


def test_the_peak_never_falls_and_is_at_least_what_is_resident():
    before = _memory.peak()
    block = np.ones(10_000_000)
    assert _memory.peak() >= before
    del block
    _memory.mark()
    assert _memory.peak() >= before
    assert _memory.peak() >= _memory.resident() > MB


def test_a_stage_does_not_answer_for_the_stage_before():
    if not Path("/proc/self/clear_refs").exists():
        pytest.skip("this system cannot reset the peak of a process")
    _memory.mark()
    block = np.ones(20_000_000)  # 160 MB
    large = _memory.peak_since_mark()
    del block
    _memory.mark()
    small = _memory.peak_since_mark()
    assert large - small > 100 * MB
    assert _memory.peak() > 0.98 * large  # the kernel counts pages in batches


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the C library is not glibc")
def test_memory_is_recycled_while_asked_for_and_given_back_afterwards():
    with _memory.recycled():
        block = np.ones(int(100 * MB), dtype=np.uint8)
        full = _memory.resident()
        del block
        assert _memory.resident() > full - 10 * MB  # kept
        block = np.ones(int(100 * MB), dtype=np.uint8)
        assert _memory.resident() < full + 10 * MB  # and used again
        del block
    assert _memory.resident() < full - 90 * MB


def test_where_memory_cannot_be_recycled_nothing_happens(monkeypatch):
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())
    with pytest.raises(ZeroDivisionError), _memory.recycled():
        raise ZeroDivisionError
