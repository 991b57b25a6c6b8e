"""Saved graphs that are replaced: by others at the same time, through links, and under the eyes of a reader."""

from __future__ import annotations

import json
import threading

import pytest

from bench.hardening.writers import graph
from stea_fast import KG
from stea_fast._util.checksums import checksum_of_file
from stea_fast.data import graph_store


def test_every_file_has_its_checksum_in_the_header(tmp_path):
    for number in range(3):
        graph(number, 9).save(tmp_path / "graph")
        header = json.loads((tmp_path / "graph" / "kg.json").read_text())
        files = {path.name: path for path in (tmp_path / "graph").glob("*.npy")}
        assert header["checksums"] == {name: checksum_of_file(path) for name, path in files.items()}
        assert header["generation"] == number


@pytest.mark.parametrize("mmap", [False, True])
def test_a_graph_that_is_replaced_while_it_is_read_is_the_old_one_or_the_new(tmp_path, monkeypatch, mmap):
    graph(0, 9).save(tmp_path / "graph")
    load, replaced = graph_store._load, []

    def replacing_first(folder, *arguments):
        if not replaced:
            replaced.append(True)
            graph(1, 9).save(folder)
        return load(folder, *arguments)

    monkeypatch.setattr(graph_store, "_load", replacing_first)
    assert KG.load(tmp_path / "graph", mmap=mmap) == graph(1, 9)


def test_a_link_to_a_saved_graph_stays_one(tmp_path):
    graph(0, 9).save(tmp_path / "graph")
    (tmp_path / "link").symlink_to("graph")
    (tmp_path / "nowhere").symlink_to("new graph")
    graph(1, 9).save(tmp_path / "link")
    graph(2, 9).save(tmp_path / "nowhere")
    assert (tmp_path / "link").is_symlink() and KG.load(tmp_path / "graph") == graph(1, 9)
    assert (tmp_path / "nowhere").is_symlink() and KG.load(tmp_path / "new graph") == graph(2, 9)


def test_other_files_in_the_folder_stay(tmp_path):
    graph(0, 9).save(tmp_path / "graph")
    (tmp_path / "graph" / "notes.npy").write_text("mine")
    graph(1, 9).save(tmp_path / "graph")
    assert (tmp_path / "graph" / "notes.npy").read_text() == "mine"


def test_many_save_at_once_and_the_graph_is_always_whole(tmp_path):
    expected, errors = [graph(number, 9) for number in range(4)], []

    def save_again_and_again(kg):
        try:
            for _ in range(5):
                kg.save(tmp_path / "graph")
                assert KG.load(tmp_path / "graph") in expected
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=save_again_and_again, args=(kg,)) for kg in expected]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert KG.load(tmp_path / "graph") in expected
    assert len(list((tmp_path / "graph").iterdir())) == 6 and len(list(tmp_path.iterdir())) == 1
