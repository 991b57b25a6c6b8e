"""The runner of the paper's experiments: resumes, never computes twice, audits, and renders what it finds."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("safetensors", reason="checkpoints need safetensors")

import stea_fast as sf
from bench.paper import audit, cells, compute, experiments, progress, render, run, store, versions
from bench.paper.results import Kind, Results, of_method, published
from bench.paper.runner import Runner
from bench.paper.versions import cell_of
from stea_fast.refinement.structural import STRUCTURAL


def cell(method, split=0):
    return cells.Cell("demo", "synthetic", 0.1, method, "propagation", "3_rounds", split)


@pytest.fixture(scope="module")
def runner(tmp_path_factory):
    """Has run two cells; other tests read its results."""
    folder = tmp_path_factory.mktemp("paper")
    runner = Runner(folder / "results", folder / "checkpoints", threads=1)
    assert runner.run([cell("mutual_nearest"), cell("stea")]) == 0
    return runner


def test_finished_cells_are_not_computed_again_and_the_runner_says_so(runner, monkeypatch, capsys):
    monkeypatch.setattr(compute, "training", lambda *given, **options: pytest.fail("a finished cell was run again"))
    before = runner.path.read_bytes()
    assert runner.run([cell("mutual_nearest"), cell("stea")]) == 0
    assert runner.path.read_bytes() == before
    said = capsys.readouterr().out
    assert "2 of 2 cells are finished and stay as they are; --again runs them anew:" in said
    hit1 = runner.finished()[cell("stea").key]["metrics"]["encoder"]["closed"]["hit1"]
    assert [f"Hit@1 {hit1:.3f}" in line for line in said.splitlines() if line.endswith(cell("stea").id)] == [True]
    assert said.splitlines()[-1] == f"2 of 2 cells are finished: lines of {runner.path}"


def test_a_finished_cell_is_run_again_where_that_is_asked_for_and_its_last_line_counts(runner, tmp_path, monkeypatch):
    old, again = runner.finished()[cell("stea").key], Runner(tmp_path, tmp_path, threads=1, again=True)
    store.append(again.path, old)
    monkeypatch.setattr(compute, "run", lambda *given: {**old, "seconds": 1.0})
    assert again.run([cell("stea")]) == 0
    first, second = store.read(again.path)
    assert (first["seconds"], second["seconds"]) == (old["seconds"], 1.0)
    assert again.finished()[cell("stea").key] == second
    assert Results([first, second])[Kind(*(old[name] for name in Kind._fields))] == [second]


def test_the_list_shows_what_is_finished_and_how_to_run_it(runner, capsys):
    given = ["--list", "--results", str(runner.path.parent)]
    assert run.main(given) == 0
    said = capsys.readouterr().out
    (done,) = [line for line in said.splitlines() if line.endswith(cell("stea").id)]
    assert done.startswith("done  20") and "Hit@1" in done
    (waiting,) = [line for line in said.splitlines() if line.endswith(cell("oracle").id)]
    assert not waiting.startswith("done") and ("about" in waiting or "unknown" in waiting)
    assert f'run one once more:  python -m bench.paper.run --only "{cell("stea").id}" --again' in said


def test_cells_of_the_built_in_pair_never_enter_the_recorded_results(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "RESULTS", tmp_path / "recorded")
    monkeypatch.setattr(store, "DEMO", tmp_path / "demo")
    tried = []
    monkeypatch.setattr(Runner, "run", lambda self, cells: tried.append((self.path.parent.name, len(cells))) or 0)
    assert run.main(["--demo"]) == 0
    assert tried == [("demo", len(experiments.cells(experiments.DEMO)))]
    assert run.main(["--only", "stea/"]) == 0  # of all sets
    assert {name for name, _ in tried[1:]} == {"recorded", "demo"}


def test_a_cell_that_another_process_is_at_is_left_to_it(runner, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(compute, "training", lambda *given, **options: pytest.fail("two processes at one cell"))
    other = Runner(tmp_path, tmp_path, threads=1)
    key = cell("stea").key.replace("/", "_")
    with store.reserved(tmp_path / f"{key}_threads1") as ours:
        assert ours
        other.run([cell("stea")])
    assert "another process" in capsys.readouterr().out


def test_a_cell_that_fails_does_not_stop_the_others(tmp_path, monkeypatch, capsys):
    tried = []

    def fail(given, *rest):
        tried.append(given.method)
        raise MemoryError("too large")

    monkeypatch.setattr(compute, "load", fail)
    assert Runner(tmp_path, tmp_path, threads=1).run([cell("stea"), cell("supervised")]) == 2
    assert tried == ["stea", "supervised"] and "too large" in capsys.readouterr().err


def test_a_line_cut_off_by_a_kill_is_replaced(tmp_path):
    path = tmp_path / store.CELLS
    store.append(path, {"id": "one"})
    with path.open("a") as file:
        file.write('{"id": "tw')
    assert store.read(path) == [{"id": "one"}]
    store.append(path, {"id": "three"})
    assert store.read(path) == [{"id": "one"}, {"id": "three"}]


def test_a_line_says_all_that_is_needed_to_judge_the_run(runner):
    record = runner.finished()[cell("stea").key]
    assert record["id"] == "demo/synthetic/10%/stea/propagation/3_rounds/split0"
    settings = record["settings"]
    assert settings["rounds"] == 3 and settings["method"]["refinement"]["name"] == "paper"
    assert settings["encoder"]["name"] == "propagation" and settings["encoder"]["options"]["relation_dim"] == "64"
    assert settings["epochs"] == [1, 1]
    assert record["machine"]["numpy"] == np.__version__ and record["peak_mb"] > 0
    last = record["history"][-1]["metrics"]
    assert record["metrics"]["refined"]["closed"]["hit1"] == last["refined"]["hit1"]
    assert record["pairs"]["precision"] == last["pairs"]["precision"]
    for name, packed in record["hits"].items():
        hits = compute.unpacked_hits(packed, record["sizes"]["test"])
        assert hits.mean() == pytest.approx(record["metrics"][name]["closed"]["hit1"])


def test_audit_passes_for_a_method_and_fails_for_oracle(runner, capsys):
    assert audit.audit_all([cell("mutual_nearest")], runner) == 0
    assert "same bits as in the finished cell" in capsys.readouterr().out
    assert audit.audit_all([cell("oracle")], runner) == 1
    assert "depend on the test links" in capsys.readouterr().out
    kept = {found["id"]: found["passed"] for found in store.read(runner.path.with_name(store.AUDITS))}
    assert kept == {cell("mutual_nearest").id: True, cell("oracle").id: False}


def test_an_audit_without_a_finished_cell_runs_it_twice(tmp_path):
    found = audit.audit(cell("supervised"), Runner(tmp_path, tmp_path, threads=1))
    assert found["passed"] and found["against"] == "a second run"


def test_no_cell_is_listed_twice_and_the_cheap_and_telling_come_first():
    found = experiments.cells([*experiments.FULL, *experiments.QUICK])
    assert len({each.key for each in found}) == len(found) == len({each.id for each in found})
    first = list(dict.fromkeys(each.method for each in found if each.experiment == "overall"))
    assert first[:4] == ["structural", "fast", "large", "full"]
    assert {each.dataset for each in found[:3]} == set(experiments.DBP15K)
    for each in found:
        if each.experiment == "overall" and each.method in cells.OURS:
            assert each.preset == each.method
            assert compute.configuration(each) == replace(sf.preset(each.method), seed=each.split)


def test_the_full_list_has_what_the_tables_need():
    listed = {each.key for each in experiments.cells(experiments.FULL)}

    def key(dataset, fraction, method, split=0, variant=""):
        kind = of_method(dataset, fraction, method, variant=variant)
        return cells.Cell("", *kind, split).key

    for dataset in experiments.DBP15K:
        for method in (*cells.OURS, *cells.PAPER_METHODS):
            assert {key(dataset, fraction, method) for fraction in experiments.FRACTIONS} <= listed
        for method in (*cells.OURS, "stea"):
            for split in (1, 2):
                assert {key(dataset, fraction, method, split) for fraction in (0.01, 0.3)} <= listed
        assert {key(dataset, 0.01, "fast", variant=part) for part in experiments.ABLATIONS} <= listed
        assert key(dataset, 0.0, "structural", variant="names") in listed


def test_variants_change_only_what_they_name():
    def configuration(variant):
        return compute.configuration(cells.Cell("x", "synthetic", 0.1, "stea", "rrea", variant, 2))

    plain = configuration("")
    assert plain == sf.SelfTrainingConfig(
        encoder=sf.EncoderConfig(name="rrea"), method=sf.Stea(refinement=sf.Paper()), rounds=10, seed=2
    )
    either = replace(plain.method, select="either", threshold=cells.THRESHOLD)
    assert configuration("bi") == replace(plain, method=either)
    soft = replace(plain.method, refinement=sf.Paper(evidence="soft", normalisation="minmax"))
    assert configuration("soft_minmax") == replace(plain, method=soft)
    assert configuration("k=25") == replace(plain, search=sf.SearchConfig(k=25))
    assert configuration("2000_epochs") == replace(plain, encoder=replace(plain.encoder, first_epochs=2000))


def test_what_a_part_of_the_refinement_adds_is_taken_away_in_both_views():
    config = compute.configuration(cells.Cell("x", "synthetic", 0.1, "fast", "propagation", "statements", 0))
    assert config.method.structure == replace(STRUCTURAL, witnesses="statement")
    assert config.method.plan.method(0, last=False).witnesses == "statement"


def test_a_part_with_another_name_takes_nothing_over():
    base = {"a": {"name": "one", "x": 1, "y": 2}, "b": 3}
    assert cells.merged(base, {"a": {"x": 5}}) == {"a": {"name": "one", "x": 5, "y": 2}, "b": 3}
    assert cells.merged(base, {"a": {"name": "two", "z": 0}}) == {"a": {"name": "two", "z": 0}, "b": 3}
    assert base == {"a": {"name": "one", "x": 1, "y": 2}, "b": 3}


def test_every_listed_cell_has_a_configuration():
    listed = [*experiments.FULL, *experiments.ON_DWY100K, *experiments.QUICK, *experiments.DEMO]
    for each in experiments.cells(listed):
        assert compute.configuration(each).encoder.name == each.encoder


def test_time_left_comes_from_cells_of_the_same_kind(runner):
    finished = {"a": {**runner.finished()[cell("stea").key], "seconds": 3600.0}}
    assert progress.time_left([cell("stea", 1), cell("stea", 2)], finished) == "time left: 2 h 00 min"
    assert progress.time_left([cell("stea", 1), cell("full")], finished).endswith("and 1 cells of kinds not run yet")
    assert progress.time_left([cell("stea", 1), cell("stea", 2)], finished, workers=2) == "time left: 1 h 00 min"
    assert progress.time_left([cell("full")], {}) == "time left: unknown"


def as_cells_of_the_paper(runner):
    """Two finished cells under names of the main table, two splits each."""
    for method in ("mutual_nearest", "stea"):
        record = json.loads(json.dumps(runner.finished()[cell(method).key]))
        for split in (0, 1):
            record["metrics"]["encoder"]["closed"]["hit1"] = 0.7 + 0.02 * split
            where = {"dataset": "dbp15k_zh_en", "fraction": 0.01, "encoder": "dual_amn", "variant": "", "split": split}
            yield {**json.loads(json.dumps(record)), **where}


def test_rendering_puts_the_paper_beside_ours(runner):
    results = Results(as_cells_of_the_paper(runner))
    text = render.document(render.Lines(results, {}, [{"id": "a", "passed": False, "arrays": 3, "differs": ["x"]}], []))
    assert "0.710 ± 0.014 (0.723, −0.013)" in text  # STEA, zh_en 1 %
    assert "not run (0.584)" in text  # STEA, fr_en 1 %
    assert "zh_en 1%: STEA − MutNearest" in text and "fails in 1" in text
    assert "4 cells were run" in text and runner.finished()[cell("stea").key]["machine"]["cpu"] in text
    assert "No cell has been run." in render.document(render.Lines(Results([]), {}, [], []))


def test_t_test_over_the_entities_is_that_of_the_rankings(runner):
    results = Results(as_cells_of_the_paper(runner))
    stea, nearest = (Kind("dbp15k_zh_en", 0.01, method) for method in ("stea", "mutual_nearest"))
    found = results.compare(stea, nearest)
    hits = [
        compute.unpacked_hits(results[kind][0]["hits"]["encoder"], results[kind][0]["sizes"]["test"])
        for kind in (stea, nearest)
    ]
    assert found.difference == pytest.approx(hits[0].mean() - hits[1].mean())
    assert found.n == 2 * len(hits[0])
    assert results.compare(stea, Kind("dbp15k_zh_en", 0.01, "oracle")) is None


def test_figures_are_drawn_where_there_are_cells(runner, tmp_path):
    pytest.importorskip("matplotlib", reason="figures need matplotlib")
    folder = tmp_path / "results"
    for record in as_cells_of_the_paper(runner):
        record["settings"] = {}  # of another encoder than the cell it stands for
        store.append(folder / store.CELLS, record)
    render.render(folder, tmp_path / "docs" / "results.md")
    drawn = {path.name for path in (tmp_path / "docs" / "figures").iterdir()}
    assert {"few_seeds.svg", "few_seeds.png", "reliance.svg", "pairs_by_round.svg"} <= drawn
    assert "generality.svg" not in drawn
    text = (tmp_path / "docs" / "results.md").read_text(encoding="utf-8")
    assert all(f"figures/{name}" in text for name in drawn if name.endswith(".svg"))


def in_old_words(settings):
    """The parts of a line's settings that lines from before `SelfTrainingConfig` have, too, as they had them."""
    if "search" not in settings:
        return {name: settings[name] for name in OLD_WORDS}
    encoder, method, search = settings["encoder"], settings["method"], settings["search"]
    assert search.get("engine", "auto") == "auto" and search.get("dimensions") is search.get("budget") is None
    # The bound in bytes came later: it is far above what these graphs take, and changes nothing of them.
    options = {name: str(value) for name, value in encoder["options"].items() if name != "embedding_bytes"}
    return {
        "encoder": encoder["name"],
        "encoder_options": options,
        "method": method["name"],
        "relations": method.get("relations", "estimated"),
        "start_rounds": method.get("start_rounds", 0),
        "k": search["k"],
        "csls": search["csls"],
        **{name: settings[name] for name in ("rounds", "seed", "tolerance", "validation")},
    }


OLD_WORDS = (
    "encoder", "encoder_options", "method", "relations", "start_rounds", "k", "csls", "rounds", "seed", "tolerance",
    "validation",
)  # fmt: skip


def test_cells_are_still_what_their_recorded_lines_were_run_with():
    records = store.read(store.RESULTS / store.CELLS)
    assert records and any("refine_options" in record["settings"] for record in records)
    for record in versions.current(records):
        if record["method"] in cells.OURS:
            continue  # compared with their settings by `versions.is_current`
        settings = record["settings"]
        now = compute.configuration(cell_of(record)).to_dict()
        assert in_old_words(settings) == in_old_words(now), record["id"]
        if "refine_options" in settings and now["method"]["name"] == "stea":
            refinement = now["method"]["refinement"]
            paper = refinement != "joint" and refinement["name"] == "paper"
            assert settings["refine_options"] == ({"paper": "True"} if paper else {}), record["id"]


def test_lines_of_old_and_new_shape_are_rendered_together(runner):
    old = list(versions.current(store.read(store.RESULTS / store.CELLS)))
    new = list(as_cells_of_the_paper(runner))
    both = Results([*old, *({**record, "split": 10 + record["split"]} for record in new)])
    text = render.document(render.Lines(both, {}, [], []))
    assert f"{len(old) + len(new)} cells were run" in text


def test_published_figures_are_those_of_the_paper():
    found = published()
    assert found["overall", Kind("dbp15k_ja_en", 0.01, "stea")] == {"hit1": 0.471, "hit10": 0.7, "mrr": 0.547}
    assert found["normalisation", Kind("dbp15k_zh_en", 0.3, "stea", variant="soft_minmax")] == {"hit1": 0.74}
    assert len([table for table, _ in found if table == "overall"]) == 5 * 5 * 5
