"""One shape of metrics: what the monitor stores and what the table of quality says are `Metrics`."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields, replace

import numpy as np
import pytest

import stea_fast as sf
from stea_fast.data.sealed import reveal
from stea_fast.evaluation.metrics import PAIR_METRICS, RANKING_METRICS, Metrics, PairsOnly
from stea_fast.evaluation.monitor import Monitor
from stea_fast.evaluation.quality import quality_table


@pytest.fixture(scope="module")
def pair() -> sf.Pair:
    return sf.synthetic_pair(100, seed=0)


@pytest.fixture(scope="module")
def candidates(pair) -> sf.Candidates:
    return sf.demo.candidates(pair)


@pytest.fixture(scope="module")
def refinement(pair, candidates) -> sf.Refinement:
    return sf.refine(candidates, pair.kg1, pair.kg2, seeds=pair.train)


def test_metrics_as_a_dict_hold_every_field_or_those_named(pair, refinement):
    metrics = sf.evaluate(refinement, pair.test)
    assert set(metrics.to_dict()) == {field.name for field in fields(Metrics)}
    assert metrics.to_dict(("mrr", "f1")) == {"mrr": metrics.mrr, "f1": metrics.f1}
    with pytest.raises(KeyError, match="hit7"):
        metrics.to_dict(("hit7",))


def test_the_monitor_stores_what_evaluate_says(pair, candidates, refinement):
    pairs = np.asarray(refinement.pairs)
    stored = Monitor(pair).measure(candidates, refinement, pairs)
    assert json.loads(json.dumps(stored)) == {
        "encoder": sf.evaluate(candidates, pair.test).to_dict(RANKING_METRICS),
        "refined": sf.evaluate(refinement, pair.test).to_dict(RANKING_METRICS),
        "pairs": sf.evaluate(PairsOnly(pairs), pair.test).to_dict(PAIR_METRICS),
    }
    assert set(Monitor(pair).measure(candidates, None, pairs)) == {"encoder", "pairs"}


def test_without_test_links_there_is_nothing_to_say(pair, candidates):
    mine = sf.make_pair(pair.kg1, pair.kg2, pair.train)
    assert Monitor(mine).measure(candidates, None, mine.train) == {}
    assert quality_table(mine, candidates, candidates) is None


def test_the_table_of_quality_is_made_of_metrics(pair, candidates, refinement):
    table = quality_table(pair, candidates, refinement)
    closed, open_pool = (sf.evaluate(refinement, pair.test, pool) for pool in ("test", "all"))
    assert table.links == closed
    expected = [sf.evaluate(candidates, pair.test), closed, open_pool]
    assert list(map(repr, table.rankings.values())) == list(map(repr, expected))  # NaN is not equal to itself
    written = table.to_dict()
    assert set(written) == {"rankings", "precision", "recall", "f1", "num_links", "judged"}
    assert written["rankings"][2] == {
        "what": "refined, among all targets", "hit1": open_pool.hit1, "hit10": open_pool.hit10, "mrr": open_pool.mrr
    }  # fmt: skip
    assert f"{closed.f1:.3f}" in str(table)


def test_links_of_sources_without_a_known_truth_are_not_judged(pair, candidates):
    """Half of the true links are known: a perfect result is right in all that can be judged."""
    links = reveal(pair.test)
    half = replace(pair, test=sf.make_pair(pair.kg1, pair.kg2, pair.train, test=links[::2]).test)
    table = quality_table(half, candidates, Perfect(candidates, links))
    assert (table.links.precision, table.judged.precision) == (pytest.approx(0.5, abs=0.01), 1.0)
    assert table.judged.num_pairs == len(links[::2])
    assert "links of sources with a known truth  precision 1.000" in str(table)


@dataclass
class Perfect:
    """Guesses as an encoder has them, and all true links."""

    candidates: sf.Candidates
    pairs: np.ndarray

    @property
    def forward(self):
        return self.candidates.forward
