"""Why two entities are believed to be the same: the facts behind a pair."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np

from stea_fast._util import validate
from stea_fast._util.printable import printable_line
from stea_fast.data.graph import KG
from stea_fast.refinement.facts import facts_of_pairs
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
    found = facts_of_pairs(kg1, kg2, np.array([[e, e2]]), beliefs, relations, witnesses)
    total = float(found.totals[0])
    columns = (found.relation, found.neighbor, found.relation2, found.neighbor2, found.weight, found.evidence)
    facts = []
    for relation, neighbor, relation2, neighbor2, weight, evidence in zip(*(c.tolist() for c in columns), strict=True):
        text = (
            f"{kg1.relation_label(relation)} → {kg1.entity_label(neighbor)}  ≈  "
            f"{kg2.relation_label(relation2)} → {kg2.entity_label(neighbor2)}  (w = {weight:.3f})"
        )
        facts.append(Fact(relation, neighbor, relation2, neighbor2, weight, evidence, evidence / total, text))
    return Explanation(f"{kg1.entity_label(e)} ≡ {kg2.entity_label(e2)}", facts, total)
