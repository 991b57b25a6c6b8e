"""The kernels over a pair set, for tensors of one device: what `reference_pairs.py` defines, by sorts and segments.

Sums run over values that stand in the order of their groups, never by atomics, so two runs give the same bits. Nothing
is copied to the host but the sizes of results that are not known beforehand.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from stea_fast._backends.device_data import indptr_of

LEAST_VALUE = 1e-200  # as in `reference_pairs.py`


def transpose(indptr: Tensor, columns: Tensor, num_columns: int) -> tuple[Tensor, Tensor]:
    """The pairs by column: int64 [num_columns + 1] and the positions of the pairs, increasing within a column."""
    ordered, order = torch.sort(columns.long(), stable=True)
    return indptr_of(ordered, num_columns), order.int()


def union(
    indptr: Tensor, columns: Tensor, of_rows: Tensor, of_columns: tuple[Tensor, Tensor], num_columns: int,
    *, n_threads: int = 1,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The pairs, with what neighbours propose: columns of every row, and rows and columns of pairs."""
    n1, n2 = len(indptr) - 1, max(num_columns, 1)
    rows = torch.arange(n1, device=indptr.device)[:, None]
    forward = torch.where(of_rows >= 0, rows * n2 + of_rows, -1).flatten()
    backward = of_columns[0].long() * n2 + of_columns[1]
    keys = torch.unique(torch.cat([_keys(indptr, columns, n2), forward, backward]))
    keys = keys[keys >= 0]
    return indptr_of(keys, n1, n2), (keys % n2).int()


def positions(
    indptr: Tensor, columns: Tensor, other_indptr: Tensor, other_columns: Tensor, num_columns: int,
    *, n_threads: int = 1,
) -> Tensor:  # fmt: skip
    """int32 [pairs]: where every pair stands in another set with the same rows, -1 where it does not."""
    wanted, known = _keys(indptr, columns, num_columns), _keys(other_indptr, other_columns, num_columns)
    if not len(known):
        return torch.full_like(columns, -1)
    places = torch.searchsorted(known, wanted).clamp(max=len(known) - 1)
    return torch.where(known[places] == wanted, places, -1).int()


def known_values(
    indptr: Tensor, columns: Tensor, sets: Sequence[tuple[Tensor, Tensor, Tensor]], num_columns: int,
    *, n_threads: int = 1,
) -> Tensor:  # fmt: skip
    """float64 [pairs]: the value of every pair in the first of these sets that has it, NaN where none has."""
    values = columns.new_full(columns.shape, torch.nan, dtype=torch.float64)
    for other_indptr, other_columns, known in sets:
        places = positions(indptr, columns, other_indptr, other_columns, num_columns).long()
        if len(known):
            values = torch.where((places >= 0) & torch.isnan(values), known[places], values)
    return values


def best(
    indptr: Tensor, order: Tensor | None, values: Tensor, *, k: int, least: float, n_threads: int = 1
) -> tuple[Tensor, Tensor]:
    """The positions of the k largest values above `least` of every group, best first; ties keep their order."""
    places = torch.arange(len(values), device=values.device) if order is None else order.long()
    groups, held = rows_of(indptr), values[places]
    by_value = torch.sort(held, descending=True, stable=True).indices
    sorted_groups, by_group = torch.sort(groups[by_value], stable=True)
    rank = torch.arange(len(groups), device=values.device) - indptr[sorted_groups]
    chosen = by_value[by_group]
    kept = (rank < k) & (held[chosen] > least)
    return indptr_of(sorted_groups[kept], len(indptr) - 1), places[chosen[kept]].int()


def log_sums(indptr: Tensor, order: Tensor | None, values: Tensor, *, n_threads: int = 1) -> Tensor:
    """float64 [groups]: log Σ exp of every group, -inf for an empty one."""
    ordered = values if order is None else values[order.long()]
    top = segment(ordered, indptr, "max")
    shift = torch.where(torch.isfinite(top), top, 0.0)
    return shift + torch.log(segment(torch.exp(ordered - shift[rows_of(indptr)]), indptr, "sum"))


def joint_probabilities(
    indptr: Tensor, columns: Tensor, values: Tensor, row_sums: Tensor, column_sums: Tensor, *, n_threads: int = 1
) -> Tensor:
    """float64 [pairs]: √(p_row·p_column) with p_row = exp(value - row_sums[row]), p_column likewise; at most 1."""
    twice = (values - row_sums[rows_of(indptr)]) + (values - column_sums[columns.long()])
    return torch.exp((0.5 * twice).clamp(max=0.0))


def largest(indptr: Tensor, order: Tensor | None, values: Tensor, *, n_threads: int = 1) -> Tensor:
    """float64 [groups]: the largest value of every group, -inf for an empty one."""
    return segment(values if order is None else values[order.long()], indptr, "max")


def mutual_best(
    indptr: Tensor, columns: Tensor, values: Tensor, largest_of_columns: Tensor, *, n_threads: int = 1
) -> Tensor:
    """bool [pairs]: those with the largest value of their row that is also that of their column."""
    row_best = segment(values, indptr, "max")
    return (values == row_best[rows_of(indptr)]) & (values == largest_of_columns[columns.long()])


def scale_rows(
    indptr: Tensor, columns: Tensor, values: Tensor, tails: Tensor, column_factors: Tensor, *, n_threads: int = 1
) -> tuple[Tensor, Tensor]:
    """Half an iteration of Sinkhorn's: the factors of the rows, float64 [rows], and the sums of the columns."""
    values = values.clamp(min=LEAST_VALUE)
    a = inverse(segment(values * column_factors[columns.long()], indptr, "sum") + tails)
    begin, order = transpose(indptr, columns, len(column_factors))
    return a, segment((a[rows_of(indptr)] * values)[order.long()], begin, "sum")


def inverse(totals: Tensor) -> Tensor:
    """1/total; 1 where all has underflowed."""
    return 1.0 / torch.where(totals > 0, totals, 1.0)


def scaled(
    indptr: Tensor, columns: Tensor, values: Tensor, row_factors: Tensor, column_factors: Tensor, *, n_threads: int = 1
) -> Tensor:
    """float64 [pairs]: a(i)·v(i, j)·b(j), within [LEAST_VALUE, 1]."""
    values = values.clamp(min=LEAST_VALUE)
    return (values * row_factors[rows_of(indptr)] * column_factors[columns.long()]).clamp(LEAST_VALUE, 1.0)


def totals(
    evidence: Tensor, witnesses: Tensor, logits: Tensor, *, weight: float, lone: float, n_threads: int = 1
) -> Tensor:
    """float64 [pairs]: logits + weight · evidence, the latter times `lone` where there is a single witness."""
    weighted = evidence.double() * weight
    return torch.where(witnesses == 1, weighted * lone, weighted) + logits


def damped(values: Tensor, earlier: Tensor, places: Tensor, *, share: float, n_threads: int = 1) -> Tensor:
    """float64 [pairs]: the values, with this share of the earlier ones at these places; of 0 where that is -1."""
    old = torch.cat([earlier, earlier.new_zeros(1)])[places.long()]
    return (1.0 - share) * values + share * old


def rows_of(indptr: Tensor) -> Tensor:
    """int64: the row of every place."""
    return torch.repeat_interleave(torch.arange(len(indptr) - 1, device=indptr.device), torch.diff(indptr))


def segment(values: Tensor, indptr: Tensor, reduce: str) -> Tensor:
    """The sum or the maximum of every run of values; 0 or -inf of an empty one. Each run is reduced in its order."""
    initial = 0.0 if reduce == "sum" else -torch.inf
    return torch.segment_reduce(values, reduce, offsets=indptr, axis=0, initial=initial)


def _keys(indptr: Tensor, columns: Tensor, num_columns: int) -> Tensor:
    return rows_of(indptr) * num_columns + columns
