"""From similarity to probability: softmax, MinMax, fitting β, partition sums."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from stea_fast.refinement.temperature import (
    MAX_BETA,
    EmbeddingBlocks,
    beta_for_confidence,
    fit_beta,
    log_partition,
    log_sum_exp,
    minmax,
    softmax,
)

NONE = -np.inf


def sampled(beta: float, rows: int = 4000, columns: int = 12, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Scores, and a true column for every row drawn from softmax(beta * scores)."""
    rng = np.random.default_rng(seed)
    scores = rng.uniform(-1, 1, (rows, columns))
    cumulative = softmax(scores, beta).cumsum(axis=1)
    return scores, (rng.random((rows, 1)) > cumulative).sum(axis=1).clip(max=columns - 1)


def minus_log_likelihood(beta: float, scores: np.ndarray, truth: np.ndarray) -> float:
    scaled = beta * scores
    largest = scaled.max(axis=1)
    total = largest + np.log(np.exp(scaled - largest[:, None]).sum(axis=1))
    return float((total - scaled[np.arange(len(truth)), truth]).sum())


@pytest.mark.parametrize("beta", [0.5, 3.0, 20.0])
def test_the_beta_that_made_the_links_is_found(beta):
    assert fit_beta([sampled(beta)]) == pytest.approx(beta, rel=0.06)


@pytest.mark.parametrize("beta", [0.3, 1.0, 7.0, 60.0])
def test_the_fit_is_the_maximum_of_the_likelihood(beta):
    scores, truth = sampled(beta, rows=300, seed=1)
    best = minimize_scalar(
        minus_log_likelihood, bounds=(0, 500), args=(scores, truth), method="bounded", options={"xatol": 1e-8}
    )
    assert fit_beta([(scores, truth)]) == pytest.approx(best.x, rel=1e-4)


def test_blocks_give_the_same_beta_as_one_block():
    scores, truth = sampled(5.0, rows=500)
    blocks = [(scores[begin : begin + 77], truth[begin : begin + 77]) for begin in range(0, 500, 77)]
    assert fit_beta(blocks) == pytest.approx(fit_beta([(scores, truth)]), rel=1e-6)


def test_beta_grows_to_the_limit_where_the_best_candidate_is_always_right():
    scores, _ = sampled(1.0, rows=50)
    assert fit_beta([(scores, scores.argmax(axis=1))]) == pytest.approx(MAX_BETA, rel=1e-3)


def test_beta_falls_to_zero_where_similarity_misleads():
    scores, _ = sampled(1.0, rows=50)
    assert fit_beta([(scores, scores.argmin(axis=1))]) == pytest.approx(0.0, abs=1e-6)


def test_columns_without_a_candidate_do_not_change_the_fit():
    scores, truth = sampled(4.0, rows=200)
    padded = np.concatenate([np.full((200, 3), NONE), scores], axis=1)
    assert fit_beta([(padded, truth + 3)]) == pytest.approx(fit_beta([(scores, truth)]), rel=1e-9)


def test_embedding_blocks_are_the_inner_products_of_the_linked_sources_with_all_targets():
    rng = np.random.default_rng(2)
    emb1, emb2 = rng.normal(size=(30, 8)), rng.normal(size=(40, 8))
    links = np.stack([rng.permutation(30)[:20], rng.permutation(40)[:20]], axis=1)
    blocks = EmbeddingBlocks(emb1, emb2, links, block=7)
    whole = (emb1 @ emb2.T)[links[:, 0]]
    np.testing.assert_allclose(np.concatenate([scores for scores, _ in blocks]), whole)
    np.testing.assert_array_equal(np.concatenate([truth for _, truth in blocks]), links[:, 1])
    assert [len(truth) for _, truth in blocks] == [7, 7, 6]
    assert fit_beta(blocks) == pytest.approx(fit_beta([(whole, links[:, 1])]), abs=1e-6)


def test_embeddings_and_blocks_may_be_torch_tensors():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(3)
    emb1, emb2 = rng.normal(size=(6, 4)), rng.normal(size=(5, 4))
    scores, truth = sampled(4.0, rows=100)
    assert fit_beta([(torch.tensor(scores), torch.tensor(truth))]) == fit_beta([(scores, truth)])
    rows, columns = log_partition(torch.tensor(emb1, requires_grad=True), torch.tensor(emb2), 2.0)
    expected = log_partition(emb1, emb2, 2.0)
    assert isinstance(rows, torch.Tensor) and isinstance(columns, torch.Tensor)
    np.testing.assert_array_equal(rows.numpy(), expected[0])
    np.testing.assert_array_equal(columns.numpy(), expected[1])


def test_softmax_rows_are_exponentials_that_sum_to_one():
    scores = np.array([[1.0, 0.0], [0.2, 0.5]])
    expected = np.exp(3.0 * scores)
    np.testing.assert_allclose(softmax(scores, 3.0), expected / expected.sum(axis=1, keepdims=True))


def test_softmax_does_not_overflow():
    probs = softmax(np.array([[900.0, 899.0], [-900.0, -901.0]]), 100.0)
    np.testing.assert_allclose(probs, [[1, 0], [1, 0]], atol=1e-40)


def test_a_missing_candidate_has_probability_zero_and_a_row_without_any_is_all_zero():
    probs = softmax(np.array([[NONE, 0.0, 0.0], [NONE, NONE, NONE]]), 2.0)
    np.testing.assert_allclose(probs, [[0, 0.5, 0.5], [0, 0, 0]])


@pytest.mark.filterwarnings("error")
def test_beta_zero_shares_the_mass_among_the_present_candidates():
    np.testing.assert_allclose(softmax(np.array([[3.0, 1.0, NONE]]), 0.0), [[0.5, 0.5, 0]])


def test_a_partition_over_all_targets_leaves_mass_outside_the_candidates():
    sims = np.array([[0.9, 0.5, 0.1, -0.3]])
    everything = softmax(sims, 2.0)
    probs = softmax(sims[:, :2], 2.0, np.log(np.exp(2.0 * sims).sum(axis=1)))
    np.testing.assert_allclose(probs, everything[:, :2])
    assert probs.sum() == pytest.approx(0.832, abs=1e-3)


def test_minmax_scales_each_row_to_its_own_range_and_normalises():
    probs = minmax(np.array([[0.8, 0.6, 0.4], [-1.0, -1.5, NONE]], dtype=np.float32))
    np.testing.assert_allclose(probs, [[2 / 3, 1 / 3, 0], [1, 0, 0]], atol=1e-6)


def test_minmax_of_equal_scores_is_uniform_and_of_no_scores_zero():
    probs = minmax(np.array([[0.3, 0.3, NONE], [NONE, NONE, NONE], [7.0, NONE, NONE]]))
    np.testing.assert_allclose(probs, [[0.5, 0.5, 0], [0, 0, 0], [1, 0, 0]])


def test_log_sum_exp_is_stable_and_minus_infinity_for_nothing():
    values = log_sum_exp(np.array([[1000.0, 1000.0], [NONE, NONE], [0.0, NONE]]))
    np.testing.assert_allclose(values, [1000 + np.log(2), NONE, 0.0])


@pytest.mark.parametrize("block", [1, 3, 1000])
def test_partition_sums_run_over_all_targets_and_over_all_sources(block):
    rng = np.random.default_rng(4)
    emb1, emb2 = rng.normal(size=(10, 5)).astype(np.float32), rng.normal(size=(7, 5)).astype(np.float32)
    exponentials = np.exp(1.7 * (emb1.astype(np.float64) @ emb2.T.astype(np.float64)))
    rows, columns = log_partition(emb1, emb2, 1.7, block=block)
    np.testing.assert_allclose(rows, np.log(exponentials.sum(axis=1)), rtol=1e-5)
    np.testing.assert_allclose(columns, np.log(exponentials.sum(axis=0)), rtol=1e-5)


@pytest.mark.parametrize("confidence", [0.3, 0.6, 0.95])
def test_beta_for_confidence_reaches_the_confidence(confidence):
    scores = np.random.default_rng(5).uniform(0, 1, (500, 10))
    beta = beta_for_confidence(scores, confidence)
    assert softmax(scores, beta).max(axis=1).mean() == pytest.approx(confidence, abs=1e-3)


def test_beta_for_confidence_looks_only_at_rows_with_a_choice():
    scores = np.random.default_rng(6).uniform(0, 1, (200, 4))
    alone = np.full((300, 4), NONE)
    alone[:, 0] = 0.5
    mixed = np.concatenate([alone, scores])
    assert beta_for_confidence(mixed, 0.7) == beta_for_confidence(scores, 0.7)
    assert beta_for_confidence(alone, 0.7) == 1.0


@pytest.mark.parametrize(
    ("blocks", "error", "message"),
    [
        ((block for block in [sampled(1.0, rows=5)]), TypeError, "blocks .* several times"),
        (sampled(1.0, rows=5), TypeError, r"blocks must yield pairs \(scores, truth\)"),
        ([], ValueError, "blocks hold no links"),
        ([(np.eye(2), np.array([0, 2]))], ValueError, "truth of blocks holds 2"),
        ([(np.eye(2), np.array([0, -1]))], ValueError, "truth of blocks holds -1"),
        ([(np.eye(2), np.array([0.0, 1.0]))], TypeError, "truth of blocks must hold integers"),
        ([(np.eye(2), np.array([0]))], ValueError, "blocks must yield scores"),
        ([(np.array([[0.5, np.nan]]), np.array([0]))], ValueError, "blocks hold scores that are NaN"),
        ([(np.array([[0.5, np.inf]]), np.array([0]))], ValueError, "blocks hold scores that are .* infinite"),
        ([(np.array([[0.5, NONE]]), np.array([1]))], ValueError, "truth of blocks points to a score of -inf"),
    ],
)
def test_blocks_that_cannot_be_fitted_are_an_error(blocks, error, message):
    with np.errstate(invalid="ignore"), pytest.raises(error, match=message):
        fit_beta(blocks)


@pytest.mark.parametrize(
    ("emb1", "emb2", "beta", "block", "error", "message"),
    [
        (np.ones((3, 2)), np.ones((3, 4)), 1.0, 1, ValueError, "emb1 and emb2 .* got 2 and 4"),
        (np.ones(3), np.ones((3, 2)), 1.0, 1, ValueError, "emb1 must be a matrix"),
        (np.ones((3, 2)), np.full((3, 2), np.nan), 1.0, 1, ValueError, "emb2 must be a matrix of finite"),
        (np.array([["a"]]), np.ones((3, 1)), 1.0, 1, TypeError, "emb1 must hold numbers"),
        (np.ones((3, 2)), np.ones((3, 2)), -1.0, 1, ValueError, "beta must be"),
        (np.ones((3, 2)), np.ones((3, 2)), "1", 1, TypeError, "beta must be a number, got str"),
        (np.ones((3, 2)), np.ones((3, 2)), 1.0, 0, ValueError, "block must be between 1"),
    ],
)
def test_partition_sums_of_unusable_input_are_an_error(emb1, emb2, beta, block, error, message):
    with pytest.raises(error, match=message):
        log_partition(emb1, emb2, beta, block=block)
