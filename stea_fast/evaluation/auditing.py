"""`audit`: proof that a method reads no test link."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from stea_fast._util.arrays import is_torch, to_numpy
from stea_fast.data.pair import Pair
from stea_fast.data.sealed import reveal, seal

MEASURED = {"history"}  # of a result: what is measured with test links, by design


class AuditError(AssertionError):
    """Raised when a result depends on the test links; the message names the array that differs."""


@dataclass(frozen=True)
class Audit:
    """What a passed audit has compared; it prints as one line.

    Attributes:
        arrays: The names of the arrays that were compared, by their place in the result.
        numbers: How many numbers they hold.

    Example:
        >>> import stea_fast as sf
        >>> pair = sf.synthetic_pair(num_entities=200, seed=0)
        >>> passed = sf.audit(pair, lambda pair: sf.demo.encode(pair))
        >>> passed.arrays
        ('result[0]', 'result[1]')
    """

    arrays: tuple[str, ...]
    numbers: int

    def __str__(self) -> str:
        return f"audit passed: {len(self.arrays)} arrays, {self.numbers:,} numbers, all bits equal"


def audit(pair: Pair, method: Callable[[Pair], object], *, seed: int = 0) -> Audit:
    """Prove that a method reads no test link: run it with true and with shuffled ones, and compare every bit.

    Args:
        pair: The data, with at least two test links.
        method: A function of a pair, for example `lambda pair: sf.SelfTraining(pair).run()`. It is called twice and
            must be deterministic. All arrays of its result are compared, whatever records they stand in, except
            `history`, where metrics belong.
        seed: The seed of the shuffling.

    Returns:
        An `Audit` that says what was compared, if all bits are equal.

    Raises:
        AuditError: Something differs; the message names it.
        ValueError: There are fewer than two test links, or the result holds no array, so nothing would be proven.

    Example:
        >>> import stea_fast as sf
        >>> pair = sf.synthetic_pair(num_entities=200, seed=0)
        >>> print(sf.audit(pair, lambda pair: sf.demo.candidates(pair).forward))
        audit passed: 2 arrays, 4,000 numbers, all bits equal
    """
    if len(pair.test) < 2:
        raise ValueError(f"an audit needs at least two test links to shuffle, got {len(pair.test)}")
    true, shuffled = (dict(arrays_of(method(variant))) for variant in (pair, shuffled_test_links(pair, seed)))
    if not true:
        raise ValueError("the method's result holds no array that could be compared")
    if true.keys() != shuffled.keys():
        raise AuditError(f"the results have different parts: {sorted(true.keys() ^ shuffled.keys())}")
    for name, array in true.items():
        other = shuffled[name]
        if array.shape != other.shape or array.dtype != other.dtype or array.tobytes() != other.tobytes():
            raise AuditError(f"{name} depends on the test links: it differs when they are shuffled")
    return Audit(tuple(true), sum(array.size for array in true.values()))


def shuffled_test_links(pair: Pair, seed: int = 0) -> Pair:
    """The same pair with other targets for the test sources, in `test` and in `links`."""
    test = reveal(pair.test).copy()
    order = np.random.default_rng(seed).permutation(len(test))
    if np.array_equal(test[order, 1], test[:, 1]):
        order = np.roll(order, 1)
    test[:, 1] = test[order, 1]
    target_of = dict(test.tolist())
    labelled = set(pair.train[:, 0].tolist()) | set(pair.valid[:, 0].tolist())
    links = np.array(
        [
            (source, target if source in labelled else target_of.get(source, target))
            for source, target in reveal(pair.links).tolist()
        ]
    ).reshape(-1, 2)
    return dataclasses.replace(pair, test=seal(test), links=seal(links))


def arrays_of(value: Any, name: str = "result") -> Iterator[tuple[str, np.ndarray]]:
    """Every array in nested records, by its path."""
    if isinstance(value, np.ndarray) or is_torch(value):
        yield name, np.ascontiguousarray(to_numpy(value, name))
    elif isinstance(value, (bool, int, float, np.generic)):
        yield name, np.asarray(value)
    elif hasattr(value, "indptr") and hasattr(value, "indices") and hasattr(value, "data"):  # a sparse matrix
        for part in ("indptr", "indices", "data"):
            yield f"{name}.{part}", getattr(value, part)
    elif isinstance(value, (list, tuple)):
        for i, item in enumerate(value):
            yield from arrays_of(item, f"{name}[{i}]")
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from arrays_of(item, f"{name}[{key!r}]")
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            if field.name not in MEASURED:
                yield from arrays_of(getattr(value, field.name), f"{name}.{field.name}")
    elif hasattr(value, "sub12"):
        yield from arrays_of(value.sub12, f"{name}.sub12")
        yield from arrays_of(value.sub21, f"{name}.sub21")
