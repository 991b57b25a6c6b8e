"""Sweeps of one refinement on threads, processes and Ray, in turns: times, ratios, and whether the bits are the same.

    python -m bench.scale.executors [--size 500K] [--sweeps 4] [--workers 1,2] [--rounds 1] [--results FILE]

The pair is `sf.synthetic_pair(profile="dbp1m")` with 20 % seeds, refined by structure alone. Every worker has one
thread. Workers are started, and have made a first small refinement, before the clock runs.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

from bench.lib.processes import limit_threads

SEED_FRACTION, K = 0.2, 10


def contenders(workers: list[int]) -> dict[str, Callable[[], Any]]:
    """What makes executors, by their names; that of "one thread" makes None, which stands for this process."""
    import stea_fast as sf

    made: dict[str, Callable[[], Any]] = {"one thread": nullcontext}
    for count in workers:
        made[f"processes, {count}"] = partial(sf.ProcessExecutor, count)
        made[f"ray, {count}"] = partial(sf.RayExecutor, "local", workers=count)
    return made


def refinement(pair: Any, sweeps: int) -> Callable[[Any], bytes]:
    """What an executor is to do; returns the bits of the result."""
    from stea_fast.refinement.problem import Execution
    from stea_fast.refinement.structural import ALONE, refine_by_structure

    method = replace(ALONE, sweeps=sweeps)

    def work(executor: Any) -> bytes:
        execution = Execution(n_threads=1, executor=executor)
        found = refine_by_structure(pair.kg1, pair.kg2, pair.train, k=K, method=method, execution=execution)
        return bytes(found.forward.probs.tobytes() + found.forward.indices.tobytes())

    return work


def measure(size: int, sweeps: int, workers: list[int], rounds: int) -> dict[str, Any]:
    """All contenders in turns; the seconds of each, and whether all found the same bits."""
    import stea_fast as sf

    makers = contenders(workers)
    small = refinement(sf.synthetic_pair(500, seed=0), 1)
    pair = sf.synthetic_pair(size, seed=0, profile="dbp1m", seed_fraction=SEED_FRACTION)
    work = refinement(pair, sweeps)
    seconds: dict[str, list[float]] = {name: [] for name in makers}
    bits = set()
    for number in range(rounds):
        for name in list(makers)[:: -1 if number % 2 else 1]:
            with makers[name]() as executor:  # one at a time: the workers of another would hold its CPUs
                small(executor)
                begin = perf_counter()
                bits.add(work(executor))
                seconds[name].append(perf_counter() - begin)
    edges = len(pair.kg1.edges) + len(pair.kg2.edges)
    return {"size": size, "edges": edges, "sweeps": sweeps, "seconds": seconds, "same_bits": len(bits) == 1}


def main() -> None:
    from bench.scale.cells import SIZES

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=SIZES, default="500K")
    parser.add_argument("--sweeps", type=int, default=4)
    parser.add_argument("--workers", default="1,2", help="numbers of workers, with commas")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--results", type=Path, help="a file to which the line is added")
    given = parser.parse_args()
    limit_threads(1)
    from bench.lib.measure import duration, machine_facts, markdown, times
    from bench.paper import store

    with tempfile.TemporaryDirectory() as home:
        os.environ["HOME"] = home  # Ray writes below it
        line = measure(
            SIZES[given.size], given.sweeps, [int(count) for count in given.workers.split(",")], given.rounds
        )
    if given.results:
        store.append(given.results, {**line, "machine": machine_facts()})
    alone = min(line["seconds"]["one thread"])
    rows = [[name, duration(min(spent)), times(alone / min(spent))] for name, spent in line["seconds"].items()]
    print(markdown([f"{given.size}, {given.sweeps} sweeps", "seconds", "of one thread"], rows))
    print("the same bits" if line["same_bits"] else "DIFFERENT BITS")


if __name__ == "__main__":
    main()
