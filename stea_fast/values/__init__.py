"""Similarity of names and typed values: equal names, candidates by fuzzy names, numbers, dates, codes, texts."""

from stea_fast.values.candidates import name_candidates
from stea_fast.values.exact import UniqueMatches, unique_matches
from stea_fast.values.kinds import KINDS, kind_of
from stea_fast.values.labels import Labels
from stea_fast.values.matches import Matches, similar_values
from stea_fast.values.normalising import TIERS, normalised

__all__ = [
    "KINDS", "TIERS", "Labels", "Matches", "UniqueMatches", "kind_of", "name_candidates", "normalised",
    "similar_values", "unique_matches",
]  # fmt: skip
