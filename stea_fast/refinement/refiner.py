"""The drop-in for anyone's training loop."""

from __future__ import annotations

from typing import Any

from stea_fast._util import validate
from stea_fast._util.options import names_nearest
from stea_fast.data.graph import KG
from stea_fast.data.id_space import check_separate
from stea_fast.refinement.api import Refinement, refine
from stea_fast.refinement.config import Method, where_options_live
from stea_fast.refinement.problem import check_graphs
from stea_fast.refinement.schedule import Schedule, plan_of
from stea_fast.refinement.selection import check_selection
from stea_fast.search.topk import topk
from stea_fast.types import TopK


class Refiner:
    """The refinement as one line of a training loop of your own: `pairs = step(emb1, emb2)`.

    After a call, `candidates` and `refinement` hold what the pairs were selected from.

    Args:
        kg1: The source graph.
        kg2: The target graph.
        seeds: Known links, int (m, 2) of (source, target); they are never among the pairs returned.
        k: The number of candidates that the search finds for every entity.
        csls: The number of neighbours that CSLS averages over; 0 ranks by the plain similarity.
        refinement: A `Schedule`, by which the joint refinement changes from call to call, or one method for all calls:
            an `sf.Joint`, `sf.Product` or `sf.Paper`, or a name. "joint" stands for the default schedule.
        select: Which pairs are returned; see `refine`. The default, None, returns pairs that are each other's best.
        threshold: The probability that a returned pair must exceed; the default, None, takes the schedule's. One method
            for all calls has none of its own, so "forward", "backward" and "either" then need one here.
        backend: The backend of the refinement; see `refine`. "auto" refines where the embeddings lie.
        n_threads: The number of threads; the default, None, takes `STEA_NUM_THREADS` or all CPUs of this process.
        rows_per_block: On a GPU, the number of rows whose evidence is computed at a time; all of them by default.

    Raises:
        ValueError: An argument has an unusable value.
        TypeError: An argument is of the wrong type or does not exist; the message names the nearest one.

    Example:
        >>> import stea_fast as sf
        >>> pair = sf.synthetic_pair(num_entities=200, seed=0)
        >>> step = sf.Refiner(pair.kg1, pair.kg2, pair.train)
        >>> pairs = step(*sf.demo.encode(pair))  # (m, 2): train on them beside the seeds
        >>> pairs.shape[1]
        2
    """

    @names_nearest(lambda: {**where_options_live("refinement"), "schedule": "refinement=sf.Schedule(...)"})
    def __init__(
        self,
        kg1: KG,
        kg2: KG,
        seeds: Any,
        *,
        k: int = 10,
        csls: int = 10,
        refinement: str | Method | Schedule = "joint",
        select: str | None = None,
        threshold: float | None = None,
        backend: str = "auto",
        n_threads: int | None = None,
        rows_per_block: int | None = None,
    ) -> None:
        check_graphs(kg1, kg2)
        check_separate(kg1, kg2, validate.links(seeds, "seeds", kg1.num_entities, kg2.num_entities))
        self.kg1, self.kg2, self.seeds, self.k, self.csls = kg1, kg2, seeds, k, csls
        self.plan = plan_of(refinement)
        check_selection(select, self.plan.threshold(0, last=False) if threshold is None else threshold)
        self.select, self.threshold = select, threshold
        self.execution: dict[str, Any] = {
            "backend": backend,
            "n_threads": n_threads,
            "rows_per_block": rows_per_block,
        }
        self.calls = 0
        self.candidates: TopK | None = None
        self.refinement: Refinement | None = None

    def __call__(self, emb1: Any, emb2: Any) -> Any:
        """Search, refine and select: the pairs to train on in the next round.

        Args:
            emb1: The embeddings of the source entities, float [n1, d], NumPy or torch.
            emb2: The embeddings of the target entities, float [n2, d], of the same kind.

        Returns:
            Pseudo mappings, int64 [m, 2], to train on beside the seeds, as the kind of array that the embeddings are.
        """
        number, self.calls = self.calls, self.calls + 1
        threshold = self.plan.threshold(number, last=False) if self.threshold is None else self.threshold
        self.candidates = topk(emb1, emb2, self.k, self.csls, beta=self.plan.beta)
        self.refinement = refine(
            self.candidates, self.kg1, self.kg2, seeds=self.seeds, method=self.plan.method(number, last=False),
            select=self.select, threshold=threshold, **self.execution,
        )  # fmt: skip
        return self.refinement.pairs
