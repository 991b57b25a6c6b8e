"""Why two entities are believed to be the same: the facts behind a pair."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np

from stea_fast._backends.factors import minus_log
from stea_fast._backends.witnesses import by_neighbour
from stea_fast._util import validate
from stea_fast._util.printable import printable_line
from stea_fast.data.graph import KG
from stea_fast.types import Beliefs, RelationAlignment


@dataclass(frozen=True)
class Fact:
    """A pair of edges r(e, n) and r'(e', n') that speaks for e ≡ e'.

    Attributes:
        relation: The relation r of the first edge; ids from R on are inverse relations.
        neighbor: The neighbour n that the first edge leads to.
        relation2: The relation r' of the second edge.
        neighbor2: The neighbour n' that the second edge leads to.
        weight: The belief w(n, n') in [0, 1] that the two neighbours are the same.
        evidence: What this fact adds to the evidence L(e, e').
        share: The same as a fraction of L(e, e').
        text: The fact as a line of text, with names where the graphs have them.

    Example:
        >>> import stea_fast as sf
        >>> kg1, kg2 = sf.KG([[0, 0, 1]]), sf.KG([[1, 0, 0]])
        >>> out = sf.refine(([[1], [0]], [[0.9], [0.8]]), kg1, kg2, seeds=[[0, 1]])
        >>> fact = out.explain(1, 0)[0]
        >>> fact.neighbor, fact.neighbor2, fact.weight
        (0, 1, 1.0)
    """

    relation: int
    neighbor: int
    relation2: int
    neighbor2: int
    weight: float
    evidence: float
    share: float
    text: str


class Explanation(Sequence[Fact]):
    """The facts behind one pair of entities, strongest first: a sequence of `Fact` that prints as a table.

    `Refinement.explain` makes it.

    Args:
        title: The names of the two entities.
        facts: The facts, strongest first.
        evidence: The evidence L of the pair, which is the sum over the facts.

    Example:
        >>> import stea_fast as sf
        >>> kg1 = sf.KG([[0, 0, 1]], entity_names=["Berlin", "Germany"], relation_names=["capital of"])
        >>> kg2 = sf.KG([[1, 0, 0]], entity_names=["德国", "柏林"], relation_names=["首都"])
        >>> out = sf.refine(([[1], [0]], [[0.9], [0.8]]), kg1, kg2, seeds=[[0, 1]])
        >>> print(out.explain(1, 0))
        Germany ≡ 德国: evidence 1.597 from 1 facts
          100.0%  capital of⁻ → Berlin  ≈  首都⁻ → 柏林  (w = 1.000)
    """

    def __init__(self, title: str, facts: list[Fact], evidence: float) -> None:
        self.title = title
        self.facts = facts
        self.evidence = evidence

    def __len__(self) -> int:
        return len(self.facts)

    @overload
    def __getitem__(self, index: int) -> Fact: ...
    @overload
    def __getitem__(self, index: slice) -> list[Fact]: ...
    def __getitem__(self, index: int | slice) -> Fact | list[Fact]:
        return self.facts[index]

    def __iter__(self) -> Iterator[Fact]:
        return iter(self.facts)

    def __str__(self) -> str:
        lines = [f"{self.title}: evidence {self.evidence:.3f} from {len(self.facts)} facts"]
        lines += [f"  {fact.share:6.1%}  {fact.text}" for fact in self.facts]
        return "\n".join(map(printable_line, lines))


def explain_pair(
    kg1: KG, kg2: KG, e: int, e2: int, beliefs: Beliefs, relations: RelationAlignment, witnesses: str = "neighbour"
) -> Explanation:
    """The facts behind (e, e2) under the given beliefs (rows of kg1) and relation alignment.

    With `witnesses="neighbour"` there is one fact for every pair of neighbours, the strongest.
    """
    e = validate.count(e, "e", maximum=kg1.num_entities - 1)
    e2 = validate.count(e2, "e2", maximum=kg2.num_entities - 1)
    edges, edges2 = kg1.edges_of(e), kg2.edges_of(e2)
    from1, from2 = _strengths(relations, kg1, kg2, edges[:, 1], edges2[:, 1])
    weights = beliefs.between(edges[:, 0], edges2[:, 0])
    shares = minus_log(from1 * weights) + minus_log(from2 * weights)
    if by_neighbour(witnesses):
        shares = np.where(_strongest(shares, edges[:, 0], edges2[:, 0]), shares, 0.0)
    total = float(shares.sum())
    facts = []
    for i, j in zip(*np.nonzero(shares), strict=True):
        (neighbor, relation), (neighbor2, relation2) = edges[i].tolist(), edges2[j].tolist()
        text = (
            f"{kg1.relation_label(relation)} → {kg1.entity_label(neighbor)}  ≈  "
            f"{kg2.relation_label(relation2)} → {kg2.entity_label(neighbor2)}  (w = {weights[i, j]:.3f})"
        )
        part = float(shares[i, j])
        facts.append(Fact(relation, neighbor, relation2, neighbor2, float(weights[i, j]), part, part / total, text))
    facts.sort(key=lambda fact: -fact.evidence)
    return Explanation(f"{kg1.entity_label(e)} ≡ {kg2.entity_label(e2)}", facts, total)


def _strongest(shares: np.ndarray, neighbors: np.ndarray, neighbors2: np.ndarray) -> np.ndarray:
    """bool [edges, edges']: marks the first of the largest shares of every pair of neighbours."""
    marked = np.zeros(shares.shape, dtype=bool)
    for n in np.unique(neighbors):
        for n2 in np.unique(neighbors2[shares[neighbors == n].any(axis=0)]):
            rows, columns = np.flatnonzero(neighbors == n), np.flatnonzero(neighbors2 == n2)
            block = shares[np.ix_(rows, columns)]
            i, j = np.unravel_index(block.argmax(), block.shape)
            marked[rows[i], columns[j]] = True
    return marked


def _strengths(
    relations: RelationAlignment, kg1: KG, kg2: KG, r: np.ndarray, r2: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """float64 [len(r), len(r2)] each: the strengths of these pairs of relations, without a full matrix."""
    sub12 = relations.sub12[r][:, r2].toarray()
    sub21 = relations.sub21[r2][:, r].toarray().T
    absent = (sub12 == 0) & (sub21 == 0)
    default = np.float32(relations.default)
    from1 = np.where(absent, default, sub21) * kg1.inverse_functionality[r][:, None]
    from2 = np.where(absent, default, sub12) * kg2.inverse_functionality[r2][None, :]
    return from1.astype(np.float64), from2.astype(np.float64)
