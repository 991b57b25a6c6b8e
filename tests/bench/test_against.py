"""Two versions in turns: the same work on both sides, each with its own package."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench.against import Commits, Side, contest
from bench.lib.folders import ROOT
from bench.lib.processes import environment

CASE = {"pair": "synthetic", "fraction": 0.3, "split": 0}


def this_side() -> tuple[Path, dict[str, str]]:
    return Path(sys.executable), environment()


@pytest.mark.parametrize("case", ["refine-joint", "sweep", "embedding"])
def test_equal_versions_find_the_same_and_take_their_turns(case):
    result = contest({"case": case, **CASE}, {"this": this_side(), "other": this_side()}, rounds=2)
    assert result["found"]["this"] == result["found"]["other"]
    assert result["ratio"]["rounds"] == 2 and result["ratio"]["median"] > 0


def test_a_side_that_fails_says_so(capfd):
    python, variables = this_side()
    with pytest.raises(RuntimeError, match="ended with code 1"):
        Side(python, variables, {"case": "sweep", **CASE, "pair": "no such dataset"})
    assert "no such dataset" in capfd.readouterr().err


@pytest.mark.slow
def test_the_other_commit_is_imported_from_its_own_environment(tmp_path):
    if not (ROOT / ".git").exists():
        pytest.skip("not a checkout: there are no other commits")
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True)
    commits = Commits(tmp_path)
    python = commits.python(head.stdout.strip())
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [python, "-c", "import stea_fast, torch; from stea_fast import _core; print(stea_fast.__file__)"]
    said = subprocess.run(command, env=variables, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert Path(said.stdout.strip()).is_relative_to(tmp_path)
    assert commits.python(head.stdout.strip()) == python  # built once
