"""Disks that fail: whatever the system refuses, the old content or the new one is there, and the error is ours."""

from __future__ import annotations

import errno
import os

import pytest
from disk_calls import KINDS, Calls, failing, watched

from bench.hardening.writers import things_in, writers
from stea_fast._util import disk
from stea_fast._util.atomic import OutputError

for package in ("pyoxigraph", "pyarrow", "safetensors", "zstandard"):
    pytest.importorskip(package, reason=f"a format needs {package}")

ROWS = 4
QUICK = ("a new graph", "graph", "checkpoint", "cells.jsonl", "links.tsv", "links.csv.gz", "links.parquet", "graph.ttl")
WRITERS = [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in writers()]


def calls_of(writer, folder):
    """How often each kind of call is made to write content 0 and to replace it by content 1."""
    writer.write(folder, 0, ROWS)
    with watched() as calls:
        writer.write(folder, 1, ROWS)
    return [(kind, number) for kind in KINDS for number in range(calls.made.count(kind))]


@pytest.mark.parametrize("forever", [False, True])
@pytest.mark.parametrize("name", WRITERS)
def test_a_disk_that_fails_at_any_call_leaves_the_old_content_or_the_new(tmp_path, name, forever):
    writer = writers()[name]
    (tmp_path / "clean").mkdir()
    calls = calls_of(writer, tmp_path / "clean")
    clean = things_in(tmp_path / "clean", writer)
    for place, (kind, number) in enumerate(calls):
        folder = tmp_path / str(place)
        folder.mkdir()
        writer.write(folder, 0, ROWS)
        code = (errno.ENOSPC, errno.EIO)[place % 2]
        message = None
        with failing(kind, number, OSError(code, os.strerror(code)), forever=forever):
            try:
                writer.write(folder, 1, ROWS)
            except OutputError as error:
                message = str(error)
        there = writer.read(folder)
        assert there == 1 if message is None else there in (0, 1) and os.strerror(code) in message, (kind, number)
        if kind not in ("remove", "remove_folder"):
            assert things_in(folder, writer) == clean or there == 1, (kind, number)
        writer.write(folder, there + 1, ROWS)
        assert writer.read(folder) == there + 1
        assert things_in(folder, writer) == clean, (kind, number)


@pytest.mark.parametrize("name", WRITERS)
def test_short_and_interrupted_writes_are_gone_on_with(tmp_path, name):
    def tired(kind, number, original, arguments):
        if kind != "write":
            return original()
        if number % 3 == 0:
            raise InterruptedError(errno.EINTR, "interrupted")
        descriptor, data = arguments
        return real_write(descriptor, memoryview(data)[:97])

    writer, real_write = writers()[name], disk.write
    with Calls(tired):
        writer.write(tmp_path, 0, 50)
    assert writer.read(tmp_path) == 0
