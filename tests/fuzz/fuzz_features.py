"""Files of vectors for the fuzzer: how they look when they are right, and what is done with what was read."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from fuzz_mutations import Files

from stea_fast.data.graph import KG
from stea_fast.formats.feature_files import read_features
from stea_fast.formats.tabular import write_arrow
from stea_fast.formats.triple_table import Problems

VECTORS = np.arange(6, dtype=np.float32).reshape(2, 3)
NAMES = "Köln", "http://e.org/Berlin"


def feature_seeds(name: str) -> list[Files]:
    """A file of every kind of columns that the format of the name has, with the ids beside it where it needs them."""
    fmt = name.split(".")[1]
    stream = io.BytesIO()
    if fmt == "npy":
        np.save(stream, VECTORS)
    elif fmt == "safetensors":
        from safetensors.numpy import save

        stream.write(save({"vectors": VECTORS}))
    else:
        write_arrow(stream, fmt, {"id": list(NAMES), "x": [1.0, 2.0], "y": [0.5, 0.25]})  # type: ignore[arg-type]
        return [{name: stream.getvalue()}]
    return [{name: stream.getvalue(), "f.ids": "\n".join(NAMES).encode()}]


def use_features(path: Path, kg: KG, *, strict: bool) -> None:
    """Read vectors of a graph: finite ones, or an error that says why not."""
    index = {name: entity for entity, name in enumerate(kg.entity_names or ())}
    vectors = read_features(path, index, kg.num_entities, Problems(strict=strict))
    assert len(vectors) == kg.num_entities and np.isfinite(vectors).all()
