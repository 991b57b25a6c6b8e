"""Time and memory of candidates from names: `python -m bench.names.candidates --size 1000000`, or `--pair dbp15k_fr_en`."""

from __future__ import annotations

import argparse
import logging
import resource
import time

import numpy as np

from bench.lib.folders import DATA
from bench.names.labels import synthetic_labels
from stea_fast.values.candidates import name_candidates


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=100_000, help="synthetic labels per side")
    parser.add_argument("--pair", help="names of this dataset folder instead: the local parts of its IRIs")
    parser.add_argument("--k", type=int, default=10)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    if arguments.pair:
        labels1, labels2 = (local_names(arguments.pair, side) for side in (1, 2))
        counterpart = None
    else:
        labels1, labels2, counterpart = synthetic_labels(arguments.size, arguments.seed)
    before = peak()
    began, cpu = time.perf_counter(), time.process_time()
    found = name_candidates(labels1, labels2, arguments.k, n_threads=arguments.threads)
    print(f"{len(labels1):,} x {len(labels2):,} labels, k = {arguments.k}, {arguments.threads} threads")
    print(f"{time.perf_counter() - began:.1f} s, {time.process_time() - cpu:.1f} s of CPU")
    print(f"{peak():.2f} GB at most, {before:.2f} GB before (the labels)")
    if counterpart is not None:
        linked = np.flatnonzero(counterpart >= 0)
        rows = found.forward.indices[linked] == counterpart[linked, None]
        print(f"counterpart first {rows[:, 0].mean():.3f}, among the candidates {rows.any(axis=1).mean():.3f}")


def local_names(pair: str, side: int) -> list[str]:
    """The local parts of the IRIs of a dataset folder, underscores as spaces."""
    lines = (DATA / pair / f"ent_ids_{side}").read_text(encoding="utf-8").splitlines()
    return [line.split("\t")[1].rsplit("/", 1)[-1].replace("_", " ") for line in lines]


def peak() -> float:
    """Gigabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


if __name__ == "__main__":
    main()
