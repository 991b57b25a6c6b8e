"""Pairs of similar values, by kind."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stea_fast.values import KINDS, kind_of, similar_values


def pairs(found):
    return {
        (int(a), int(b)): round(float(s), 2)
        for a, b, s in zip(found.index1, found.index2, found.similarity, strict=True)
    }


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1.5", "2e3", "-7", "1.000.000"] * 3 + ["3"] * 30, "number"),
        (["3,14", "2,5", "7"], "number"),
        (["1990", "1991-05", "2001"], "date"),
        (["1990-05-03T12:00:00+02:00", "1990-05-03"], "date"),
        (["http://a.org/x", "https://b.org/"], "code"),
        (["00123", "04567", "98765"], "code"),
        (["9783161484100", "9780306406157"], "code"),
        (["true", "false", "1"], "boolean"),
        (["Berlin", "Paris"], "string"),
        (["a long description of a thing in many words"], "text"),
        (["", "  "], "string"),
        (["NaN", "1e400", "inf"], "string"),
        ([], "string"),
    ],
)
def test_the_values_say_what_they_are(values, kind):
    assert kind_of(values) == kind


def test_numbers_match_within_a_relative_tolerance():
    found = similar_values(["100", "1,000.0", "5"], ["100.0", "100.4", "1000", "7"], "number")
    assert pairs(found) == {(0, 0): 1.0, (0, 1): 0.6, (1, 2): 1.0}


def test_a_decimal_comma_is_read_where_it_must_be_one():
    assert pairs(similar_values(["3,14", "2,5"], ["3.14"], "number")) == {(0, 0): 1.0}


def test_dates_match_up_to_the_coarser_precision():
    found = similar_values(["1990-05-03"], ["1990", "1990-05", "1990-05-03", "1990-05-03T10:00:00Z", "1991"], "date")
    assert pairs(found) == {(0, 0): 0.5, (0, 1): 0.7, (0, 2): 1.0, (0, 3): 0.9}


def test_times_of_two_zones_are_one_moment():
    assert pairs(similar_values(["2000-01-01T01:00:00+01:00"], ["2000-01-01T00:00:00Z"], "date")) == {(0, 0): 1.0}


def test_a_zone_may_lead_into_another_month_or_year():
    first = ["2001-03-01T01:00:00+02:00", "-0001-01-01T00:30:00+01:00"]
    second = ["2001-02-28", "-0002-12-31T23:30:00Z", "2001-02"]
    assert pairs(similar_values(first, second, "date")) == {(0, 0): 0.9, (0, 2): 0.7, (1, 1): 1.0}


def test_days_next_to_each_other_are_similar_across_months():
    assert pairs(similar_values(["1990-02-28"], ["1990-03-01", "1990-03-04"], "date")) == {(0, 0): 0.67}


def test_what_is_no_date_is_compared_as_a_string():
    found = similar_values(
        ["1990-02-30", "unknown", "1990-13"], ["Unknown", "1990-02-30", "1990", "1990-03-01"], "date"
    )
    assert pairs(found) == {(0, 1): 1.0, (1, 0): 1.0}


def test_codes_and_iris_match_in_one_spelling():
    found = similar_values(["http://www.a.org/X/", "978-3-16"], ["https://a.org/x", "978316", "978317"], "code")
    assert pairs(found) == {(0, 0): 1.0, (1, 1): 1.0}


def test_booleans_match_by_their_truth():
    assert pairs(similar_values(["true", "0"], ["1", "false"], "boolean")) == {(0, 0): 1.0, (1, 1): 1.0}


def test_texts_match_by_their_rare_words():
    first = ["the library for images of the sky", "tools for the music of the world"]
    second = ["music of the world: the tools", "images of the sky, a library", "other"]
    assert set(pairs(similar_values(first, second, "text"))) == {(0, 1), (1, 0)}


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.sampled_from(["1990", "1990-01", "1.0", "1", "male", "Male", "x" * 50, "\ud800", "\0", "1e400", ""]),
        max_size=40,
    ),
    st.lists(st.sampled_from(["1990", "1990-01-01", "1", "01", "male", "MALE ", "NaN", ""]), max_size=40),
    st.sampled_from(KINDS),
    st.integers(1, 3),
)
def test_no_value_is_in_more_pairs_than_allowed(values1, values2, kind, most):
    found = similar_values(values1, values2, kind, max_matches=most)
    assert np.bincount(found.index1, minlength=1).max() <= most
    assert np.bincount(found.index2, minlength=1).max() <= most
    assert ((found.similarity > 0) & (found.similarity <= 1)).all()
    assert len(set(zip(found.index1.tolist(), found.index2.tolist(), strict=True))) == len(found.index1)


def test_nearest_numbers_are_those_of_all_pairs():
    rng = np.random.default_rng(0)
    first, second = (np.unique(np.round(rng.uniform(1, 100, size=300), 2)) for _ in range(2))
    found = similar_values([str(v) for v in first], [str(v) for v in second], "number", max_matches=500, tolerance=0.02)
    distance = np.abs(first[:, None] - second) / (0.02 * first[:, None])
    expected = {(int(a), int(b)) for a, b in zip(*np.nonzero(1 - distance >= 0.5), strict=True)}
    assert set(pairs(found)) == expected
