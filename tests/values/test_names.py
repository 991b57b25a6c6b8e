"""Candidates by names: what comparing all pairs would find, whatever the names are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stea_fast import _backends
from stea_fast.values import Labels, name_candidates, sparse_kernels, unique_matches
from stea_fast.values.normalising import normalised
from stea_fast.values.tokens import MAX_CHARACTERS, character_grams
from stea_fast.values.vectors import tfidf

WORDS = st.text(alphabet="abcé中文 -", max_size=8)
LABELS = st.lists(WORDS, max_size=12)


def grams_of(text):
    """The obvious definition."""
    found = []
    for word in text.split():
        padded = f" {word} "
        found += [padded[i : i + n] for n in (2, 3, 4) for i in range(len(padded) - n + 1)]
    return found


def brute_force(labels1, labels2, k, min_score):
    """All pairs of names, one by one."""
    sides = [
        [normalised([text], "letters")[0] or normalised([text], "text")[0] for text in side]
        for side in (labels1, labels2)
    ]
    distinct = [sorted({text for text in side if text}) for side in sides]
    rows = [grams_of(text) for side in distinct for text in side]
    frequency: dict[str, int] = {}
    for row in rows:
        for gram in set(row):
            frequency[gram] = frequency.get(gram, 0) + 1

    def vector(text):
        grams = grams_of(text)
        weights = {g: grams.count(g) * (np.log((1 + len(rows)) / (1 + frequency[g])) + 1) for g in set(grams)}
        norm = np.sqrt(sum(w * w for w in weights.values())) or 1.0
        return {gram: weight / norm for gram, weight in weights.items()}

    vectors = [[vector(text) for text in side] for side in sides]
    table = np.array([[sum(w * b.get(g, 0.0) for g, w in a.items()) for b in vectors[1]] for a in vectors[0]])
    table = table.reshape(len(labels1), len(labels2))
    return np.where(table >= min_score, table, 0.0)


def is_top(ranking, table, k):
    """The scores are the k largest of every row, and belong to the targets beside them."""
    for indices, scores, row in zip(ranking.indices, ranking.scores, table, strict=True):
        best = np.sort(row[row > 0])[::-1][:k]
        assert (indices >= 0).sum() == len(best)
        np.testing.assert_allclose(scores[: len(best)], best, atol=1e-5)
        np.testing.assert_allclose(row[indices[: len(best)]], best, atol=1e-5)


@settings(max_examples=60, deadline=None)
@given(LABELS, LABELS, st.integers(1, 5))
def test_candidates_are_the_best_of_all_pairs_in_both_directions(labels1, labels2, k):
    found = name_candidates(labels1, labels2, k=k, min_score=0.05)
    table = brute_force(labels1, labels2, k, 0.05)
    is_top(found.forward, table, k)
    is_top(found.backward, table.T, k)


def many_names(count, seed):
    rng = np.random.default_rng(seed)
    words = ["".join(rng.choice(list("abcdefgh"), size=rng.integers(2, 7))) for _ in range(count // 4)]
    return [" ".join(rng.choice(words, size=rng.integers(1, 4))) for _ in range(count)]


@pytest.mark.parametrize("n_threads", [1, 3])
def test_compiled_and_scipy_kernels_give_the_same_bits(n_threads):
    """With enough names that there are long lists, which are not walked to their end."""
    if not _backends.status("native").usable:
        pytest.skip("the native module is not built")
    tokens = character_grams(many_names(3000, 0), many_names(5000, 1))
    native, scipy = sparse_kernels._native(), sparse_kernels.SCIPY
    counted, expected = native.token_counts(*tokens, n_threads), scipy.token_counts(*tokens, 1)
    for side, other in zip(counted, expected, strict=True):
        for part, other_part in zip(side, other, strict=True):
            np.testing.assert_array_equal(part, other_part)
    queries, targets = tfidf(*tokens, n_threads)
    assert np.bincount(targets.columns).max() > 1000
    results = [
        kernels.cosine_topk(queries.arrays, targets.arrays, targets.num_columns, 7, 0.05, n_threads)
        for kernels in (native, scipy)
    ]
    for part, other_part in zip(*results, strict=True):
        np.testing.assert_array_equal(part, other_part)


def test_a_budget_leaves_what_shares_the_rarest_parts():
    from stea_fast import _core

    queries, targets = tfidf(*character_grams(many_names(500, 0), [*many_names(500, 0)[::-1], "zzz"]), 1)
    arguments = (queries.arrays, targets.arrays, targets.num_columns, 1, 0.05)
    whole, cut = _core.cosine_topk(*arguments, 10**9, 2), _core.cosine_topk(*arguments, 300, 2)
    assert whole[2] == 0 < cut[2]
    assert (cut[1] <= whole[1]).all()
    assert (cut[1] == whole[1]).mean() > 0.5


def test_an_entity_with_many_names_does_not_crowd_out_the_others():
    names = ["berlin", "berlin a", "berlin b", "berlin c", "berlin d", "berlino"]
    target = Labels([0, 0, 0, 0, 0, 1], names)
    found = name_candidates(["berlin"], target, k=2)
    assert found.forward.indices.tolist() == [[0, 1]]
    assert found.forward.scores[0, 0] == pytest.approx(1.0)
    assert found.backward.indices[:, 0].tolist() == [0, 0]


def test_one_label_shared_by_all_stays_small():
    found = name_candidates(["same name"] * 20_000, ["Same  NAME"] * 20_000, k=3)
    assert (found.forward.indices == [0, 1, 2]).all()
    np.testing.assert_allclose(found.forward.scores, 1.0, atol=1e-6)


def test_bad_labels_are_no_candidates_or_fall_back():
    labels = ["", None, "   ", "\0", "!!!", "\ud800x", "a" * 2_000_000, "شارع", "a" + "\u0301\u0327" * 100_000]
    found = name_candidates(labels, labels, k=1)
    assert found.forward.indices[:, 0].tolist() == [-1, -1, -1, -1, 4, 5, 6, 7, 8]


def test_long_names_are_compared_by_their_beginning():
    name = "ab" * MAX_CHARACTERS
    assert name_candidates([name], [name + "tail"], k=1).forward.scores[0, 0] == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([1], r"text\[0\] must be a string or None, got int"),
        ("abc", "sequence of strings, got str"),
    ],
)
def test_labels_of_another_type_are_refused(labels, message):
    with pytest.raises(TypeError, match=message):
        name_candidates(labels, ["a"])


def test_labels_must_fit_their_entities():
    with pytest.raises(ValueError, match="one id per text, 2"):
        Labels([0], ["a", "b"])
    with pytest.raises(ValueError, match="holds 5, but there are only 3 entities"):
        Labels([5], ["a"], 3)


def test_unique_equal_names_by_tier():
    labels1 = ["Zürich", "C++", "O'Hara", "twice", "twice", "Straße", None]
    labels2 = ["ZURICH", "c++", "O Hara", "twice", "other", "STRASSE", ""]
    found = unique_matches(labels1, labels2)
    assert found.pairs.tolist() == [[0, 0], [1, 1], [2, 2], [5, 5]]
    assert found.tier.tolist() == [2, 0, 1, 0]
    assert found.counts == {"text": 2, "words": 1, "letters": 1}


def test_names_that_lead_to_two_entities_match_none():
    assert len(unique_matches(Labels([0, 0], ["a", "b"]), ["a", "b"]).pairs) == 0
