"""CUDA against native and Numba on the same inputs: evidence, relation alignment, and the whole `refine`.

python -m bench.kernels.bench_cuda    dbp15k_zh_en and synthetic-50K
python -m bench.kernels.bench_cuda --case synthetic-150K --rounds 9

Needs a CUDA device and refuses where there is none. Graphs, candidates and beliefs lie on the device before the clock
starts, and every call ends with a synchronisation. Contenders take turns in every round; the median counts. Before
anything is timed, the evidence of both backends must agree to 1e-5.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import stea_fast as sf
from bench.kernels import contenders
from bench.lib import inputs
from bench.lib.measure import duration, interleave, machine_facts, markdown, times
from stea_fast import _backends
from stea_fast._util.threads import thread_count

CASES = ("dbp15k_zh_en", "synthetic-50K")
CPU_BACKENDS = ("native", "numba")
Calls = dict[str, Callable[[], object]]


class OnDevice:
    """A case with everything on the device."""

    def __init__(self, case: inputs.Case) -> None:
        import torch

        from stea_fast._backends import cuda
        from stea_fast._backends.device_data import DeviceAlignment, DeviceBeliefs, DeviceGraph, Strengths

        self.torch, self.case = torch, case
        self.device = cuda._default_device()
        self.kernels = cuda.Kernels(self.device)
        self.kgs = [kg.to(self.device) for kg in (case.pair.kg1, case.pair.kg2)]
        self.graphs = [DeviceGraph.upload(kg, self.device) for kg in self.kgs]
        self.indices = [torch.tensor(side.indices, device=self.device) for side in case.sides]
        self.beliefs = [DeviceBeliefs.upload(side.beliefs, self.device) for side in case.sides]
        self.strengths = Strengths.of(DeviceAlignment.upload(case.relations, self.device), *self.graphs)
        self.candidates = sf.Candidates(*(self._ranking(side) for side in self._directions()))

    def _directions(self) -> list[Any]:
        return [self.case.candidates.forward, self.case.candidates.backward]

    def _ranking(self, ranking: Any) -> sf.Ranking:
        return sf.Ranking(*(self.torch.tensor(np.asarray(part), device=self.device) for part in ranking))

    def wait(self) -> None:
        """Until all enqueued work is done."""
        if self.device.type == "cuda":
            self.torch.cuda.synchronize(self.device)

    def evidence(self) -> list[Any]:
        """Both directions."""
        found = []
        for forward, graphs, indices, beliefs in zip(
            (True, False), (self.graphs, self.graphs[::-1]), self.indices, self.beliefs, strict=True
        ):
            table = self.strengths.forward if forward else self.strengths.backward
            rows = (0, graphs[0].num_entities)
            found.append(self.kernels.evidence(*graphs, indices, beliefs, table, rows=rows))
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
        sf.refine(self.candidates, *self.kgs, seeds=self.case.pair.train, backend="cuda")
        self.wait()


def check_agreement(case: inputs.Case, device: OnDevice) -> None:
    """Stop unless both backends give the same evidence."""
    native = _backends.resolve("native")
    table = native.strengths(case.relations, case.pair.kg1, case.pair.kg2)
    for side, found in zip(case.sides, device.evidence(), strict=True):
        rows = (0, side.source.num_entities)
        wanted = native.evidence(
            side.source, side.target, side.indices, side.beliefs, table, forward=side.forward, rows=rows
        )
        np.testing.assert_allclose(found.cpu().numpy(), wanted, rtol=2e-5, atol=1e-30)


def calls(case: inputs.Case, device: OnDevice, n_threads: int) -> dict[str, Calls]:
    """What is timed, by stage and backend."""
    stages: dict[str, Calls] = {
        "evidence": {"cuda": device.evidence},
        "relation alignment": {"cuda": device.relation_alignment},
        "refine": {"cuda": device.refine},
    }
    for backend in CPU_BACKENDS:
        stages["evidence"][backend] = contenders.evidence(case, backend, n_threads)
        stages["relation alignment"][backend] = contenders.relation_alignment(case, backend, n_threads)
        stages["refine"][backend] = lambda backend=backend: sf.refine(  # type: ignore[misc]
            case.candidates, case.pair.kg1, case.pair.kg2, seeds=case.pair.train, backend=backend, n_threads=n_threads
        )
    return stages


def bench(name: str, rounds: int, n_threads: int) -> dict[str, dict[str, float]]:
    """Median seconds by stage and backend; prints a table."""
    case = inputs.case(name)
    device = OnDevice(case)
    check_agreement(case, device)
    found = {
        stage: {backend: timing.median for backend, timing in interleave(of_stage, rounds).items()}
        for stage, of_stage in calls(case, device, n_threads).items()
    }
    rows = [
        [stage, *(duration(medians[backend]) for backend in ("cuda", *CPU_BACKENDS)),
         *(times(medians[backend] / medians["cuda"]) for backend in CPU_BACKENDS)]
        for stage, medians in found.items()
    ]  # fmt: skip
    print(f"\n{name}\n")
    print(markdown(["stage", "cuda", *CPU_BACKENDS, *(f"cuda is faster than {b}" for b in CPU_BACKENDS)], rows))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--case", action="append", choices=inputs.NAMES, help="several times for several")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=None, help="of the CPU backends (default: all CPUs)")
    parser.add_argument("--json", type=Path, help="write the figures and the machine to this file")
    given = parser.parse_args()
    status = sf.backends()["cuda"]
    if not status.usable:
        print(f"bench_cuda needs the CUDA backend, which cannot run here: {status.detail}", file=sys.stderr)
        return 2
    print(f"{status.detail}; {json.dumps(machine_facts())}")
    threads = thread_count(given.threads)
    found = {name: bench(name, given.rounds, threads) for name in given.case or CASES}
    if given.json:
        given.json.write_text(
            json.dumps({"device": status.detail, **machine_facts(), "seconds": found}, indent=2) + "\n"
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
