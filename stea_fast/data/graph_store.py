"""A graph on the disk: a folder of .npy files that can be mapped into memory, and a header, kg.json.

The header says which files belong to the graph, so that replacing it replaces the graph in one step: each time a graph
is saved over another its files carry the next generation in their names, and `edges.npy` becomes `edges.1.npy`. It has

    {"format": "stea-fast KG", "version": 2, "num_entities": 5, "num_relations": 2, "generation": 1,
     "checksums": {"indptr.1.npy": "crc32:…", "edges.1.npy": "crc32:…", …}}

with a checksum for every file of the graph. Version 1 had no generations and no checksums. A graph with values has
version 3 and a file for each part of its `Attributes`; without them it is what older versions of the package read.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from stea_fast._util import validate
from stea_fast._util.arrays import freeze
from stea_fast._util.name_table import NameTable
from stea_fast._util.npy import read_npy
from stea_fast.data.attributes import Attributes
from stea_fast.data.graph_checks import fault_of_arrays, fault_of_attributes, fault_of_names
from stea_fast.formats.value_pool import ValuePool

FORMAT = "stea-fast KG"
FORMAT_VERSION, VERSION_WITH_VALUES = 2, 3
READABLE_VERSIONS = (1, FORMAT_VERSION, VERSION_WITH_VALUES)
HEADER = "kg.json"
ARRAYS = ("indptr", "edges", "functionality")
NAMES = ("entity_names", "relation_names")
# Of the attributes and of their values, each under the name that it has there.
STATEMENT_ARRAYS = ("indptr", "attribute", "value")
VALUE_ARRAYS = ("datatype", "language")
VALUE_NAMES = ("texts", "datatype_names", "language_names")


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
    attributes: Attributes | None

    def fault(self) -> str | None:
        """What is wrong with the arrays, if anything: the kernels rely on them."""
        return (
            fault_of_arrays(self.num_entities, self.num_relations, self.indptr, self.edges, self.functionality)
            or fault_of_names("entity_names", self.entity_names, self.num_entities)
            or fault_of_names("relation_names", self.relation_names, self.num_relations)
            or fault_of_attributes(self.attributes, self.num_entities)
        )

    def arrays(self) -> dict[str, np.ndarray]:
        """All arrays, under the names that their files have."""
        found = {name: getattr(self, name) for name in ARRAYS}
        tables = {name: getattr(self, name) for name in NAMES}
        if self.attributes is not None:
            pool = self.attributes.values
            found |= {_in_attributes(name): getattr(self.attributes, name) for name in STATEMENT_ARRAYS}
            found |= {_in_attributes(name): getattr(pool, name) for name in VALUE_ARRAYS}
            tables |= {_in_attributes(name): getattr(pool, name) for name in VALUE_NAMES}
            tables[_in_attributes("attribute_names")] = self.attributes.attribute_names
        for name, table in tables.items():
            if table is not None:
                found |= {f"{name}.text": table.text, f"{name}.offsets": table.offsets}
        return found


def _in_attributes(name: str) -> str:
    return f"attributes.{name}"


PARTS = (
    *ARRAYS,
    *map(_in_attributes, (*STATEMENT_ARRAYS, *VALUE_ARRAYS)),
    *(
        f"{name}.{part}"
        for name in (*NAMES, *map(_in_attributes, ("attribute_names", *VALUE_NAMES)))
        for part in ("text", "offsets")
    ),
)


def file_name(array: str, generation: int) -> str:
    """The name of the file of an array; the first graph of a folder is of generation 0."""
    return f"{array}.{generation}.npy" if generation else f"{array}.npy"


def load(path: str | os.PathLike[str], *, mmap: bool = False) -> StoredGraph:
    """Read what `save` has written; with `mmap=True` the arrays stay on disk until they are touched.

    Raises:
        ValueError: the folder holds no saved graph, or a damaged one.
    """
    folder = Path(path)
    while True:
        header = read_header(folder)
        try:
            return _load(folder, header, mmap)
        except ValueError:
            if read_header(folder) == header:  # otherwise it was replaced while we read
                raise


def _load(folder: Path, header: dict[str, Any], mmap: bool) -> StoredGraph:
    def path_of(name: str) -> Path:
        return folder / file_name(name, header.get("generation", 0))

    def read(name: str) -> np.ndarray:
        try:
            return freeze(read_npy(path_of(name), mmap=mmap))
        except (OSError, ValueError) as error:
            raise ValueError(f"{folder}: cannot read {path_of(name).name}; the folder is damaged: {error}") from None

    def read_names(name: str) -> NameTable | None:
        text = path_of(f"{name}.text")
        named = text.name in header["checksums"] if "checksums" in header else text.exists()
        return read_table(name) if named else None

    def read_table(name: str) -> NameTable:
        return NameTable(read(f"{name}.text"), read(f"{name}.offsets"))

    def read_attributes() -> Attributes | None:
        if header["version"] != VERSION_WITH_VALUES:
            return None
        parts = {name: read(_in_attributes(name)) for name in (*STATEMENT_ARRAYS, *VALUE_ARRAYS)}
        tables = {name: read_table(_in_attributes(name)) for name in VALUE_NAMES}
        pool = ValuePool(**tables, **{name: parts.pop(name) for name in VALUE_ARRAYS})  # type: ignore[arg-type]
        names = read_table(_in_attributes("attribute_names"))
        return Attributes(**parts, attribute_names=names, values=pool)

    indptr, edges, functionality = (read(name) for name in ARRAYS)
    entity_names, relation_names = (read_names(name) for name in NAMES)
    sizes = int(header["num_entities"]), int(header["num_relations"])
    graph = StoredGraph(*sizes, indptr, edges, functionality, entity_names, relation_names, read_attributes())
    fault = graph.fault()
    if fault is not None:
        raise ValueError(f"{folder} is damaged: {fault}")
    return graph


def read_header(folder: Path) -> dict[str, Any]:
    """The header of a saved graph, or an error that says why the folder is none."""
    try:
        header = json.loads((folder / HEADER).read_text(encoding="utf-8"))
        sizes = [header.get(name) for name in ("num_entities", "num_relations")]
    except (OSError, ValueError, AttributeError, RecursionError) as error:
        raise ValueError(f"{folder} is not a saved KG: {error}") from None
    if header.get("format") != FORMAT or header.get("version") not in READABLE_VERSIONS:
        raise ValueError(
            f"{folder} holds {header.get('format')!r} version {header.get('version')!r}; "
            f"expected {FORMAT!r} version {' or '.join(map(str, READABLE_VERSIONS))}"
        )
    for size, limit in zip(sizes, (validate.MAX_ID, validate.MAX_ID // 2), strict=True):
        if type(size) is not int or not 0 < size <= limit:
            raise ValueError(f"{folder}: kg.json does not say how many entities and relations there are")
    generation = header.get("generation", 0)
    if type(generation) is not int or generation < 0:
        raise ValueError(f"{folder}: kg.json names no generation of files, but {generation!r}")
    if not isinstance(header.get("checksums", {}), dict):
        raise ValueError(f"{folder}: kg.json does not say which checksum each file has")
    return header
