"""`refine`: check every guess against the guesses for its neighbours."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from stea_fast._executors.base import Executor
from stea_fast._executors.named import executor_of
from stea_fast._util import validate
from stea_fast._util.arrays import is_torch, like, placed
from stea_fast._util.options import names_nearest
from stea_fast.data.graph import KG
from stea_fast.refinement.config import DEFAULT_METHOD, Joint, Method, Paper, Product, method_of, where_options_live
from stea_fast.refinement.directional import refine_by_direction
from stea_fast.refinement.explanation import Explanation, explain_pair
from stea_fast.refinement.facts import FactTable, facts_of_pairs
from stea_fast.refinement.joint import refine_jointly
from stea_fast.refinement.problem import Execution, Outcome, Problem, check_graphs, problem_of
from stea_fast.refinement.selection import check_selection
from stea_fast.refinement.selection import select as select_pairs
from stea_fast.refinement.surroundings import Surroundings
from stea_fast.types import ArrayLike, Beliefs, RefinedRanking, RelationAlignment

# How each method is computed. A new method is a class in config.py and an entry here.
_COMPUTED_BY: dict[type, Callable[[Problem, Any], Outcome]] = {
    Joint: refine_jointly,
    Product: refine_by_direction,
    Paper: refine_by_direction,
}


@dataclass(frozen=True, eq=False)
class Refinement:
    """The refined candidates of both directions, and the links selected from them.

    This is what `refine` returns. Arrays are of the kind that the candidates were, NumPy or torch, on the same device.

    Attributes:
        forward: The refined candidates of every source entity, best first.
        backward: The refined candidates of every target entity; None if candidates in one direction were given.
        pairs: The selected pseudo mappings, int64 [m, 2] of (source, target); no seed is among them.
        pair_probs: The probability of every selected pair, float32 [m].
        sweeps: The number of sweeps that were made before the predictions settled.
        betas: The inverse temperature of each direction; None where no temperature was used.

    Example:
        >>> import stea_fast as sf
        >>> pair = sf.synthetic_pair(num_entities=200, seed=0)
        >>> out = sf.refine(sf.demo.candidates(pair), pair.kg1, pair.kg2, seeds=pair.train)
        >>> out.forward.probs.shape, out.pairs.shape[1], len(out.pair_probs) == len(out.pairs)
        ((200, 10), 2, True)
    """

    forward: RefinedRanking
    backward: RefinedRanking | None
    pairs: Any
    pair_probs: Any
    sweeps: int
    betas: tuple[float | None, ...]
    _around: Surroundings = field(repr=False)
    _alignment: RelationAlignment = field(repr=False)
    _beliefs: Beliefs = field(repr=False)
    _witnesses: str = field(repr=False)

    @property
    def relations(self) -> RelationAlignment:
        """The relation alignment that the evidence was computed with."""
        return self._around.relations(self._alignment)

    @property
    def attributes(self) -> RelationAlignment | None:
        """The alignment of attributes, which comes out as that of relations does; None where no values were used."""
        return self._around.attributes(self._alignment)

    @property
    def graphs(self) -> tuple[KG, KG]:
        """The graphs whose facts `facts` names: those that were given, with their values as last entities if used."""
        return self._around.graphs

    def explain(self, e: int, e2: int) -> Explanation:
        """Find the facts behind a pair: edges of both entities that lead to neighbours believed to be the same.

        Where a neighbour is one witness, which is the default, there is one fact for every pair of neighbours, the
        strongest.

        Args:
            e: The id of a source entity.
            e2: The id of a target entity.

        Returns:
            An `Explanation`: facts (r, n, r', n'), strongest first, each with its share of the evidence.

        Raises:
            ValueError: There is no entity of that id.

        Example:
            >>> import stea_fast as sf
            >>> pair = sf.synthetic_pair(num_entities=200, seed=0)
            >>> out = sf.refine(sf.demo.candidates(pair), pair.kg1, pair.kg2, seeds=pair.train)
            >>> facts = out.explain(*out.pairs[0])
            >>> facts[0].evidence >= facts[-1].evidence
            True
        """
        kg1, kg2 = self._around.plain
        e = validate.count(e, "e", maximum=kg1.num_entities - 1)
        e2 = validate.count(e2, "e2", maximum=kg2.num_entities - 1)
        return explain_pair(*self._around.graphs, e, e2, self._beliefs.on_host(), self._alignment, self._witnesses)

    def facts(self, pairs: ArrayLike, *, most: int | None = None) -> FactTable:
        """Find the facts behind many pairs at once; `explain` shows those of one.

        Args:
            pairs: The pairs, int (m, 2) of (source, target).
            most: The number of facts that are kept of every pair, the strongest; the default, None, keeps all.

        Returns:
            A `FactTable`: the facts of all pairs as arrays.

        Raises:
            ValueError: There is no entity of some id, or `most` is negative.

        Example:
            >>> import stea_fast as sf
            >>> pair = sf.synthetic_pair(num_entities=200, seed=0)
            >>> out = sf.refine(sf.demo.candidates(pair), pair.kg1, pair.kg2, seeds=pair.train)
            >>> len(out.facts(out.pairs, most=1).evidence) <= len(out.pairs)
            True
        """
        rows = validate.columns(pairs, "pairs", 2)
        for column, kg in enumerate(self._around.plain):
            validate.in_range(rows[:, column], f"pairs[:, {column}]", kg.num_entities, "entities")
        most = None if most is None else validate.count(most, "most")
        beliefs = self._beliefs.on_host()
        return facts_of_pairs(*self._around.graphs, rows, beliefs, self._alignment, self._witnesses, most)


@names_nearest(where_options_live)
def refine(
    candidates: Any,
    kg1: KG,
    kg2: KG,
    *,
    seeds: Any = (),
    holdout: Any = (),
    relations: RelationAlignment | None = None,
    method: str | Method = DEFAULT_METHOD,
    select: str | None = None,
    threshold: float | None = None,
    backend: str = "auto",
    n_threads: int | None = None,
    rows_per_block: int | None = None,
    executor: str | Executor | None = None,
) -> Refinement:
    """Refine an encoder's candidates by checking every guess against the guesses for its neighbours.

    Args:
        candidates: `Candidates` with both directions, or a tuple (indices, scores) for one: int and float [n, k]
            arrays, NumPy or torch, with a row per entity of kg1, best candidate first and -1 for "no candidate".
            Partition sums that `topk(..., beta=...)` computed are used; without them the candidates of a row share all
            its probability mass.
        kg1: The source graph, whose entities are the rows of the forward candidates.
        kg2: The target graph, whose entities are the candidates.
        seeds: Known links, int (m, 2) of (source, target); empty by default. They stay certain and lend their weight to
            their neighbours.
        holdout: Known links that the encoder was not trained on, int (m, 2); empty by default. β is fitted to them.
            Without them β is chosen so that the mean probability of the best candidates equals the share of rows
            whose best candidate is mutual (0.5 if one direction is given), kept between 2/k and 0.95.
        relations: A relation alignment to use. The default, None, estimates it from seeds and predictions in every
            sweep.
        method: "joint" (the default), "product" or "paper", or an `sf.Joint`, `sf.Product` or `sf.Paper` with options
            of its own.
        select: Which pairs become pseudo mappings: "mutual" selects pairs that are each other's best, "forward" or
            "backward" every source's or every target's best above `threshold`, "either" both of these together, and
            "none" nothing. The default, None, is "mutual" for two directions and "none" for one.
        threshold: The probability that a selected pair must exceed. It may be left at its default, None, for "mutual",
            which then selects all mutual pairs.
        backend: "native", "numba", "cuda" or "reference"; "auto" refines where CUDA tensors, or graphs that `KG.to`
            moved, are if the method has CUDA kernels, and takes the fastest backend on the CPU otherwise.
        n_threads: The number of threads; the default, None, takes `STEA_NUM_THREADS` or all CPUs of this process.
        rows_per_block: On a GPU, the number of rows whose evidence is computed at a time; the kernel needs no memory
            beside its results, so this changes little. The default, None, computes all rows at once.
        executor: Where the method "joint" runs: "threads", "processes" or "ray", or an `sf.ProcessExecutor` or
            `sf.RayExecutor` with options of its own, whose workers then have their own number of threads. The result is
            the same to the bit. The default, None, takes the threads of this process.

    Returns:
        A `Refinement`, whose arrays are of the kind of the candidates and on their device.

    Raises:
        ValueError: An argument has an unusable value; the message says what was expected.
        TypeError: An argument is of the wrong type or does not exist; the message names the nearest one.
        BackendUnavailable: The backend asked for cannot run here.
        ExecutorError: The workers of an executor cannot be used; the message says why.

    Example:
        >>> import numpy as np
        >>> import stea_fast as sf
        >>> kg1 = sf.KG([[0, 0, 1], [1, 1, 2], [2, 0, 3]])
        >>> kg2 = sf.KG([[3, 0, 2], [2, 1, 1], [1, 0, 0]])
        >>> indices = np.array([[3, 1], [2, 3], [0, 1], [0, 2]])  # two candidates for each entity of kg1, best first
        >>> scores = np.array([[0.9, 0.2], [0.8, 0.7], [0.6, 0.5], [0.9, 0.1]])
        >>> out = sf.refine((indices, scores), kg1, kg2, seeds=[[0, 3]], method=sf.Joint(sweeps=2))
        >>> out.forward.indices[:, 0].tolist()  # entity 2 now goes to 1: its neighbours agree
        [3, 2, 1, 0]
    """
    check_selection(select, threshold)
    execution = Execution(backend, n_threads, rows_per_block, executor_of(executor))
    check_graphs(kg1, kg2)
    problem = problem_of(candidates, kg1, kg2, seeds, holdout, relations, execution)
    return refined(problem, method_of(method), select, threshold)


def refined(problem: Problem, method: Method, select: str | None = None, threshold: float | None = None) -> Refinement:
    """`refine` of what has been checked; the problem may have values, which only the joint method uses."""
    if problem.values is not None and not isinstance(method, Joint):
        raise ValueError(f"values need method='joint', got {type(method).__name__}; leave them out, or use sf.Joint()")
    if problem.values is not None and problem.relations is not None:
        raise ValueError("relations cannot be given where values are used: attributes are aligned together with them")
    outcome = _COMPUTED_BY[type(method)](problem, method)
    forward, *backward = outcome.rankings
    strategy = select or ("mutual" if backward else "none")
    seeds_there = placed(problem.seeds, "seeds", forward.indices.device if is_torch(forward.indices) else None)
    pairs, probs = select_pairs(strategy, forward, backward[0] if backward else None, threshold, seeds_there)
    template = problem.candidates[-1][0]
    return Refinement(
        ranking_like(template, forward),
        ranking_like(template, backward[0]) if backward else None,
        like(template, pairs),
        like(template, probs),
        outcome.sweeps,
        outcome.betas,
        problem.surroundings,
        outcome.relations,
        outcome.beliefs,
        method.witnesses,
    )


def ranking_like(template: Any, ranking: RefinedRanking) -> RefinedRanking:
    """The ranking as the kind of array that the template is, and where that lies."""
    indices = like(template, ranking.indices)
    if is_torch(template):
        indices = indices.to(template.dtype)  # torch indexes with int64 only
    support = None if ranking.support is None else like(template, ranking.support)
    return RefinedRanking(indices, like(template, ranking.probs), like(template, ranking.evidence), support)
