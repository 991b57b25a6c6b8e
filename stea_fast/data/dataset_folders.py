"""Loading the dataset folders of the field: DBP15K, DWY100K, ContEA and OpenEA."""

from __future__ import annotations

import logging
import os
from dataclasses import replace
from pathlib import Path

import numpy as np

from stea_fast._util import validate
from stea_fast._util.ids import positions
from stea_fast._util.sparse import distinct
from stea_fast.data import splits
from stea_fast.data.attributes import Attributes
from stea_fast.data.graph import KG
from stea_fast.data.labels import Labels
from stea_fast.data.name_files import read_name_file
from stea_fast.data.pair import Pair
from stea_fast.data.raw_folder import PARTS, LinkFile, RawGraph, RawPair, read_folder
from stea_fast.data.sealed import SealedLinks
from stea_fast.formats.attribute_table import AttributeTable
from stea_fast.formats.tab_separated import line_of_row
from stea_fast.formats.triple_table import Problems

logger = logging.getLogger("stea_fast")


def load_pair(
    folder: str | os.PathLike[str],
    seed_fraction: float | None = 0.01,
    split_seed: int = 0,
    *,
    permutation_seed: int | None = 0,
    fold: int = 1,
    values: bool = True,
    names: tuple[str | os.PathLike[str] | None, str | os.PathLike[str] | None] = (None, None),
) -> Pair:
    r"""Load two graphs and their links from a dataset folder; its format is recognised by its files.

    DBP15K, DWY100K, ContEA: `triples_1`, `triples_2` of ints; links in `ref_ent_ids` and `sup_ent_ids`, or else in
    `train_links`, `valid_links` and `test_links`; names in `ent_ids_*` and `rel_ids_*` if present.
    OpenEA: `rel_triples_1`, `rel_triples_2` and `ent_links` of names, and folds in `721_5fold`.
    Either may have values in `attr_triples_1` and `attr_triples_2`: entity, attribute, value.

    Entities are all that occur in triples, in `ent_ids_*` or in links; values of others are left out. Links must be
    one-to-one; a repeated link counts once.

    Args:
        folder: The folder with the files.
        seed_fraction: The share of the links, in [0, 1], that become seeds; the others are for testing. None takes the
            published split: the fold of OpenEA, else `train_links`, `valid_links` and `test_links`, else `sup_ent_ids`
            to train and `ref_ent_ids` to test. A training link is never a test link, even where the files repeat it.
        split_seed: Which random split is taken; it does not depend on `permutation_seed`.
        permutation_seed: The seed of the random order in which each graph's entities are numbered. None keeps the order
            of the files: increasing ids, or first occurrence for OpenEA. In DBP15K that order leaks the alignment:
            whatever breaks a tie by id then reads the answer.
        fold: Which published fold of an OpenEA folder is taken, from 1.
        values: Whether values are read where there are any.
        names: A file of names for each graph, with an id of the folder, a tab and a name in every line, such as
            `("translated_names_1", "translated_names_2")`; looked for in the folder first. None is for no file.

    Returns:
        The `Pair`, named after the folder.

    Raises:
        FileNotFoundError: A file of the format is missing.
        ValueError: The folder has no known format or no published split, a file is malformed, or the links are not
            one-to-one. The message names the file and the line.

    Example:
        >>> from pathlib import Path
        >>> import stea_fast as sf
        >>> folder = Path("tiny")
        >>> folder.mkdir()
        >>> files = {"triples_1": "0\t0\t1\n", "triples_2": "2\t0\t3\n", "ref_ent_ids": "0\t2\n1\t3\n"}
        >>> for name, text in files.items():
        ...     _ = (folder / name).write_text(text)
        >>> pair = sf.load_pair(folder, seed_fraction=0.5)
        >>> len(pair.train), len(pair.test)
        (1, 1)
    """
    folder = Path(folder)
    fraction = None if seed_fraction is None else splits.check_seed_fraction(seed_fraction)
    split_seed = splits.check_seed(split_seed, "split_seed")
    if permutation_seed is not None:
        permutation_seed = splits.check_seed(permutation_seed, "permutation_seed")
    fold = validate.count(fold, "fold", minimum=1)
    raw = read_folder(folder, published=fraction is None, fold=fold, values=values)
    links = _merge_links(raw)
    if fraction is None:
        rows = _published_rows(raw, links, folder)
    else:
        rows = dict(zip(("train", "test"), splits.split_rows(len(links), fraction, split_seed), strict=True))
    pair = assemble(raw, links, rows, permutation_seed, folder.resolve().name)
    names1, names2 = (_names_of(pair, side, folder, path) for side, path in enumerate(names))
    return replace(pair, names1=names1, names2=names2)


def assemble(
    raw: RawPair, links: np.ndarray, rows: dict[str, np.ndarray], permutation_seed: int | None, name: str
) -> Pair:
    """The pair in new ids. `rows` are the rows of `links` in each part; a part that is not there is empty."""
    orders = [_entity_order(raw.graphs[side], links[:, side], permutation_seed, side) for side in (0, 1)]
    kg1, kg2 = (_build_graph(graph, order) for graph, order in zip(raw.graphs, orders, strict=True))
    links = np.stack([positions(links[:, side], orders[side]) for side in (0, 1)], axis=1)
    train, valid, test = (links[rows.get(part, np.zeros(0, dtype=np.int64))] for part in PARTS)
    ids1, ids2 = orders if raw.integer_ids else (None, None)
    return Pair(kg1, kg2, SealedLinks(links), train, SealedLinks(test), valid, ids1, ids2, name)


def _names_of(pair: Pair, side: int, folder: Path, path: str | os.PathLike[str] | None) -> Labels | None:
    """The names of a file by the ids of the folder, for the entities as they are numbered now."""
    if path is None:
        return None
    kg, ids = ((pair.kg1, pair.ids1), (pair.kg2, pair.ids2))[side]
    listed = ids.tolist() if ids is not None else kg.entity_names or ()
    index = {str(ident): entity for entity, ident in enumerate(listed)}
    place = folder / path if (folder / path).exists() else Path(path)
    return read_name_file(place, index, kg.num_entities, Problems(strict=True))


def _merge_links(raw: RawPair) -> np.ndarray:
    """int64 [n, 2]: the links of all files in order, each once; an error if they are not one-to-one."""
    pairs = np.concatenate([file.pairs for file in raw.links])
    if not len(pairs):
        raise ValueError(f"{raw.links[0].path} holds no links")
    _, first = np.unique(pairs, axis=0, return_index=True)
    kept = np.sort(first)
    for side, word in enumerate(("source", "target")):
        _, first = np.unique(pairs[kept, side], return_index=True)
        if len(first) < len(kept):
            repeated = int(np.delete(kept, first)[0])
            entity = raw.label(side, int(pairs[repeated, side]))
            raise ValueError(f"{_place(raw.links, repeated)}: {word} entity {entity} has more than one link")
    return pairs[kept]


def _place(files: list[LinkFile], row: int) -> str:
    """file:line of a row of the files' concatenated links."""
    for file in files:
        if row < len(file.pairs):
            return f"{file.path}:{line_of_row(file.path, row)}"
        row -= len(file.pairs)
    raise IndexError("row lies behind the last file")


def _published_rows(raw: RawPair, links: np.ndarray, folder: Path) -> dict[str, np.ndarray]:
    """Rows of `links` by part. A link in two parts stays in the first: train before valid before test."""
    if not raw.split:
        raise ValueError(f"{folder} has no published split; give seed_fraction a share of the links")
    rows = {}
    taken = np.zeros(len(links), dtype=bool)
    for part, file in raw.split.items():
        members = _rows_of(file, links, raw)
        _, first = np.unique(members, return_index=True)
        members = members[np.sort(first)]
        rows[part] = members[~taken[members]]
        taken[members] = True
    return rows


def _rows_of(file: LinkFile, links: np.ndarray, raw: RawPair) -> np.ndarray:
    by_source = np.argsort(links[:, 0])
    places = np.searchsorted(links[:, 0], file.pairs[:, 0], sorter=by_source)
    rows = by_source[np.minimum(places, len(links) - 1)]
    unknown = (links[rows] != file.pairs).any(axis=1)
    if unknown.any():
        row = int(unknown.argmax())
        link = " - ".join(raw.label(side, int(file.pairs[row, side])) for side in (0, 1))
        whole = " or ".join(whole.path.name for whole in raw.links)
        raise ValueError(f"{file.path}:{line_of_row(file.path, row)}: the link {link} is not in {whole}")
    return rows


def _entity_order(graph: RawGraph, linked: np.ndarray, permutation_seed: int | None, side: int) -> np.ndarray:
    """int64 [num_entities]: the file's id of every entity, by new id."""
    listed = np.fromiter(graph.entity_names or (), dtype=np.int64)
    ids = distinct(np.concatenate([graph.triples[:, 0], graph.triples[:, 2], listed, linked]))
    if permutation_seed is None:
        return ids
    # side + 1, since NumPy takes [seed, 0] for seed, and that stream may already split the links
    return np.random.default_rng([permutation_seed, side + 1]).permutation(ids)


def _build_graph(graph: RawGraph, order: np.ndarray) -> KG:
    relations = distinct(graph.triples[:, 1])
    head, relation, tail = graph.triples.T
    columns = (positions(head, order), positions(relation, relations), positions(tail, order))
    return KG(
        np.stack(columns, axis=1),
        len(order),
        len(relations),
        entity_names=_names_in_order(graph.entity_names, order),
        relation_names=_names_in_order(graph.relation_names, relations),
        attributes=_attributes_in_order(graph.attributes, order),
    )


def _attributes_in_order(table: AttributeTable | None, order: np.ndarray) -> Attributes | None:
    """The values of the entities of `order`, which holds their ids in the files; those of others are left out."""
    if table is None:
        return None
    entity = table.statements[:, 0]
    is_there = np.isin(entity, order)
    if not is_there.all():
        logger.warning(
            "%s of %s values are of entities that are neither in triples nor in links, such as %s: they are left out",
            f"{(~is_there).sum():,}", f"{len(entity):,}", entity[(~is_there).argmax()],
        )  # fmt: skip
    statements = table.statements[is_there]
    statements[:, 0] = positions(statements[:, 0], order)
    return Attributes.from_table(replace(table, statements=statements), len(order))


def _names_in_order(names: dict[int, str] | None, ids: np.ndarray) -> list[str] | None:
    return None if names is None else [names.get(ident, str(ident)) for ident in ids.tolist()]
