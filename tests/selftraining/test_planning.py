"""The plan before a run: stages, estimates, and refusal of what does not fit."""

from __future__ import annotations

import numpy as np
import pytest

import stea_fast as sf
from stea_fast._util import memory
from stea_fast.cli import exit_codes
from stea_fast.cli.main import main
from stea_fast.selftraining import planning


@pytest.fixture(scope="module")
def pair():
    return sf.synthetic_pair(num_entities=300, seed=0)


def test_every_preset_has_a_plan_that_prints_its_stages(pair):
    for name, stages in (("structural", 1), ("fast", 5), ("large", 5), ("full", 5)):
        plan = sf.SelfTraining(pair, preset=name, encoder="propagation" if name == "full" else None).plan()
        assert len(plan.stages) == stages and plan.seconds > 0 and 0 < plan.gigabytes < plan.memory_limit
        assert all(stage.name in str(plan) for stage in plan.stages) and "estimated in all" in str(plan)


def test_fast_has_fewer_dimensions_for_graphs_much_larger_than_dbp15k():
    for sizes, expected in (((19_814, 19_993), 1024), ((146_179, 186_018), 512)):
        graphs = [sf.KG([[0, 0, 1]], num_entities=size) for size in sizes]
        seed = np.array([[0, 0]])
        plan = sf.SelfTraining(sf.Pair(*graphs, seed, seed, seed[:0], seed[:0]), preset="fast").plan()
        assert f"embeddings of {expected} dimensions" in str(plan)


def test_larger_graphs_take_longer_and_more_memory(pair):
    larger = sf.synthetic_pair(num_entities=3000, seed=0)
    small, large = (sf.SelfTraining(each, preset="large").plan() for each in (pair, larger))
    assert large.seconds > 3 * small.seconds and large.gigabytes > small.gigabytes


def test_beyond_the_budget_the_plan_names_an_approximate_search(pair):
    plan = sf.SelfTraining(pair, preset="large", search=sf.SearchConfig(budget=0)).plan()
    assert "1 x approximate search of 300 x 300" in str(plan)


def test_more_memory_than_allowed_is_refused_before_the_work(pair, tmp_path):
    run = sf.SelfTraining(pair, preset="fast", memory="100MB", checkpoint=tmp_path / "run")
    with pytest.raises(MemoryError, match=r"is estimated to need 0\.3 GB .*and 0\.1 GB may be taken; use preset"):
        run.run()
    assert not (tmp_path / "run").exists() or not any((tmp_path / "run").glob("*.safetensors"))


def test_enough_memory_changes_nothing(pair):
    limited = sf.SelfTraining(pair, preset="structural", memory="2GB").run()
    assert (limited.pairs == sf.SelfTraining(pair, preset="structural").run().pairs).all()


def test_a_long_run_tells_its_plan_and_a_short_one_does_not(pair, monkeypatch, caplog):
    with caplog.at_level("INFO", planning.LOGGER):
        sf.SelfTraining(pair, preset="structural").run()
        assert not caplog.records
        monkeypatch.setattr(planning, "LONG_RUN_EDGES", 10)
        sf.SelfTraining(pair, preset="structural").run()
    assert "spread by structure" in caplog.text and "estimated in all" in caplog.text


def test_a_machine_without_memory_is_no_place_for_a_long_run(pair, monkeypatch):
    monkeypatch.setattr(planning, "LONG_RUN_EDGES", 10)
    monkeypatch.setattr(memory, "available", lambda: 0.0)
    monkeypatch.setattr(memory, "resident", lambda: 1e6)
    with pytest.raises(MemoryError, match="more memory"):
        sf.SelfTraining(pair, preset="structural").run()


@pytest.mark.parametrize(
    ("size", "expected"), [("8GB", 8e9), ("500 mb", 5e8), ("1.5G", 1.5e9), ("64", 64.0), (1000, 1000.0), ("2TB", 2e12)]
)
def test_sizes_are_read(size, expected):
    assert memory.size_in_bytes(size, "memory") == expected


@pytest.mark.parametrize("size", ["", "much", "8 apples", "-1GB", 0, -5, float("nan")])
def test_sizes_that_are_none_are_named(pair, size):
    with pytest.raises(ValueError, match="memory must be"):
        sf.SelfTraining(pair, memory=size)


@pytest.mark.parametrize("size", [True, [8]])
def test_sizes_of_the_wrong_type_are_named(pair, size):
    with pytest.raises(TypeError, match="memory must be a size"):
        sf.SelfTraining(pair, memory=size)


def test_the_command_refuses_with_the_code_for_memory(tmp_path, capsys):
    pair = sf.synthetic_pair(num_entities=100, seed=0)
    for name, graph in (("a.tsv", pair.kg1), ("b.tsv", pair.kg2)):
        rows = "".join(f"e{h}\tr{r}\te{t}\n" for h, r, t in graph.triples.tolist())
        (tmp_path / name).write_text(rows, encoding="utf-8")
    (tmp_path / "seeds.tsv").write_text("".join(f"e{a}\te{b}\n" for a, b in pair.train.tolist()), encoding="utf-8")
    files = [str(tmp_path / name) for name in ("a.tsv", "b.tsv")]
    words = ["align", *files, "--seeds", str(tmp_path / "seeds.tsv"), "--out", str(tmp_path / "links.tsv")]
    assert main([*words, "--memory", "1MB"]) == exit_codes.OUT_OF_MEMORY
    assert "not enough memory" in capsys.readouterr().err and not (tmp_path / "links.tsv").exists()
    assert main([*words, "--memory", "2 apples"]) == exit_codes.BAD_INPUT
    assert main([*words, "--engine", "partitioned", "--dimensions", "4000"]) == exit_codes.BAD_INPUT
    assert "search.dimensions is 4000, but the encoder gives 1024" in capsys.readouterr().err
