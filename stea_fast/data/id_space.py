"""Two graphs that number their entities in one id space, as the published programs do: splitting and recognising them.

Everything here counts the entities of each graph from 0. Graphs in one id space are not wrong in themselves: each is
then a graph with many entities that have no triples, namely those of the other. But a search over the embeddings of
both at once finds every entity itself, and a result would list entities that are not there.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from stea_fast._util import validate
from stea_fast._util.arrays import to_numpy
from stea_fast.data import splits
from stea_fast.data.attributes import Attributes
from stea_fast.data.dataset_folders import assemble
from stea_fast.data.graph import KG
from stea_fast.data.pair import Pair
from stea_fast.data.raw_folder import RawGraph, RawPair
from stea_fast.types import ArrayLike

FEWEST = 10  # entities or seeds from which a pattern is no chance
EXPLAINED = 0.9  # share of a graph's entities without triples that must be entities of the other
_ANY_ID = np.iinfo(np.int64).max
HOW_TO_SPLIT = (
    "pair = sf.split_id_space(triples1, triples2, seeds) numbers each graph from 0; pair.ids1 and pair.ids2 hold the "
    "ids of now, so that embeddings of both graphs in one matrix are embeddings[pair.ids1] and embeddings[pair.ids2]"
)


def split_id_space(
    triples1: ArrayLike,
    triples2: ArrayLike,
    seeds: ArrayLike,
    *,
    test: ArrayLike = (),
    permutation_seed: int | None = 0,
    name: str = "",
    attributes: Attributes | None = None,
) -> Pair:
    """Make a `Pair` of two graphs that number their entities in one id space, as many published programs do.

    The entities of each graph are all that occur in its triples or in its column of the links. They get ids from 0; the
    relations of each graph likewise.

    Args:
        triples1: The triples (head, relation, tail) of the source graph, int (n, 3).
        triples2: The triples of the target graph, int (n, 3); no entity is in both.
        seeds: Known links (source, target) in the common ids, int (m, 2), one-to-one.
        test: True links that only serve to judge the result, int (m, 2) in the common ids; none by default.
        permutation_seed: The seed of the random order in which each graph's entities are numbered. None keeps the
            order of the common ids, which in many datasets leaks the alignment.
        name: A name for the pair.
        attributes: Values of the entities of both graphs in the common ids; the default, None, is for none.

    Returns:
        The `Pair`. Its `ids1` and `ids2` hold the common id of every entity, and result files have these ids. Rows of a
        matrix of both graphs' embeddings are `embeddings[pair.ids1]` and `embeddings[pair.ids2]`.

    Raises:
        ValueError: An entity is in both graphs or has two links, or an array has the wrong shape.
        TypeError: An array does not hold integers.

    Example:
        >>> import stea_fast as sf
        >>> triples = [[0, 0, 1], [1, 0, 2], [3, 1, 4], [4, 1, 5]]  # of two graphs: one has entities 0 to 2
        >>> pair = sf.split_id_space(triples[:2], triples[2:], seeds=[[0, 3]])
        >>> pair.kg1, pair.kg2
        (KG(3 entities, 1 relations, 2 triples), KG(3 entities, 1 relations, 2 triples))
        >>> pair.ids1[pair.train[:, 0]].tolist(), pair.ids2[pair.train[:, 1]].tolist()
        ([0], [3])
    """
    graphs = [
        RawGraph(validate.columns(triples, argument, 3), None, None)
        for triples, argument in ((triples1, "triples1"), (triples2, "triples2"))
    ]
    train, judged = (
        validate.links(links, argument, _ANY_ID, _ANY_ID) for links, argument in ((seeds, "seeds"), (test, "test"))
    )
    links = np.concatenate([train, judged])
    ids1, ids2 = (np.union1d(graph.triples[:, [0, 2]], links[:, side]) for side, graph in enumerate(graphs))
    shared = np.intersect1d(ids1, ids2)
    if len(shared):
        raise ValueError(
            f"{len(shared):,} ids, such as {shared[0]}, are of both graphs, so the graphs do not share one id space: "
            "graphs that each count from 0 are sf.KG(triples) and put together by sf.make_pair"
        )
    if permutation_seed is not None:
        permutation_seed = splits.check_seed(permutation_seed, "permutation_seed")
    rows = {"train": np.arange(len(train)), "test": np.arange(len(train), len(links))}
    raw = RawPair((graphs[0], graphs[1]), [], {}, integer_ids=True)
    pair = assemble(raw, links, rows, permutation_seed, name)
    if attributes is None or pair.ids1 is None or pair.ids2 is None:
        return pair
    kg1, kg2 = (
        pair.kg1.with_attributes(attributes.take(pair.ids1)),
        pair.kg2.with_attributes(attributes.take(pair.ids2)),
    )
    return replace(pair, kg1=kg1, kg2=kg2)


def are_in_one_space(kg1: KG, kg2: KG) -> bool:
    """Whether two graphs number their entities in one id space.

    If so, no entity has triples in both, and the entities without triples of each are entities of the other. Graphs
    that each count from 0 are never like that, but by an unheard-of chance.
    """
    has1, has2 = _with_triples(kg1, kg2)
    if min(has1.sum(), has2.sum()) < FEWEST or (has1 & has2).any():
        return False
    alone = (~has1)[: kg1.num_entities].sum() + (~has2)[: kg2.num_entities].sum()
    explained = has2[: kg1.num_entities].sum() + has1[: kg2.num_entities].sum()
    return bool(explained > 0 and explained >= EXPLAINED * alone)


def check_separate(kg1: KG, kg2: KG, seeds: np.ndarray) -> None:
    """An error if two graphs number their entities in one id space, or if both are the union of two graphs."""
    if are_in_one_space(kg1, kg2):
        raise ValueError(
            "kg1 and kg2 number their entities in one id space: no entity has triples in both, and those without "
            f"triples in one are entities of the other; {HOW_TO_SPLIT}"
        )
    check_not_a_union(kg1, kg2, seeds)


def check_not_a_union(kg1: KG, kg2: KG, seeds: np.ndarray) -> None:
    """An error if kg1 and kg2 are the same graph, and it falls into a part of sources and a part of targets."""
    if len(seeds) < FEWEST or not kg1.num_triples:
        return
    if not (np.array_equal(kg1.indptr, kg2.indptr) and np.array_equal(kg1.edges, kg2.edges)):
        return
    shape = kg1.num_entities, kg1.num_entities
    ones = np.ones(len(kg1.edges), dtype=bool)
    _, component = connected_components(csr_array((ones, kg1.neighbors, kg1.indptr), shape=shape), directed=False)
    if not np.intersect1d(component[seeds[:, 0]], component[seeds[:, 1]]).size:
        raise ValueError(
            "kg1 and kg2 are one and the same graph, which falls apart into one with the sources and one with the "
            f"targets of the seeds; {HOW_TO_SPLIT}"
        )


def check_candidates(kg1: KG, kg2: KG, indices: object) -> None:
    """An error if graphs in one id space have candidates that are not: most are of kg1, or mean entities of kg1.

    Candidates that are entities of the other graph are as good as any, whatever their ids. What is no matrix is left to
    those who read it.
    """
    if not are_in_one_space(kg1, kg2):
        return
    candidates = to_numpy(indices, "forward.indices")
    if candidates.ndim != 2 or not candidates.size or candidates.dtype.kind not in "iu":
        return
    has1, _ = _with_triples(kg1, kg2)
    best = candidates[:, 0]
    if len(best) == kg1.num_entities:
        best = best[has1[: kg1.num_entities]]
    listed = best[(best >= 0) & (best < len(has1))]
    if 2 * np.count_nonzero(has1[listed]) > len(listed):
        raise ValueError(
            "kg1 and kg2 number their entities in one id space, and the best candidates are mostly entities of kg1, "
            f"such as an entity itself; {HOW_TO_SPLIT}"
        )


def _with_triples(kg1: KG, kg2: KG) -> tuple[np.ndarray, np.ndarray]:
    """bool [n] each: which ids have triples in each graph; n is the larger number of entities."""
    size = max(kg1.num_entities, kg2.num_entities)
    has1, has2 = (np.pad(kg.degrees > 0, (0, size - kg.num_entities)) for kg in (kg1, kg2))
    return has1, has2
