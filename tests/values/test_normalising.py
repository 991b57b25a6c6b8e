"""One spelling of texts."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stea_fast.values import TIERS, normalised


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("  Hello,\tWORLD! ", ("hello, world!", "hello world", "hello world")),
        ("Élodie", ("élodie", "élodie", "elodie")),
        ("E\u0301lodie", ("élodie", "élodie", "elodie")),
        ("ＡＢＣ１", ("abc1", "abc1", "abc1")),
        ("Straße", ("strasse", "strasse", "strasse")),
        ("soft\u00adhyphen \u200fשלום", ("softhyphen שלום", "softhyphen שלום", "softhyphen שלום")),
        ("が", ("が", "が", "が")),
        ("हिन्दी", ("हिन्दी", "हिन्दी", "हिन्दी")),
        ("a\nb\0c", ("a b c", "a b c", "a b c")),
        ("\ud800", ("\ufffd", "", "")),
        ("…", ("...", "", "")),
    ],
)
def test_what_every_tier_leaves(text, expected):
    assert tuple(normalised([text], tier)[0] for tier in TIERS) == expected


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text(max_size=10)), st.sampled_from(TIERS))
def test_many_texts_are_each_treated_alone(texts, tier):
    together = normalised(texts, tier)
    assert together == [normalised([text], tier)[0] for text in texts]
    for text in together:
        assert text == text.strip() and "  " not in text and "\n" not in text
        assert unicodedata.is_normalized("NFC", text)


def test_a_pile_of_marks_is_cut():
    assert len(normalised(["a" + "\u0327\u0301" * 200_000], "text")[0]) <= 32
