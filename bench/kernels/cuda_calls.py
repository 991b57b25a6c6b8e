"""Every CUDA kernel as a call on an input of the benches: what native makes of the same, and the bytes of its contract.

Bytes are those that the contract speaks of, each time it does, whatever a cache or a filter spares the kernel: two
versions of a kernel are compared by one figure. What it searches besides is not counted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from time import perf_counter
from typing import Any

import numpy as np

import stea_fast as sf
from bench.kernels import contenders
from bench.kernels.cuda_case import OnDevice
from bench.lib.inputs import Case, Side
from stea_fast import _backends
from stea_fast._util.sparse import offsets_of_counts
from stea_fast._util.threads import thread_count
from stea_fast.refinement.beliefs import transpose
from stea_fast.refinement.selection import mutual_best

ID, EDGE, BELIEF, SPAN, COUNT = (
    4,
    8,
    8,
    16,
    8,
)  # bytes: an id, (neighbour, relation), (target, weight), two offsets, a sum
Arrays = tuple[np.ndarray, ...]


@dataclass(frozen=True, eq=False)
class KernelCall:
    """A kernel on one input.

    Attributes:
        name: Which kernel, and on what.
        native: What the native backend gives (NumPy for mutual best), and the seconds that it took on all threads.
        on_device: Enqueues the kernel, and gives its results as tensors.
        check: Raises AssertionError unless results (first) are those of native (second).
        num_bytes: What the contract reads and writes, given native's results.
    """

    name: str
    native: Callable[[], tuple[Arrays, float]]
    on_device: Callable[[OnDevice], tuple[Any, ...]]
    check: Callable[[Arrays, Arrays], None]
    num_bytes: Callable[[Arrays], int]


def kernel_calls(case: Case) -> list[KernelCall]:
    """All kernels, in both directions where a direction makes a difference."""
    contenders.ready_strengths(case, "native")  # not part of what is timed
    calls = []
    for number, direction in enumerate(("forward", "backward")):
        calls += [_evidence(case, number, witnesses, direction) for witnesses in ("statement", "neighbour")]
        calls.append(_relation_counts(case, number, direction))
    return [*calls, _evidence_of_pairs(case), *(_mutual_best(case, kind) for kind in ("float32", "float64"))]


def _evidence(case: Case, number: int, witnesses: str, direction: str) -> KernelCall:
    side = tuple(case.sides)[number]
    rows, k = side.indices.shape

    def native() -> Arrays:
        kernels, table = _backends.resolve("native"), contenders.ready_strengths(case, "native")
        return kernels.evidence_and_witnesses(
            side.source, side.target, side.indices, side.beliefs, table, forward=side.forward, rows=(0, rows),
            n_threads=thread_count(None), witnesses=witnesses,
        )  # fmt: skip

    def num_bytes(results: Arrays) -> int:
        return _evidence_bytes(side, np.repeat(np.arange(rows), k), side.indices.ravel(), results)

    def on_device(device: OnDevice) -> tuple[Any, ...]:
        return device.evidence_of(number, witnesses=witnesses)

    return KernelCall(f"evidence of {witnesses}s, {direction}", _timed(native), on_device, _check_evidence, num_bytes)


def _evidence_of_pairs(case: Case) -> KernelCall:
    """As the joint refinement asks for it: sparse pairs in order, neighbours as witnesses."""
    side, listed = case.forward, np.sort(case.forward.indices, axis=1)
    indptr, columns = offsets_of_counts((listed >= 0).sum(axis=1)), listed[listed >= 0]
    rows = (0, len(listed))

    def native() -> Arrays:
        kernels, table = _backends.resolve("native"), contenders.ready_strengths(case, "native")
        return kernels.evidence_of_pairs(
            side.source, side.target, indptr, columns, side.beliefs, table, rows=rows, n_threads=thread_count(None),
            witnesses="neighbour",
        )  # fmt: skip

    def on_device(device: OnDevice) -> tuple[Any, ...]:
        pairs = tuple(device.torch.tensor(array, device=device.device) for array in (indptr, columns))
        given = *device.graphs, pairs, device.beliefs[0], device.strengths.forward
        return device.kernels.evidence_and_witnesses(*given, rows=rows, witnesses="neighbour")

    def num_bytes(results: Arrays) -> int:
        return _evidence_bytes(side, np.repeat(np.arange(rows[1]), np.diff(indptr)), columns, results)

    return KernelCall("evidence of neighbours, sparse pairs", _timed(native), on_device, _check_evidence, num_bytes)


def _evidence_bytes(side: Side, rows: np.ndarray, columns: np.ndarray, results: Arrays) -> int:
    """Of every pair its id, its rows, the edges of the side that has fewer, the beliefs at their ends, the results."""
    kept = columns >= 0
    rows, columns = rows[kept], columns[kept]
    believers = transpose(side.beliefs, side.target.num_entities)
    walked = np.where(
        side.source.degrees[rows] <= side.target.degrees[columns],
        _walk_bytes(side.source, side.beliefs)[rows],
        _walk_bytes(side.target, believers)[columns],
    )
    return int(walked.sum()) + (ID + 2 * SPAN) * len(rows) + sum(part.nbytes for part in results)


def _walk_bytes(kg: sf.KG, beliefs: sf.Beliefs) -> np.ndarray:
    """int64 [n]: the edges of every entity, and the beliefs at their ends."""
    of_edges = EDGE + SPAN + BELIEF * np.diff(beliefs.indptr)[kg.neighbors]
    until = offsets_of_counts(of_edges)
    return until[kg.indptr[1:]] - until[kg.indptr[:-1]]


def _check_evidence(found: Arrays, wanted: Arrays) -> None:
    np.testing.assert_allclose(found[0], wanted[0], rtol=2e-5, atol=1e-30)
    np.testing.assert_array_equal(found[1], wanted[1])


def _relation_counts(case: Case, number: int, direction: str) -> KernelCall:
    side = tuple(case.sides)[number]
    rows = (0, side.source.num_entities)

    def native() -> Arrays:
        kernels, threads = _backends.resolve("native"), thread_count(None)
        return _parts(kernels.relation_counts(side.source, side.target, side.beliefs, rows=rows, n_threads=threads))

    def on_device(device: OnDevice) -> tuple[Any, ...]:
        source, target = device.graphs[::-1] if number else device.graphs
        edges = (0, len(source.edges))
        return _parts(device.kernels.relation_counts(source, target, device.beliefs[number], edges=edges))

    def num_bytes(results: Arrays) -> int:
        """Of every statement the edge and the beliefs about its ends; the sums."""
        held, statements = np.diff(side.beliefs.indptr), side.source.triples
        read = EDGE + 2 * SPAN + BELIEF * (held[statements[:, 0]] + held[statements[:, 2]])
        return int(read.sum()) + 2 * COUNT * len(results[0]) + COUNT * len(results[2])

    return KernelCall(f"relation counts, {direction}", _timed(native), on_device, _check_counts, num_bytes)


def _parts(counts: Any) -> tuple[Any, ...]:
    return counts.keys, counts.num, counts.den, np.array(counts.scale_bits)


def _check_counts(found: Arrays, wanted: Arrays) -> None:
    """Within 1e-9, and 1e-12 statements; what rounds to nothing is a key on one side only."""
    assert found[3] == wanted[3], f"counts are in units of 2^-{found[3]}, not of 2^-{wanted[3]}"
    keys = np.union1d(found[0], wanted[0])
    unit = 2.0 ** -int(wanted[3])
    of_keys = np.zeros((2, len(keys)))
    for line, (ids, num, *_) in zip(of_keys, (found, wanted), strict=True):
        line[np.searchsorted(keys, ids)] = num * unit
    np.testing.assert_allclose(*of_keys, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found[2] * unit, wanted[2] * unit, rtol=1e-9, atol=1e-12)


def _mutual_best(case: Case, kind: str) -> KernelCall:
    sides = [
        (np.asarray(side.indices).astype(np.int32), np.asarray(side.scores).astype(kind))
        for side in (case.candidates.forward, case.candidates.backward)
    ]

    def native() -> Arrays:
        pairs, values = mutual_best(*sides)
        partner, value = np.full(len(sides[0][0]), -1, dtype=np.int32), np.zeros(len(sides[0][0]), dtype=kind)
        partner[pairs[:, 0]], value[pairs[:, 0]] = pairs[:, 1], values
        return partner, value

    def on_device(device: OnDevice) -> tuple[Any, ...]:
        there = [tuple(device.torch.tensor(part, device=device.device) for part in side) for side in sides]
        return device.kernels.mutual_best(*there)

    def num_bytes(results: Arrays) -> int:
        """All rankings; the best of every row, written and read; the results."""
        size = ID + np.dtype(kind).itemsize
        return sum(size * (ids.size + 2 * len(ids)) for ids, _ in sides) + sum(part.nbytes for part in results)

    return KernelCall(f"mutual best, {kind}", _timed(native), on_device, _check_mutual, num_bytes)


def _check_mutual(found: Arrays, wanted: Arrays) -> None:
    np.testing.assert_array_equal(found[0], wanted[0])
    np.testing.assert_allclose(found[1], wanted[1], rtol=1e-6)


def _timed(call: Callable[[], Arrays]) -> Callable[[], tuple[Arrays, float]]:
    """The results and the seconds of a call that is made once, when it is first asked for."""

    @cache
    def once() -> tuple[Arrays, float]:
        begin = perf_counter()
        return tuple(call()), perf_counter() - begin

    return once
