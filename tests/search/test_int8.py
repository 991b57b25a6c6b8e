"""The search by 8-bit whole numbers gives the bits of the search in double precision, whatever it is given."""

from __future__ import annotations

import signal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stea_fast as sf
from stea_fast import _backends
from stea_fast.refinement.temperature import log_sum_exp
from stea_fast.search.embeddings import Embeddings, Scoring
from stea_fast.search.exact import SearchRequest

if not _backends.status("native").usable:
    pytest.skip(_backends.status("native").detail, allow_module_level=True)

from stea_fast import _core
from stea_fast.search.engines import int8

METRICS = ["cosine", "ip", "l2"]
TIERS = ["baseline", "avx2", "avxvnni", "avx512vnni"]
KINDS = ["random", "whole", "duplicated", "clustered", "zeros", "uneven", "sparse", "tiny", "one row"]


@pytest.fixture(autouse=True)
def even_small_ones(monkeypatch):
    """The search by whole numbers takes small problems too, on any processor."""
    monkeypatch.setattr(int8, "LEAST_WORK", 0.0)
    monkeypatch.setattr(int8, "int8_tier", lambda: _core.int8_tiers(False)[-1])


def vectors(kind, shape, rng):
    values = rng.standard_normal(shape)
    if kind == "whole":
        return rng.integers(-1, 2, size=shape).astype(np.float32)
    if kind == "duplicated":
        values = values[rng.integers(min(4, shape[0]), size=shape[0])]
    elif kind == "clustered":
        values = np.sign(values[:1]) + 1e-4 * values
    elif kind == "zeros":
        values[rng.random(shape[0]) < 0.4] = 0.0
    elif kind == "uneven":
        values *= 10.0 ** rng.uniform(-4, 4, size=(shape[0], 1))
    elif kind == "sparse":
        values *= rng.random(shape) < 0.1
    elif kind == "tiny":
        values *= 1e-39  # denormal numbers
    elif kind == "one row":
        values = values[:1]
    return values.astype(np.float32)


def ranked(emb1, emb2, k, csls, metric, engine="native", **options):
    found = sf.topk(emb1, emb2, k, csls, metric, engine=engine, **options)
    return [np.asarray(array) for side in (found.forward, found.backward) for array in side]


def assert_same(found, expected):
    for array, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(array, other)


def engine_used(monkeypatch):
    """Notes which searches by whole numbers are made."""
    made = []
    search = int8.Int8Search.rank

    def rank(self, request, known):
        made.append(request)
        return search(self, request, known)

    monkeypatch.setattr(int8.Int8Search, "rank", rank)
    return made


@settings(max_examples=60)
@given(
    n1=st.integers(1, 150), n2=st.integers(1, 150), width=st.integers(1, 40), k=st.integers(1, 14),
    csls=st.integers(0, 12), metric=st.sampled_from(METRICS), kind=st.sampled_from(KINDS), seed=st.integers(0, 1000),
)  # fmt: skip
def test_it_finds_what_the_reference_finds(n1, n2, width, k, csls, metric, kind, seed):
    rng = np.random.default_rng(seed)
    emb1, emb2 = vectors(kind, (n1, width), rng), vectors(kind, (n2, width), rng)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(int8, "LEAST_WORK", 0.0)
        patch.setattr(int8, "int8_tier", lambda: _core.int8_tiers(False)[-1])
        found = ranked(emb1, emb2, k, csls, metric)
    assert_same(found, ranked(emb1, emb2, k, csls, metric, "reference"))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("csls", [0, 10])
@pytest.mark.parametrize("metric", METRICS)
def test_it_finds_it_in_larger_problems(metric, csls, kind, monkeypatch):
    rng = np.random.default_rng(1)
    emb1, emb2 = vectors(kind, (700, 70), rng), vectors(kind, (900, 70), rng)
    made = engine_used(monkeypatch)
    found = ranked(emb1, emb2, 10, csls, metric)
    assert len(made) == (2 if csls else 1)
    assert_same(found, ranked(emb1, emb2, 10, csls, metric, "reference"))


@pytest.mark.parametrize("dtypes", [("f2", "f4"), ("f4", "f8"), ("f8", "f8"), ("i1", "i1")])
def test_all_dtypes_and_layouts(dtypes, monkeypatch):
    rng = np.random.default_rng(2)
    emb1, emb2 = (
        np.asfortranarray((5 * rng.standard_normal((n, 33))).astype(dtype))
        for n, dtype in zip((300, 200), dtypes, strict=True)
    )
    made = engine_used(monkeypatch)
    found = ranked(emb1, emb2, 7, 4, "cosine")
    assert len(made) == 2
    assert_same(found, ranked(emb1, emb2, 7, 4, "cosine", "reference"))


def rank_by(tier, emb1, emb2, beta, n_threads=1):
    side1, side2 = Embeddings.numpy(emb1, "emb1"), Embeddings.numpy(emb2, "emb2")
    request = SearchRequest(side1, side2, Scoring.of("l2", side1, side2), 9, beta, lambda amount: None)
    found = int8.Int8Search(side1, side2, n_threads, tier).rank(request, None)
    return [*found.forward, *found.backward, *(found.log_partition or ())]


def skip_unless_usable(tier):
    if tier not in _core.int8_tiers(False):
        pytest.skip(f"this CPU does not run tier {tier}")


@pytest.mark.parametrize("beta", [None, 2.0])
@pytest.mark.parametrize("tier", TIERS[1:])
def test_tiers_give_the_same_bits(tier, beta):
    skip_unless_usable(tier)
    rng = np.random.default_rng(3)
    emb1, emb2 = 0.1 * rng.standard_normal((230, 101)), 0.1 * rng.standard_normal((170, 101))
    assert_same(rank_by(tier, emb1, emb2, beta), rank_by("baseline", emb1, emb2, beta))


@pytest.mark.parametrize("beta", [None, 2.0])
@pytest.mark.parametrize("n_threads", [2, 5])
def test_threads_change_no_bit(n_threads, beta):
    rng = np.random.default_rng(4)
    emb1, emb2 = 0.1 * rng.standard_normal((1100, 30)), 0.1 * rng.standard_normal((500, 30))
    tier = _core.int8_tiers(False)[-1]
    assert_same(rank_by(tier, emb1, emb2, beta, n_threads), rank_by(tier, emb1, emb2, beta))


@pytest.mark.parametrize("tier", TIERS)
def test_the_largest_sums_of_the_widest_vectors_fit(tier, monkeypatch):
    """Turned, a unit vector has components that are all as large as can be: so are the products."""
    skip_unless_usable(tier)
    monkeypatch.setattr(int8, "int8_tier", lambda: tier)
    width = int8.MOST_WIDTH
    emb1 = np.zeros((5, width), dtype=np.float32)
    emb1[np.arange(5), [0, 1, 0, width - 1, 7]] = [1, 2, -3, 4, 5]
    expected = np.sort(-np.sign(emb1 @ emb1.T), axis=1)
    forward = sf.topk(emb1, emb1, 5, 0).forward
    np.testing.assert_array_equal(forward.scores, -expected)


def test_wider_vectors_are_left_to_float32(monkeypatch):
    made = engine_used(monkeypatch)
    emb = np.random.default_rng(5).standard_normal((4, int8.MOST_WIDTH + 1)).astype(np.float32)
    np.testing.assert_array_equal(sf.topk(emb, emb, 1, 0).forward.indices[:, 0], np.arange(4))
    assert not made
    with pytest.raises(ValueError, match="between 1 and 65536 columns"):
        _core.Int8Panels(emb, np.ones(4), 8, 1, "baseline")


def around_one_centre(spread):
    """Forty sources, and three thousand targets close to each other."""
    rng = np.random.default_rng(6)
    centre = rng.standard_normal(48)
    emb1 = (centre + 0.7 * rng.standard_normal((40, 48))).astype(np.float32)
    return emb1, (centre + spread * rng.standard_normal((3000, 48))).astype(np.float32)


@pytest.mark.parametrize("csls", [0, 10])
@pytest.mark.parametrize("metric", METRICS)
def test_rows_that_8_bits_leave_open_are_settled_by_the_bounds_of_16(metric, csls, monkeypatch):
    emb1, emb2 = around_one_centre(0.01)
    expected = ranked(emb1, emb2, 5, csls, metric, "reference")
    certain, search = [], int8.Int8Search._search
    monkeypatch.setattr(
        int8.Int8Search, "_search", lambda self, *given: certain.append(given[2].certain) or search(self, *given)
    )
    monkeypatch.setattr(int8, "search_rows", lambda rows, *rest: pytest.fail(f"{len(rows)} rows in double precision"))
    assert_same(ranked(emb1, emb2, 5, csls, metric), expected)
    assert True in certain


@pytest.mark.parametrize("csls", [0, 10])
def test_rows_that_no_bounds_settle_are_searched_in_double_precision(csls):
    """Targets that differ by less than 16 bits can tell."""
    emb1, emb2 = around_one_centre(1e-6)
    assert_same(ranked(emb1, emb2, 5, csls, "cosine"), ranked(emb1, emb2, 5, csls, "cosine", "reference"))


@pytest.mark.parametrize("csls", [0, 10])
@pytest.mark.parametrize("kind", ["random", "duplicated", "zeros", "clustered"])
def test_columns_that_do_not_fit_in_memory_at_once_change_nothing(kind, csls, monkeypatch):
    rng = np.random.default_rng(13)
    emb1, emb2 = vectors(kind, (400, 30), rng), vectors(kind, (300, 30), rng)
    whole = sf.topk(emb1, emb2, 10, csls, beta=5.0)
    monkeypatch.setattr(int8, "PANEL_BYTES", 7 * 60)
    parts = sf.topk(emb1, emb2, 10, csls, beta=5.0)
    assert_same([*parts.forward, *parts.backward], [*whole.forward, *whole.backward])
    np.testing.assert_allclose(parts.log_partition[0], whole.log_partition[0], atol=1e-4)
    np.testing.assert_allclose(parts.log_partition[1], whole.log_partition[1], atol=1e-4)


def test_zero_vectors_are_searched_once(monkeypatch):
    rng = np.random.default_rng(12)
    emb1, emb2 = rng.standard_normal((600, 20)), rng.standard_normal((500, 20))
    emb1[::2] = 0.0
    searched, search_rows = [], int8.search_rows
    monkeypatch.setattr(int8, "search_rows", lambda rows, *rest: searched.append(len(rows)) or search_rows(rows, *rest))
    sf.topk(emb1, emb2, 10, 10)
    assert searched == [1, 1]


@pytest.mark.parametrize("csls", [0, 10])
def test_ordinary_rows_are_searched_once(csls, monkeypatch):
    rng = np.random.default_rng(11)
    emb1, emb2 = rng.standard_normal((900, 120)), rng.standard_normal((1100, 120))
    monkeypatch.setattr(int8, "search_rows", lambda rows, *rest: pytest.fail(f"{len(rows)} rows are searched again"))
    sf.topk(emb1, emb2, 10, csls)


def test_many_equal_targets_are_not_scored_one_by_one():
    emb2 = np.repeat(np.random.default_rng(7).standard_normal((3, 16)), 2000, axis=0)
    side = Embeddings.numpy(emb2, "emb2")
    redundant = int8._redundant(side, 10)
    assert redundant is not None and redundant.sum() == 3 * (2000 - 10)
    np.testing.assert_array_equal(np.flatnonzero(redundant == 0), np.r_[0:10, 2000:2010, 4000:4010])
    assert int8._redundant(Embeddings.numpy(emb2[::2000], "emb2"), 1) is None


def all_scores(emb1, emb2, csls):
    """Cosines, or CSLS scores, of all pairs."""
    unit1, unit2 = (emb / np.linalg.norm(emb, axis=1, keepdims=True) for emb in (emb1, emb2))
    cosines = unit1 @ unit2.T
    if csls == 0:
        return cosines
    means = (np.sort(matrix, axis=1)[:, -csls:].mean(axis=1) for matrix in (cosines, cosines.T))
    return 2.0 * cosines - next(means)[:, None] - next(means)


@pytest.mark.parametrize("csls", [0, 10])
@pytest.mark.parametrize("beta", [0.0, 3.0, 15.0])
def test_partition_sums_are_right_to_a_thousandth(beta, csls, monkeypatch):
    rng = np.random.default_rng(8)
    centres = rng.standard_normal((30, 256))
    emb1, emb2 = (centres[rng.integers(30, size=n)] + rng.standard_normal((n, 256)) for n in (500, 800))
    made = engine_used(monkeypatch)
    found = sf.topk(emb1, emb2, 10, csls, beta=beta)
    assert len(made) == (2 if csls else 1)
    scores = beta * all_scores(emb1, emb2, csls)
    np.testing.assert_allclose(found.log_partition[0], log_sum_exp(scores), atol=1e-3)
    np.testing.assert_allclose(found.log_partition[1], log_sum_exp(scores.T), atol=1e-3)


def test_partition_sums_that_8_bits_would_blur_are_left_to_float32(monkeypatch):
    made = engine_used(monkeypatch)
    rng = np.random.default_rng(9)
    emb1, emb2 = rng.standard_normal((90, 32)), rng.standard_normal((80, 32))
    found = sf.topk(emb1, emb2, 5, 0, beta=300.0)
    assert not made
    np.testing.assert_allclose(found.log_partition[0], log_sum_exp(300.0 * all_scores(emb1, emb2, 0)), atol=1e-3)


def test_ctrl_c_stops_the_search():
    rng = np.random.default_rng(10)
    emb = rng.standard_normal((12000, 256), dtype=np.float32)

    def search_for_a_while():
        for _ in range(100):
            sf.topk(emb, emb, 10, 10)

    def interrupt(number, frame):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with pytest.raises(KeyboardInterrupt):
            search_for_a_while()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_info_says_which_products_are_used(monkeypatch):
    monkeypatch.setattr(int8, "int8_tier", lambda: "avx512vnni")
    assert int8.describe().startswith("8-bit products, tier avx512vnni")
    monkeypatch.setattr(int8, "int8_tier", lambda: None)
    assert int8.describe().startswith("float32 blocks (")
