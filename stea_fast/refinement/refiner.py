"""The drop-in for anyone's training loop."""

from __future__ import annotations

from typing import Any

from stea_fast._util.options import names_nearest
from stea_fast.data.graph import KG
from stea_fast.refinement.api import Refinement, refine
from stea_fast.refinement.config import Method, where_options_live
from stea_fast.refinement.problem import Execution
from stea_fast.refinement.schedule import Schedule, plan_of
from stea_fast.search.topk import topk
from stea_fast.types import TopK


class Refiner:
    """The drop-in for a training loop of your own: `pairs = step(emb1, emb2)`.

    Args:
        kg1, kg2: the graphs.
        seeds: (m, 2) known links; never among the pairs returned.
        k: candidates of every entity that the search finds.
        csls: neighbours that CSLS looks at; 0 for the plain similarity.
        refinement: a `Schedule`, by which the joint refinement changes from call to call (the default), or one
            method for all calls: a name or an `sf.Joint`, `sf.Product` or `sf.Paper`.
        select, threshold: as in `refine`; by default the schedule gives the threshold.
        backend, n_threads, rows_per_block: as in `refine`. The joint refinement works on the CPU, wherever the
            embeddings lie.

    After a call, `candidates` and `refinement` hold what the pairs were selected from.

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
        self.kg1, self.kg2, self.seeds, self.k, self.csls = kg1, kg2, seeds, k, csls
        self.plan = plan_of(refinement)
        self.select, self.threshold = select, threshold
        self.execution = Execution(backend, n_threads, rows_per_block)
        self.calls = 0
        self.candidates: TopK | None = None
        self.refinement: Refinement | None = None

    def __call__(self, emb1: Any, emb2: Any) -> Any:
        """(m, 2) pseudo mappings to train on beside the seeds, as the kind of array the embeddings are."""
        number, self.calls = self.calls, self.calls + 1
        threshold = self.plan.threshold(number, last=False) if self.threshold is None else self.threshold
        self.candidates = topk(emb1, emb2, self.k, self.csls, beta=self.plan.beta)
        self.refinement = refine(
            self.candidates, self.kg1, self.kg2, seeds=self.seeds, method=self.plan.method(number, last=False),
            select=self.select, threshold=threshold, **self.execution._asdict(),
        )  # fmt: skip
        return self.refinement.pairs
