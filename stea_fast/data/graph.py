"""The knowledge graph: a set of triples as CSR adjacency of its inverse closure."""

from __future__ import annotations

import copy
import json
import os
import shutil
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stea_fast._util import validate
from stea_fast._util.arrays import freeze
from stea_fast._util.sparse import distinct, offsets, rows_of
from stea_fast.data.interop import FromOtherLibraries
from stea_fast.name_table import NameTable

if TYPE_CHECKING:
    from stea_fast.data.device_graph import DeviceGraph

FORMAT = "stea-fast KG"
FORMAT_VERSION = 1
_ARRAYS = ("indptr", "edges", "functionality")
_NAMES = ("entity_names", "relation_names")


@dataclass(frozen=True)
class DegreeStats:
    """Degrees in the inverse closure: every triple counts at its head and at its tail."""

    mean: float
    median: float
    maximum: int
    isolated: int


class KG(FromOtherLibraries):
    """An immutable knowledge graph over its own 0-based entity and relation ids.

    The graph is closed under inverses: the triple r(h, t) gives the edge (r, t) at h and the edge
    (r + R, h) at t, so there are 2R directed relations. Duplicate triples count once; entities without
    triples are kept.

    Args:
        triples: (n, 3) integers: head, relation, tail. NumPy array, torch tensor or nested list.
        num_entities: number of entities; the largest id + 1 if not given.
        num_relations: number of relations R; the largest id + 1 if not given.
        entity_names, relation_names: optional strings, one per id, shown in explanations.

    Attributes:
        indptr: int64 [num_entities + 1], start of every entity's edges.
        edges: int32 [num_edges, 2], (neighbor, relation), ordered by both within an entity.
        functionality: float32 [2R], fun(r) = distinct heads of r / distinct (head, tail) of r.
    """

    __slots__ = (
        "device_graph", "edges", "entity_names", "functionality", "indptr", "num_entities", "num_relations",
        "relation_names",
    )  # fmt: skip
    indptr: np.ndarray
    edges: np.ndarray
    functionality: np.ndarray
    num_entities: int
    num_relations: int
    entity_names: NameTable | None
    relation_names: NameTable | None
    device_graph: DeviceGraph | None

    def __init__(
        self,
        triples: Any,
        num_entities: int | None = None,
        num_relations: int | None = None,
        *,
        entity_names: Iterable[str] | None = None,
        relation_names: Iterable[str] | None = None,
    ) -> None:
        array = validate.columns(triples, "triples", 3)
        n = _size(array[:, [0, 2]], num_entities, "num_entities", "triples[:, [0, 2]]", "entities")
        r = _size(array[:, 1], num_relations, "num_relations", "triples[:, 1]", "relations", validate.MAX_ID // 2)
        indptr, edges = _closure(array, n, r)
        self._set("num_entities", n)
        self._set("num_relations", r)
        self._set("indptr", freeze(indptr))
        self._set("edges", freeze(edges))
        self._set("functionality", freeze(_functionality(indptr, edges, n, r)))
        self._set("entity_names", _pack_names(entity_names, n, "entity_names"))
        self._set("relation_names", _pack_names(relation_names, r, "relation_names"))
        self._set("device_graph", None)

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"KG is immutable; cannot set {name!r}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"KG is immutable; cannot delete {name!r}")

    def __getstate__(self) -> tuple[None, dict[str, object]]:
        return None, {name: getattr(self, name) for name in self.__slots__ if name != "device_graph"}

    def __setstate__(self, state: tuple[None, dict[str, object]]) -> None:
        self._set("device_graph", None)  # what is on a device stays there
        for name, value in state[1].items():  # a copy or an unpickled graph: as immutable as the original
            self._set(name, freeze(value) if isinstance(value, np.ndarray) else value)

    def to(self, device: Any) -> KG:
        """This graph with a copy of its arrays on a torch device, for `refine` and `Refiner` to use there.

        The arrays on the host stay and are shared. `to("cpu")` forgets the copy.
        """
        import torch

        from stea_fast.data.device_graph import DeviceGraph

        moved = copy.copy(self)
        place = torch.empty(0, device=device).device  # "cuda" names one of several devices: the current one
        moved._set("device_graph", None if place.type == "cpu" else DeviceGraph.upload(self, place))
        return moved

    @property
    def num_triples(self) -> int:
        """Number of distinct triples."""
        return len(self.edges) // 2

    @property
    def neighbors(self) -> np.ndarray:
        """int32 [num_edges]: the neighbour of every edge."""
        return self.edges[:, 0]

    @property
    def relations(self) -> np.ndarray:
        """int32 [num_edges]: the relation of every edge, in [0, 2R)."""
        return self.edges[:, 1]

    @property
    def inverse_functionality(self) -> np.ndarray:
        """float32 [2R]: fun⁻¹(r) = distinct tails of r / distinct (head, tail) of r = fun(r⁻)."""
        return np.roll(self.functionality, self.num_relations)

    @property
    def degrees(self) -> np.ndarray:
        """int64 [num_entities]: number of edges of every entity."""
        return np.diff(self.indptr)

    @property
    def triples(self) -> np.ndarray:
        """int32 [num_triples, 3]: the distinct triples, ordered by (head, tail, relation)."""
        forward = self.relations < self.num_relations
        heads = np.repeat(np.arange(self.num_entities, dtype=np.int32), self.degrees)[forward]
        return np.stack([heads, self.relations[forward], self.neighbors[forward]], axis=1)

    def degree_stats(self) -> DegreeStats:
        """Mean, median and largest degree, and the number of entities without triples."""
        degrees = self.degrees
        return DegreeStats(
            float(degrees.mean()), float(np.median(degrees)), int(degrees.max()), int((degrees == 0).sum())
        )

    def edges_of(self, entity: int) -> np.ndarray:
        """int32 [degree, 2]: the edges (neighbor, relation) of one entity."""
        return self.edges[self.indptr[entity] : self.indptr[entity + 1]]

    def entity_label(self, entity: int) -> str:
        """The entity's name, or its id as text."""
        return self.entity_names[entity] if self.entity_names is not None else str(entity)

    def relation_label(self, relation: int) -> str:
        """The relation's name or id; the inverse of r is written r⁻."""
        base = relation % self.num_relations
        label = self.relation_names[base] if self.relation_names is not None else str(base)
        return label if relation < self.num_relations else f"{label}⁻"

    def __repr__(self) -> str:
        return f"KG({self.num_entities:,} entities, {self.num_relations:,} relations, {self.num_triples:,} triples)"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, KG):
            return NotImplemented
        return (
            self.num_relations == other.num_relations
            and np.array_equal(self.indptr, other.indptr)
            and np.array_equal(self.edges, other.edges)
            and self.entity_names == other.entity_names
            and self.relation_names == other.relation_names
        )

    __hash__ = object.__hash__

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the graph to a folder of .npy files. The folder appears whole or not at all."""
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        private = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
        staging = private / "kg"
        try:
            staging.mkdir()  # with the user's umask; the temporary folder is closed to others
            self._write(staging)
            if path.exists():
                _check_format(path)  # only a saved graph is ever replaced
                shutil.rmtree(path)
            os.replace(staging, path)
        finally:
            shutil.rmtree(private, ignore_errors=True)

    def _write(self, folder: Path) -> None:
        header = {
            "format": FORMAT,
            "version": FORMAT_VERSION,
            "num_entities": self.num_entities,
            "num_relations": self.num_relations,
        }
        for name in _ARRAYS:
            np.save(folder / f"{name}.npy", getattr(self, name), allow_pickle=False)
        for name in _NAMES:
            table = getattr(self, name)
            if table is not None:
                np.save(folder / f"{name}.text.npy", table.text, allow_pickle=False)
                np.save(folder / f"{name}.offsets.npy", table.offsets, allow_pickle=False)
        (folder / "kg.json").write_text(json.dumps(header, indent=2) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, mmap: bool = False) -> KG:
        """Read a saved graph; with `mmap=True` its arrays stay on disk until they are touched."""
        folder = Path(path)
        header = _check_format(folder)

        def read(name: str) -> np.ndarray:
            try:
                return freeze(np.load(folder / f"{name}.npy", mmap_mode="r" if mmap else None, allow_pickle=False))
            except (OSError, EOFError, ValueError) as error:
                raise ValueError(f"{folder}: cannot read {name}.npy; the folder is damaged: {error}") from None

        kg = cls.__new__(cls)
        kg._set("num_entities", int(header["num_entities"]))
        kg._set("num_relations", int(header["num_relations"]))
        for name in _ARRAYS:
            kg._set(name, read(name))
        for name in _NAMES:
            named = (folder / f"{name}.text.npy").exists()
            kg._set(name, NameTable(read(f"{name}.text"), read(f"{name}.offsets")) if named else None)
        kg._set("device_graph", None)
        if not kg._is_consistent(touch_edges=not mmap):
            raise ValueError(f"{folder}: the arrays do not fit together; the folder is damaged")
        return kg

    def _is_consistent(self, *, touch_edges: bool) -> bool:
        """Whether the arrays are what the kernels rely on; the contents of the edges only if asked."""
        dtypes = [getattr(self, name).dtype for name in _ARRAYS]
        return bool(
            dtypes == [np.int64, np.int32, np.float32]
            and self.indptr.shape == (self.num_entities + 1,)
            and self.indptr[0] == 0
            and (self.degrees >= 0).all()
            and self.edges.shape == (int(self.indptr[-1]), 2)
            and self.functionality.shape == (2 * self.num_relations,)
            and all(
                table is None or len(table) == size
                for table, size in ((self.entity_names, self.num_entities), (self.relation_names, self.num_relations))
            )
            and (not touch_edges or self.edges.size == 0 or self.edges.min() >= 0)
            and (not touch_edges or (self.edges < (self.num_entities, 2 * self.num_relations)).all())
        )


def _size(ids: np.ndarray, given: int | None, name: str, where: str, what: str, maximum: int = validate.MAX_ID) -> int:
    if given is None:
        if ids.size == 0:
            raise ValueError(f"triples is empty: give {name}, or at least one triple")
        validate.in_range(ids, where, maximum, what)
        given = int(ids.max()) + 1
    size = validate.count(given, name, minimum=1, maximum=maximum)
    validate.in_range(ids, where, size, what)
    return size


def _pack_names(names: Iterable[str] | None, size: int, name: str) -> NameTable | None:
    if names is None:
        return None
    table = NameTable.pack(_strings(names, name))
    if len(table) != size:
        raise ValueError(f"{name} must have one name for each of {size} ids, got {len(table)}")
    return table


def _strings(names: Iterable[str], name: str) -> Iterable[str]:
    if isinstance(names, NameTable):
        return names
    if isinstance(names, (str, bytes)) or not isinstance(names, Iterable):
        raise TypeError(f"{name} must be a sequence of strings, got {type(names).__name__}")
    listed = list(names)
    others = [type(item).__name__ for item in listed if not isinstance(item, str)]
    if others:
        raise TypeError(f"{name} must hold strings, got {others[0]}")
    return listed


def _closure(triples: np.ndarray, n: int, r: int) -> tuple[np.ndarray, np.ndarray]:
    """CSR of the inverse closure: each (row, neighbor, relation) is one integer, so sorting is one sort."""
    head, relation, tail = triples.T
    rows = np.concatenate([head, tail])
    neighbors = np.concatenate([tail, head])
    relations = np.concatenate([relation, relation + r])
    if n * n * 2 * r < 2**63:
        pairs, relations = np.divmod(distinct((rows * n + neighbors) * (2 * r) + relations), 2 * r)
        rows, neighbors = np.divmod(pairs, n)
    else:
        rows, neighbors, relations = np.unique(np.stack([rows, neighbors, relations]), axis=1)
    edges = np.empty((len(rows), 2), dtype=np.int32)
    edges[:, 0], edges[:, 1] = neighbors, relations
    return offsets(rows, n), edges


def _functionality(indptr: np.ndarray, edges: np.ndarray, n: int, r: int) -> np.ndarray:
    """fun(r) for the 2R relations: rows that have an edge r, divided by the number of edges r."""
    heads = np.bincount(distinct(edges[:, 1].astype(np.int64) * n + rows_of(indptr)) // n, minlength=2 * r)
    pairs = np.bincount(edges[:, 1], minlength=2 * r)
    return (heads / np.maximum(pairs, 1)).astype(np.float32)


def _check_format(folder: Path) -> dict[str, Any]:
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
