"""Devices by their names, asked whether they are there before anything is put on them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def usable_device(name: Any) -> Any:
    """The torch device of a name such as "cpu", "cuda" or "cuda:1", if this torch can work on it.

    Raises:
        ValueError: There is no such device, or this torch does not see it; the message says which it sees.
        ModuleNotFoundError: torch is not installed.
    """
    try:
        import torch
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            f"device {str(name)!r} needs PyTorch: pip install 'stea-fast[torch]'; 'cpu' does not", name="torch"
        ) from None
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise ValueError(f"device must be a torch device such as 'cpu', 'cuda' or 'cuda:1'; {error}") from None
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"device {str(name)!r} cannot be used: torch {torch.__version__} sees no CUDA device here")
    if device.type == "cuda" and device.index is not None and device.index >= torch.cuda.device_count():
        raise ValueError(f"device {str(name)!r} cannot be used: torch sees {torch.cuda.device_count()} CUDA device(s)")
    return device


@contextmanager
def explained_shortage(device: Any, what: str) -> Iterator[None]:
    """Where a device has too little memory for something, say so in a `MemoryError`; torch says how much was needed."""
    try:
        yield
    except RuntimeError as error:
        torch = sys.modules.get("torch")
        if torch is None or not isinstance(error, torch.OutOfMemoryError):
            raise
        raise MemoryError(f"{what} does not fit into the memory of {device}: {error}") from error
