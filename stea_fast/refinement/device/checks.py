"""Checks of what users pass in, where copying it to the host would cost more than the work: `validate.py` in torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor


def on_device(value: Any, name: str, device: torch.device) -> Tensor:
    """The tensor itself, or a copy of what lies on the host."""
    if not isinstance(value, Tensor):
        return torch.tensor(np.asarray(value), device=device)
    if value.requires_grad:
        raise ValueError(f"{name} requires a gradient, which refine does not pass on; give {name}.detach()")
    if value.layout != torch.strided:
        raise TypeError(f"{name} must be a dense tensor, got layout {value.layout}")
    return value.to(device)


def ranking(
    indices: Any, scores: Any, name: str, num_rows: int, num_targets: int, device: torch.device
) -> tuple[Tensor, Tensor]:
    """Candidates of every row: int32 [n, k] (-1 = none) and float32 [n, k] (-inf where none), best first."""
    ids = on_device(indices, f"{name}.indices", device)
    values = on_device(scores, f"{name}.scores", device)
    if ids.dtype.is_floating_point or ids.dtype.is_complex or ids.dtype == torch.bool:
        raise TypeError(f"{name}.indices must hold integers, got dtype {ids.dtype}")
    if values.dtype.is_complex or values.dtype == torch.bool:
        raise TypeError(f"{name}.scores must hold numbers, got dtype {values.dtype}")
    if ids.ndim != 2 or len(ids) != num_rows:
        raise ValueError(f"{name}.indices must have shape ({num_rows}, k), a row per entity; got {tuple(ids.shape)}")
    if values.shape != ids.shape:
        raise ValueError(f"{name}.scores must have the shape of indices, {tuple(ids.shape)}; got {tuple(values.shape)}")
    _candidate_ids(ids, f"{name}.indices", num_targets)
    present = ids >= 0
    values = torch.where(present, values.float(), -torch.inf)
    if not bool(torch.isfinite(values[present]).all()):
        raise ValueError(f"{name}.scores must be finite in float32")
    if bool((values[:, 1:] > values[:, :-1]).any()):
        order = torch.argsort(values, dim=1, descending=True, stable=True)
        ids, values = ids.gather(1, order), values.gather(1, order)
    return ids.int().contiguous(), values.contiguous()


def _candidate_ids(ids: Tensor, name: str, num_targets: int) -> None:
    if ids.numel() == 0:
        raise ValueError(f"{name} is empty, with shape {tuple(ids.shape)}; at least one candidate per row is needed")
    low, high = int(ids.min()), int(ids.max())
    if low < -1:
        raise ValueError(f"{name} holds {low}: candidates must not be negative, except -1 for none")
    if high >= num_targets:
        raise ValueError(f"{name} holds {high}, but there are only {num_targets} targets (0 to {num_targets - 1})")
    ordered = torch.sort(ids, dim=1).values
    if bool(((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any()):
        raise ValueError(f"{name} holds a candidate twice in a row")
