"""What an editor shows: no public function takes more options than one can read, and none takes untyped ones."""

from __future__ import annotations

import inspect

import pytest

import stea_fast as sf

MAX_PARAMETERS = 15  # of `align` and `SelfTraining`, where a whole run is described


def public_functions():
    """Functions of `stea_fast`, and constructors and methods of its classes, by name."""
    for name in sf.__all__:
        value = getattr(sf, name)
        if inspect.isroutine(value):
            yield name, value
        elif isinstance(value, type) and not issubclass(value, BaseException):
            yield name, value.__new__ if issubclass(value, tuple) else value.__init__
            for member, found in inspect.getmembers(value, inspect.isroutine):
                if not member.startswith("_"):
                    yield f"{name}.{member}", found


FUNCTIONS = dict(public_functions())


def test_the_functions_that_have_most_options_are_among_those_checked():
    assert {"refine", "align", "topk", "SelfTraining", "Refiner", "Joint", "SelfTrainingConfig.to_dict"} <= set(
        FUNCTIONS
    )


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_no_public_function_has_too_many_parameters_or_untyped_options(name):
    parameters = [p for p in inspect.signature(FUNCTIONS[name]).parameters.values() if p.name not in ("self", "cls")]
    assert len(parameters) <= MAX_PARAMETERS
    assert not [p.name for p in parameters if p.kind is inspect.Parameter.VAR_KEYWORD]
