"""Runs that are killed, and cells side by side: the same bits as one process that nobody disturbs."""

from __future__ import annotations

import os
import signal
import subprocess

import pytest

pytest.importorskip("safetensors", reason="checkpoints need safetensors")

from bench.lib.processes import environment, module_command
from bench.paper import cells, store, versions, workers
from bench.paper import killed as killed_run
from bench.paper.runner import Runner


def cell(method):
    return cells.Cell("demo", "synthetic", 0.1, method, "propagation", "3_rounds", 0)


def start(folder):
    command = module_command("bench.paper.run", "--only", "demo/*/stea/*split0")
    command += ["--results", str(folder / "results"), "--checkpoints", str(folder / "checkpoints")]
    return subprocess.Popen(command, env={**environment(), "PYTHONUNBUFFERED": "1"}, stdout=subprocess.PIPE, text=True)


@pytest.mark.slow
def test_a_killed_run_continues_to_the_same_metrics(tmp_path):
    alone, killed = tmp_path / "alone", tmp_path / "killed"
    undisturbed = start(alone)
    process = start(killed)
    for line in process.stdout:
        if "round 1" in line:
            break
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert store.read(killed / "results" / store.CELLS) == []
    assert any((killed / "checkpoints").glob("*/*.safetensors"))
    resumed = start(killed).communicate()[0]
    assert "round 0" not in resumed and "round 3" in resumed
    undisturbed.communicate()
    (one,), (other,) = (store.read(folder / "results" / store.CELLS) for folder in (alone, killed))
    assert killed_run.figures(one) == killed_run.figures(other)
    assert not any((killed / "checkpoints").glob("*/*.safetensors"))


@pytest.mark.slow
def test_workers_side_by_side_give_the_same_bits_and_end_with_their_parent(tmp_path):
    runner = Runner(tmp_path / "alone", tmp_path / "alone", threads=1)
    assert runner.run([cell("mutual_nearest"), cell("stea")]) == 0
    command = module_command("bench.paper.run", "--only", "demo/*/*t*/propagation/3_rounds/", "--workers", 2)
    command += ["--results", str(tmp_path / "results"), "--checkpoints", str(tmp_path / "checkpoints")]
    begin = {"env": {**environment(), "PYTHONUNBUFFERED": "1"}, "stdout": subprocess.PIPE, "text": True}
    process = subprocess.Popen(command, **begin)
    for line in process.stdout:
        if "round 1" in line:
            break
    process.send_signal(signal.SIGKILL)
    assert process.communicate()[0] is not None  # ends when nobody holds the pipe any more: no worker is left
    said = subprocess.run(command, **begin, check=True).stdout
    found = {record["id"]: record for record in versions.current(store.read(tmp_path / "results" / store.CELLS))}
    assert found.keys() >= {cell("stea").id, cell("mutual_nearest").id} and "finished: " in said
    for method in ("stea", "mutual_nearest"):
        alone = runner.finished()[cell(method).key]
        assert killed_run.figures(found[cell(method).id]) == killed_run.figures(alone)


def test_a_worker_that_is_killed_or_fails_does_not_stop_the_others(tmp_path, monkeypatch, capsys):
    def end(given, other):
        if given.method == "oracle":
            os.kill(os.getpid(), signal.SIGKILL)
        os._exit(1 if given.method == "supervised" else 0)

    monkeypatch.setattr(workers, "_work", end)
    monkeypatch.setattr(workers, "METHOD", "fork")  # so that the processes know of this
    methods = ("oracle", "supervised", "stea", "mutual_nearest")
    other = Runner(tmp_path, tmp_path, threads=1, workers=2)
    assert other.run([cell(method) for method in methods]) == 2
    said = capsys.readouterr().out
    assert f"killed by signal 9: {cell('oracle').id}" in said and said.count("not finished: ") == 3
