"""Where commands may write: nothing that is read or written already, and what cannot be written is found first."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

import numpy as np
import pytest

import stea_fast as sf
from stea_fast._util import disk, locks
from stea_fast.cli.main import main
from stea_fast.cli.outputs import check_files
from stea_fast.selftraining.checkpoint import LOCK

for package in ("pyoxigraph", "pyarrow"):
    pytest.importorskip(package, reason=f"the commands need {package}")

GRAPH = "".join(f"<http://x/{{0}}{i}> <http://x/r{i % 3}> <http://x/{{0}}{(i * 7 + 1) % 30}> .\n" for i in range(30))


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for side in "ab":
        Path(f"{side}.nt").write_text(GRAPH.format(side))
    Path("seeds.tsv").write_text("".join(f"http://x/a{i}\thttp://x/b{i}\n" for i in range(9)))
    return tmp_path


@pytest.fixture
def no_work(monkeypatch):
    for command in ("align", "refine"):
        for reader in ("read_graphs", "read_known_links"):
            monkeypatch.setattr(f"stea_fast.cli.commands.{command}.inputs.{reader}", lambda *a: pytest.fail("work"))
    monkeypatch.setattr("stea_fast.cli.commands.convert.read_triples", lambda *a, **k: pytest.fail("work"))


ALIGN = ["align", "a.nt", "b.nt", "--seeds", "seeds.tsv", "--rounds", "1", "--calibration", "none", "--quiet"]


def fails(capsys, code: int, *words: str) -> str:
    assert main(list(words)) == code
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ")
    return line


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize("option", ["--out", "--relations", "--report"])
@pytest.mark.parametrize("name", ["a.nt", "b.nt", "seeds.tsv", "./seeds.tsv", "gold.tsv", "link.tsv"])
def test_an_output_that_is_an_input_is_refused_before_any_work(folder, capsys, option, name):
    Path("gold.tsv").write_text("http://x/a1\thttp://x/b1\n")
    Path("link.tsv").symlink_to("seeds.tsv")
    before = {path: path.read_bytes() for path in folder.iterdir()}
    others = [] if option == "--out" else ["--out", "links.tsv"]
    words = [*ALIGN, "--gold", "gold.tsv", option, name, *others]
    assert f"{option} {Path(name)} would overwrite what is read" in fails(capsys, 2, *words)
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.usefixtures("no_work")
def test_embeddings_and_candidates_are_not_overwritten_either(folder, capsys):
    for name in ("a.npy", "b.npy", "a.txt", "b.txt", "candidates.tsv"):
        Path(name).touch()
    by_vectors = ["refine", "a.nt", "b.nt", "--embeddings", "a.npy", "b.npy", "--entities", "a.txt", "b.txt"]
    for name in ("b.npy", "a.txt"):
        assert "would overwrite" in fails(capsys, 2, *by_vectors, "--out", name, "--format", "tsv")
    by_file = ["refine", "a.nt", "b.nt", "--candidates", "candidates.tsv", "--out", "candidates.tsv"]
    assert "would overwrite" in fails(capsys, 2, *by_file)


@pytest.mark.usefixtures("no_work")
def test_a_graph_is_not_converted_into_itself(folder, capsys):
    assert "would overwrite what is read" in fails(capsys, 2, "convert", "a.nt", "./a.nt")
    assert Path("a.nt").read_text() == GRAPH.format("a")


@pytest.mark.usefixtures("no_work")
def test_two_outputs_in_one_file_are_refused(folder, capsys):
    words = [*ALIGN, "--out", "x.tsv", "--relations", "y.tsv", "--report", "./x.tsv"]
    assert "--out and --report both name x.tsv" in fails(capsys, 2, *words)
    words = [*ALIGN, "--out", "x.tsv", "--relations", str(folder / "x.tsv")]
    assert "--out and --relations both name" in fails(capsys, 2, *words)
    words = [*ALIGN, "--out", "x.tsv", "--checkpoint", "x.tsv"]
    assert "--out and --checkpoint both name" in fails(capsys, 2, *words)
    assert not Path("x.tsv").exists()


def test_the_files_of_a_dataset_are_not_overwritten_but_results_may_lie_beside_them(folder, capsys):
    Path("triples_1").write_text("0\t0\t1\n")
    Path("links.tsv").write_text("of an earlier run")
    assert "would overwrite" in fails(capsys, 2, "align", ".", "--out", "triples_1", "--format", "tsv")
    check_files({"--out": Path("links.tsv"), "--report": Path("report")}, [Path(".")])


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize(("option", "value", "message"), [
    ("--report", "r" * 256 + ".html", "name too long"),
    ("--report", "absent/r.html", "No such file"),
    ("--relations", "seeds.tsv/r.tsv", "Not a directory"),
    ("--checkpoint", "seeds.tsv", "is not a folder"),
])  # fmt: skip
def test_what_cannot_be_written_is_found_before_the_work(folder, capsys, option, value, message):
    assert message in fails(capsys, 3, *ALIGN, "--out", "links.tsv", option, value)


def test_devices_and_pipes_take_output_and_stay_what_they_are(folder, device):
    null, received = device("null"), []
    os.mkfifo("pipe")
    reader = threading.Thread(target=lambda: received.append(Path("pipe").read_bytes()))
    reader.start()
    words = ["--out", "pipe", "--format", "tsv", "--relations", str(null), "--report", str(null)]
    assert main([*ALIGN, *words]) == 0
    reader.join()
    assert received[0].startswith(b"source\ttarget\t") and received[0].count(b"\n") == 31
    assert null.is_char_device() and Path("pipe").is_fifo()


@pytest.mark.parametrize("kind", ["parquet", "arrow", "nt", "tsv"])
def test_every_format_can_be_written_to_a_pipe(folder, kind):
    assert main(["convert", "a.nt", f"expected.{kind}"]) == 0
    os.mkfifo("pipe")
    received = []
    reader = threading.Thread(target=lambda: received.append(Path("pipe").read_bytes()))
    reader.start()
    assert main(["convert", "a.nt", "pipe", "--to", kind]) == 0
    reader.join()
    assert received == [Path(f"expected.{kind}").read_bytes()]


def test_a_checkpoint_that_cannot_be_written_ends_with_the_code_of_output(folder, capsys, monkeypatch):
    pytest.importorskip("safetensors")

    def refuse(source, target):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(disk, "rename", refuse)
    assert "No space left" in fails(capsys, 3, *ALIGN, "--out", "links.tsv", "--checkpoint", "run")
    assert not Path("links.tsv").exists()


def test_a_folder_that_another_run_uses_is_refused_with_its_holder(folder, capsys):
    pytest.importorskip("safetensors")
    Path("run").mkdir()
    with locks.held(Path("run", LOCK)):
        error = fails(capsys, 3, *ALIGN, "--out", "links.tsv", "--checkpoint", "run")
    assert f"run is in use by process {os.getpid()} on " in error and "use another folder" in error


EVIL = "\x1b[31mred\x07\x9b0m"


def test_no_escape_sequence_of_a_name_reaches_the_terminal(folder, capsys):
    triples = [(f"{EVIL}{i}", "r", f"{EVIL}{(i * 7 + 1) % 12}") for i in range(12)]
    for side in "ab":
        Path(f"{side}.tsv").write_text("".join("\t".join(triple) + "\n" for triple in triples))
    Path("links.tsv").write_text("".join(f"{EVIL}{i}\t{EVIL}{i}\n" for i in range(9)) + f"{EVIL}none\tx\n{EVIL}\n")
    commands = [
        ["info", "a.tsv"], ["info", "a.tsv", "--json"], ["info", f"{EVIL}.tsv"],
        ["explain", "a.tsv", "b.tsv", "--links", "links.tsv", f"{EVIL}1"],
        ["explain", "a.tsv", "b.tsv", "--links", "links.tsv", f"{EVIL}1", "--json"],
        ["explain", "a.tsv", "b.tsv", "--links", "links.tsv", f"{EVIL}absent"],
        ["evaluate", "links.tsv", "links.tsv"], ["evaluate", "links.tsv", "links.tsv", "--strict"],
        ["align", "a.tsv", "b.tsv", "--seeds", "links.tsv", "--rounds", "0", "--calibration", "none", "--out", "l.tsv"],
    ]  # fmt: skip
    for words in commands:
        main(words)
        shown = "".join(capsys.readouterr())
        assert "red" in shown or words[0] == "evaluate"
        assert not set(shown) & set("\x1b\x07\x9b"), words


def test_an_explanation_printed_from_python_is_harmless_as_well():
    kg = sf.KG([[0, 0, 1]], entity_names=[f"{EVIL}\n0", "1"])
    out = sf.refine(([[0], [1]], [[0.9], [0.8]]), kg, kg, seeds=[[0, 0]])
    text = str(out.explain(1, 1))
    assert "red" in text and not set(text) & set("\x1b\x07\x9b") and len(text.splitlines()) == 2


def test_a_name_that_breaks_off_in_a_character_is_refused_with_file_and_line(folder, capsys):
    for side in "ab":
        np.save(f"{side}.npy", np.ones((30, 4), dtype=np.float32))
        names = "".join(f"http://x/{side}{i}\n" for i in range(29))
        Path(f"{side}.txt").write_bytes(names.encode() + b"\xed\xa0")
    words = ["refine", "a.nt", "b.nt", "--embeddings", "a.npy", "b.npy", "--entities", "a.txt", "b.txt"]
    assert "a.txt:30: not UTF-8" in fails(capsys, 1, *words, "--out", "l.tsv", "--quiet")


def test_formulas_are_spelt_out_on_request(folder):
    Path("a.tsv").write_text("=1+1\tr\tb\n")
    assert main(["convert", "a.tsv", "plain.csv"]) == main(["convert", "a.tsv", "safe.csv", "--spreadsheet-safe"]) == 0
    assert "=1+1" in Path("plain.csv").read_text() and "=1+1" not in Path("safe.csv").read_text()
    assert main(["convert", "safe.csv", "back.tsv"]) == 0
    assert "=1+1\tr\tb" in Path("back.tsv").read_text()
