"""Runs that a person can follow: which run it is, what is not repeated, and what nobody may miss."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import stea_fast as sf
from stea_fast.cli.main import main
from stea_fast.formats.links import read_link_rows
from stea_fast.formats.triples import Problems

pytest.importorskip("safetensors", reason="checkpoints need safetensors")
PAIR = sf.synthetic_pair(150, seed=0, seed_fraction=0.3)
NUM_SEEDS = len(PAIR.train)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """a.tsv, b.tsv, and seeds.tsv with a seed that is not in the graphs."""
    folder = tmp_path_factory.mktemp("data")
    for name, kg, side in (("a.tsv", PAIR.kg1, 1), ("b.tsv", PAIR.kg2, 2)):
        rows = [f"{side}/{h}\tr{r}\t{side}/{t}\n" for h, r, t in kg.triples.tolist()]
        (folder / name).write_text("".join(rows))
    seeds = "".join(f"1/{e}\t2/{e2}\n" for e, e2 in PAIR.train.tolist())
    (folder / "seeds.tsv").write_text(seeds + "nobody\t2/0\n")
    return folder


def align(folder: Path, out: Path, *more: object) -> int:
    words = ["align", folder / "a.tsv", folder / "b.tsv", "--seeds", folder / "seeds.tsv", "--out", out, "--rounds", 1]
    return main([str(word) for word in (*words, *more)])


def test_every_line_says_which_run_it_is_and_what_is_left(folder, tmp_path, capsys):
    assert align(folder, tmp_path / "l.tsv", "--calibration", "holdout") == 0
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("run ")]
    places = ["run 1 of 2, round 0 of 1", "run 1 of 2, round 1 of 1", "run 2 of 2, round 0 of 1", "run 2 of 2, round 1"]
    assert len(lines) == 4 and all(line.startswith(place) for line, place in zip(lines, places, strict=True))
    assert all("s left" in line for line in lines[:3]) and "left" not in lines[3]


def test_other_decisions_on_a_finished_run_repeat_nothing_and_say_so(folder, tmp_path, capsys):
    checkpoint = ("--calibration", "holdout", "--checkpoint", tmp_path / "runs")
    align(folder, tmp_path / "first.tsv", *checkpoint)
    capsys.readouterr()
    decisions = ("--min-prob", 0.95, "--one-to-one")
    assert align(folder, tmp_path / "anew.tsv", *checkpoint, *decisions, "--report", tmp_path / "r.html") == 0
    notes = capsys.readouterr().err
    assert "round" not in notes
    assert notes.count("is finished: nothing of it is repeated") == 2
    assert "all runs are finished: only the decisions are made anew" in notes
    align(folder, tmp_path / "plain.tsv", "--calibration", "holdout", *decisions)
    assert (tmp_path / "anew.tsv").read_bytes() == (tmp_path / "plain.tsv").read_bytes()
    assert (tmp_path / "anew.tsv").read_bytes() != (tmp_path / "first.tsv").read_bytes()


def test_a_run_that_continues_says_where(folder, tmp_path, capsys, monkeypatch):
    def interrupted(self: object, done: sf.Round) -> None:
        if done.run == 2:
            raise KeyboardInterrupt

    checkpoint = ("--calibration", "holdout", "--checkpoint", tmp_path / "runs")
    with monkeypatch.context() as patched:
        patched.setattr("stea_fast.cli.commands.align._Rounds.__call__", interrupted)
        assert align(folder, tmp_path / "l.tsv", *checkpoint) == 130
    capsys.readouterr()
    assert align(folder, tmp_path / "l.tsv", *checkpoint) == 0
    notes = capsys.readouterr().err
    assert f"the run in {tmp_path / 'runs' / 'holdout-1'} is finished" in notes
    assert f"continuing in round 0 from {tmp_path / 'runs'}" in notes
    assert "run 1 of 2" not in notes and "run 2 of 2, round 0 of 1" in notes and "run 2 of 2, round 1 of 1" in notes


# --- what quiet does not silence ---


def test_quiet_still_shows_that_seeds_were_dropped(folder, tmp_path, capsys):
    assert align(folder, tmp_path / "l.tsv", "--quiet", "--calibration", "holdout") == 0
    warnings = capsys.readouterr().err
    assert (
        f"warning: 1 of {NUM_SEEDS + 1} links of" in warnings and "nobody is no entity of the first graph" in warnings
    )
    assert "run 1 of 2" not in warnings


@pytest.mark.parametrize(
    ("calibration", "words"), [("none", "prior only"), ("holdout", r"\d+ held-out seeds and a prior")]
)
def test_a_thin_basis_is_in_the_warnings_and_in_every_row(folder, tmp_path, capsys, calibration, words):
    assert align(folder, tmp_path / "l.tsv", "--quiet", "--calibration", calibration, "--json") == 0
    shown = capsys.readouterr()
    basis = json.loads(shown.out)["calibration"]
    assert re.fullmatch(words, basis)
    assert f"warning: the probabilities have a thin basis ({basis}): a prior that was fitted to other" in shown.err
    assert shown.err.count("thin basis") == 1
    header, *rows = (line.split("\t") for line in (tmp_path / "l.tsv").read_text().splitlines())
    found = {(row[header.index("status")], row[header.index("calibration")]) for row in rows}
    assert found <= {("seed", "given"), ("link", basis), ("uncertain", basis), ("no_counterpart", "")}
    assert ("link", basis) in found


def test_enough_held_out_seeds_need_no_warning(folder, tmp_path, capsys):
    assert align(folder, tmp_path / "l.csv", "--quiet", "--calibration", "crossfit") == 0
    assert "thin basis" not in capsys.readouterr().err
    assert f",link,{NUM_SEEDS} held-out seeds\n" in (tmp_path / "l.csv").read_text()


# --- other options ---


def test_threads_limit_everything():
    words = [sys.executable, "-m", "stea_fast", "info", "--json", "--threads", "3"]
    environment = {name: value for name, value in os.environ.items() if "THREADS" not in name}
    shown = subprocess.run(words, capture_output=True, text=True, check=True, env=environment)
    assert '"threads": 3' in shown.stdout
    with pytest.raises(SystemExit, match="--threads must be at least 1, got 0"):
        main(["info", "--threads", "0"])


def test_a_published_fold_has_seeds_of_its_own(tmp_path, capsys):
    pair = sf.synthetic_pair(150, seed=0, seed_fraction=1.0)
    data = tmp_path / "data"
    data.mkdir()
    for number, kg in ((1, pair.kg1), (2, pair.kg2)):
        rows = [f"{number}/{h}\tr{r}\t{number}/{t}\n" for h, r, t in kg.triples.tolist()]
        (data / f"rel_triples_{number}").write_text("".join(rows))
    links = [f"1/{e}\t2/{e2}\n" for e, e2 in pair.train.tolist()]
    (data / "ent_links").write_text("".join(links))
    for fold in (1, 2):
        place = data / "721_5fold" / str(fold)
        place.mkdir(parents=True)
        cut = 20 * fold
        for name, part in (("train", links[:cut]), ("valid", links[cut : cut + 10]), ("test", links[cut + 10 :])):
            (place / f"{name}_links").write_text("".join(part))
    for fold, seeds in ((1, 20), (2, 40)):
        words = ["align", data, "--out", tmp_path / "l.tsv", "--fold", fold, "--rounds", 0, "--calibration", "none"]
        assert main([*map(str, words), "--json", "--quiet"]) == 0
        assert json.loads(capsys.readouterr().out)["counts"]["seed"] == seeds


def test_seeds_that_mostly_fit_with_their_columns_exchanged_are_recognised(folder, tmp_path, capsys):
    rows = [line.split("\t") for line in (folder / "seeds.tsv").read_text().splitlines()[:-1]]
    swapped = "".join(f"{target}\t{source}\n" for source, target in rows[1:]) + "\t".join(rows[0]) + "\n"
    (tmp_path / "seeds.tsv").write_text(swapped)
    words = [folder / "a.tsv", folder / "b.tsv", "--seeds", tmp_path / "seeds.tsv", "--out", tmp_path / "l.tsv"]
    assert main(["align", *map(str, words), "--quiet"]) == 1
    assert "seeds.tsv has its columns the other way round" in capsys.readouterr().err
    with pytest.raises(ValueError, match="columns the other way round"):
        sf.read_pair(folder / "a.tsv", folder / "b.tsv", tmp_path / "seeds.tsv")


def test_kept_literals_come_with_the_word_that_they_are_no_evidence(tmp_path, capsys):
    pytest.importorskip("pyoxigraph", reason="RDF needs pyoxigraph")
    for name in "ab":
        lines = [f"<http://{name}/{i}> <http://r> <http://{name}/{(3 * i + 1) % 30}> ." for i in range(30)]
        lines += [f'<http://{name}/{i}> <http://code> "{i}" .' for i in range(30)]
        (tmp_path / f"{name}.nt").write_text("\n".join(lines) + "\n")
    (tmp_path / "seeds.tsv").write_text("".join(f"http://a/{i}\thttp://b/{i}\n" for i in range(9)))
    words = ["align", "a.nt", "b.nt", "--seeds", "seeds.tsv", "--out", "l.tsv"]
    words = [str(tmp_path / word) if "." in word else word for word in words]
    assert main([*words, "--rounds", "0", "--calibration", "none", "--literals", "keep"]) == 0
    assert "that two of them are equal is no evidence" in capsys.readouterr().err
    assert len(read_link_rows(tmp_path / "l.tsv", Problems())) >= 9


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["align", "--calibration", "c"], ["crossfit"]),
        (["align", "--calibration", "=", "h"], ["holdout"]),
        (["align", "--preset", "="], ["structural", "fast", "large", "full"]),
        (["align", "--literals", ""], ["values", "drop", "keep"]),
        (["refine", "--format", "ss"], ["sssom"]),
        (["convert", "--to", "par"], ["parquet"]),
    ],
)
def test_the_shell_completes_the_values_of_options(words, expected, capsys, tmp_path):
    assert main(["completion", "bash"]) == 0
    (tmp_path / "complete.sh").write_text(capsys.readouterr().out)
    given = " ".join(f"'{word}'" for word in ["stea-fast", *words])
    listing = f'COMP_WORDS=({given}); COMP_CWORD={len(words)}; _stea_fast; echo "${{COMPREPLY[@]}}"'
    found = subprocess.run(
        ["bash", "-c", f"source {tmp_path}/complete.sh; {listing}"], capture_output=True, text=True, check=True
    )
    assert found.stdout.split() == expected
