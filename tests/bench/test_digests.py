"""The record of digests finds a changed bit, names where it is, and is not fooled by a new name."""

from __future__ import annotations

import json

import numpy as np
import pytest

from bench.kernels import digest_entries, digests


@pytest.fixture(autouse=True)
def _own_threads(monkeypatch):
    """The command sets the number of threads of its process, which here is that of all tests."""
    monkeypatch.setattr(digests, "limit_threads", lambda count: None)


@pytest.fixture
def calls(monkeypatch):
    """Two entries instead of all: they give what stands in this dictionary."""
    results = {"a/ones": {"x": np.ones(3), "y": np.arange(2)}, "a/twos": np.full(3, 2.0)}
    named = [(name, lambda name=name: results[name]) for name in results]
    monkeypatch.setattr(digest_entries, "entries", lambda: iter(named))
    return results


def test_a_changed_bit_is_found_and_named(calls, tmp_path, capsys):
    path = tmp_path / "digests.json"
    assert digests.main(["--write", str(path)]) == 0
    assert digests.main(["--compare", str(path)]) == 0
    assert "0 of 2 entries differ" in capsys.readouterr().out
    calls["a/ones"]["x"] = np.array([1.0, np.nextafter(1.0, 2.0), 1.0])
    assert digests.main(["--compare", str(path)]) == 1
    shown = capsys.readouterr().out
    assert "a/ones: 1 of 2 arrays differ: result['x']" in shown and "1 of 2 entries differ" in shown
    assert digests.main(["--compare", str(path), "--only", "twos"]) == 0


def test_type_and_shape_count_and_names_do_not(calls, tmp_path):
    path = tmp_path / "digests.json"
    digests.main(["--write", str(path)])
    calls["a/ones"] = {"renamed": np.ones(3), "y": np.arange(2)}
    assert digests.main(["--compare", str(path)]) == 0
    calls["a/ones"]["y"] = np.arange(2).reshape(2, 1)
    assert digests.main(["--compare", str(path)]) == 1
    calls["a/ones"]["y"] = np.arange(2).view(np.uint64)
    assert digests.main(["--compare", str(path)]) == 1


def test_an_entry_that_fails_or_holds_nothing_is_never_the_same(calls, tmp_path, capsys):
    path = tmp_path / "digests.json"
    calls["a/twos"] = []
    assert digests.main(["--write", str(path)]) == 1
    assert digests.main(["--compare", str(path)]) == 1
    assert "a/twos: fails, as in the file: ValueError: the result holds no array" in capsys.readouterr().out


def test_an_entry_of_one_side_only_differs():
    one, other = {"a": {"x": "1"}, "b": {"x": "1"}}, {"a": {"x": "1"}, "c": {"x": "1"}}
    assert list(digests.differences(one, other)) == ["b: in the file, but not run", "c: not in the file"]
    assert digests.main(["--write", "nowhere", "--only", "no such entry"]) == 2


def test_the_real_entries_run(tmp_path):
    path = tmp_path / "digests.json"
    assert digests.main(["--write", str(path), "--only", "synthetic/topk/ip"]) == 0
    report = json.loads(path.read_text())
    assert report["entries"].keys() == {"synthetic/topk/ip/csls=0", "synthetic/topk/ip/csls=10"}
    assert report["machine"]["numpy"] == np.__version__
    assert digests.main(["--compare", str(path), "--only", "synthetic/topk/ip"]) == 0
