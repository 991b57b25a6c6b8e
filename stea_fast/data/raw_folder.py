"""The dataset folders that can be loaded, each read into the same raw form."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from stea_fast.formats.attribute_table import AttributeTable
from stea_fast.formats.statement_files import read_statements
from stea_fast.formats.tab_separated import line_of_row, read_integers, read_names, read_strings

PARTS = ("train", "valid", "test")


@dataclass(frozen=True)
class RawGraph:
    """One graph in the ids of its files.

    Attributes:
        triples: int64 [n, 3]: head, relation, tail.
        entity_names, relation_names: names by id where the files give any.
        attributes: values where the files give any; of entities that may not be in the graph.
    """

    triples: np.ndarray
    entity_names: dict[int, str] | None
    relation_names: dict[int, str] | None
    attributes: AttributeTable | None = None


@dataclass(frozen=True)
class LinkFile:
    """The links of one file: int64 [n, 2], a row for every line that is not blank."""

    path: Path
    pairs: np.ndarray


@dataclass(frozen=True)
class RawPair:
    """What a folder holds.

    Attributes:
        graphs: source and target graph.
        links: the files that together hold all links.
        split: the published split by part of `PARTS`; empty if there is none or it was not asked for.
        integer_ids: whether the ids stand in the files, or were given to names while reading.
    """

    graphs: tuple[RawGraph, RawGraph]
    links: list[LinkFile]
    split: dict[str, LinkFile]
    integer_ids: bool

    def label(self, side: int, entity: int) -> str:
        """How the files call an entity of graph 0 or 1."""
        names = self.graphs[side].entity_names
        return str(entity) if self.integer_ids or names is None else names[entity]


def read_folder(folder: Path, published: bool, fold: int, values: bool = True) -> RawPair:
    """Recognise a folder by its files and read it; the published split and values only if asked for."""
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder} is not a folder")
    if _any_exists(folder, "triples_1", "triples_2"):
        return _read_integer_folder(folder, published, values)
    if _any_exists(folder, "rel_triples_1", "rel_triples_2"):
        return _read_openea_folder(folder, published, fold, values)
    content = ", ".join(sorted(entry.name for entry in folder.iterdir())[:10]) or "nothing"
    raise ValueError(
        f"{folder} is not a known dataset: expected triples_1, triples_2 and ref_ent_ids or sup_ent_ids "
        f"(DBP15K, DWY100K), or rel_triples_1, rel_triples_2 and ent_links (OpenEA); found {content}"
    )


def _read_integer_folder(folder: Path, published: bool, values: bool) -> RawPair:
    graphs = (_read_integer_graph(folder, 1, values), _read_integer_graph(folder, 2, values))
    whole, parts = _integer_link_paths(folder)

    def read(path: Path) -> LinkFile:
        file = LinkFile(path, read_integers(path, 2))
        for side, graph in enumerate(graphs):
            _check_listed(file.pairs[:, [side]], path, graph.entity_names, folder / f"ent_ids_{side + 1}")
        return file

    split = {part: read(path) for part, path in parts.items()} if published else {}
    return RawPair(graphs, [read(path) for path in whole], split, integer_ids=True)


def _read_integer_graph(folder: Path, number: int, values: bool) -> RawGraph:
    path, listing = folder / f"triples_{number}", folder / f"ent_ids_{number}"
    triples = _not_empty(read_integers(path, 3), path)
    entity_names = _names_if_any(listing)
    _check_listed(triples[:, [0, 2]], path, entity_names, listing)
    relation_names = _names_if_any(folder / f"rel_ids_{number}")
    return RawGraph(triples, entity_names, relation_names, _values_if_any(folder, number, None) if values else None)


def _integer_link_paths(folder: Path) -> tuple[list[Path], dict[str, Path]]:
    """The files that hold all links, and those of the published split."""
    sup, ref = folder / "sup_ent_ids", folder / "ref_ent_ids"
    parts = {part: folder / f"{part}_links" for part in PARTS if (folder / f"{part}_links").exists()}
    whole = [path for path in (sup, ref) if path.exists()] or list(parts.values())
    if not whole:
        raise FileNotFoundError(f"{folder} has no links: expected ref_ent_ids or sup_ent_ids")
    if not parts.keys() >= {"train", "test"}:
        parts = {"train": sup, "test": ref} if sup.exists() else {}
    return whole, parts


def _read_openea_folder(folder: Path, published: bool, fold: int, values: bool) -> RawPair:
    entity_ids: tuple[dict[str, int], dict[str, int]] = ({}, {})
    facts = [_read_openea_triples(folder / f"rel_triples_{side + 1}", entity_ids[side]) for side in (0, 1)]

    def read(path: Path) -> LinkFile:
        rows = read_strings(path, 2)
        columns = [_intern((row[side] for row in rows), entity_ids[side]) for side in (0, 1)]
        return LinkFile(path, np.stack(columns, axis=1))

    links = [read(folder / "ent_links")]
    split = {}
    if published and (folder / "721_5fold").is_dir():
        split = {part: read(folder / "721_5fold" / str(fold) / f"{part}_links") for part in PARTS}
    source, target = (
        RawGraph(triples, _by_id(ids), relation_names, _values_if_any(folder, number, ids) if values else None)
        for number, (ids, (triples, relation_names)) in enumerate(zip(entity_ids, facts, strict=True), start=1)
    )
    return RawPair((source, target), links, split, integer_ids=False)


def _read_openea_triples(path: Path, entity_ids: dict[str, int]) -> tuple[np.ndarray, dict[int, str]]:
    rows = read_strings(path, 3)
    relations = sorted({row[1] for row in rows})
    relation_ids = {name: ident for ident, name in enumerate(relations)}
    triples = np.empty((len(rows), 3), dtype=np.int64)
    triples[:, [0, 2]] = _intern((row[i] for row in rows for i in (0, 2)), entity_ids).reshape(-1, 2)
    triples[:, 1] = _intern((row[1] for row in rows), relation_ids)
    return _not_empty(triples, path), _by_id(relation_ids)


def _intern(names: Iterable[str], ids: dict[str, int]) -> np.ndarray:
    """int64: the id of every name; a new name gets the next id, and is added to `ids`."""
    return np.fromiter((ids.setdefault(name, len(ids)) for name in names), dtype=np.int64)


def _by_id(ids: dict[str, int]) -> dict[int, str]:
    return {ident: name for name, ident in ids.items()}


def _names_if_any(path: Path) -> dict[int, str] | None:
    return read_names(path) if path.exists() else None


def _values_if_any(folder: Path, number: int, ids: dict[str, int] | None) -> AttributeTable | None:
    path = folder / f"attr_triples_{number}"
    return read_statements(path, ids) if path.exists() else None


def _any_exists(folder: Path, *names: str) -> bool:
    return any((folder / name).exists() for name in names)


def _not_empty(triples: np.ndarray, path: Path) -> np.ndarray:
    if not len(triples):
        raise ValueError(f"{path} holds no triples")
    return triples


def _check_listed(ids: np.ndarray, path: Path, listed: dict[int, str] | None, listing: Path) -> None:
    """Every id of a row of `ids` [n, columns] stands in the folder's list of entities, if it has one."""
    if listed is None:
        return
    is_listed = np.isin(ids, np.fromiter(listed, dtype=np.int64, count=len(listed)))
    if not is_listed.all():
        row = int((~is_listed).any(axis=1).argmax())
        missing = int(ids[row][~is_listed[row]][0])
        raise ValueError(f"{path}:{line_of_row(path, row)}: entity {missing} is missing from {listing.name}")
