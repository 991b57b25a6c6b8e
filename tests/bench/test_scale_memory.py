"""Memory of making pairs, and of runs with a budget: each measured in a fresh process, with a checksum."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from bench.lib.folders import ROOT
from bench.lib.processes import environment


def lines_of(*words):
    command = [sys.executable, "-m", *words]
    done = subprocess.run(command, cwd=ROOT, env=environment(), check=True, capture_output=True, text=True)
    return done.stdout.splitlines()


def test_pairs_are_made_in_fresh_processes():
    first, second = lines_of("bench.scale.generation", "--entities", "500")
    assert first.startswith("500 entities, dbp1m: ") and second.startswith("500 entities, dense: ")
    assert re.search(r"GB at most, checksum [0-9a-f]{8}$", first)


@pytest.mark.skipif(sys.platform != "linux", reason="anonymous memory is looked up in /proc")
def test_a_budget_moves_embeddings_into_files_and_changes_no_bit():
    plain, limited = lines_of("bench.scale.budget", "--entities", "2000", "--memory", "270MB")
    nothing = "embeddings and pairs of 0.00 and 0.00 GB in files"
    assert nothing in plain and nothing not in limited
    assert plain.rpartition(" ")[2] == limited.rpartition(" ")[2]
