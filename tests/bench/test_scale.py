"""The table of sizes: cells have names, unfinished ones are counted, growth is computed from what was run."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from bench.lib.folders import ROOT
from bench.scale import render, run
from bench.scale.cells import PRESETS, Cell, all_cells


def line(cell: str, edges: int, seconds: float, peak_mb: float, search=None):
    quality = dict.fromkeys(("hit1", "precision", "recall", "f1"), 0.5)
    return {
        "cell": cell, "edges": edges, "seconds": seconds, "peak_mb": peak_mb, "threads": 2, **quality,
        "searches": [search or {}], "planned_seconds": seconds / 2, "planned_mb": peak_mb * 2,
    }  # fmt: skip


def test_every_cell_has_a_name_of_its_own():
    keys = [cell.key for cell in all_cells()]
    assert len(set(keys)) == len(keys) and "dbp1m-2M/1%/large" in keys and "contea_zh_en/20%/structural" in keys


def test_cells_that_were_run_are_shown_and_the_others_counted():
    key = "dbp1m-1M/1%/large"
    search = {"engine": "partitioned", "width": 176, "recall": [0.91, 0.87]}
    *rows, _, left = render.table({key: line(key, 100, 1200.0, 7654.0, search)}).splitlines()
    assert len(rows) == 3 and left.startswith(f"{len(all_cells()) - 1} of {len(all_cells())} cells have not been run")
    assert key in rows[-1] and "20 min (10 min)" in rows[-1] and "7.65 GB (15.31)" in rows[-1]
    assert "partitioned, 176 dimensions, recall 0.87" in rows[-1]


def test_cells_that_would_be_run_are_listed(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(run, "RESULTS", tmp_path / "cells.jsonl")
    monkeypatch.setattr(sys, "argv", ["run", "--list", "--only", "dbp1m-2M/*"])
    run.main()
    assert capsys.readouterr().out.split() == [
        f"dbp1m-2M/{seeds}/{name}" for seeds in ("1%", "20%") for name in PRESETS
    ]


def test_growth_is_that_of_sizes_that_were_run():
    one, two = (Cell(f"dbp1m-{size}", 0.2, "structural").key for size in ("150K", "1M"))
    text = render.growth({one: line(one, 1000, 10.0, 100.0), two: line(two, 8000, 160.0, 400.0)})
    assert "| 8.00 × | 2.00 × | 1.33 | 0.67 |" in text


def test_runs_with_other_threads_are_not_compared():
    one, two = (Cell(f"dbp1m-{size}", 0.2, "structural").key for size in ("150K", "1M"))
    lines = {one: line(one, 1000, 10.0, 100.0), two: {**line(two, 8000, 80.0, 400.0), "threads": 1}}
    assert len(render.growth(lines).splitlines()) == 2


def test_only_what_stands_between_the_marks_changes():
    page = f"before\n{render.BEGIN}\nold\n{render.END}\nafter\n"
    new = render.rendered(page, {})
    assert new.startswith("before\n") and new.endswith("\nafter\n") and "old" not in new
    assert render.rendered(new, {}) == new
    with pytest.raises(ValueError, match=r"docs/scale\.md needs the lines"):
        render.rendered("nothing", {})


def test_the_page_is_what_the_results_say():
    page = render.PAGE.read_text(encoding="utf-8")
    assert render.rendered(page, render.latest()) == page, "run python -m bench.scale.render"


def test_the_plot_is_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    key = "dbp1m-15K/1%/structural"
    render.draw({key: line(key, 1000, 1.0, 100.0)}, tmp_path / "plot.svg")
    assert "<svg" in (tmp_path / "plot.svg").read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_cell_runs_in_a_process_of_its_own():
    command = [sys.executable, "-m", "bench.scale.run", "--cell", "dbp1m-15K/20%/structural", "--threads", "1"]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["entities"] == [15_000, 15_000] and 0.3 < found["hit1"] < 0.9 and found["threads"] == 1
    assert found["planned_mb"] > 0 and found["searches"] == [{}] and found["commit"]


@pytest.mark.slow
def test_executors_are_compared_by_their_bits():
    pytest.importorskip("ray", reason="Ray is one of the executors")
    command = [sys.executable, "-m", "bench.scale.executors", "--size", "15K", "--sweeps", "1", "--workers", "1"]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    *rows, last = done.stdout.splitlines()
    assert last == "the same bits" and [row.split("|")[1].strip() for row in rows[2:]] == [
        "one thread", "processes, 1", "ray, 1"
    ]  # fmt: skip
