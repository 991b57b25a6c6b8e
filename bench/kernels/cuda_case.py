"""What the benches of the CUDA backend work on: an input of the benches, uploaded to a device."""

from __future__ import annotations

from typing import Any

import numpy as np

import stea_fast as sf
from bench.lib import inputs

METHOD = "product"  # of `refine`: what is timed beside its kernels


class OnDevice:
    """A case with everything on one device: the current one, unless another is named."""

    def __init__(self, case: inputs.Case, device: Any = None) -> None:
        import torch

        from stea_fast._backends import cuda
        from stea_fast._backends.device_data import DeviceAlignment, DeviceBeliefs, DeviceGraph, Strengths

        self.torch, self.case = torch, case
        self.device = cuda._default_device() if device is None else device
        self.kernels = cuda.Kernels(self.device)
        self.kgs = [kg.to(self.device) for kg in (case.pair.kg1, case.pair.kg2)]
        self.graphs = [DeviceGraph.upload(kg, self.device) for kg in self.kgs]
        self.indices = [torch.tensor(side.indices, device=self.device) for side in case.sides]
        self.beliefs = [DeviceBeliefs.upload(side.beliefs, self.device) for side in case.sides]
        self.strengths = Strengths.of(DeviceAlignment.upload(case.relations, self.device), *self.graphs)
        directions = (case.candidates.forward, case.candidates.backward)
        self.candidates = sf.Candidates(*(self._ranking(side) for side in directions))

    def _ranking(self, ranking: Any) -> sf.Ranking:
        return sf.Ranking(*(self.torch.tensor(np.asarray(part), device=self.device) for part in ranking))

    def wait(self) -> None:
        """Until all enqueued work is done."""
        if self.device.type == "cuda":
            self.torch.cuda.synchronize(self.device)

    def evidence_of(self, number: int, rows: tuple[int, int] | None = None, **options: Any) -> tuple[Any, Any]:
        """L and the number of witnesses of one direction (0 forward, 1 backward), or of some rows of it."""
        graphs = self.graphs[::-1] if number else self.graphs
        begin, end = rows or (0, graphs[0].num_entities)
        candidates, table = self.indices[number][begin:end], self.strengths[number]
        given = *graphs, candidates, self.beliefs[number], table
        return self.kernels.evidence_and_witnesses(*given, rows=(begin, end), **options)

    def evidence(self) -> list[Any]:
        """Both directions."""
        found = [self.evidence_of(number, count=False)[0] for number in (0, 1)]
        self.wait()
        return found

    def relation_alignment(self) -> None:
        """Both directions."""
        from stea_fast._backends.device_data import DeviceAlignment
        from stea_fast._backends.tensors import TensorBackend
        from stea_fast.refinement.relations import estimated

        estimated(TensorBackend(self.kernels), tuple(self.graphs), tuple(self.beliefs), make=DeviceAlignment)  # type: ignore[arg-type]
        self.wait()

    def refine(self) -> None:
        """From candidates to selected pairs."""
        sf.refine(self.candidates, *self.kgs, seeds=self.case.pair.train, method=METHOD, backend="cuda")
        self.wait()
