"""The native kernels under sanitizers; bench/hardening/sanitize.py is the long form."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from bench.hardening import sanitize
from bench.hardening.core_calls import MAKERS, call, entry_points

TESTS = Path(__file__).resolve().parents[1]
PROPERTIES = ("test_parity.py", "backends/test_proposals.py", "backends/test_witnesses.py")


@pytest.fixture(scope="session")
def builds(tmp_path_factory):
    """Sanitized modules, built once for all test processes."""
    reason = sanitize.why_not()
    if reason:
        pytest.skip(reason)
    base = tmp_path_factory.getbasetemp()
    return sanitize.SanitizedBuilds((base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "sanitized")


@pytest.mark.slow
@pytest.mark.parametrize("sanitizer", sanitize.SANITIZERS)
def test_random_graph_pairs_on_every_tier_and_number_of_threads(builds, sanitizer):
    assert "the same bits" in sanitize.graph_pairs(builds, sanitizer, first=0, count=100)


@pytest.mark.slow
@pytest.mark.parametrize("sanitizer", sanitize.SANITIZERS)
def test_the_parity_and_property_tests(builds, sanitizer):
    files = [str(TESTS / name) for name in PROPERTIES]
    options = ["-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not slow", "-k", "not numba"]
    assert " passed" in builds.run(sanitizer, [sys.executable, "-m", "pytest", *options, *files])


@pytest.mark.slow
def test_changed_arguments_are_refused_or_answered(builds):
    assert "ValueError" in sanitize.changed_calls(builds, first=0, count=3000)


def test_the_changed_calls_leave_no_entry_point_out():
    assert set(MAKERS) == entry_points()


@pytest.mark.parametrize("number", range(len(MAKERS)))
def test_what_the_changes_start_from_is_right(number):
    assert call(number) == "result"
