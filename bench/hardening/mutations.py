"""Changes to an argument that a caller of `stea_fast._core` might get wrong, or that an attacker would try."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

INTEGERS = (-(2**63), -(2**31) - 1, -(2**31), -2, -1, 0, 1, 2, 7, 2**31 - 1, 2**31, 2**62, 2**63 - 1)
FLOATS = (float("nan"), float("inf"), -float("inf"), -1.0, -0.0, 0.0, 1e-45, 0.5, 1.0, 1.0005, 2.0, 1e38, 1e300)
WORDS = ("", "baseline", "avx2", "nonsense", "\0")


def mutated(value: Any, rng: np.random.Generator) -> Any:
    """Something else in place of an argument, near enough to it that not every check refuses it."""
    if rng.random() < 0.02:
        return rng.choice(np.array([None, (), "x", 3, 0.5], dtype=object))
    if isinstance(value, np.ndarray):
        return _ARRAY_CHANGES[rng.integers(len(_ARRAY_CHANGES))](value, rng)
    if isinstance(value, tuple):
        return _tuple(value, rng)
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return int(rng.choice([value - 1, value + 1, INTEGERS[rng.integers(len(INTEGERS))]]))
    if isinstance(value, float):
        return FLOATS[rng.integers(len(FLOATS))]
    return WORDS[rng.integers(len(WORDS))] if isinstance(value, str) else value


def _tuple(items: tuple[Any, ...], rng: np.random.Generator) -> tuple[Any, ...]:
    place = int(rng.integers(len(items)))
    if rng.random() < 0.03:
        return items[:-1] if rng.random() < 0.5 else (*items, items[0])
    return (*items[:place], mutated(items[place], rng), *items[place + 1 :])


def _one_element(array: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The most telling change: all sizes still fit."""
    changed = array.copy()
    if not changed.size:
        return changed
    flat = changed.reshape(-1)
    field = flat[str(rng.choice(flat.dtype.names))] if flat.dtype.names else flat
    place = rng.choice([0, len(flat) - 1, rng.integers(len(flat))])
    if field.dtype.kind == "f":
        with np.errstate(over="ignore"):  # 1e300 is infinite in single precision
            field[place] = np.array(FLOATS[rng.integers(len(FLOATS))]).astype(field.dtype)
    else:
        near = [int(field[place]) + int(rng.integers(-2, 3)), len(flat), int(field.max()) + 1]
        number = near[rng.integers(len(near))] if rng.random() < 0.5 else INTEGERS[rng.integers(len(INTEGERS))]
        limits = np.iinfo(field.dtype)
        field[place] = min(max(number, limits.min), limits.max)
    return changed


def _shuffled(array: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return array.reshape(-1)[rng.permutation(array.size)].reshape(array.shape)


def _shorter(array: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.ascontiguousarray(array[: int(rng.integers(len(array) + 1))]) if array.ndim else array


def _longer(array: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.concatenate([array, array[: int(rng.integers(1, 3))]]) if array.ndim else array


def _strided(array: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.repeat(array, 2, axis=0)[::2]


def _unaligned(array: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    memory = np.zeros(array.nbytes + 1, dtype=np.uint8)
    shifted = memory[1:].view(array.dtype).reshape(array.shape)
    shifted[...] = array
    return shifted


def _other_type(array: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    kinds = (np.int8, np.int32, np.int64, np.uint64, np.float16, np.float32, np.float64, ">i4", ">f4", object)
    with np.errstate(all="ignore"):
        return array if array.dtype.names else array.astype(kinds[rng.integers(len(kinds))])


def _other_shape(array: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    shapes = ((-1,), (1, -1), (-1, 1), (1, 1, -1), array.shape[::-1])
    return np.ascontiguousarray(array).reshape(shapes[rng.integers(len(shapes))])


def _read_only(array: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    frozen = array.copy()
    frozen.flags.writeable = False
    return frozen


_MOST_TELLING = [_one_element] * 12 + [_shuffled] * 3
_ARRAY_CHANGES: list[Callable[[np.ndarray, np.random.Generator], np.ndarray]] = [
    *_MOST_TELLING, _shorter, _longer, _strided, _unaligned, _other_type, _other_shape, _read_only,
]  # fmt: skip
