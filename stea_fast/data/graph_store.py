"""A graph on the disk: a folder of .npy files that can be mapped into memory, and a header."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from stea_fast._util import validate
from stea_fast._util.arrays import freeze
from stea_fast._util.npy import read_npy
from stea_fast.data.graph_checks import fault_of_arrays, fault_of_names
from stea_fast.name_table import NameTable

FORMAT = "stea-fast KG"
FORMAT_VERSION = 1
_ARRAYS = ("indptr", "edges", "functionality")
_NAMES = ("entity_names", "relation_names")


@dataclass(frozen=True, eq=False)
class StoredGraph:
    """All that a `KG` is made of, under the names of its attributes."""

    num_entities: int
    num_relations: int
    indptr: np.ndarray
    edges: np.ndarray
    functionality: np.ndarray
    entity_names: NameTable | None
    relation_names: NameTable | None

    def fault(self) -> str | None:
        """What is wrong with the arrays, if anything: the kernels rely on them."""
        return (
            fault_of_arrays(self.num_entities, self.num_relations, self.indptr, self.edges, self.functionality)
            or fault_of_names("entity_names", self.entity_names, self.num_entities)
            or fault_of_names("relation_names", self.relation_names, self.num_relations)
        )


def save(graph: StoredGraph, path: str | os.PathLike[str]) -> None:
    """Write a graph to a folder, which appears whole or not at all."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    private = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    staging = private / "kg"
    try:
        staging.mkdir()  # with the user's umask; the temporary folder is closed to others
        _write(graph, staging)
        if path.exists():
            _read_header(path)  # only a saved graph is ever replaced
            shutil.rmtree(path)
        os.replace(staging, path)
    finally:
        shutil.rmtree(private, ignore_errors=True)


def _write(graph: StoredGraph, folder: Path) -> None:
    header = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "num_entities": graph.num_entities,
        "num_relations": graph.num_relations,
    }
    for name in _ARRAYS:
        np.save(folder / f"{name}.npy", getattr(graph, name), allow_pickle=False)
    for name in _NAMES:
        table = getattr(graph, name)
        if table is not None:
            np.save(folder / f"{name}.text.npy", table.text, allow_pickle=False)
            np.save(folder / f"{name}.offsets.npy", table.offsets, allow_pickle=False)
    (folder / "kg.json").write_text(json.dumps(header, indent=2) + "\n", encoding="utf-8")


def load(path: str | os.PathLike[str], *, mmap: bool = False) -> StoredGraph:
    """Read what `save` has written; with `mmap=True` the arrays stay on disk until they are touched.

    Raises:
        ValueError: the folder holds no saved graph, or a damaged one.
    """
    folder = Path(path)
    header = _read_header(folder)

    def read(name: str) -> np.ndarray:
        try:
            return freeze(read_npy(folder / f"{name}.npy", mmap=mmap))
        except (OSError, ValueError) as error:
            raise ValueError(f"{folder}: cannot read {name}.npy; the folder is damaged: {error}") from None

    def read_names(name: str) -> NameTable | None:
        named = (folder / f"{name}.text.npy").exists()
        return NameTable(read(f"{name}.text"), read(f"{name}.offsets")) if named else None

    indptr, edges, functionality = (read(name) for name in _ARRAYS)
    entity_names, relation_names = (read_names(name) for name in _NAMES)
    sizes = int(header["num_entities"]), int(header["num_relations"])
    graph = StoredGraph(*sizes, indptr, edges, functionality, entity_names, relation_names)
    fault = graph.fault()
    if fault is not None:
        raise ValueError(f"{folder} is damaged: {fault}")
    return graph


def _read_header(folder: Path) -> dict[str, Any]:
    try:
        header = json.loads((folder / "kg.json").read_text(encoding="utf-8"))
        sizes = [header.get(name) for name in ("num_entities", "num_relations")]
    except (OSError, ValueError, AttributeError, RecursionError) as error:
        raise ValueError(f"{folder} is not a saved KG: {error}") from None
    if header.get("format") != FORMAT or header.get("version") != FORMAT_VERSION:
        raise ValueError(
            f"{folder} holds {header.get('format')!r} version {header.get('version')!r}; "
            f"expected {FORMAT!r} version {FORMAT_VERSION}"
        )
    for size, limit in zip(sizes, (validate.MAX_ID, validate.MAX_ID // 2), strict=True):
        if type(size) is not int or not 0 < size <= limit:
            raise ValueError(f"{folder}: kg.json does not say how many entities and relations there are")
    return header
