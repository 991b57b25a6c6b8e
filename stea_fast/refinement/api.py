"""`refine`: check every guess against the guesses for its neighbours."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from stea_fast._util import validate
from stea_fast._util.arrays import is_torch, like, placed
from stea_fast._util.options import names_nearest
from stea_fast.data.graph import KG
from stea_fast.refinement.config import DEFAULT_METHOD, Joint, Method, Paper, Product, method_of, where_options_live
from stea_fast.refinement.directional import refine_by_direction
from stea_fast.refinement.explanation import Explanation, explain_pair
from stea_fast.refinement.joint import refine_jointly
from stea_fast.refinement.problem import Execution, Outcome, Problem, problem_of
from stea_fast.refinement.selection import STRATEGIES
from stea_fast.refinement.selection import select as select_pairs
from stea_fast.types import Beliefs, RefinedRanking, RelationAlignment

# How each method is computed. A new method is a class in config.py and an entry here.
_COMPUTED_BY: dict[type, Callable[[Problem, Any], Outcome]] = {
    Joint: refine_jointly,
    Product: refine_by_direction,
    Paper: refine_by_direction,
}


@dataclass(frozen=True, eq=False)
class Refinement:
    """What `refine` returns.

    Attributes:
        forward: refined candidates of every source entity, best first.
        backward: the same for every target entity; None if only one direction was given.
        pairs: (m, 2) selected pseudo mappings; seeds are not among them.
        pair_probs: [m] their probability.
        relations: the relation alignment behind the evidence.
        sweeps: how many sweeps were made before the predictions settled.
        betas: the inverse temperature of each direction (None where not used).
    """

    forward: RefinedRanking
    backward: RefinedRanking | None
    pairs: Any
    pair_probs: Any
    relations: RelationAlignment
    sweeps: int
    betas: tuple[float | None, ...]
    _kgs: tuple[KG, KG] = field(repr=False)
    _beliefs: Beliefs = field(repr=False)
    _witnesses: str = field(repr=False)

    def explain(self, e: int, e2: int) -> Explanation:
        """The facts (r, n, r', n') behind e ≡ e2, strongest first, with each one's share of the evidence."""
        return explain_pair(*self._kgs, e, e2, self._beliefs.on_host(), self.relations, self._witnesses)


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
) -> Refinement:
    """Refine an encoder's candidates by the dependencies between the predictions.

    Args:
        candidates: `Candidates` (both directions), or (indices, scores) for one direction: [n, k] arrays with a row
            per entity of kg1, best first, -1 for "none"; NumPy or torch. Partition sums that `topk(..., beta=...)`
            computed are used; without them the candidates of a row share all its probability mass.
        kg1, kg2: source and target graph.
        seeds: (m, 2) known links. They stay certain and lend their weight to their neighbours.
        holdout: (m, 2) known links that the encoder was not trained on; β is fitted to them. Without them β
            is set so that the mean probability of the best candidates equals the share of rows whose best
            candidate is mutual (0.5 if only one direction is given), kept between 2/k and 0.95.
        relations: a given relation alignment; by default it is estimated from seeds and predictions, anew in every
            sweep.
        method: "joint" (the default), "product" or "paper", or an `sf.Joint`, `sf.Product` or `sf.Paper` with
            options of its own.
        select: which pairs become pseudo mappings: "mutual" (each other's best), "forward" or "backward" (every
            source's or every target's best above `threshold`), "either" (both of these together), or "none". By
            default "mutual", and "none" where only one direction is given.
        threshold: probability that a selected pair must exceed.
        backend: "auto" (CUDA tensors are refined where they are, if the method has CUDA kernels; else the fastest
            on the CPU), "native", "numba", "cuda" or "reference".
        n_threads: default: all CPUs of this process, or `STEA_NUM_THREADS`.
        rows_per_block: on a GPU, compute the evidence of this many rows at a time, with less scratch memory.

    Returns:
        A `Refinement`; its arrays are of the kind of the candidates, on their device.

    Raises:
        ValueError, TypeError: an argument is unusable; the message says what was expected.
        BackendUnavailable: the backend asked for cannot run here.

    Example:
        >>> import stea_fast as sf
        >>> pair = sf.synthetic_pair(num_entities=200, seed=0)
        >>> candidates = sf.demo.candidates(pair)
        >>> out = sf.refine(candidates, pair.kg1, pair.kg2, seeds=pair.train, method=sf.Joint(sweeps=2))
        >>> out.forward.indices.shape
        (200, 10)
        >>> sf.evaluate(out, pair.test).hit1 > sf.evaluate(candidates, pair.test).hit1
        True
    """
    chosen = method_of(method)
    if select is not None:
        validate.choice(select, "select", STRATEGIES)
    if threshold is not None:
        validate.number(threshold, "threshold", minimum=0.0, maximum=1.0)
    execution = Execution(backend, n_threads, rows_per_block)
    problem = problem_of(candidates, kg1, kg2, seeds, holdout, relations, execution)
    outcome = _COMPUTED_BY[type(chosen)](problem, chosen)
    forward, *backward = outcome.rankings
    strategy = select or ("mutual" if backward else "none")
    seeds_there = placed(problem.seeds, "seeds", forward.indices.device if is_torch(forward.indices) else None)
    pairs, probs = select_pairs(strategy, forward, backward[0] if backward else None, threshold, seeds_there)
    template = problem.candidates[-1][0]
    return Refinement(
        _like_ranking(template, forward),
        _like_ranking(template, backward[0]) if backward else None,
        like(template, pairs),
        like(template, probs),
        outcome.relations,
        outcome.sweeps,
        outcome.betas,
        (kg1, kg2),
        outcome.beliefs,
        chosen.witnesses,
    )


def _like_ranking(template: Any, ranking: RefinedRanking) -> RefinedRanking:
    indices = like(template, ranking.indices)
    if is_torch(template):
        indices = indices.to(template.dtype)  # torch indexes with int64 only
    support = None if ranking.support is None else like(template, ranking.support)
    return RefinedRanking(indices, like(template, ranking.probs), like(template, ranking.evidence), support)
