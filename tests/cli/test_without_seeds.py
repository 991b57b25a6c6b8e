"""Two small real files and no seed, from the command line to the report; and files of features."""

from __future__ import annotations

import base64
import json
import re
import zlib
from pathlib import Path

import numpy as np
import pytest

import stea_fast as sf
from stea_fast.cli.main import main

pytest.importorskip("pyoxigraph", reason="RDF needs pyoxigraph")

DATA = Path(__file__).resolve().parents[2] / "examples" / "data"
FILES = (str(DATA / "elements_en.nt"), str(DATA / "elements_de.ttl"))
OUT = ("--out", "links.tsv", "--rounds", "1", "--calibration", "none")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def links():
    rows = [line.split("\t") for line in Path("links.tsv").read_text().splitlines()[1:]]
    return {row[0].rpartition("/")[2]: row[1].rpartition("/")[2] for row in rows if row[5] == "link"}


def test_two_files_are_enough(capsys):
    assert main(["align", *FILES, *OUT, "--report", "report.html"]) == 0
    said = capsys.readouterr().err
    assert "20 names are equal and belong to one entity of each graph" in said
    assert "http://elements.example/symbol ≈ http://elemente.example/zeichen" in said
    found = links()
    assert found["e19"] == "stoff_k57" and found["e74"] == "stoff_w222" and found["g_noble"] == "gruppe_noble"
    page = Path("report.html").read_text()
    block = json.loads(zlib.decompress(base64.b64decode(re.search(r'id="block-0">(.+?)<', page)[1])))
    assert ['"K"', '"K"'] in block["facts"]["values"]
    values = [-1 - n for n in block["facts"]["neighbor"] if n < 0]
    assert values == list(range(len(block["facts"]["values"])))


def test_names_alone_do_not_know_what_has_another_name(capsys):
    assert main(["align", *FILES, *OUT, "--use-values", "never", "--no-structure"]) == 0
    assert "share values" not in capsys.readouterr().err
    assert links()["e10"] == "stoff_ne30" and links().get("e74") != "stoff_w222"


def test_values_and_structure_do_without_names(capsys):
    assert main(["align", *FILES, *OUT, "--use-names", "never"]) == 0
    said = capsys.readouterr().err
    assert "names of the first graph" not in said and "share values" in said
    assert links()["e74"] == "stoff_w222"


def vectors(suffix, ids=True, rows=None, poison=False):
    pair = sf.read_pair(*FILES)
    rng = np.random.default_rng(0)
    matrix = rng.standard_normal((33 if rows is None else rows, 8)).astype(np.float32)
    if poison:
        matrix[3, 0] = np.nan
    for side, kg in ((1, pair.kg1), (2, pair.kg2)):
        path = Path(f"x{side}{suffix}")
        if suffix == ".npy":
            np.save(path, matrix)
        elif suffix == ".safetensors":
            pytest.importorskip("safetensors.numpy").save_file({"x": matrix}, str(path))
        else:
            arrow = pytest.importorskip("pyarrow")
            table = arrow.table({"id": list(kg.entity_names)[: len(matrix)], "vector": matrix.tolist()})
            pytest.importorskip("pyarrow.parquet").write_table(table, path)
        if ids and suffix != ".parquet":
            Path(f"x{side}.ids").write_text("\n".join(kg.entity_names) + "\n")
    return ["--features1", f"x1{suffix}", "--features2", f"x2{suffix}"]


@pytest.mark.parametrize("suffix", [".npy", ".safetensors", ".parquet"])
def test_features_come_from_files(capsys, suffix):
    assert main(["align", *FILES, *OUT, *vectors(suffix)]) == 0
    assert re.search(r"weights of the views: names .+, features .+ \(", capsys.readouterr().err)


@pytest.mark.parametrize(("options", "message"), [
    ({"suffix": ".npy", "ids": False}, "says nothing of which entity a row is"),
    ({"suffix": ".npy", "rows": 20}, "holds 20 rows, and there are 33 ids"),
    ({"suffix": ".safetensors", "rows": 40}, "holds 40 rows, and there are 33 ids"),
    ({"suffix": ".npy", "poison": True}, "holds NaN or infinite values"),
    ({"suffix": ".parquet", "poison": True}, "holds NaN or infinite values"),
])  # fmt: skip
def test_features_that_cannot_be_used_are_an_error(capsys, options, message):
    assert main(["align", *FILES, *OUT, *vectors(**options), "--quiet"]) == 1
    assert message in capsys.readouterr().err and not Path("links.tsv").exists()


def test_without_seeds_no_encoder_is_used_unless_it_is_asked_for():
    names = ["Marie_Curie", "Physics", "Lise_Meitner"]
    kg1 = sf.KG([[0, 0, 1], [2, 0, 1]], entity_names=[f"http://a.org/{name}" for name in names])
    kg2 = sf.KG([[0, 0, 1], [2, 0, 1]], entity_names=[f"http://b.org/{name}" for name in names])
    pair = sf.make_pair(kg1, kg2, seeds=[])
    assert sf.align(pair, calibration="none").settings["preset"] == "structural"
    assert sf.align(pair, calibration="none", preset="fast").settings["encoder"]["name"] == "propagation"
