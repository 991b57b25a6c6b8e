"""Records of a run as plain data and named arrays, and back: what a checkpoint can hold without pickle."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from stea_fast._util.arrays import is_torch
from stea_fast.refinement.api import Refinement
from stea_fast.types import Beliefs, Ranking, RefinedRanking, RelationAlignment, TopK

_RECORDS: dict[str, Any] = {cls.__name__: cls for cls in (Beliefs, Ranking, RefinedRanking, Refinement, TopK)}
_SPARSE = ("data", "indices", "indptr")
_RELATIONS = ("sub12", "sub21", "default")


def packed(value: Any, name: str, arrays: dict[str, Any], left_out: Collection[str] = ()) -> Any:
    """`value` as what JSON can write; its arrays are put into `arrays`, under names that begin with `name`.

    Fields of records whose names are in `left_out` are not packed.
    """

    def parts_of(names: Collection[str]) -> dict[str, Any]:
        return {part: packed(getattr(value, part), f"{name}.{part}", arrays, left_out) for part in names}

    if isinstance(value, np.ndarray) or is_torch(value):
        arrays[name] = value
        return {"array": name}
    if isinstance(value, np.generic):
        arrays[name] = np.atleast_1d(value)
        return {"number": name}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [packed(item, f"{name}.{i}", arrays, left_out) for i, item in enumerate(value)]
    if isinstance(value, RelationAlignment):
        return {"relations": parts_of(_RELATIONS)}
    if isinstance(value, csr_array):
        return {"sparse": parts_of(_SPARSE), "shape": list(value.shape)}
    if is_dataclass(value) and type(value).__name__ in _RECORDS:
        kept = [field.name for field in fields(value) if field.name not in left_out]
        return {"record": type(value).__name__, "fields": parts_of(kept)}
    raise TypeError(f"{name} is a {type(value).__name__}, which a checkpoint cannot hold")


def unpacked(plain: Any, arrays: Mapping[str, Any], left_out: Mapping[str, Any]) -> Any:
    """What `packed` made plain data of; a sequence comes back as a tuple.

    `left_out` has the fields that were not packed, by name; every record that has such a field gets it.
    """

    def parts_of(parts: Mapping[str, Any]) -> dict[str, Any]:
        return {name: unpacked(part, arrays, left_out) for name, part in parts.items()}

    if isinstance(plain, list):
        return tuple(unpacked(item, arrays, left_out) for item in plain)
    if not isinstance(plain, dict):
        return plain
    if "array" in plain:
        return arrays[plain["array"]]
    if "number" in plain:
        return arrays[plain["number"]][0]
    if "relations" in plain:
        return RelationAlignment.trusted(**parts_of(plain["relations"]))
    if "sparse" in plain:
        return _sparse(**parts_of(plain["sparse"]), shape=plain["shape"])
    cls = _RECORDS[plain["record"]]
    names = {field.name for field in fields(cls)}
    return cls(**parts_of(plain["fields"]), **{name: value for name, value in left_out.items() if name in names})


def _sparse(data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, shape: list[int]) -> csr_array:
    matrix = csr_array(tuple(shape), dtype=data.dtype)
    matrix.data, matrix.indices, matrix.indptr = data, indices, indptr  # as they are: a constructor may change types
    return matrix
