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

from stea_fast._util.arrays import freeze
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

    def is_consistent(self, *, touch_edges: bool) -> bool:
        """Whether the arrays are what the kernels rely on; the contents of the edges only if asked."""
        dtypes = [getattr(self, name).dtype for name in _ARRAYS]
        return bool(
            dtypes == [np.int64, np.int32, np.float32]
            and self.indptr.shape == (self.num_entities + 1,)
            and self.indptr[0] == 0
            and (np.diff(self.indptr) >= 0).all()
            and self.edges.shape == (int(self.indptr[-1]), 2)
            and self.functionality.shape == (2 * self.num_relations,)
            and all(
                table is None or len(table) == size
                for table, size in ((self.entity_names, self.num_entities), (self.relation_names, self.num_relations))
            )
            and (not touch_edges or self.edges.size == 0 or self.edges.min() >= 0)
            and (not touch_edges or (self.edges < (self.num_entities, 2 * self.num_relations)).all())
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
            return freeze(np.load(folder / f"{name}.npy", mmap_mode="r" if mmap else None, allow_pickle=False))
        except (OSError, EOFError, ValueError) as error:
            raise ValueError(f"{folder}: cannot read {name}.npy; the folder is damaged: {error}") from None

    def read_names(name: str) -> NameTable | None:
        named = (folder / f"{name}.text.npy").exists()
        return NameTable(read(f"{name}.text"), read(f"{name}.offsets")) if named else None

    indptr, edges, functionality = (read(name) for name in _ARRAYS)
    entity_names, relation_names = (read_names(name) for name in _NAMES)
    sizes = int(header["num_entities"]), int(header["num_relations"])
    graph = StoredGraph(*sizes, indptr, edges, functionality, entity_names, relation_names)
    if not graph.is_consistent(touch_edges=not mmap):
        raise ValueError(f"{folder}: the arrays do not fit together; the folder is damaged")
    return graph


def _read_header(folder: Path) -> dict[str, Any]:
    try:
        header = json.loads((folder / "kg.json").read_text(encoding="utf-8"))
        sizes = [header.get(name) for name in ("num_entities", "num_relations")]
    except (OSError, ValueError, AttributeError) as error:
        raise ValueError(f"{folder} is not a saved KG: {error}") from None
    if header.get("format") != FORMAT or header.get("version") != FORMAT_VERSION:
        raise ValueError(
            f"{folder} holds {header.get('format')!r} version {header.get('version')!r}; "
            f"expected {FORMAT!r} version {FORMAT_VERSION}"
        )
    if not all(isinstance(size, int) and size > 0 for size in sizes):
        raise ValueError(f"{folder}: kg.json does not say how many entities and relations there are")
    return header
