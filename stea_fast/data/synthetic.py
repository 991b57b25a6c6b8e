"""A pair of graphs made to order: two noisy views of one random world."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from stea_fast._util import validate
from stea_fast.data import splits
from stea_fast.data.graph import KG
from stea_fast.data.labels import Labels
from stea_fast.data.pair import Pair
from stea_fast.data.sealed import SealedLinks
from stea_fast.data.synthetic_names import invented_names, noisy_labels

# One end of a fact is its owner, any entity; the other comes from the pool of its relation: (share of the
# entities in the pool, skew towards its first ones, whether the pool holds the heads). With a skew s the k-th
# of the pool gets facts in proportion to k ** (1 / s - 1): a power law.
_STYLES = (
    (1.0, 1, False),  # nearly one to one where the relation is rare
    (0.2, 2, True),  # one to many
    (0.5, 3, False),  # many to one, with hubs
    (0.1, 2, False),  # categories: many to one, few distinct tails
)


class _Profile(NamedTuple):
    """What kind of pair is made, where nothing else is said; see `synthetic_pair` for the numbers."""

    num_relations: int
    mean_degree: float
    overlap: float
    edge_noise: float
    steepness: int  # how many times steeper than those of `_STYLES` the power laws are


PROFILES = {
    "dense": _Profile(num_relations=20, mean_degree=6.0, overlap=0.8, edge_noise=0.1, steepness=1),
    # As in DBP1M: five edges touch an entity on average, and about half of those between linked entities are in both.
    "dbp1m": _Profile(num_relations=400, mean_degree=2.5, overlap=0.75, edge_noise=0.35, steepness=3),
}


FACTS_AT_ONCE = 1 << 17  # of which the random numbers are held


class _Edges(NamedTuple):
    """int32 [n] each."""

    heads: np.ndarray
    relations: np.ndarray
    tails: np.ndarray

    def where(self, mask: np.ndarray) -> _Edges:
        return _Edges(*(column[mask] for column in self))


@dataclass(frozen=True)
class _World:
    """What facts are likely. Entities below `num_shared` are in both graphs; each graph has its own others.

    Attributes:
        owners: int64 [n], the entities from the busiest owner of facts to the laziest.
        order: int64 [n], the entities in the order that the relations' pools follow.
        cumulative: float64 [R], cumulated share of the relations in the facts.
        pool_start, pool_size, skew: int64 [R], where in `order` a relation's pool lies, and its skew.
        pool_is_heads: bool [R].
        busyness: the skew of the facts towards the first owners.
    """

    num_entities: int
    num_shared: int
    owners: np.ndarray
    order: np.ndarray
    cumulative: np.ndarray
    pool_start: np.ndarray
    pool_size: np.ndarray
    skew: np.ndarray
    pool_is_heads: np.ndarray
    busyness: int

    @classmethod
    def create(cls, rng: np.random.Generator, n: int, num_shared: int, num_relations: int, steepness: int) -> _World:
        share, skew, is_heads = np.array(_STYLES)[np.arange(num_relations) % len(_STYLES)].T
        weights = np.cumsum(1.0 / (4.0 + np.arange(num_relations)))  # no relation dominates, none vanishes
        return cls(
            n,
            num_shared,
            owners=rng.permutation(n),
            order=rng.permutation(n),
            cumulative=weights / weights[-1],
            pool_start=rng.integers(n, size=num_relations),
            pool_size=np.maximum(2, (n * share).astype(np.int64)),
            skew=steepness * skew.astype(np.int64),
            busyness=2 * steepness,
            pool_is_heads=is_heads.astype(bool),
        )

    def facts(self, rng: np.random.Generator, num_facts: int) -> _Edges:
        """Facts: one for every entity, the rest owned more often by busy entities than by lazy ones."""
        n = self.num_entities
        owners = np.empty(num_facts, dtype=np.int32)
        owners[:n] = np.arange(n)
        for part in _parts(owners[n:]):
            part[:] = self.owners[(_power(rng.random(len(part)), self.busyness) * n).astype(np.int64)]
        return self._complete(rng, owners)

    def shared_facts(self, rng: np.random.Generator, num_facts: int) -> _Edges:
        """Those of so many facts that both graphs can have."""
        facts = self.facts(rng, num_facts)
        return facts.where(self.is_shared(facts))

    def random_facts(self, rng: np.random.Generator, num_facts: int) -> _Edges:
        """Random facts of random entities, each as likely as any other."""
        owners = np.empty(num_facts, dtype=np.int32)
        for part in _parts(owners):
            part[:] = rng.integers(self.num_entities, size=len(part))
        return self._complete(rng, owners)

    def _complete(self, rng: np.random.Generator, owners: np.ndarray) -> _Edges:
        """Give every owner a relation and a partner from its pool."""
        relations, tails = np.empty_like(owners), np.empty_like(owners)
        for part in _parts(relations):
            part[:] = np.searchsorted(self.cumulative, rng.random(len(part)), side="right")
        for heads, kinds, part in zip(_parts(owners), _parts(relations), _parts(tails), strict=True):
            partners = self._partners(rng, heads, kinds)
            swap = self.pool_is_heads[kinds]
            heads[:], part[:] = np.where(swap, partners, heads), np.where(swap, heads, partners)
        return _Edges(owners, relations, tails)

    def _partners(self, rng: np.random.Generator, owners: np.ndarray, relations: np.ndarray) -> np.ndarray:
        uniform = rng.random(len(owners))
        places = (_power(uniform, self.skew[relations]) * self.pool_size[relations]).astype(np.int64)
        places += self.pool_start[relations]
        partners = self.order[places % self.num_entities]
        loops = partners == owners
        partners[loops] = self.order[(places[loops] + 1) % self.num_entities]
        return partners

    def is_shared(self, edges: _Edges) -> np.ndarray:
        """bool [n]: whether both ends of the edge are in both graphs."""
        mask: np.ndarray = np.maximum(edges.heads, edges.tails) < self.num_shared
        return mask


def _parts(array: np.ndarray) -> Iterator[np.ndarray]:
    """The array in pieces: a stream of random numbers is the same, however many are drawn at a time."""
    return (array[begin : begin + FACTS_AT_ONCE] for begin in range(0, len(array), FACTS_AT_ONCE))


def _power(base: np.ndarray, exponent: int | np.ndarray) -> np.ndarray:
    """`base` to powers of at least 1, by products: these round alike on every platform, powers do not."""
    result = base.copy()
    for power in range(2, int(np.max(exponent, initial=1)) + 1):
        np.multiply(result, base, out=result, where=np.asarray(exponent) >= power)
    return result


def synthetic_pair(
    num_entities: int = 2000,
    seed: int = 0,
    *,
    profile: str = "dense",
    num_relations: int | None = None,
    mean_degree: float | None = None,
    overlap: float | None = None,
    edge_noise: float | None = None,
    seed_fraction: float = 0.1,
    name_noise: float | None = None,
) -> Pair:
    """Make two noisy views of one random world, with known links.

    Degrees follow a power law; relations range from nearly one-to-one to one-to-many and many-to-one. In the second
    graph about a quarter of the world's relations are split into two sub-relations, and another quarter are merged in
    twos. Each graph numbers its entities and relations in a random order of its own.

    Args:
        num_entities: The number of entities of each graph, at least 10.
        seed: Which pair is made, and which split of its links.
        profile: What kind of pair is made: "dense" (20 relations, 6 triples per entity, 80 % of the entities with a
            counterpart, noise 0.1), an easy one; or "dbp1m" (400, 2.5, 75 %, 0.35), which is as sparse, as long-tailed
            and as unlike as the large graphs of DBpedia: about half of the edges between linked entities are in both
            graphs.
        num_relations: The number of relations of the world, which are those of the first graph; None takes the
            profile's.
        mean_degree: The number of triples per entity, at least 1; a little less remains where random triples coincide.
            None takes the profile's.
        overlap: The share of each graph's entities, in [0, 1], that have a counterpart; at least one has. None takes
            the profile's.
        edge_noise: The share of the shared edges, in [0, 1], that each graph loses, and again of random edges that it
            gains, independently of the other graph; None takes the profile's.
        seed_fraction: The share of the links, in [0, 1], that become seeds; the others are for testing.
        name_noise: The share of the letters, in [0, 1], that each graph spells otherwise or leaves out. If it is given,
            entities have invented names, `names1` and `names2` of the pair; the default, None, makes none.

    Returns:
        The `Pair`. The same arguments always give the same pair.

    Raises:
        ValueError: A number is outside its range.
        TypeError: A number is of the wrong type.

    Example:
        >>> import stea_fast as sf
        >>> pair = sf.synthetic_pair(num_entities=200, seed=0)
        >>> pair.kg1
        KG(200 entities, 20 relations, 1,167 triples)
    """
    n = validate.count(num_entities, "num_entities", minimum=10)
    seed = splits.check_seed(seed, "seed")
    usual = PROFILES[validate.choice(profile, "profile", tuple(PROFILES))]
    num_relations = usual.num_relations if num_relations is None else num_relations
    num_relations = validate.count(num_relations, "num_relations", minimum=1)
    degree = usual.mean_degree if mean_degree is None else mean_degree
    num_facts = round(n * validate.number(degree, "mean_degree", minimum=1.0))
    shared_part = usual.overlap if overlap is None else overlap
    num_shared = max(1, round(n * validate.number(shared_part, "overlap", minimum=0.0, maximum=1.0)))
    noise = usual.edge_noise if edge_noise is None else edge_noise
    noise = validate.number(noise, "edge_noise", minimum=0.0, maximum=1.0)
    fraction = splits.check_seed_fraction(seed_fraction)
    if name_noise is not None:
        name_noise = validate.number(name_noise, "name_noise", minimum=0.0, maximum=1.0)

    rng = np.random.default_rng([seed, 1])  # not the stream that splits the links
    world = _World.create(rng, n, num_shared, num_relations, usual.steepness)
    shared = world.shared_facts(rng, num_facts)
    kg1, ids1 = _view(rng, world, shared, num_facts, noise, _same_relations(rng, num_relations))
    kg2, ids2 = _view(rng, world, shared, num_facts, noise, _changed_relations(rng, num_relations))
    links = np.stack([ids1[:num_shared], ids2[:num_shared]], axis=1, dtype=np.int64)
    train, test = (links[rows] for rows in splits.split_rows(num_shared, fraction, seed))
    nothing = np.zeros((0, 2), dtype=np.int64)
    names1, names2 = (None, None) if name_noise is None else _names(seed, (ids1, ids2), num_shared, name_noise)
    return Pair(
        kg1, kg2, SealedLinks(links), train, SealedLinks(test), nothing, name=f"synthetic-{n}", names1=names1,
        names2=names2,
    )  # fmt: skip


def _names(seed: int, ids: tuple[np.ndarray, np.ndarray], num_shared: int, noise: float) -> tuple[Labels, Labels]:
    """The names of both graphs: shared entities have one name, up to noise; the others have their own."""
    rng = np.random.default_rng([seed, 2])  # so that the graphs are the same with and without names
    shared = invented_names(rng, num_shared)
    found = []
    for numbers in ids:
        own = invented_names(rng, len(numbers) - num_shared)
        names = np.empty((len(numbers), shared.shape[1]), dtype=np.uint8)
        names[numbers[:num_shared]], names[numbers[num_shared:]] = shared, own
        found.append(noisy_labels(rng, names, noise))
    return found[0], found[1]


def _view(
    rng: np.random.Generator,
    world: _World,
    shared: _Edges,
    num_facts: int,
    noise: float,
    relation_ids: np.ndarray,
) -> tuple[KG, np.ndarray]:
    """One graph, and the id int64 [n] in it of every entity of the world.

    Its edges are the shared ones that it keeps, those that touch an entity of its own, and random ones.
    `relation_ids` int64 [R, 2] names a world relation by the kind of its tail, 0 or 1.
    """
    own = world.facts(rng, num_facts)
    kept = shared.where(rng.random(len(shared.heads)) >= noise)
    own = own.where(~world.is_shared(own))
    added = world.random_facts(rng, round(noise * len(shared.heads)))
    kinds = rng.integers(2, size=world.num_entities)
    ids = rng.permutation(world.num_entities)
    triples = np.empty((sum(len(part.heads) for part in (kept, own, added)), 3), dtype=np.int64)
    begin = 0
    for heads, relations, tails in (kept, own, added):
        rows = triples[begin : begin + len(heads)]
        rows[:, 0], rows[:, 1], rows[:, 2] = ids[heads], relation_ids[relations, kinds[tails]], ids[tails]
        begin += len(heads)
    del kept, own, added, rows  # before the graph is made, which needs more
    return KG(triples, world.num_entities, int(relation_ids.max()) + 1), ids


def _same_relations(rng: np.random.Generator, num_relations: int) -> np.ndarray:
    """int64 [R, 2]: a relation for every world relation."""
    return np.repeat(rng.permutation(num_relations)[:, None], 2, axis=1)


def _changed_relations(rng: np.random.Generator, num_relations: int) -> np.ndarray:
    """int64 [R, 2]: as `_same_relations`, but a quarter are split and another quarter are merged in twos."""
    chosen = rng.permutation(num_relations)
    num_split, num_merged = num_relations // 4, num_relations // 8
    one, other = chosen[num_split : num_split + 2 * num_merged].reshape(2, num_merged)
    table = np.repeat(np.arange(num_relations)[:, None], 2, axis=1)
    table[other] = table[one]
    table[chosen[:num_split], 1] = num_relations + np.arange(num_split)
    distinct, places = np.unique(table, return_inverse=True)
    return rng.permutation(len(distinct))[places.reshape(table.shape)]
