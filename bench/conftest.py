"""Inputs of the benches as fixtures. What is not here is skipped, with the reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pytest

from bench.lib import inputs
from stea_fast import Pair

T = TypeVar("T")


def _or_skip(make: Callable[[str], T], name: str) -> T:
    try:
        return make(name)
    except inputs.MissingDataError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session", params=inputs.NAMES)
def case(request: pytest.FixtureRequest) -> inputs.Case:
    """Every case in turn, with candidates, beliefs and relation alignment."""
    return _or_skip(inputs.case, request.param)


@pytest.fixture(scope="session", params=inputs.NAMES)
def pair(request: pytest.FixtureRequest) -> Pair:
    """Every pair of graphs in turn, without candidates."""
    return _or_skip(inputs.pair, request.param)
