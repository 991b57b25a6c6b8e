"""Encoders: an embedding for every entity of two graphs, learnt from known pairs.

`make(name, kg1, kg2, …)` gives one by name; `base.Encoder` is what a foreign encoder must offer. Nothing is
imported before it is needed: torch only when a trained encoder is made.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stea_fast.encoders.base import Encoder
    from stea_fast.graph import KG

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
    """The class of a known encoder; its constructor documents its options."""
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
    """An encoder by name, for this pair of graphs. `options` are those of its class.

    Names joined by "+" give several side by side (`combined.Combined`); `options` then hold a dictionary for each of
    them by its name, and `weights`.
    """
    if "+" not in name:
        return encoder_class(name)(kg1, kg2, seed=seed, device=device, **options)
    from stea_fast.encoders.combined import Combined

    weights = options.pop("weights", None)
    names = name.split("+")
    unknown = sorted(options.keys() - set(names))
    if unknown:
        raise TypeError(f"encoder {name!r} has no part {', '.join(unknown)} to give options to")
    # Propagation, which trains nothing, knows no other device.
    where = {part: "cpu" if part == "propagation" else device for part in names}
    parts = {
        part: encoder_class(part)(kg1, kg2, seed=seed, device=where[part], **options.get(part, {})) for part in names
    }
    return Combined(parts, weights)
