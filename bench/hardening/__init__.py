"""Attacks on the package that are too long for the tests."""
