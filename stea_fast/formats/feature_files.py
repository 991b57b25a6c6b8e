"""Files of vectors: a row of numbers for every entity, from a text model for example.

`.npy` and `.safetensors` hold a matrix and no ids; these stand in a text file beside it, `vectors.ids` for
`vectors.npy`, one in every line. Parquet and Arrow hold both: a column `id`, or else the first, and a column of lists,
or a column for every dimension.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from stea_fast._util.npy import read_npy
from stea_fast.formats import arrow_tables
from stea_fast.formats.streams import reading
from stea_fast.formats.terms import unwrap
from stea_fast.formats.triple_table import MissingExtraError, Problems

FORMATS = (".npy", ".safetensors", ".parquet", ".arrow", ".feather")


def read_features(path: Path, index: Mapping[str, int], num_entities: int, problems: Problems) -> np.ndarray:
    """float32 [num_entities, d]: the vectors of a file by the ids of their entities, and zeros for all others.

    Raises:
        OSError: a file cannot be opened.
        ValueError: the file holds no matrix of finite numbers, or not as many rows as ids, or no row is of an entity of
            the graph; the message names it. If problems are strict, also for the first id that is no entity.
        MissingExtraError: a package for this format is not installed.
    """
    if path.suffix not in FORMATS:
        raise ValueError(f"{path} names no known format of features; expected one of {', '.join(FORMATS)}")
    ids, rows = _read_table(path) if path.suffix in FORMATS[2:] else (_read_ids(path), _read_matrix(path))
    if rows.ndim != 2 or not rows.shape[1] or rows.dtype.kind not in "fiu":
        raise ValueError(f"{path} must hold a matrix of numbers, a row for every entity; got {rows.dtype} {rows.shape}")
    if len(ids) != len(rows):
        raise ValueError(f"{path} holds {len(rows):,} rows, and there are {len(ids):,} ids for them")
    with np.errstate(over="ignore"):  # what no float32 can hold becomes infinite, and is refused as such
        rows = rows.astype(np.float32)
    unusable = ~np.isfinite(rows).all(axis=1)
    if unusable.any():
        raise ValueError(f"{path}: the vector of {ids[int(unusable.argmax())]:.100} holds NaN or infinite values")
    vectors = np.zeros((num_entities, rows.shape[1]), dtype=np.float32)
    places = np.array([index.get(ident, -1) for ident in ids], dtype=np.int64)
    for row in np.flatnonzero(places < 0).tolist():
        problems.add(f"{path}, row {row + 1}", f"{ids[row]:.100} is no entity of the graph")
    if not (places >= 0).any():
        first = f"; the first problem is {problems.first[0]}" if problems.first else ""
        raise ValueError(f"{path} holds no vector of an entity of the graph{first}")
    vectors[places[places >= 0]] = rows[places >= 0]
    return vectors


def _read_ids(path: Path) -> list[str]:
    beside = path.with_suffix(".ids")
    if not beside.exists():
        raise ValueError(
            f"{path} says nothing of which entity a row is; put their ids into {beside}, one in every line"
        )
    with reading(beside) as stream:
        return [unwrap(line.decode("utf-8", "replace").strip()) for line in stream.read().splitlines()]


def _read_matrix(path: Path) -> np.ndarray:
    if path.suffix == ".npy":
        return read_npy(path)
    try:
        from safetensors import SafetensorError, safe_open
    except ModuleNotFoundError:
        raise MissingExtraError("safetensors", "torch") from None
    try:
        with safe_open(path, framework="np") as file:
            names = list(file.keys())
            if len(names) != 1:
                raise ValueError(f"it holds {len(names)} tensors, and one was expected")
            return np.asarray(file.get_tensor(names[0]))
    except (SafetensorError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} is not a readable safetensors file of features: {error}") from None


def _read_table(path: Path) -> tuple[list[str], np.ndarray]:
    """Ids and vectors of a Parquet or Arrow file, all of which is validated before anything is used."""
    arrow = arrow_tables.library()
    try:
        table = arrow.parquet.read_table(path) if path.suffix == ".parquet" else arrow.feather.read_table(path)
        table.validate(full=True)
        name = "id" if "id" in table.column_names else table.column_names[0]
        ids = [unwrap(str(ident)) for ident in table.column(name).to_pylist()]
        return ids, _vectors(arrow.types, table.drop_columns([name]))
    except OSError as error:
        if isinstance(error, FileNotFoundError):
            raise
        raise ValueError(f"{path} is not a readable table of features: {error}") from None
    except Exception as error:  # whatever a file makes the library raise
        raise ValueError(f"{path} is not a readable table of features: {error}") from None


def _vectors(types: Any, table: Any) -> np.ndarray:
    """[rows, d]: of one column of lists, or of a column for every dimension."""
    kinds = [field.type for field in table.schema]
    lists = [types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind) for kind in kinds]
    if not any(lists):
        return np.stack([column.to_numpy() for column in table.columns], axis=1)
    if len(kinds) > 1:
        raise ValueError("beside the ids there must be one column of lists, or columns of numbers")
    column = table.column(0).combine_chunks()
    if column.null_count:
        raise ValueError("a row has no vector")
    flat = column.flatten().to_numpy(zero_copy_only=False)
    width, rest = divmod(len(flat), max(len(column), 1))
    lengths = {len(row) for row in column} if not types.is_fixed_size_list(kinds[0]) else {width}
    if rest or lengths - {width}:
        raise ValueError(f"its vectors are of different lengths, {min(lengths)} to {max(lengths)}")
    return np.asarray(flat).reshape(len(column), width)
