"""Arguments for the native functions over sets of pairs, as they should be; `core_calls` changes them."""

from __future__ import annotations

from typing import Any

import numpy as np

Arguments = dict[str, Any]


def pair_set(rng: np.random.Generator) -> tuple[Arguments, tuple[int, int], np.ndarray]:
    """Some pairs, the shape they are of, and their positions by column."""
    shape = tuple(int(size) for size in rng.integers(1, 40, size=2))
    rows, columns = np.divmod(np.flatnonzero(rng.random(shape[0] * shape[1]) < 0.2), shape[1])
    indptr = np.searchsorted(rows, np.arange(shape[0] + 1))
    pairs = {"indptr": indptr, "columns": columns.astype(np.int32)}
    return pairs, (shape[0], shape[1]), np.argsort(columns, kind="stable").astype(np.int32)


def pair_values(rng: np.random.Generator, names: tuple[str, str] | None = None) -> Arguments:
    """Pairs with a value each and, by these names, numbers of the rows and of the columns."""
    pairs, shape, _ = pair_set(rng)
    given = {**pairs, "values": rng.random(len(pairs["columns"])), "n_threads": int(rng.integers(1, 4))}
    return given | {name: rng.random(size) for name, size in zip(names or (), shape, strict=False)}


def pair_groups(rng: np.random.Generator) -> Arguments:
    given = pair_values(rng)
    columns = given.pop("columns")
    return {**given, "order": rng.permutation(len(columns)).astype(np.int32) if rng.random() < 0.7 else None}


def pair_transpose(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, int]:
    pairs, shape, _ = pair_set(rng)
    return pairs["indptr"], pairs["columns"], shape[1]


def pair_union(rng: np.random.Generator) -> Arguments:
    pairs, shape, _ = pair_set(rng)
    back_rows = rng.integers(shape[0], size=2 * shape[1]).astype(np.int32)
    return {
        **pairs,
        "of_rows": rng.integers(-1, shape[1], size=(shape[0], 3)).astype(np.int32),
        "back_rows": back_rows,
        "back_columns": np.sort(rng.integers(shape[1], size=len(back_rows))).astype(np.int32),
        "num_columns": shape[1],
        "n_threads": 2,
    }


def pair_positions(rng: np.random.Generator) -> Arguments:
    pairs, shape, _ = pair_set(rng)
    other = {"other_indptr": pairs["indptr"], "other_columns": pairs["columns"]}
    return {**pairs, **other, "num_columns": shape[1], "n_threads": 2}


def pair_known_values(rng: np.random.Generator) -> Arguments:
    pairs, shape, _ = pair_set(rng)
    sets = [(pairs["indptr"], pairs["columns"], rng.random(len(pairs["columns"])))]
    return {**pairs, "sets": sets, "num_columns": shape[1], "n_threads": 2}


def pair_mutual_best(rng: np.random.Generator) -> Arguments:
    pairs, shape, order = pair_set(rng)
    return {**pairs, "values": rng.random(len(order)), "largest_of_columns": rng.random(shape[1]), "n_threads": 2}


def pair_totals(rng: np.random.Generator) -> Arguments:
    size = int(rng.integers(0, 40))
    evidence, witnesses = rng.random(size, dtype=np.float32), rng.integers(0, 3, size=size).astype(np.int32)
    weights = {"weight": 7.0, "lone": 0.3, "n_threads": 2}
    return {"evidence": evidence, "witnesses": witnesses, "logits": rng.random(size), **weights}


def pair_damped(rng: np.random.Generator) -> Arguments:
    size, earlier = (int(count) for count in rng.integers(0, 40, size=2))
    places = rng.integers(-1, earlier, size=size).astype(np.int32)
    values = {"values": rng.random(size), "earlier": rng.random(earlier)}
    return {**values, "places": places, "share": 0.3, "n_threads": 2}
