"""Your own files and graphs as a `Pair`: two graphs, and the links you know."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from stea_fast._util import validate
from stea_fast.data import splits
from stea_fast.data.attributes import Attributes
from stea_fast.data.graph import KG
from stea_fast.data.id_space import check_separate
from stea_fast.data.name_files import Names, given_labels
from stea_fast.data.pair import Pair
from stea_fast.data.sealed import seal
from stea_fast.formats.links import Link, read_link_rows
from stea_fast.formats.triples import Problems, TripleTable, read_triples
from stea_fast.types import ArrayLike

AnyPath = str | os.PathLike[str]


def read_graph(
    path: AnyPath,
    *,
    format: str | None = None,
    literals: str = "values",
    strict: bool = False,
    permutation_seed: int | Sequence[int] | None = None,
) -> KG:
    r"""Read a graph from a file of triples; its entities and relations keep the names they have there.

    Args:
        path: A file of N-Triples, Turtle, RDF/XML, TSV, CSV, Parquet or Arrow, also compressed by gzip or zstd.
        format: "nt", "ttl", "rdf", "tsv", "csv", "parquet" or "arrow"; the default, None, goes by the suffix of the
            file's name.
        literals: "values" makes values (`kg.attributes`) of literals: the objects of RDF, and tails of tables that are
            spelt like them; "keep" makes entities of them, and "drop" leaves those of RDF out.
        strict: Whether a malformed line is an error; otherwise it is left out.
        permutation_seed: The seed of a random order in which entities are numbered; the default, None, keeps the order
            of the file.

    Returns:
        The `KG`, with `entity_names` and `relation_names`.

    Raises:
        OSError: The file cannot be opened.
        ValueError: The format is unknown, the file holds no triple, or, if `strict`, a line is malformed.
        ModuleNotFoundError: The format needs a package that is missing; the message says how to install it.

    Example:
        >>> from pathlib import Path
        >>> import stea_fast as sf
        >>> _ = Path("a.tsv").write_text("Berlin\tcapital of\tGermany\n")
        >>> sf.read_graph("a.tsv")
        KG(2 entities, 1 relations, 1 triples)
    """
    return graph_of(read_triples(path, format=format, literals=literals, strict=strict), permutation_seed)


def graph_of(table: TripleTable, permutation_seed: int | Sequence[int] | None = None) -> KG:
    """The graph of a table of triples."""
    if permutation_seed is None:
        return KG.from_table(table)
    old_of_new = np.random.default_rng(permutation_seed).permutation(len(table.entities))
    new_of_old = np.argsort(old_of_new)
    head, relation, tail = table.triples.T
    triples = np.stack([new_of_old[head], relation, new_of_old[tail]], axis=1)
    kg = KG.from_table(replace(table, triples=triples, entities=table.entities.take(old_of_new), attributes=None))
    if table.attributes is None:
        return kg
    return kg.with_attributes(Attributes.from_table(table.attributes, kg.num_entities).take(old_of_new))


def read_links(path: AnyPath, kg1: KG, kg2: KG, *, format: str | None = None, strict: bool = False) -> np.ndarray:
    r"""Read links from a file, by the names of the entities of two graphs.

    Args:
        path: A file with two columns of names, or any format of links that is written.
        kg1: The source graph, whose entities are in the first column.
        kg2: The target graph, whose entities are in the second column.
        format: "tsv", "csv", "jsonl", "parquet", "arrow", "nt" or "sssom"; the default, None, goes by the suffix of the
            file's name.
        strict: Whether unknown entities and second links of an entity are errors; otherwise they are left out.

    Returns:
        The links in the ids of the graphs, int64 [m, 2] of (source, target).

    Raises:
        OSError: The file cannot be opened.
        ValueError: The format is unknown, the columns are exchanged, or, if `strict`, a link cannot be used; the
            message names file and line.

    Example:
        >>> from pathlib import Path
        >>> import stea_fast as sf
        >>> kg1 = sf.KG([[0, 0, 1]], entity_names=["Berlin", "Germany"])
        >>> kg2 = sf.KG([[1, 0, 0]], entity_names=["德国", "柏林"])
        >>> _ = Path("seeds.tsv").write_text("Berlin\t柏林\n", encoding="utf-8")
        >>> sf.read_links("seeds.tsv", kg1, kg2).tolist()
        [[0, 1]]
    """
    problems = Problems(strict)
    path = Path(path)
    return known_links(read_link_rows(path, problems, format=format), path, kg1, kg2, problems)


def known_links(rows: list[Link], path: Path, kg1: KG, kg2: KG, problems: Problems) -> np.ndarray:
    """The links of a file in the ids of two graphs; what cannot be used is noted in `problems`.

    It is an error if most links could be used with their columns exchanged.
    """
    links = _links_by_name(rows, path, kg1, kg2, problems)
    if 2 * len(links) < len(rows):
        swapped = [link._replace(source=link.target, target=link.source) for link in rows]
        if len(_links_by_name(swapped, path, kg1, kg2, Problems())) > 2 * len(links):
            raise ValueError(f"{path} has its columns the other way round: the first must hold ids of the first graph")
    return links


def _links_by_name(rows: list[Link], path: Path, kg1: KG, kg2: KG, problems: Problems) -> np.ndarray:
    index1, index2 = name_index(kg1), name_index(kg2)
    target_of: dict[int, int] = {}
    source_of: dict[int, int] = {}
    for line, source, target, _ in rows:
        e, e2 = index1.get(source), index2.get(target)
        if e is None or e2 is None:
            name, which = (source, "first") if e is None else (target, "second")
            problems.add(f"{path}:{line}", f"{name} is no entity of the {which} graph")
        elif target_of.get(e, e2) != e2 or source_of.get(e2, e) != e:
            twice = source if e in target_of else target
            problems.add(f"{path}:{line}", f"{twice} has another link already; links must be one-to-one")
        else:
            target_of[e], source_of[e2] = e2, e
    return np.array(list(target_of.items()), dtype=np.int64).reshape(-1, 2)


def name_index(kg: KG) -> dict[str, int]:
    """Entity by name, or by id as text where there are no names."""
    names: Iterable[str] = map(str, range(kg.num_entities)) if kg.entity_names is None else kg.entity_names
    return {name: entity for entity, name in enumerate(names)}


def make_pair(
    kg1: KG,
    kg2: KG,
    seeds: ArrayLike,
    *,
    test: ArrayLike = (),
    name: str = "",
    names: tuple[Names | None, Names | None] = (None, None),
) -> Pair:
    """Put two graphs and known links together as a `Pair`.

    Args:
        kg1: The source graph.
        kg2: The target graph.
        seeds: Known links, int (m, 2) of entity ids, one-to-one.
        test: True links that only serve to judge the result, int (m, 2); none by default.
        name: A name for the pair.
        names: Names of the entities of each graph, for those who align by names: a file with an id, a tab and a name in
            every line, a name for every entity, `Labels`, or None for what the graph itself says.

    Returns:
        The `Pair`, whose test links are sealed.

    Raises:
        TypeError: A graph is not a `KG`, or links are not integers.
        ValueError: A link has an id out of range, an entity has two links, or both graphs number their entities in one
            id space, which `split_id_space` divides.

    Example:
        >>> import stea_fast as sf
        >>> kg1, kg2 = sf.KG([[0, 0, 1]]), sf.KG([[1, 0, 0]])
        >>> sf.make_pair(kg1, kg2, seeds=[[0, 1]], test=[[1, 0]]).train.tolist()
        [[0, 1]]
    """
    for kg, argument in ((kg1, "kg1"), (kg2, "kg2")):
        if not isinstance(kg, KG):
            raise TypeError(f"{argument} must be a KG, got {type(kg).__name__}")
    train = validate.links(seeds, "seeds", kg1.num_entities, kg2.num_entities)
    check_separate(kg1, kg2, train)
    judged = validate.links(test, "test", kg1.num_entities, kg2.num_entities)
    links = seal(np.concatenate([train, judged]))
    names1, names2 = (
        given_labels(given, f"names[{side}]", name_index(kg), kg.num_entities, Problems())
        if given is not None
        else None
        for side, (kg, given) in enumerate(zip((kg1, kg2), names, strict=True))
    )
    valid = np.zeros((0, 2), dtype=np.int64)
    return Pair(kg1, kg2, links, train, seal(judged), valid, name=name, names1=names1, names2=names2)


def read_pair(
    source: AnyPath,
    target: AnyPath,
    seeds: AnyPath | None = None,
    *,
    literals: str = "values",
    strict: bool = False,
    permutation_seed: int = 0,
    names: tuple[AnyPath | None, AnyPath | None] = (None, None),
) -> Pair:
    r"""Read two files of triples, and known links where there are some, as a `Pair` without test links.

    Args:
        source: The file of the first graph, in any format that `read_graph` reads.
        target: The file of the second graph.
        seeds: A file of known links by name: TSV or CSV with two columns, or any format of links that is written. The
            default, None, has none: then names or values must connect the graphs.
        literals: "values" makes values (`kg.attributes`) of literals: the objects of RDF, and tails of tables that are
            spelt like them; "keep" makes entities of them, and "drop" leaves those of RDF out.
        strict: Whether malformed lines and unknown entities are errors; otherwise they are left out.
        permutation_seed: The seed of the random order in which each graph's entities are numbered. Files often list
            both graphs in the same order, and whatever breaks a tie by id would then read the answer.
        names: A file of names for each graph, with an id, a tab and a name in every line; None for what the graph
            itself says.

    Returns:
        The `Pair`, whose seeds are `pair.train`.

    Raises:
        OSError: A file cannot be opened.
        ValueError: A format is unknown, or, if `strict`, a line cannot be used; the message names file and line.
        ModuleNotFoundError: A format needs a package that is missing; the message says how to install it.

    Example:
        >>> from pathlib import Path
        >>> import stea_fast as sf
        >>> _ = Path("a.tsv").write_text("Berlin\tcapital of\tGermany\n")
        >>> _ = Path("b.tsv").write_text("柏林\t首都\t德国\n", encoding="utf-8")
        >>> _ = Path("seeds.tsv").write_text("Berlin\t柏林\n", encoding="utf-8")
        >>> pair = sf.read_pair("a.tsv", "b.tsv", "seeds.tsv")
        >>> len(pair.train), pair.kg2.entity_label(pair.train[0, 1])
        (1, '柏林')
    """
    seed = splits.check_seed(permutation_seed, "permutation_seed")
    kg1, kg2 = (
        read_graph(path, literals=literals, strict=strict, permutation_seed=[seed, side + 1])
        for side, path in enumerate((source, target))
    )
    name = f"{Path(source).name} {Path(target).name}"
    links = np.zeros((0, 2), dtype=np.int64) if seeds is None else read_links(seeds, kg1, kg2, strict=strict)
    return make_pair(kg1, kg2, links, name=name, names=names)
