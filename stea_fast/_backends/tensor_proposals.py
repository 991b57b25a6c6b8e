"""Proposals over tensors of one device: what `reference.proposals` defines, by expansion, sorts and segments.

Every visit from a row over a believed pair of neighbours to a target is one element; blocks of rows bound how many
there are at a time. Visits are sorted by (row, target, pair of neighbours), so the strongest statement of a pair and
the sum of a target are segments, and sums have a fixed order.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from stea_fast._backends.device_data import StrengthRows, indptr_of
from stea_fast._backends.factors import ENOUGH_FACTS, ENOUGH_SHARE, MIN_FACTOR
from stea_fast._backends.tensor_pairs import rows_of, segment
from stea_fast.data.device_graph import DeviceGraph

MOST_VISITS = 1 << 24  # at a time; each takes about 100 bytes


class Facts(NamedTuple):
    """The facts of some rows that are followed, in order.

    Attributes:
        row: int64, the row of every fact.
        neighbor, relation: int64, its neighbour n and relation r.
    """

    row: Tensor
    neighbor: Tensor
    relation: Tensor


def proposals(
    source: DeviceGraph, target: DeviceGraph, beliefs: Any, strengths: StrengthRows, open_rows: Tensor,
    open_targets: Tensor, *, k: int, budget: int, rows: tuple[int, int], strongest: bool,
    most_visits: int = MOST_VISITS,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The k targets of every row for which its neighbours' beliefs speak most: int32 and float32 [rows, k].

    Args:
        beliefs: (indptr, targets, weights) of all source entities.
        strengths: as seen from the source graph; see `device_data.Strengths`.
        open_rows, open_targets: bool, who may get proposals, and who may be proposed.
        strongest: of the statements about one pair of neighbours only the strongest counts.
        most_visits: how many visits are made at a time.
    """
    fan_out = _fan_out(target, beliefs)
    facts, visits = _followed(source, fan_out, open_rows, rows, budget)
    device = source.indptr.device
    indices = torch.full((rows[1] - rows[0], k), -1, dtype=torch.int32, device=device)
    values = torch.zeros(indices.shape, device=device)
    ends = torch.cumsum(visits, 0)
    begin, done = 0, 0
    while begin < len(visits):
        bound = torch.tensor([done + most_visits], device=device)
        end = int(torch.searchsorted(ends, bound, right=True)) if len(ends) else 0
        end = _whole_rows(facts.row, begin, max(end, begin + 1))
        part = Facts(*(column[begin:end] for column in facts))
        _add_best(part, target, beliefs, strengths, open_targets, strongest, k, rows[0], indices, values)
        begin, done = end, int(ends[end - 1])
    return indices, values


def _fan_out(target: DeviceGraph, beliefs: Any) -> Tensor:
    """int64 [source entities]: how many edges lead on from the counterparts of every entity."""
    indptr, targets, _ = beliefs
    degrees = torch.diff(target.indptr)
    totals = torch.zeros(len(targets) + 1, dtype=torch.int64, device=indptr.device)
    torch.cumsum(degrees[targets.long()], 0, out=totals[1:])
    return totals[indptr[1:]] - totals[indptr[:-1]]


def _followed(
    source: DeviceGraph, fan_out: Tensor, open_rows: Tensor, rows: tuple[int, int], budget: int
) -> tuple[Facts, Tensor]:
    """The facts within the budget of their row, by (row, bit length of the visits behind them, position)."""
    row = rows_of(source.indptr[rows[0] : rows[1] + 1]) + rows[0]
    first, last = source.indptr[rows[0]], source.indptr[rows[1]]
    edges = source.edges[first:last].long()
    visits = fan_out[edges[:, 0]]
    kept = open_rows[row] & (visits > 0)
    row, edges, visits = row[kept], edges[kept], visits[kept]
    order = torch.sort(row * 64 + _bit_length(visits), stable=True).indices
    row, edges, visits = row[order], edges[order], visits[order]
    totals = torch.cumsum(visits, 0)
    first_of_row = torch.searchsorted(row, row)
    before = (totals - visits)[first_of_row]  # all visits of earlier rows
    number = torch.arange(len(row), device=row.device) - first_of_row
    enough = (totals - visits - before >= budget // ENOUGH_SHARE) & (number >= ENOUGH_FACTS)
    within = (totals - before <= budget) & ~enough
    return Facts(row[within], edges[within, 0], edges[within, 1]), visits[within]


def _bit_length(values: Tensor) -> Tensor:
    """Of positive integers below 2^53."""
    return torch.frexp(values.double()).exponent.long()


def _whole_rows(row: Tensor, begin: int, end: int) -> int:
    """The largest end up to `end` between two rows; beyond it if one row is larger than that."""
    if end >= len(row):
        return len(row)
    first = int(torch.searchsorted(row, row[end : end + 1]))
    if first > begin:
        return first
    return int(torch.searchsorted(row, row[end : end + 1], right=True))


def _add_best(
    facts: Facts, target: DeviceGraph, beliefs: Any, strengths: StrengthRows, open_targets: Tensor, strongest: bool,
    k: int, first_row: int, indices: Tensor, values: Tensor,
) -> None:  # fmt: skip
    """Write the k best targets of the rows of these facts."""
    row, neighbor, believed, reached, share = _visits(facts, target, beliefs, strengths)
    kept = open_targets[reached] & (share > 0)
    row, neighbor, believed, reached, share = (part[kept] for part in (row, neighbor, believed, reached, share))
    pair = row * target.num_entities + reached
    if strongest:
        pair, share = _strongest(pair, neighbor, believed, share)
    keys, group = torch.unique(pair, return_inverse=True)
    order = torch.sort(group, stable=True).indices
    total = segment(share[order], indptr_of(group[order], len(keys)), "sum")
    evidence, rows = total.float(), keys // target.num_entities
    order = torch.sort(evidence, descending=True, stable=True).indices
    order = order[torch.sort(rows[order], stable=True).indices]
    sorted_rows = rows[order]
    rank = torch.arange(len(order), device=order.device) - torch.searchsorted(sorted_rows, sorted_rows)
    chosen = rank < k
    place = sorted_rows[chosen] - first_row, rank[chosen]
    indices[place] = (keys[order[chosen]] % target.num_entities).int()
    values[place] = evidence[order[chosen]]


def _visits(facts: Facts, target: DeviceGraph, beliefs: Any, strengths: StrengthRows) -> tuple[Tensor, ...]:
    """(row, n, n', e', share) of every two statements that lead from a row over n and n' to e'."""
    indptr, targets, weights = beliefs
    fact, belief = _expanded(indptr[facts.neighbor], indptr[facts.neighbor + 1])
    believed = targets[belief].long()
    step, edge = _expanded(target.indptr[believed], target.indptr[believed + 1])
    fact, belief, believed = fact[step], belief[step], believed[step]
    width = 2 * target.num_relations
    onward = (target.edges[edge, 1].long() + target.num_relations) % max(width, 1)
    strength = _strengths(strengths, facts.relation[fact], onward)
    weight = weights[belief].double()
    share = sum(-torch.log1p(-(side.double() * weight).clamp(max=1 - MIN_FACTOR)) for side in strength)
    assert isinstance(share, Tensor)
    return facts.row[fact], facts.neighbor[fact], believed, target.edges[edge, 0].long(), share


def _expanded(begin: Tensor, end: Tensor) -> tuple[Tensor, Tensor]:
    """For runs of places: the run of every place, and the place."""
    counts = end - begin
    run = torch.repeat_interleave(torch.arange(len(counts), device=begin.device), counts)
    first = torch.cumsum(counts, 0) - counts
    return run, begin[run] + torch.arange(len(run), device=begin.device) - first[run]


def _strengths(table: StrengthRows, relation: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
    """The two strengths of pairs of relations, by their keys."""
    indptr, columns, values, source_default, target_default = table[:5]
    width = max(len(target_default), 1)
    keys = rows_of(indptr) * width + columns
    found = source_default[relation], target_default[other]
    if not len(keys):
        return found
    wanted = relation * width + other
    place = torch.searchsorted(keys, wanted).clamp(max=len(keys) - 1)
    stored = keys[place] == wanted
    first, second = (torch.where(stored, values[place, side], found[side]) for side in (0, 1))
    return first, second


def _strongest(pair: Tensor, neighbor: Tensor, believed: Tensor, share: Tensor) -> tuple[Tensor, Tensor]:
    """Of the visits of one target over one pair of neighbours the one with the largest share."""
    order = torch.sort(believed, stable=True).indices
    for key in (neighbor, pair):
        order = order[torch.sort(key[order], stable=True).indices]
    columns = [part[order] for part in (pair, neighbor, believed)]
    new = torch.ones(len(order), dtype=torch.bool, device=order.device)
    new[1:] = torch.stack([part[1:] != part[:-1] for part in columns]).any(0)
    begin = torch.nonzero(new)[:, 0]
    offsets = indptr_of(torch.cumsum(new, 0) - 1, len(begin))
    return columns[0][begin], segment(share[order], offsets, "max")
