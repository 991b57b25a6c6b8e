"""CUDA against native and Numba on the same inputs: evidence, relation alignment, and the whole `refine`.

python -m bench.kernels.bench_cuda    dbp15k_zh_en and synthetic-50K
python -m bench.kernels.bench_cuda --case synthetic-150K --rounds 9
python -m bench.kernels.bench_cuda --suite    all about the GPUs of this machine, in cuda-suite.json, to send back

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

import numpy as np

import stea_fast as sf
from bench.kernels import contenders
from bench.kernels.cuda_case import METHOD, OnDevice
from bench.lib import inputs
from bench.lib.measure import duration, interleave, machine_facts, markdown, times
from stea_fast import _backends
from stea_fast._util.threads import thread_count

CASES = ("dbp15k_zh_en", "synthetic-50K")
CPU_BACKENDS = ("native", "numba")
Calls = dict[str, Callable[[], object]]


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
        stages["refine"][backend] = contenders.whole_refinement(case, METHOD, backend=backend, n_threads=n_threads)
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
    parser.add_argument("--suite", action="store_true", help="correctness, times, bandwidths, presets, several GPUs")
    parser.add_argument("--rounds", type=int, help="how often each is measured (default: 7, of the suite 20)")
    parser.add_argument("--threads", type=int, default=None, help="of the CPU backends (default: all CPUs)")
    parser.add_argument("--json", type=Path, help="write the figures and the machine to this file")
    given = parser.parse_args()
    status = sf.backends()["cuda"]
    if not status.usable:
        print(f"bench_cuda needs the CUDA backend, which cannot run here: {status.detail}", file=sys.stderr)
        return 2
    if given.suite:
        from bench.kernels import cuda_suite

        path, names = given.json or Path("cuda-suite.json"), given.case or cuda_suite.CASES
        return cuda_suite.run(path, names, given.rounds or 20)
    print(f"{status.detail}; {json.dumps(machine_facts())}")
    threads = thread_count(given.threads)
    found = {name: bench(name, given.rounds or 7, threads) for name in given.case or CASES}
    if given.json:
        given.json.write_text(
            json.dumps({"device": status.detail, **machine_facts(), "seconds": found}, indent=2) + "\n"
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
