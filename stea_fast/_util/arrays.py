"""Arrays in and out: NumPy inside, the caller's own kind (NumPy or torch) outside."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np


def is_torch(value: object) -> bool:
    """Whether `value` is a torch tensor, without importing torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def to_numpy(value: Any, name: str) -> np.ndarray:
    """`value` as a NumPy array: shared memory where possible, no change of dtype."""
    if is_torch(value):
        tensor = value.detach().cpu()
        if tensor.dtype == sys.modules["torch"].bfloat16:  # NumPy has none; float32 holds it exactly
            tensor = tensor.float()
        return tensor.numpy()
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise ValueError(f"{name} must be a rectangular array: {error}") from None
    if array.dtype == object:
        raise TypeError(f"{name} must be an array of numbers, got objects ({type(value).__name__})")
    return array


def where_it_is(value: Any, name: str) -> Any:
    """A tensor of a GPU as it is, so that work on it stays there; everything else as a NumPy array."""
    return value if is_torch(value) and value.device.type != "cpu" else to_numpy(value, name)


def to_tensor(value: Any, name: str, device: Any) -> Any:
    """`value` as a dense tensor on a device: itself if it is there, else a copy."""
    import torch

    if not isinstance(value, torch.Tensor):
        return torch.tensor(to_numpy(value, name), device=device)
    if value.requires_grad:
        raise ValueError(f"{name} requires a gradient, which refine does not pass on; give {name}.detach()")
    if value.layout != torch.strided:
        raise TypeError(f"{name} must be a dense tensor, got layout {value.layout}")
    return value.to(device)


def placed(value: Any, name: str, device: Any = None) -> Any:
    """`value` where the work is done: a tensor on the device, or a NumPy array if that is None."""
    return to_numpy(value, name) if device is None else to_tensor(value, name, device)


def like(template: Any, array: Any) -> Any:
    """An array or tensor as the kind of `template`: a tensor on its device, or a NumPy array."""
    if is_torch(array):
        return array.to(template.device) if is_torch(template) else array.cpu().numpy()
    if not is_torch(template):
        return array
    torch = sys.modules["torch"]
    if template.device.type != "cpu" or not array.flags.writeable:  # torch warns of memory that it may not write to
        return torch.tensor(np.ascontiguousarray(array), device=template.device)
    return torch.from_numpy(np.ascontiguousarray(array))


def freeze(array: np.ndarray) -> np.ndarray:
    """Make `array` read-only and return it."""
    array.flags.writeable = False
    return array
