"""The command line, as a user meets it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import stea_fast as sf
from stea_fast.cli.main import COMMANDS, main
from stea_fast.formats.links import read_link_rows
from stea_fast.formats.triples import Problems

pytest.importorskip("pyoxigraph", reason="RDF needs pyoxigraph")
pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")


def name(side: int, entity: int) -> str:
    return f"http://example.org/{side}/{entity}"


def write_graph(path: Path, kg: sf.KG, side: int) -> None:
    lines = [
        f"<{name(side, h)}> <http://example.org/{side}/r{r}> <{name(side, t)}> .\n" for h, r, t in kg.triples.tolist()
    ]
    path.write_text("".join(lines))


def write_links(path: Path, links: np.ndarray) -> None:
    path.write_text("".join(f"{name(1, e)}\t{name(2, e2)}\n" for e, e2 in links.tolist()))


def all_links(num_entities: int, seed: int) -> np.ndarray:
    """The true links of a synthetic pair, of which the tests of the command line write the files."""
    return sf.synthetic_pair(num_entities, seed, seed_fraction=1.0).train


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """a.nt, b.nt, seeds.tsv, gold.tsv, candidates.tsv, and links.tsv of an alignment."""
    folder = tmp_path_factory.mktemp("data")
    pair = sf.synthetic_pair(200, seed=0, seed_fraction=0.2)
    write_graph(folder / "a.nt", pair.kg1, 1)
    write_graph(folder / "b.nt", pair.kg2, 2)
    write_links(folder / "seeds.tsv", pair.train)
    write_links(folder / "gold.tsv", all_links(200, seed=0))
    from stea_fast.encoders import demo

    forward = demo.candidates(pair).forward
    rows = zip(forward.indices.tolist(), forward.scores.tolist(), strict=True)
    (folder / "candidates.tsv").write_text(
        "source\ttarget\tscore\n"
        + "".join(
            f"{name(1, e)}\t{name(2, e2)}\t{score}\n"
            for e, (targets, scores) in enumerate(rows)
            for e2, score in zip(targets, scores, strict=True)
        )
    )
    assert main(command(folder, "--out", folder / "links.tsv")) == 0
    return folder


def command(folder: Path, *more: object) -> list[str]:
    given = ["align", folder / "a.nt", folder / "b.nt", "--seeds", folder / "seeds.tsv", "--rounds", 1, "--quiet",
             "--calibration", "none", *more]  # fmt: skip
    return [str(word) for word in given]


def run(capsys, *words: object) -> tuple[int, str, str]:
    code = main([str(word) for word in words])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


# --- align ---


def test_align_needs_only_graphs_seeds_and_a_place_for_the_links(folder):
    links = read_link_rows(folder / "links.tsv", Problems(strict=True))
    gold = {(link.source, link.target) for link in read_link_rows(folder / "gold.tsv", Problems())}
    right = sum((link.source, link.target) in gold for link in links)
    assert right / len(links) > 0.85 and right / len(gold) > 0.85


def test_align_writes_every_file_and_says_where(folder, tmp_path, capsys):
    out, relations, report = tmp_path / "l.sssom.tsv", tmp_path / "r.nt", tmp_path / "report.html"
    more = ("--out", out, "--relations", relations, "--report", report, "--gold", folder / "gold.tsv", "--json")
    code, text, notes = run(capsys, *command(folder, *more))
    assert code == 0 and notes.startswith("warning: the probabilities have a thin basis") and notes.count("\n") == 1
    facts = json.loads(text)
    assert facts["files"] == {"out": str(out), "relations": str(relations), "report": str(report)}
    assert facts["counts"]["seed"] == len((folder / "seeds.tsv").read_text().splitlines())
    assert facts["quality"]["precision"] > 0.85
    assert all(path.stat().st_size > 500 for path in (out, relations, report))
    assert f"stea-fast align {folder / 'a.nt'}" in report.read_text(encoding="utf-8")


def test_the_same_command_gives_the_same_links(folder, tmp_path):
    main(command(folder, "--out", tmp_path / "again.tsv"))
    assert (tmp_path / "again.tsv").read_bytes() == (folder / "links.tsv").read_bytes()


def test_notes_go_to_stderr_and_the_result_to_stdout(folder, tmp_path, capsys):
    words = [word for word in command(folder, "--out", tmp_path / "l.csv") if word != "--quiet"]
    code, text, notes = run(capsys, *words)
    assert code == 0
    assert "round 0 of 1" in notes and "entities" in notes
    assert "entities without counterpart" in text


def test_a_dataset_folder_is_aligned_and_judged_by_its_other_links(folder, tmp_path, capsys):
    pair = sf.synthetic_pair(150, seed=1)
    data = tmp_path / "data"
    data.mkdir()
    for number, kg in ((1, pair.kg1), (2, pair.kg2)):
        np.savetxt(data / f"triples_{number}", kg.triples, fmt="%d", delimiter="\t")
    np.savetxt(data / "ref_ent_ids", all_links(150, seed=1), fmt="%d", delimiter="\t")
    code, text, _ = run(
        capsys, "align", data, "--out", tmp_path / "l.tsv", "--rounds", 1, "--calibration", "none", "--quiet"
    )
    assert code == 0
    assert "Hit@1" in text and "precision" in text


# --- the other commands ---


def test_evaluate_judges_links_beyond_the_seeds(folder, capsys):
    code, text, _ = run(
        capsys, "evaluate", folder / "links.tsv", folder / "gold.tsv", "--seeds", folder / "seeds.tsv", "--json"
    )
    facts = json.loads(text)
    assert code == 0
    assert facts["precision"] > 0.8 and facts["recall"] > 0.8 and 0 <= facts["calibration_error"] < 0.2
    assert run(capsys, "evaluate", folder / "gold.tsv", folder / "gold.tsv")[1].endswith("F1 1.000\n")


def test_explain_shows_the_facts_behind_a_link(folder, capsys):
    link = read_link_rows(folder / "links.tsv", Problems())[0]
    given = ("explain", folder / "a.nt", folder / "b.nt", link.source, "--links", folder / "links.tsv", "--quiet")
    code, text, _ = run(capsys, *given)
    assert code == 0
    assert text.startswith(f"{link.source} ≡ {link.target}: evidence") and "≈" in text
    facts = json.loads(run(capsys, *given, "--target", link.target, "--json")[1])
    assert facts["facts"][0]["share"] > 0
    code, _, error = run(capsys, *given[:3], "http://nobody", *given[4:])
    assert code == 1 and "http://nobody is no entity of the first graph" in error


def test_refine_checks_candidates_given_as_a_table(folder, tmp_path, capsys):
    code, text, _ = run(
        capsys, "refine", folder / "a.nt", folder / "b.nt", "--seeds", folder / "seeds.tsv", "--quiet",
        "--candidates", folder / "candidates.tsv", "--out", tmp_path / "l.tsv",
    )  # fmt: skip
    assert code == 0 and "links" in text
    judged = json.loads(run(capsys, "evaluate", tmp_path / "l.tsv", folder / "gold.tsv", "--json")[1])
    assert judged["precision"] > 0.8


def test_refine_takes_embeddings_with_the_entity_of_every_row(folder, tmp_path, capsys):
    from stea_fast.encoders import demo

    pair = sf.read_pair(folder / "a.nt", folder / "b.nt", folder / "seeds.tsv")
    for matrix, kg, side in zip(demo.encode(pair), (pair.kg1, pair.kg2), "ab", strict=True):
        np.save(tmp_path / f"{side}.npy", matrix)
        (tmp_path / f"{side}.txt").write_text("\n".join(kg.entity_names or ()))
    given = ("refine", folder / "a.nt", folder / "b.nt", "--seeds", folder / "seeds.tsv", "--quiet",
             "--embeddings", tmp_path / "a.npy", tmp_path / "b.npy", "--out", tmp_path / "l.tsv")  # fmt: skip
    assert run(capsys, *given)[0] == 2
    assert run(capsys, *given, "--entities", tmp_path / "a.txt", tmp_path / "b.txt")[0] == 0
    judged = json.loads(run(capsys, "evaluate", tmp_path / "l.tsv", folder / "gold.tsv", "--json")[1])
    assert judged["precision"] > 0.8


def test_convert_and_info_agree_on_what_a_graph_holds(folder, tmp_path, capsys):
    facts = [json.loads(run(capsys, "info", folder / "a.nt", "--json")[1])]
    for suffix in ("ttl.gz", "rdf", "tsv", "parquet"):
        assert run(capsys, "convert", folder / "a.nt", tmp_path / f"a.{suffix}", "--quiet")[0] == 0
        facts.append(json.loads(run(capsys, "info", tmp_path / f"a.{suffix}", "--json")[1]))
    assert all(each == facts[0] for each in facts)


def test_a_graph_of_a_dataset_folder_is_converted_with_its_ids(tmp_path, capsys):
    (tmp_path / "triples_1").write_text("7\t1\t9\n")
    (tmp_path / "triples_2").write_text("1\t1\t2\n")
    (tmp_path / "ref_ent_ids").write_text("7\t1\n")
    assert run(capsys, "convert", tmp_path, tmp_path / "a.tsv")[0] == 2
    assert run(capsys, "convert", tmp_path, tmp_path / "a.tsv", "--graph", 1)[0] == 0
    assert (tmp_path / "a.tsv").read_text() == "head\trelation\ttail\n7\t0\t9\n"


def test_bench_times_what_this_machine_can_do(capsys):
    code, text, _ = run(capsys, "bench", "--entities", 200, "--repeats", 1, "--json")
    assert code == 0
    assert any(what.startswith("refinement") for what in json.loads(text)["seconds"])


def test_the_demo_shows_links_a_table_of_quality_and_the_path_of_a_report(tmp_path):
    report = tmp_path / "demo.html"
    given = [sys.executable, "-m", "stea_fast", "demo", "--entities", "300", "--rounds", "1", "--report", str(report)]
    result = subprocess.run(given, capture_output=True, text=True, check=True)
    for words in ("Hit@1", "precision", "≡", "≈", f"report: {report}"):
        assert words in result.stdout
    assert report.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_the_demo_refuses_a_size_it_cannot_make(capsys):
    code, _, error = run(capsys, "demo", "--entities", 3)
    assert code == 2
    assert error.startswith("error: num_entities")


# --- help and completion ---


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_examples(name, capsys):
    with pytest.raises(SystemExit) as stopped:
        main([name, "--help"])
    assert stopped.value.code == 0
    text = capsys.readouterr().out
    assert "examples:" in text and f"stea-fast {name}" in text and "--json" in text and "--quiet" in text


def test_help_lists_the_exit_codes(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "exit codes:" in capsys.readouterr().out


def test_the_shell_completes_commands_and_options(capsys, tmp_path):
    code, script, _ = run(capsys, "completion", "bash")
    assert code == 0
    (tmp_path / "complete.sh").write_text(script)
    for words, expected in ((["stea-fast", "al"], "align"), (["stea-fast", "align", "--min"], "--min-prob")):
        listing = f'COMP_WORDS=({" ".join(words)}); COMP_CWORD={len(words) - 1}; _stea_fast; echo "${{COMPREPLY[@]}}"'
        found = subprocess.run(
            ["bash", "-c", f"source {tmp_path}/complete.sh; {listing}"], capture_output=True, text=True, check=True
        )
        assert found.stdout.split() == [expected]
    assert run(capsys, "completion", "zsh")[1].startswith("#compdef stea-fast")
