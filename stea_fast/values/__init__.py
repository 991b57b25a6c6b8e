"""Similarity of names and typed values: equal names, candidates by fuzzy names, numbers, dates, codes, texts."""
