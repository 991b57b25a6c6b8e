"""The examples run, are short, and end better than they began."""

from __future__ import annotations

import importlib.util
import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
SMALL = {
    "numpy_only": {"num_entities": 200, "rounds": 2, "dim": 64},
    "pytorch_loop": {"num_entities": 150, "rounds": 2, "epochs": 20, "dim": 32},
    "pyg_gnn": {"num_entities": 150, "rounds": 2, "epochs": 20, "dim": 32},
    "pykeen_embeddings": {"num_entities": 100, "rounds": 1, "epochs": 40, "dim": 32},
}
NEEDS = {"pytorch_loop": ["torch"], "pyg_gnn": ["torch", "torch_geometric"], "pykeen_embeddings": ["torch", "pykeen"]}


def test_every_example_is_tested():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {*SMALL, "without_seeds"}


def test_two_small_files_are_aligned_without_seeds(capsys):
    pytest.importorskip("pyoxigraph", reason="RDF needs pyoxigraph")
    runpy.run_path(str(EXAMPLES / "without_seeds.py"))
    said = capsys.readouterr().out
    assert "20 names are equal" in said and "Potassium                Kalium" in said and '"K"  ≈' in said


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SMALL))
def test_an_example_runs_on_a_small_pair_and_refinement_helps(name):
    for package in NEEDS.get(name, []):
        pytest.importorskip(package, reason=f"{package} is not installed")
    if name in NEEDS:
        import torch

        torch.manual_seed(0)
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    before, after = module.main(**SMALL[name])
    assert after > before


@pytest.mark.parametrize("name", sorted(SMALL))
def test_an_example_has_at_most_sixty_lines(name):
    assert len((EXAMPLES / f"{name}.py").read_text(encoding="utf-8").splitlines()) <= 60
