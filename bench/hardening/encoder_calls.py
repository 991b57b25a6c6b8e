"""Arguments of the entry points of `stea_fast._core` that serve the encoders, for `core_calls`."""

from __future__ import annotations

from typing import Any

import numpy as np

import stea_fast._core as _core

Arguments = dict[str, Any]


def _run(rng: np.random.Generator) -> Arguments:
    return {"n_threads": int(rng.integers(1, 4)), "tier": ""}


def _floats(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape, dtype=np.float32)


def _offsets(rng: np.random.Generator, rows: int, size: int) -> np.ndarray:
    return np.concatenate([[0], np.sort(rng.integers(0, size + 1, size=rows - 1)), [size]])


def dense_product(rng: np.random.Generator) -> Arguments:
    """Two small matrices."""
    rows, depth, columns = (int(size) for size in rng.integers(0, 70, size=3))
    return {
        "a": _floats(rng, rows, depth),
        "b": _floats(rng, depth, columns),
        "out": _floats(rng, rows, columns),
        **_run(rng),
    }


def sparse_rows(rng: np.random.Generator) -> Arguments:
    """A small sparse matrix and a dense one."""
    rows, size, height, width = (int(count) for count in rng.integers(1, 40, size=4))
    columns = rng.integers(height, size=size).astype(np.int32)
    given = {"indptr": _offsets(rng, rows, size), "columns": columns, "values": _floats(rng, size)}
    start, end = sorted(int(place) for place in rng.integers(width + 1, size=2))
    place = {"x_start": start, "out_start": start, "width": end - start}
    return {**given, "x": _floats(rng, height, width), "out": _floats(rng, rows, width), **place, **_run(rng)}


def triple_view(rng: np.random.Generator) -> Arguments:
    """Edges between few entities, and a matrix that is wider than what is written of it."""
    rows, size, height, kinds = (int(count) for count in rng.integers(1, 40, size=4))
    dimensions, start = int(rng.integers(0, 4)), int(rng.integers(0, 20))
    columns, relations = (rng.integers(limit, size=size).astype(np.int32) for limit in (height, kinds))
    edges = {"indptr": _offsets(rng, rows, size), "columns": columns, "relations": relations}
    given = {"strengths": _floats(rng, kinds, dimensions), "x": _floats(rng, height, 16 * dimensions)}
    out = {"out": _floats(rng, rows, 16 * dimensions + 20), "out_start": start, "squares": np.zeros(rows)}
    return {**edges, **given, **out, **_run(rng)}


def dropout(rng: np.random.Generator) -> Arguments:
    """A small matrix, a third of which is to become zero."""
    shape = tuple(int(size) for size in rng.integers(0, 50, size=2))
    drawn = {"key": int(rng.integers(2**62)), "zeroed": 21845, "scale": 1.5}
    return {"x": _floats(rng, *shape), "out": _floats(rng, *shape), **drawn, **_run(rng)}


def _layer(rng: np.random.Generator) -> tuple[Arguments, tuple[int, int, int, int, int]]:
    """What both directions of a layer take, and its sizes: entities, edges, sets, heads, dimensions."""
    n, size, sets, dim = (int(count) for count in rng.integers(1, 30, size=4))
    heads = int(rng.integers(1, 4))
    rows, columns, reverse, kinds, edges = (
        rng.integers(limit, size=size).astype(np.int32) for limit in (n, n, size, sets, size)
    )
    graph = _offsets(rng, n, size), rows, columns, reverse, kinds, _offsets(rng, sets, size), edges
    given = {
        "graph": graph, "position": np.empty(0, dtype=np.int32), "z": _floats(rng, n, 2 * heads * dim), "source": 0,
        "unit": _floats(rng, sets, dim), "k_y": _floats(rng, heads, dim), "on_y": _floats(rng, sets, heads),
        "dots": _floats(rng, size, heads), "weights": _floats(rng, size, heads), "activation": "tanh", **_run(rng),
    }  # fmt: skip
    return given, (n, size, sets, heads, dim)


def reflect_forward(rng: np.random.Generator) -> Arguments:
    """A layer of relational reflection on arbitrary edges."""
    given, (_, _, sets, heads, dim) = _layer(rng)
    return {**given, "target": heads * dim, "on_unit": _floats(rng, sets, heads)}


def reflect_backward(rng: np.random.Generator) -> Arguments:
    """Its gradient; in half of the calls for some rows only."""
    given, (n, _, sets, heads, dim) = _layer(rng)
    some = rng.random() < 0.5
    position = rng.integers(-1, n, size=n).astype(np.int32) if some else np.empty(0, dtype=np.int32)
    others = {
        "k_unit": _floats(rng, heads, dim), "grad": _floats(rng, n, heads * dim),
        "outer": _floats(rng, n, 2 * heads * dim), "outer_position": position, "d_x": _floats(rng, n, heads * dim),
        "d_unit": _floats(rng, sets, dim),
    }  # fmt: skip
    return {**given, **others, "position": position}


def _negatives(rng: np.random.Generator) -> tuple[Arguments, int, int]:
    """What both kernels of hard negatives take, and how many queries and entities there are."""
    queries, entities, width = int(rng.integers(0, 20)), int(rng.integers(2, 60)), int(rng.integers(1, 40))
    ends = np.array([rng.permutation(entities)[:2] for _ in range(queries)], dtype=np.int32).reshape(queries, 2)
    vectors = {"queries": _floats(rng, queries, width), "z": _floats(rng, entities, width)}
    sums = {"norms": _floats(rng, entities), "base": _floats(rng, queries), "centre": _floats(rng, queries)}
    rest = {"ends": ends, "scale": 30.0, "cut": 10.0, "gradient": np.zeros_like(vectors["z"]), **_run(rng)}
    return {**vectors, **sums, **rest}, queries, entities


def hard_negatives(rng: np.random.Generator) -> Arguments:
    """Products of few queries with few entities, and the vectors that they need not come from."""
    given, queries, entities = _negatives(rng)
    return {"products": _floats(rng, queries, entities), **given}


def byte_negatives(rng: np.random.Generator) -> Arguments:
    """The same without products, by any of the tiers that make them."""
    return {**_negatives(rng)[0], "int8_tier": str(rng.choice(_core.int8_tiers(False)))}
