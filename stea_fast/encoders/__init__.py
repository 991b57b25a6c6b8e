"""Encoders: an embedding for every entity of two graphs, learnt from known pairs.

`make(name, kg1, kg2, …)` gives one by name; `base.Encoder` is what a foreign encoder must offer. Nothing is
imported before it is needed: torch only when a trained encoder is made.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from stea_fast.encoders import absent

if TYPE_CHECKING:
    from stea_fast.data.graph import KG
    from stea_fast.encoders.base import Encoder

__all__ = ["NAMES", "encoder_class", "make"]

_CLASSES = {
    "dual_amn": "DualAMN",
    "rrea": "RREA",
    "alinet": "AliNet",
    "gcn_align": "GCNAlign",
    "propagation": "Propagation",
}
NAMES = tuple(_CLASSES)


def encoder_class(name: str) -> type[Any]:
    """Look up the class of an encoder, whose constructor documents its options.

    Args:
        name: "dual_amn", "rrea", "alinet", "gcn_align" or "propagation".

    Returns:
        The class.

    Raises:
        ValueError: There is no encoder of that name.
        ModuleNotFoundError: The encoder needs torch, which is not installed.
    """
    if name not in _CLASSES:
        raise ValueError(f"unknown encoder {name!r}; known are {', '.join(NAMES)}")
    try:
        module = importlib.import_module(f"stea_fast.encoders.{name}")
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ModuleNotFoundError(
            f"encoder {name!r} needs PyTorch: pip install 'stea-fast[torch]'; 'propagation' does not", name="torch"
        ) from None
    return getattr(module, _CLASSES[name])


def make(name: str, kg1: KG, kg2: KG, *, seed: int = 0, device: str = "cpu", **options: Any) -> Encoder:
    """Make an encoder by its name, for one pair of graphs.

    Args:
        name: "dual_amn", "rrea", "alinet", "gcn_align" or "propagation"; "none" is the encoder of runs without one.
        kg1: The source graph.
        kg2: The target graph.
        seed: The seed of its random numbers.
        device: The torch device it trains on, such as "cpu" or "cuda".
        options: The options of its class.

    Returns:
        The encoder, untrained.

    Raises:
        ValueError: There is no encoder of that name, or an option has an unusable value.
        ModuleNotFoundError: The encoder needs torch, which is not installed.
    """
    if name == absent.NAME:
        return absent.NoEncoder()
    return encoder_class(name)(kg1, kg2, seed=seed, device=device, **options)
