"""How a round searches: engine by budget, fewer dimensions, and what the history says of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import stea_fast as sf
from stea_fast.selftraining.presets import LARGE_ENTITIES, usual_preset
from stea_fast.selftraining.searching import engine_for, in_fewer_dimensions, searched


@pytest.fixture(scope="module")
def pair():
    return sf.synthetic_pair(num_entities=600, seed=0)


def test_the_search_is_exact_as_far_as_the_budget_goes():
    search = sf.SearchConfig(budget=2e6)  # two passes for CSLS
    assert engine_for(search, 100, 100, 100) == "auto"
    assert engine_for(search, 101, 100, 100) == "partitioned"
    assert engine_for(replace(search, csls=0), 200, 100, 100) == "auto"
    assert engine_for(sf.SearchConfig(), 10**6, 10**6, 1000) == "auto"
    assert engine_for(sf.SearchConfig(engine="faiss-ivf", budget=1e30), 10, 10, 10) == "faiss-ivf"


def test_a_run_beyond_its_budget_searches_approximately_and_says_so(pair, caplog):
    with caplog.at_level("INFO", "stea_fast"):
        result = sf.SelfTraining(pair, preset="large", search=sf.SearchConfig(budget=0), rounds=1).run()
    first = result.history[0].search
    assert first["engine"] == "partitioned" and first["sources"] == first["targets"] == 600
    assert len(first["recall"]) == 2 and "approximate search (partitioned) of 600 x 600: recall" in caplog.text
    assert result.history[1].search["sources"] < 600, "the second round searches what is open"
    assert sf.evaluate(result, pair.test).hit1 > 0.9


def test_an_exact_search_is_recorded_without_recall(pair):
    record = sf.SelfTraining(pair, preset="fast", rounds=0).run().history[0]
    assert record.search == {"engine": "native", "sources": 600, "targets": 600, "width": 1024}


def test_records_of_searches_survive_a_checkpoint(pair, tmp_path):
    run = {"preset": "fast", "rounds": 0, "checkpoint": tmp_path}
    first = sf.SelfTraining(pair, **run).run()
    assert sf.SelfTraining(pair, **run).run().history[0].search == first.history[0].search


def test_fewer_dimensions_keep_cosines_roughly(pair):
    rng = np.random.default_rng(0)
    wide = rng.standard_normal((2, 50, 512)).astype(np.float32)
    one, two = in_fewer_dimensions((wide[0], wide[0] + 0.3 * wide[1]), 128)
    assert one.shape == (50, 128) and one.dtype == np.float32
    cosines = (one * two).sum(1) / np.linalg.norm(one, axis=1) / np.linalg.norm(two, axis=1)
    assert abs(cosines.mean() - 1 / np.sqrt(1.09)) < 0.03
    result = sf.SelfTraining(pair, preset="fast", search=sf.SearchConfig(dimensions=64), rounds=0).run()
    assert result.history[0].search["width"] == 64 and result.embeddings[0].shape[1] == 1024


def test_as_many_dimensions_as_there_are_change_nothing():
    sides = np.eye(4, dtype=np.float32), np.eye(4, dtype=np.float32)
    assert in_fewer_dimensions(sides, 4) is sides and in_fewer_dimensions(sides, None) is sides


def test_more_dimensions_than_the_encoder_has_are_refused():
    sides = np.eye(4, dtype=np.float32), np.eye(4, dtype=np.float32)
    with pytest.raises(ValueError, match=r"search\.dimensions is 5, but the encoder gives 4"):
        searched(sides, sf.SearchConfig(dimensions=5), None, False, settled=None, beta=None)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"engine": "annoy"}, ValueError, "engine must be one of"),
        ({"dimensions": 0}, ValueError, "dimensions"),
        ({"dimensions": 1.5}, TypeError, "dimensions"),
        ({"budget": -1}, ValueError, "budget"),
        ({"budget": "much"}, TypeError, "budget"),
    ],
)
def test_options_of_the_search_that_cannot_be_used(options, error, message):
    with pytest.raises(error, match=message):
        sf.SearchConfig(**options)


def test_an_approximate_engine_without_its_package_says_how_to_install_it(pair, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "faiss", None)
    monkeypatch.delitem(sys.modules, "stea_fast.search.engines.faiss_engine", raising=False)
    with pytest.raises(sf.BackendUnavailable, match=r"pip install 'stea-fast\[faiss\]'"):
        sf.SelfTraining(pair, preset="fast", search=sf.SearchConfig(engine="faiss-hnsw"), rounds=0).run()


def test_large_is_taken_beyond_the_size_that_the_docs_state(pair):
    graph = sf.KG([[0, 0, LARGE_ENTITIES]])
    assert LARGE_ENTITIES == 60_000
    assert usual_preset(replace(pair, kg2=graph), has_seeds=True) == "large"
    assert usual_preset(replace(pair, kg2=graph), has_seeds=False) == "structural"
    assert usual_preset(pair, has_seeds=True) == "fast"


def test_align_takes_a_search(pair):
    found = sf.align(pair, search=sf.SearchConfig(k=5, engine="partitioned"), rounds=0, calibration="none")
    assert found.result.candidates.engine == "partitioned" and found.result.candidates.forward.indices.shape[1] == 5
    assert found.settings["search"]["engine"] == "partitioned"


def test_the_report_shows_the_recall_of_an_approximate_search(pair, tmp_path):
    found = sf.align(pair, search=sf.SearchConfig(engine="partitioned"), rounds=0, calibration="none")
    found.write_report(tmp_path / "report.html")
    assert "partitioned, 600 × 600, recall " in (tmp_path / "report.html").read_text(encoding="utf-8")
