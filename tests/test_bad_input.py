"""Bad input is a clear error that names the argument; Ctrl-C ends a long call."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import stea_fast as sf
from stea_fast.types import Candidates, Ranking, RelationAlignment

KG1 = sf.KG([[0, 0, 1], [1, 0, 2], [2, 1, 3]])  # 4 entities, 2 relations
KG2 = sf.KG([[0, 0, 1], [1, 0, 2]])  # 3 entities, 1 relation
INDICES = np.array([[0, 1], [1, 2], [2, 0], [0, 2]])
SCORES = np.array([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3], [0.6, 0.4]], dtype=np.float32)
INDICES2 = np.array([[0, 1], [1, 2], [2, 3]])
GOOD = (INDICES, SCORES)
BOTH = Candidates(Ranking(*GOOD), Ranking(INDICES2, SCORES[:3]))
FOUR = np.tile(np.arange(4), (4, 1))
TOO_SMALL = RelationAlignment(np.zeros((2, 2)), np.zeros((2, 2)))
ZEROS = (np.zeros(4), np.zeros(3))


def changed(array: np.ndarray, row: int, values: list, dtype: object = None) -> np.ndarray:
    """A copy with one row replaced."""
    copy = array.astype(dtype or array.dtype)
    copy[row] = values
    return copy


def indices(row: int, values: list) -> tuple:
    return changed(INDICES, row, values), SCORES


def scores(row: int, values: list, dtype: object = None) -> tuple:
    return INDICES, changed(SCORES, row, values, dtype)


def backward(indices: np.ndarray, scores: np.ndarray) -> Candidates:
    return Candidates(Ranking(*GOOD), Ranking(indices, scores))


def test_the_input_that_the_table_spoils_is_good():
    out = sf.refine(BOTH, KG1, KG2, seeds=[[0, 0]], holdout=[[1, 1]], relations=None)
    assert out.forward.indices.shape == (4, 2) and out.backward.indices.shape == (3, 2)
    assert sf.refine(GOOD, KG1, KG2, method=sf.Product(normalisation="none")).forward.probs.max() <= 1


CANDIDATES = [
    (indices(1, [1, -2]), ValueError, r"forward\.indices holds -2"),
    (indices(1, [1, 3]), ValueError, r"forward\.indices holds 3.*only 3 targets"),
    (indices(1, [1, 2**40]), ValueError, r"forward\.indices holds 1099511627776"),
    (indices(2, [2, 2]), ValueError, r"forward\.indices\[2\] holds candidate 2 twice"),
    ((INDICES.astype(float), SCORES), TypeError, r"forward\.indices must hold integers, got dtype float64"),
    ((INDICES > 0, SCORES), TypeError, r"forward\.indices must hold integers, got dtype bool"),
    ((INDICES.astype(str), SCORES), TypeError, r"forward\.indices must hold integers"),
    ((INDICES[:3], SCORES[:3]), ValueError, r"forward\.indices must have shape \(4, k\).*got \(3, 2\)"),
    ((INDICES[:, 0], SCORES[:, 0]), ValueError, r"forward\.indices must have shape \(4, k\).*got \(4,\)"),
    ((INDICES[:, :0], SCORES[:, :0]), ValueError, r"forward\.indices is empty"),
    (([[0], [1, 2]], SCORES), ValueError, r"forward\.indices must be a rectangular array"),
    ((FOUR, np.ones((4, 4))), ValueError, r"forward\.indices .* 4 .* only 3 targets"),
    ((INDICES, SCORES[:, :1]), ValueError, r"forward\.scores must have the shape of indices"),
    ((INDICES, SCORES[:3]), ValueError, r"forward\.scores must have the shape of indices"),
    (scores(3, [np.nan, 0.1]), ValueError, r"forward\.scores\[3, 0\] is nan"),
    (scores(3, [0.1, np.inf]), ValueError, r"forward\.scores\[3, 1\] is inf"),
    (scores(3, [0.1, -np.inf]), ValueError, r"forward\.scores\[3, 1\] is -inf"),
    (scores(3, [1e300, 0.1], float), ValueError, r"forward\.scores\[3, 0\] is 1e\+300.*float32"),
    ((INDICES, SCORES.astype(str)), TypeError, r"forward\.scores must hold numbers"),
    ((INDICES, SCORES.astype(complex)), TypeError, r"forward\.scores must hold numbers"),
    ((INDICES, None), TypeError, r"forward\.scores must be an array of numbers"),
    (backward(INDICES, SCORES), ValueError, r"backward\.indices must have shape \(3, k\)"),
    (backward(INDICES2 + 2, SCORES[:3]), ValueError, r"backward\.indices holds 5"),
    (backward(INDICES2, SCORES[:3] * np.nan), ValueError, r"backward\.scores\[0, 0\]"),
    (INDICES, TypeError, r"forward candidates must be \(indices, scores\), got ndarray"),
    ((*GOOD, 1), TypeError, r"forward candidates must be \(indices, scores\), got tuple"),
    (None, TypeError, "forward candidates .* got NoneType"),
]


@pytest.mark.parametrize("method", ["joint", "product"])
@pytest.mark.parametrize(("given", "error", "message"), CANDIDATES)
def test_unusable_candidates_are_an_error(given, error, message, method):
    with pytest.raises(error, match=message):
        sf.refine(given, KG1, KG2, method=method)


OPTIONS = [
    ({"seeds": [[4, 0]]}, ValueError, r"seeds\[:, 0\] holds 4.*only 4 source entities"),
    ({"seeds": [[0, 3]]}, ValueError, r"seeds\[:, 1\] holds 3.*only 3 target entities"),
    ({"seeds": [[-1, 0]]}, ValueError, r"seeds\[:, 0\] holds -1"),
    ({"seeds": [[0.0, 1.0]]}, TypeError, "seeds must hold integers"),
    ({"seeds": [0, 1]}, ValueError, r"seeds must have shape \(n, 2\)"),
    ({"seeds": [[0, 1, 2]]}, ValueError, r"seeds must have shape \(n, 2\)"),
    ({"seeds": [[1, 0], [1, 2]]}, ValueError, "seeds links source entity 1 2 times"),
    ({"seeds": [[1, 0], [2, 0]]}, ValueError, "seeds links target entity 0 2 times"),
    ({"seeds": None}, TypeError, "seeds must be an array of numbers"),
    ({"holdout": [[0, 3]]}, ValueError, r"holdout\[:, 1\] holds 3"),
    ({"holdout": [[1, 0], [2, 0]]}, ValueError, "holdout links target entity 0 2 times"),
    ({"relations": TOO_SMALL}, ValueError, r"relations\.sub12 must have shape \(4, 2\), got \(2, 2\)"),
    ({"relations": (np.zeros((4, 2)), np.zeros((2, 4)))}, TypeError, "relations must be a RelationAlignment"),
    ({"method": "sum"}, ValueError, "method must be one of 'joint', 'product', 'paper'; got 'sum'"),
    ({"method": sf.Joint}, TypeError, "method must be one of .*, or an sf.Joint, sf.Product or sf.Paper"),
    ({"method": None}, TypeError, "method must be one of"),
    ({"method": {"sweeps": 3}}, TypeError, "method must be one of"),
    ({"method": sf.Schedule()}, TypeError, "method must be one of"),
    ({"method": sf.Product(evidence="mutual")}, ValueError, "evidence='mutual' needs candidates in both directions"),
    ({"select": "best"}, ValueError, "select must be one of"),
    ({"select": "mutual"}, ValueError, "select='mutual' needs candidates in both directions"),
    ({"select": "uni"}, ValueError, "select must be one of .*; got 'uni'"),
    ({"select": "forward"}, ValueError, "select='forward' needs a threshold"),
    ({"select": "either", "threshold": 0.5}, ValueError, "select='either' needs candidates in both directions"),
    ({"rows_per_block": 0}, ValueError, "rows_per_block must be between 1"),
    ({"method": "product", "rows_per_block": 0.5}, TypeError, "rows_per_block must be an integer"),
    ({"threshold": 1.5}, ValueError, "threshold must be a finite number between 0.0 and 1.0, got 1.5"),
    ({"threshold": "0.5"}, TypeError, "threshold must be a number"),
    ({"backend": "fortran"}, ValueError, "backend must be 'auto' or one of"),
    ({"n_threads": 0}, ValueError, "n_threads must be between 1"),
    ({"n_threads": 1.5}, TypeError, "n_threads must be an integer"),
    ({"treshold": 0.5}, TypeError, "no option 'treshold'; did you mean 'threshold'"),
]


@pytest.mark.parametrize(("options", "error", "message"), OPTIONS)
def test_an_unusable_option_is_an_error(options, error, message):
    with pytest.raises(error, match=message):
        sf.refine(GOOD, KG1, KG2, **options)


METHODS = [
    (sf.Joint, {"k": 0}, ValueError, "^k must be between 1"),
    (sf.Product, {"k": 0}, ValueError, "^k must be between 1"),
    (sf.Paper, {"k": 0}, ValueError, "^k must be between 1"),
    (sf.Joint, {"k": 2.0}, TypeError, "^k must be an integer, got float"),
    (sf.Joint, {"k": True}, TypeError, "^k must be an integer, got bool"),
    (sf.Product, {"evidence": "hard"}, ValueError, "evidence must be one of 'soft', 'argmax', 'mutual'; got 'hard'"),
    (sf.Product, {"evidence": ["soft"]}, ValueError, "evidence must be one of"),
    (sf.Product, {"evidence": np.array(["soft", "mutual"])}, ValueError, "evidence must be one of"),
    (sf.Paper, {"evidence": "hard"}, ValueError, "evidence must be one of"),
    (sf.Product, {"blanket": "none"}, ValueError, "blanket must be one of 'local', 'full'"),
    (sf.Paper, {"blanket": "none"}, ValueError, "blanket must be one of 'local', 'full'"),
    (sf.Joint, {"evidence_weight": -1.0}, ValueError, "evidence_weight must be"),
    (sf.Product, {"evidence_weight": -1.0}, ValueError, "evidence_weight must be"),
    (sf.Joint, {"evidence_weight": np.inf}, ValueError, "evidence_weight must be a finite number"),
    (sf.Joint, {"sweeps": 0}, ValueError, "sweeps must be between 1 and 1000"),
    (sf.Product, {"sweeps": "3"}, TypeError, "sweeps must be an integer, got str"),
    (sf.Paper, {"sweeps": 0}, ValueError, "sweeps must be between 1 and 1000"),
    (sf.Joint, {"proposals": -1}, ValueError, "proposals must be between 0"),
    (sf.Joint, {"balance": 1001}, ValueError, "balance must be between 0 and 1000"),
    (sf.Product, {"normalisation": "platt"}, ValueError, "normalisation must be one of 'softmax', 'minmax', 'none'"),
    (sf.Paper, {"normalisation": "platt"}, ValueError, "normalisation must be one of 'softmax', 'minmax', 'none'"),
    (sf.Joint, {"beta": -1.0}, ValueError, "beta must be"),
    (sf.Product, {"beta": np.nan}, ValueError, "beta must be a finite number"),
    (sf.Paper, {"beta": "5"}, TypeError, "beta must be a number, got str"),
]


@pytest.mark.parametrize(("method", "options", "error", "message"), METHODS)
def test_an_unusable_option_of_a_method_is_an_error_when_it_is_written_down(method, options, error, message):
    with pytest.raises(error, match=message):
        method(**options)


PARTITIONS = [
    (ZEROS, None, ValueError, "log_partition needs the beta it was computed with"),
    (1.0, 1.0, TypeError, "log_partition must be a pair"),
    ((), 1.0, TypeError, "log_partition must be a pair"),
    ((np.ones(3), np.ones(3)), 1, ValueError, "log_partition must hold 4"),
    ((ZEROS[0] * np.nan, ZEROS[1]), 1.0, ValueError, "log_partition must hold 4"),
    (ZEROS, 1.0, ValueError, "log_partition is less than the candidates"),
]


@pytest.mark.parametrize("method", ["joint", "product"])
@pytest.mark.parametrize(("partition", "beta", "error", "message"), PARTITIONS)
def test_unusable_partition_sums_are_an_error(partition, beta, error, message, method):
    with pytest.raises(error, match=message):
        sf.refine(sf.TopK(Ranking(*GOOD), log_partition=partition, beta=beta), KG1, KG2, method=method)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ([1.5, 0.0], r"normalisation='none' needs probabilities in \[0, 1\]"),
        ([0.5, -0.1], r"normalisation='none' needs probabilities in \[0, 1\]"),
        ([0.8, 0.7], "normalisation='none' needs rows that sum to at most 1"),
    ],
)
def test_given_probabilities_must_be_probabilities(row, message):
    with pytest.raises(ValueError, match=message):
        sf.refine(scores(2, row), KG1, KG2, method=sf.Product(normalisation="none"))


@pytest.mark.parametrize(
    ("kg1", "kg2", "error", "message"),
    [
        ([[0, 0, 1]], KG2, TypeError, "kg1 must be a KG, got list"),
        (KG1, None, TypeError, "kg2 must be a KG, got NoneType"),
        (sf.KG([], 4, 1), KG2, ValueError, "kg1 has no triples"),
        (KG1, sf.KG([], 3, 1), ValueError, "kg2 has no triples"),
        (KG2, KG1, ValueError, r"forward\.indices must have shape \(3, k\)"),
        (KG1, sf.KG([[0, 0, 1]]), ValueError, r"forward\.indices holds 2, but there are only 2 targets"),
    ],
)
def test_graphs_that_do_not_fit_are_an_error(kg1, kg2, error, message):
    with pytest.raises(error, match=message):
        sf.refine(GOOD, kg1, kg2)


NAN = Candidates(Ranking(*scores(0, [np.nan, 0])))
FLOAT = Candidates(Ranking(INDICES * 1.0, SCORES))
TWICE = Candidates(Ranking(*indices(0, [1, 1])))
HIGH = Candidates(Ranking(INDICES + 1, SCORES), BOTH.backward)
BASELINES = [
    ("mutual_nearest", Candidates(BOTH.forward), {}, ValueError, "mutual_nearest needs .* both directions"),
    ("mutual_nearest", HIGH, {}, ValueError, r"forward\.indices holds 3"),
    ("mutual_nearest", BOTH, {"seeds": [[0, 3]]}, ValueError, r"seeds\[:, 1\] holds 3"),
    ("mutual_nearest", BOTH, {"seeds": [[0, 1], [0, 2]]}, ValueError, "seeds links source entity 0 2 times"),
    ("similarity_threshold", BOTH, {"threshold": "high"}, TypeError, "threshold must be a number"),
    ("similarity_threshold", BOTH, {"threshold": np.nan}, ValueError, "threshold must be a finite number"),
    ("similarity_threshold", NAN, {"threshold": 0.5}, ValueError, r"forward\.scores\[0, 0\] is nan"),
    ("similarity_threshold", FLOAT, {"threshold": 0.5}, TypeError, r"forward\.indices must hold integers"),
    ("one_to_one", TWICE, {"threshold": 0.5}, ValueError, r"forward\.indices\[0\] holds candidate 1 twice"),
    ("one_to_one", BOTH, {"threshold": None}, TypeError, "threshold must be a number"),
    ("one_to_one", BOTH, {"threshold": 0, "seeds": [[-1, 0]]}, ValueError, r"seeds\[:, 0\] holds -1"),
    ("one_to_one", BOTH, {"threshold": 0, "seeds": [[4, 0]]}, ValueError, r"seeds\[:, 0\] holds 4"),
    ("one_to_one", BOTH, {"threshold": 0, "previous": [[4, 0]]}, ValueError, r"previous\[:, 0\] holds 4"),
    ("one_to_one", BOTH, {"threshold": 0, "previous": [[0, -1]]}, ValueError, r"previous\[:, 1\] holds -1"),
    ("one_to_one", BOTH, {"threshold": 0, "previous": [0, 1]}, ValueError, "previous must have shape"),
]


@pytest.mark.parametrize(("baseline", "given", "options", "error", "message"), BASELINES)
def test_unusable_input_of_a_baseline_is_an_error(baseline, given, options, error, message):
    with pytest.raises(error, match=message):
        getattr(sf, baseline)(given, **options)


# Everything is linked with everything: minutes of work, of which one kernel does nearly all.
LONG_CALL = """
import signal, sys
import numpy as np
import stea_fast as sf
signal.signal(signal.SIGINT, signal.default_int_handler)
n, k, options = 600, 30, {"backend": sys.argv[1], "n_threads": 2}
heads, tails = np.meshgrid(np.arange(n), np.arange(n))
kg, small = sf.KG(np.stack([heads.ravel(), 0 * heads.ravel(), tails.ravel()], axis=1)), sf.KG([[0, 0, 1]])
sf.refine(([[0, 1], [1, 0]], [[1, 0], [1, 0]]), small, small, method="product", **options)  # compiles what is compiled
print("started", flush=True)
if sys.argv[2] == "relation_counts":
    anything = np.tile(np.arange(n, dtype=np.int32), n), np.full(n * n, 1 / n, dtype=np.float32)
    beliefs = sf.Beliefs(n * np.arange(n + 1), *anything)
    sf.align_relations(kg, kg, beliefs, beliefs, **options)
else:
    candidates = (np.arange(n)[:, None] + np.arange(k)) % n, np.tile(np.linspace(1, 0, k), (n, 1))
    method = sf.Product(sweeps=1000)
    sf.refine(candidates, kg, kg, relations=sf.RelationAlignment.uniform(kg, kg), method=method, **options)
print("finished", flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("backend", "kernel"), [("native", "evidence"), ("native", "relation_counts"), ("numba", "evidence")]
)
def test_ctrl_c_ends_a_long_call(backend, kernel):
    if not sf.backends()[backend].usable:
        pytest.skip(sf.backends()[backend].detail)
    with subprocess.Popen(
        [sys.executable, "-c", LONG_CALL, backend, kernel],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=Path(sf.__file__).parents[1],
    ) as process:
        try:
            assert process.stdout.readline() == "started\n"
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(1.0)  # inside the kernel by now
            process.send_signal(signal.SIGINT)
            output, errors = process.communicate(timeout=30)
        finally:
            process.kill()
    assert output == ""
    assert errors.rstrip().endswith("KeyboardInterrupt")
    assert f"in {kernel}" in errors
