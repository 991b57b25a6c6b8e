"""The drop-in for anyone's training loop."""

from __future__ import annotations

from typing import Any

from stea_fast.refinement.api import Refinement, refine
from stea_fast.refinement.schedule import Schedule
from stea_fast.search.topk import topk
from stea_fast.types import TopK


class Refiner:
    """The drop-in for a training loop of your own: `pairs = step(emb1, emb2)`.

    Args:
        kg1, kg2: the graphs.
        seeds: (m, 2) known links; never among the pairs returned.
        k, csls: of the search.
        schedule: how the joint refinement changes from call to call; see `Schedule`. It works on the CPU: graphs that
            were sent to a device (`KG.to`) are refined there, by the defaults of `refine`, unless a schedule is given;
            so is everything with `backend="cuda"`.
        options: of `refine`, instead of the schedule's; with `paper` or `combine` the schedule plays no part.

    After a call, `candidates` and `refinement` hold what the pairs were selected from.
    """

    def __init__(
        self, kg1: Any, kg2: Any, seeds: Any, *, k: int = 10, csls: int = 10, schedule: Schedule | None = None,
        **options: Any,
    ) -> None:  # fmt: skip
        self.kg1, self.kg2, self.seeds = kg1, kg2, seeds
        self.k, self.csls, self.options = k, csls, options
        on_device = getattr(kg1, "device_graph", None) is not None or options.get("backend") == "cuda"
        if {"paper", "combine"} & set(options) or (on_device and schedule is None):
            self.schedule = None
        else:
            self.schedule = schedule or Schedule()
        self.calls = 0
        self.candidates: TopK | None = None
        self.refinement: Refinement | None = None

    def __call__(self, emb1: Any, emb2: Any) -> Any:
        """(m, 2) pseudo mappings to train on beside the seeds, as the kind of array the embeddings are."""
        scheduled = {} if self.schedule is None else self.schedule.options(self.calls, last=False)
        self.calls += 1
        beta = None if self.schedule is None else self.schedule.beta
        self.candidates = topk(emb1, emb2, self.k, self.csls, beta=beta)
        options = {**scheduled, **self.options}
        self.refinement = refine(self.candidates, self.kg1, self.kg2, seeds=self.seeds, **options)
        return self.refinement.pairs
