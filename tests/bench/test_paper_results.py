"""What is shown of the paper's experiments: only cells of the present methods, and sentences that follow from them."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import numpy as np
import pytest

pytest.importorskip("safetensors", reason="checkpoints need safetensors")

from bench.paper import (
    answers,
    answers_beyond,
    baselines,
    cells,
    compute,
    experiments,
    progress,
    render,
    store,
    tables_beyond,
    versions,
)
from bench.paper.results import Results, of_method
from bench.paper.runner import Runner
from stea_fast.refinement.structural import STRUCTURAL
from stea_fast.selftraining.config import settings_of

HERE = cells.Cell("demo", "synthetic", 0.1, "structural", "none", "", 0)


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    """The line of a finished cell of the preset without an encoder."""
    folder = tmp_path_factory.mktemp("one")
    runner = Runner(folder, folder / "checkpoints", threads=1)
    assert runner.run([HERE]) == 0
    return runner.finished()[HERE.key]


def of(record, hit1, dataset, fraction, method, variant="", split=0):
    """A line as if it were of another cell, with this Hit@1."""
    copy = json.loads(json.dumps(record))
    copy["metrics"]["refined"]["closed"]["hit1"] = hit1
    copy["metrics"]["encoder"] = copy["metrics"]["refined"]
    kind = of_method(dataset, fraction, method, variant=variant)
    return {**copy, **kind._asdict(), "split": split}


def test_a_line_names_its_commit_and_the_version_of_its_method(record):
    assert record["method_version"] == versions.version_of(HERE)
    assert "commit" in record and set(record["metrics"]) == {"refined"}


def test_a_cell_whose_method_has_changed_is_outdated_and_run_anew(record, tmp_path, monkeypatch, capsys):
    runner = Runner(tmp_path, tmp_path, threads=1)
    store.append(runner.path, record)
    assert runner.finished().keys() == {HERE.key} and not runner.outdated()
    monkeypatch.setitem(versions.METHOD_VERSIONS, "structural", 1000)
    assert not runner.finished() and runner.outdated().keys() == {HERE.key}
    text = progress.listing([HERE], runner.finished(), runner.outdated(), runner.path)
    assert "(outdated: its method has changed)" in text and "missing: 1, of which 1 are outdated" in text
    monkeypatch.setattr("bench.paper.compute.run", lambda *given: {**record, "seconds": 77.0})
    assert runner.run([HERE]) == 0
    assert runner.finished()[HERE.key]["seconds"] == 77.0 and not runner.outdated()
    assert len(store.read(runner.path)) == 2


def test_another_setting_makes_a_line_outdated_and_an_option_that_it_does_not_know_does_not(record):
    def changed(**refinement):
        copy = json.loads(json.dumps(record))
        copy["settings"]["method"]["refinement"].update(refinement)
        return copy

    assert versions.is_current(record)
    assert versions.is_current(changed(of_the_future=1))
    assert not versions.is_current(changed(sweeps=3))
    assert not versions.is_current({**record, "method": "default"})  # went under another name


def test_a_line_may_say_in_full_how_dense_graphs_are_refined():
    """None stands for it now."""
    cell = cells.Cell("demo", "synthetic", 0.1, "fast", "propagation", "", 0)
    settings = settings_of(compute.configuration(cell))
    line = {**asdict(cell), "method_version": versions.version_of(cell), "settings": settings}
    for joint, current in ((STRUCTURAL, True), (replace(STRUCTURAL, sweeps=3), False)):
        settings["method"]["structure"] = {"name": "joint", **asdict(joint)}
        assert versions.is_current(line) == current


def test_lines_from_before_there_were_versions_count_as_the_first(record):
    del (old := dict(record))["method_version"]
    assert versions.is_current(old)
    assert not versions.is_current({**old, "method": "full", "encoder": "dual_amn"})


def test_outdated_lines_are_not_shown_beside_the_others(record, tmp_path):
    shown = of(record, 0.9, "dbp15k_zh_en", 0.01, "structural")
    shown["settings"] = {}
    store.append(tmp_path / store.CELLS, shown)
    store.append(tmp_path / store.CELLS, {**shown, "split": 1, "method_version": "method 0, encoder 1"})
    lines = render.read(tmp_path)
    assert len(lines.results) == 1 and len(lines.old) == 1
    assert "1 older cells are not shown" in render.document(lines)


def test_audits_of_earlier_methods_are_not_shown(tmp_path):
    for method, version in (("structural/none", "method 1, encoder 1"), ("fast/propagation", "method 1, encoder 1")):
        name = f"overall/dbp15k_zh_en/1%/{method}/split0"
        store.append(tmp_path / store.AUDITS, {"id": name, "passed": True, "arrays": 1, "method_version": version})
    assert [found["id"].split("/")[3] for found in render.read(tmp_path).audits] == ["structural"]


def test_sentences_follow_from_the_cells(record):
    assert answers.headline(Results([])) == answers.NOTHING_YET
    few = Results([of(record, 0.9, "dbp15k_zh_en", 0.01, "full"), of(record, 0.7, "dbp15k_ja_en", 0.05, "full")])
    said = answers.headline(few)
    assert "`full` is above the paper's STEA in 1 of 2 cells" in said  # .723 and .718
    assert "−0.018 on ja_en at 5% to +0.177 on zh_en at 1%" in said and "in 1 of 2 at 1 and 5 %" in said
    changes = Results([of(record, hit, "dbp15k_zh_en", f, "fast") for f, hit in ((0.01, 0.5), (0.3, 0.75))])
    assert "`fast` −0.250" in answers.reliance(changes)


def test_the_order_of_baselines_is_compared_with_that_of_the_paper(record):
    hits = {"mutual_nearest": 0.42, "one_to_one": 0.33}
    found = Results([of(record, hit, "dbp15k_zh_en", 0.01, method) for method, hit in hits.items()])
    said = answers.order_of_baselines(found)
    assert "in 1 of 1 cell here (mean +0.090) and in 0 of the same cells in the paper (mean −0.034)" in said


def test_every_answer_copes_with_no_cell_and_with_one(record):
    one = Results([of(record, 0.5, "dbp15k_zh_en", 0.01, "stea")])
    functions = [
        answers.headline, answers.leak, answers.order_of_baselines, answers.rankings, answers.t_tests,
        answers.supervised, answers.generality, answers.reliance, answers.pairs, answers.selection,
        answers.normalisation, answers.candidates, answers_beyond.ablation, answers_beyond.zero_seeds,
        answers_beyond.large, answers_beyond.links, lambda results: answers.overall(results, 0.01),
    ]  # fmt: skip
    for function in functions:
        assert function(Results([])) == answers.NOTHING_YET
        assert function(one).endswith(".")


def test_an_ablation_is_the_difference_on_the_splits_that_both_have(record):
    lines = [
        of(record, 0.80, "dbp15k_zh_en", 0.01, "fast"),
        of(record, 0.70, "dbp15k_zh_en", 0.01, "fast", split=1),
        of(record, 0.76, "dbp15k_zh_en", 0.01, "fast", "one_view"),
    ]
    assert f"{tables_beyond.PARTS['one_view']}: −0.040." in answers_beyond.ablation(Results(lines))
    row = next(line for line in tables_beyond.ablation(Results(lines)).splitlines() if "structure alone" in line)
    assert "0.760 (−0.040)" in row and row.count("not run") == 2


def test_the_table_of_the_readme_is_put_between_its_markers(record):
    results = Results([of(record, 0.9, "dbp15k_zh_en", 0.01, "full")])
    page = f"before\n{render.BEGIN}old\n{render.END}after\n"
    written = render.with_overview(page, results)
    assert "old" not in written and "| zh_en, 1% seeds | not run | not run | 0.900 | not run | 0.723 |" in written
    assert written.startswith("before\n") and written.endswith("after\n")
    assert render.with_overview(written, results) == written


def test_the_readme_and_the_page_show_the_recorded_cells():
    lines = render.read(store.RESULTS)
    page = render.README.read_text(encoding="utf-8")
    assert render.with_overview(page, lines.results) == page, "python -m bench.paper.render"
    drawn = [path.stem for path in (render.OUT.parent / "figures").glob("*.svg")]
    assert render.document(lines, drawn) == render.OUT.read_text(encoding="utf-8"), "python -m bench.paper.render"


def test_strategies_of_the_baselines_are_what_they_are_called():
    import stea_fast as sf

    pair = sf.synthetic_pair(150, 0, seed_fraction=0.1)
    found = {}
    for name, method in (("MutNearest", sf.MutualNearest()), ("OneToOne", sf.OneToOne())):
        config = sf.SelfTrainingConfig(encoder=sf.preset("fast").encoder, method=method, rounds=2)
        found[name] = sf.SelfTraining(pair, preset=config, progress=False).run().pairs
        watched = baselines.watched(baselines.STRATEGIES[name])
        run = sf.SelfTraining(pair, preset=config, method=watched, progress=False).run()
        np.testing.assert_array_equal(run.pairs, found[name])
        np.testing.assert_array_equal(watched.rounds[len(run.history) - 1]["pairs"], found[name])


def test_rounds_of_baselines_are_judged_by_what_was_selected():
    truth = np.array([5, 6, -1, 7])
    selected = {
        "threshold": -np.inf, "mutual": 9,
        "pairs": np.array([[0, 5], [1, 5], [2, 6], [3, 7]]), "new": np.array([[0, 5], [1, 5]]),
    }  # fmt: skip
    assert baselines._judged(selected, truth) == {
        "threshold": None, "mutual": 9, "pairs": 4, "right": 2, "without_counterpart": 1, "carried": 2,
        "carried_right": 1,
    }  # fmt: skip


def test_the_report_of_the_baselines_follows_from_their_rounds():
    end = {"threshold": None, "mutual": 9, "pairs": 10, "right": 6, "carried": 4, "carried_right": 1, "hit1": 0.3}
    lines = [
        {"encoder": "dual_amn", "strategy": name, "rounds": [end, {**end, "hit1": hit}], "commit": "abc"}
        for name, hit in (("MutNearest", 0.42), ("OneToOne", 0.34), ("OneToOne, nothing accumulated", 0.45))
    ]
    text = baselines.report(lines)
    assert "MutNearest is +0.080 from OneToOne" in text and "+0.110 from OneToOne and +0.030 from MutNearest" in text
    assert "OneToOne has 4 from earlier rounds only: 0.250 of these are right, and 0.833 of the others" in text
    assert baselines.report([]) == "Not run."


def test_cheap_cells_are_a_part_of_all():
    listed = {each.key for each in experiments.cells(experiments.FULL)}
    assert {each.key for each in experiments.cells(experiments.SETS["cheap"])} <= listed
