"""Checks of what users pass in. Every error names the argument, what was expected and what came."""

from __future__ import annotations

from typing import Any

import numpy as np

from stea_fast._util.array_ops import Array, ops_of
from stea_fast._util.arrays import placed, to_numpy, to_tensor
from stea_fast._util.sparse import are_offsets

MAX_ID = np.iinfo(np.int32).max


def integers(value: Any, name: str) -> np.ndarray:
    """An integer array of any width, as int64. Floats are refused, not rounded."""
    array = to_numpy(value, name)
    if array.size == 0:
        return array.astype(np.int64)
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} must hold integers, got dtype {array.dtype}")
    if array.dtype == np.uint64 and array.max() > np.iinfo(np.int64).max:
        raise ValueError(f"{name} holds {array.max()}, which does not fit into 64 signed bits")
    return array.astype(np.int64, copy=False)


def columns(value: Any, name: str, width: int) -> np.ndarray:
    """An (n, width) integer array; an empty input of any shape becomes (0, width)."""
    array = integers(value, name)
    if array.size == 0 and array.ndim <= 2:
        return array.reshape(0, width)
    if array.ndim != 2 or array.shape[1] != width:
        raise ValueError(f"{name} must have shape (n, {width}), got {array.shape}")
    return array


def in_range(array: np.ndarray, name: str, limit: int, what: str, hint: str = "") -> None:
    """Every element in [0, limit); `hint` is added to the error about one that is larger."""
    if array.size == 0:
        return
    low, high = int(array.min()), int(array.max())
    if low < 0:
        raise ValueError(f"{name} holds {low}: {what} must not be negative")
    if high >= limit:
        raise ValueError(f"{name} holds {high}, but there are only {limit} {what} (0 to {limit - 1}){hint}")


def count(value: Any, name: str, *, minimum: int = 0, maximum: int = MAX_ID) -> int:
    """A whole number in [minimum, maximum]."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name} must be an integer, got {type(value).__name__}")
    if not minimum <= value <= maximum:
        raise ValueError(f"{name} must be between {minimum} and {maximum}, got {value}")
    return int(value)


def number(value: Any, name: str, *, minimum: float = -np.inf, maximum: float = np.inf) -> float:
    """A finite number in [minimum, maximum]."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise TypeError(f"{name} must be a number, got {type(value).__name__}")
    if not (np.isfinite(value) and minimum <= value <= maximum):
        raise ValueError(f"{name} must be a finite number between {minimum} and {maximum}, got {value}")
    return float(value)


def choice(value: Any, name: str, options: tuple[str, ...]) -> str:
    """One of the named options."""
    if not isinstance(value, str) or value not in options:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, options))}; got {value!r}")
    return value


def links(value: Any, name: str, num_sources: int, num_targets: int) -> np.ndarray:
    """One-to-one (source, target) pairs, int64 (n, 2)."""
    pairs = columns(value, name, 2)
    for column, limit, side in ((0, num_sources, "source"), (1, num_targets, "target")):
        hint = one_space_hint(pairs[:, 1], num_sources, num_targets) if side == "target" else ""
        in_range(pairs[:, column], f"{name}[:, {column}]", limit, f"{side} entities", hint)
        ids, counts = np.unique(pairs[:, column], return_counts=True)
        if counts.size and counts.max() > 1:
            twice = int(ids[counts.argmax()])
            raise ValueError(f"{name} links {side} entity {twice} {counts.max()} times; each entity may have one link")
    return pairs


def one_space_hint(targets: Array, num_sources: int, num_targets: int) -> str:
    """What to add to an error about targets that are too large if they seem to be counted on from the sources."""
    if len(targets) == 0 or int(targets.min()) < num_sources or int(targets.max()) >= num_sources + num_targets:
        return ""
    return (
        f"; it seems that targets are counted on from the {num_sources} sources: subtract {num_sources}, or let "
        "sf.split_id_space number both graphs from 0"
    )


def sparse_structure(matrix: Any, name: str) -> None:
    """The offsets and columns of a SciPy matrix stay within it, in the formats that hold them as plain arrays."""
    if matrix.format == "coo":
        for ids, size, axis in zip(matrix.coords, matrix.shape, ("row", "col"), strict=True):
            in_range(ids, f"{name}.{axis}", size, "relations")
    elif matrix.format in ("csr", "csc", "bsr"):
        height, width = matrix.blocksize if matrix.format == "bsr" else (1, 1)
        rows, columns = matrix.shape if matrix.format != "csc" else matrix.shape[::-1]
        held = min(len(matrix.indices), len(matrix.data))
        if not (are_offsets(matrix.indptr, rows // height, int(matrix.indptr[-1])) and matrix.indptr[-1] <= held):
            raise ValueError(f"{name}.indptr must be {rows // height + 1} increasing offsets from 0, up to {held}")
        in_range(matrix.indices[: matrix.indptr[-1]], f"{name}.indices", columns // width, "relations")


def ranking(
    indices: Any, scores: Any, name: str, num_rows: int | None, num_targets: int, device: Any = None
) -> tuple[Array, Array]:
    """Candidates of every row: int32 [n, k] (-1 = none) and float32 [n, k] (-inf where none), best first.

    Args:
        num_rows: how many rows there must be; None means any number.
        device: None for NumPy arrays; else tensors on this device, and only numbers come to the host.
    """
    ids = integers(indices, f"{name}.indices") if device is None else to_tensor(indices, f"{name}.indices", device)
    given = placed(scores, f"{name}.scores", device)
    ops = ops_of(ids)
    if not ops.is_number(ids, integer=True):
        raise TypeError(f"{name}.indices must hold integers, got dtype {ids.dtype}")
    if not ops.is_number(given):
        raise TypeError(f"{name}.scores must hold numbers, got dtype {given.dtype}")
    if ids.ndim != 2 or (num_rows is not None and len(ids) != num_rows):
        rows = "n" if num_rows is None else num_rows
        raise ValueError(f"{name}.indices must have shape ({rows}, k), a row per entity; got {tuple(ids.shape)}")
    if given.shape != ids.shape:
        raise ValueError(f"{name}.scores must have the shape of indices, {tuple(ids.shape)}; got {tuple(given.shape)}")
    _candidate_ids(ids, f"{name}.indices", num_targets, num_rows)
    values = _finite_scores(ids >= 0, given, f"{name}.scores")
    if bool((values[:, 1:] > values[:, :-1]).any()):
        order = ops.order(-values)
        ids, values = ops.take(ids, order), ops.take(values, order)
    return ops.contiguous(ops.int32(ids)), values


def _finite_scores(present: Array, given: Array, name: str) -> Array:
    """float32, -inf where there is no candidate."""
    ops = ops_of(given)
    with np.errstate(over="ignore"):
        values = ops.single(ops.where(present, given, -np.inf))
    unusable = present & ~ops.is_finite(values)
    if bool(unusable.any()):
        row, column = _first_place(unusable)
        raise ValueError(f"{name}[{row}, {column}] is {given[row, column]}; scores must be finite in float32")
    return values


def _candidate_ids(ids: Array, name: str, num_targets: int, num_rows: int | None) -> None:
    if 0 in ids.shape:
        raise ValueError(f"{name} is empty, with shape {tuple(ids.shape)}; at least one candidate per row is needed")
    low, high, most = int(ids.min()), int(ids.max()), int((ids >= 0).sum(1).max())
    if low < -1:
        raise ValueError(f"{name} holds {low}: candidates must not be negative, except -1 for none")
    if most > num_targets:
        raise ValueError(f"{name} has rows of {most} candidates, but there are only {num_targets} targets")
    if high >= num_targets:
        hint = "" if num_rows is None else one_space_hint(ids[ids >= 0], num_rows, num_targets)
        raise ValueError(
            f"{name} holds {high}, but there are only {num_targets} targets (0 to {num_targets - 1}){hint}"
        )
    ordered = ops_of(ids).sort(ids)
    twice = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)
    if bool(twice.any()):
        row, column = _first_place(twice)
        raise ValueError(f"{name}[{row}] holds candidate {int(ordered[row, column + 1])} twice")


def _first_place(mask: Array) -> tuple[int, int]:
    """Row and column of the first true element."""
    return divmod(int(ops_of(mask).nonzero(mask.reshape(-1))[0]), mask.shape[1])
