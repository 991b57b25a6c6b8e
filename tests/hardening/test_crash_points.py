"""What a kill leaves, at every moment between two system calls: the old content or the new one, never half of it."""

from __future__ import annotations

import shutil

import pytest
from disk_calls import Calls, watched

from bench.hardening.writers import things_in, writers
from stea_fast._util import disk

for package in ("pyoxigraph", "pyarrow", "safetensors", "zstandard"):
    pytest.importorskip(package, reason=f"a format needs {package}")

ROWS = 4
QUICK = ("a new graph", "graph", "checkpoint", "cells.jsonl", "links.tsv", "links.parquet", "graph.ttl")
WRITERS = [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in writers()]


def written(folder, writer, number):
    writer.write(folder, number, ROWS)
    assert writer.read(folder) == number


@pytest.mark.parametrize("name", WRITERS)
def test_a_kill_between_any_two_calls_leaves_the_old_content_or_the_new(tmp_path, name):
    writer, folder, moments = writers()[name], tmp_path / "place", []
    folder.mkdir()
    written(folder, writer, 0)

    def keep_this_moment(kind, number, original, arguments):
        if kind == "write":  # a kill in the middle of a write, too
            descriptor, data = arguments
            arguments = descriptor, memoryview(data)[: max(50, len(data) // 2)]
            result = real_write(*arguments)
        else:
            result = original()
        moments.append(shutil.copytree(folder, tmp_path / f"moment{len(moments)}"))
        return result

    real_write = disk.write
    with Calls(keep_this_moment):
        writer.write(folder, 1, ROWS)
    clean = things_in(folder, writer)
    found = set()
    for moment in moments:
        there = writer.read(moment)
        found.add(there)
        written(moment, writer, there + 1)
        assert things_in(moment, writer) == clean
    assert found == {0, 1}


@pytest.mark.parametrize("name", WRITERS)
def test_content_is_on_the_disk_before_its_name_is(tmp_path, name):
    """After a power cut, names without content would be left otherwise."""
    writer = writers()[name]
    with watched() as calls:
        writer.write(tmp_path, 0, ROWS)
    assert calls.made.count("write") > 0
    last_write = len(calls.made) - 1 - calls.made[::-1].index("write")
    rest = calls.made[last_write:]
    if "rename" in rest:
        assert "sync" in rest[: rest.index("rename")]
        assert "sync" in rest[rest.index("rename") :]  # and the name itself
    else:
        assert "sync" in rest


def test_a_graph_that_was_there_before_version_two_is_replaced_as_well(tmp_path):
    writer = writers()["graph"]
    written(tmp_path, writer, 0)
    header = tmp_path / "graph" / "kg.json"
    header.write_text('{"format": "stea-fast KG", "version": 1, "num_entities": 4, "num_relations": 3}')
    assert writer.read(tmp_path) == 0
    written(tmp_path, writer, 1)
    assert len(list((tmp_path / "graph").iterdir())) == 6  # five arrays and the header
