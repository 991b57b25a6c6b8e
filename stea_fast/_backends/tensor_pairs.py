"""The kernels over a pair set, for tensors of one device: what `reference_pairs.py` defines, by sorts and segments.

Sums run over values that stand in the order of their groups, never by atomics, so two runs give the same bits. Nothing
is copied to the host but the sizes of results that are not known beforehand.
"""

from __future__ import annotations

import torch
from torch import Tensor

from stea_fast._backends.device_data import indptr_of

LEAST_VALUE = 1e-200  # as in `reference_pairs.py`


def transpose(indptr: Tensor, columns: Tensor, num_columns: int) -> tuple[Tensor, Tensor]:
    """The pairs by column: int64 [num_columns + 1] and the positions of the pairs, increasing within a column."""
    ordered, order = torch.sort(columns.long(), stable=True)
    return indptr_of(ordered, num_columns), order.int()


def union(
    indptr: Tensor, columns: Tensor, of_rows: Tensor, of_columns: Tensor, *, n_threads: int = 1
) -> tuple[Tensor, Tensor]:
    """The pairs, with what neighbours propose: columns of every row, int32 [rows, k], and rows of every column."""
    n1, n2 = len(indptr) - 1, max(len(of_columns), 1)
    rows, others = (torch.arange(len(part), device=part.device)[:, None] for part in (of_rows, of_columns))
    forward = torch.where(of_rows >= 0, rows * n2 + of_rows, -1).flatten()
    backward = torch.where(of_columns >= 0, of_columns.long() * n2 + others, -1).flatten()
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


def mutual_best(
    indptr: Tensor, columns: Tensor, by_column: tuple[Tensor, Tensor], values: Tensor, *, n_threads: int = 1
) -> Tensor:
    """bool [pairs]: those with the largest value of both their row and their column; `by_column` is the transpose."""
    row_best = segment(values, indptr, "max")
    column_best = segment(values[by_column[1].long()], by_column[0], "max")
    return (values == row_best[rows_of(indptr)]) & (values == column_best[columns.long()])


def balance(
    indptr: Tensor, columns: Tensor, values: Tensor, row_tails: Tensor, column_tails: Tensor,
    *, times: int, n_threads: int = 1,
) -> Tensor:  # fmt: skip
    """Values ≥ 0, scaled until each row, and then each column, adds up to one with its tail: Sinkhorn's iteration."""
    rows, at, values = rows_of(indptr), columns.long(), values.clamp(min=LEAST_VALUE)
    begin, order = transpose(indptr, columns, len(column_tails))
    by_column = order.long()
    column_values, column_rows = values[by_column], rows[by_column]
    a, b = torch.ones_like(row_tails), torch.ones_like(column_tails)
    for _ in range(times):
        a = _inverse(segment(values * b[at], indptr, "sum") + row_tails)
        b = _inverse(segment(a[column_rows] * column_values, begin, "sum") + column_tails)
    return (values * a[rows] * b[at]).clamp(LEAST_VALUE, 1.0)


def rows_of(indptr: Tensor) -> Tensor:
    """int64: the row of every place."""
    return torch.repeat_interleave(torch.arange(len(indptr) - 1, device=indptr.device), torch.diff(indptr))


def segment(values: Tensor, indptr: Tensor, reduce: str) -> Tensor:
    """The sum or the maximum of every run of values; 0 or -inf of an empty one. Each run is reduced in its order."""
    initial = 0.0 if reduce == "sum" else -torch.inf
    return torch.segment_reduce(values, reduce, offsets=indptr, axis=0, initial=initial)


def _keys(indptr: Tensor, columns: Tensor, num_columns: int) -> Tensor:
    return rows_of(indptr) * num_columns + columns


def _inverse(total: Tensor) -> Tensor:
    """1 where all has underflowed."""
    return 1.0 / torch.where(total > 0, total, 1.0)
