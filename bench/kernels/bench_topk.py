"""Top-K search: engines side by side, with GFLOP/s and the share of the matrix product's own speed.

python -m bench.kernels.bench_topk                    the bars: 20K x 20K x 768, with and without CSLS
python -m bench.kernels.bench_topk --sizes 15000,50000,100000 --widths 100,300,768 --engines native
python -m bench.kernels.bench_topk --memory 100000    memory beyond inputs and outputs, 768 wide
python -m pytest bench/kernels/bench_topk.py          the native engine by pytest-benchmark

All contenders of a size take turns in every round; the median counts. GFLOP/s count 2·n·n·d per pass over the
similarities, whatever an engine really computes: one pass for both directions, two with CSLS. "products alone" are
the blocks of float32 multiplied and not looked at; "native, float32" is what the native engine does with these blocks
where the processor does not multiply 8-bit numbers fast. "sums" are partition sums, which the presets ask for.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pytest

import stea_fast as sf
from bench.kernels.memory import MEGABYTE
from bench.lib.measure import duration, machine_facts, markdown, times
from bench.lib.processes import environment, module_command
from stea_fast._util.memory import peak, resident
from stea_fast.search.embeddings import Embeddings, Scoring
from stea_fast.search.engines import cpu

K, CSLS, BETA = 10, 10, 15.0
ENGINES = ("native", "numba", "torch", "faiss")
WARM_UP = 600  # entities: compiles, loads libraries, starts threads


def vectors(count: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Two float32 matrices of random unit vectors."""
    rng = np.random.default_rng(0)
    both = [rng.standard_normal((count, width), dtype=np.float32) for _ in range(2)]
    for array in both:
        array /= np.linalg.norm(array, axis=1, keepdims=True)
    return both[0], both[1]


def products_alone(emb1: np.ndarray, emb2: np.ndarray) -> None:
    """What the CPU engine multiplies, without merging."""
    side1, side2 = Embeddings.numpy(emb1, "emb1"), Embeddings.numpy(emb2, "emb2")
    for _ in cpu._blocks(side1, side2, Scoring.of("cosine", side1, side2)):
        pass


def faiss_calls(emb1: np.ndarray, emb2: np.ndarray, csls: int) -> None:
    """The usual way: a search in each direction; for CSLS the means of these, and two more searches."""
    import faiss

    inner = faiss.METRIC_INNER_PRODUCT
    if csls == 0:
        faiss.knn(emb1, emb2, K, metric=inner)
        faiss.knn(emb2, emb1, K, metric=inner)
        return
    means1 = faiss.knn(emb1, emb2, csls, metric=inner)[0].mean(axis=1, keepdims=True)
    means2 = faiss.knn(emb2, emb1, csls, metric=inner)[0].mean(axis=1, keepdims=True)
    ones1, ones2 = -np.ones_like(means1), -np.ones_like(means2)
    faiss.knn(np.hstack([2 * emb1, ones1]), np.hstack([emb2, means2]), K, metric=inner)
    faiss.knn(np.hstack([2 * emb2, ones2]), np.hstack([emb1, means1]), K, metric=inner)


def in_float32(emb1: np.ndarray, emb2: np.ndarray, csls: int, beta: float | None = None) -> None:
    """The native engine without 8-bit products: a tier that is asked for by name is taken for blocks of float32."""
    from stea_fast._backends.native import tier

    before = os.environ.get("STEA_TIER")
    os.environ["STEA_TIER"] = tier()
    try:
        sf.topk(emb1, emb2, K, csls, engine="native", beta=beta)
    finally:
        del os.environ["STEA_TIER"]
        if before is not None:
            os.environ["STEA_TIER"] = before


def contenders(count: int, width: int, engines: list[str]) -> dict[str, tuple[int, Callable[[], object]]]:
    """By label: passes over the similarities, and a call."""
    emb1, emb2 = vectors(count, width)
    found: dict[str, tuple[int, Callable[[], object]]] = {
        "products alone": (1, lambda: products_alone(emb1, emb2)),
    }
    for engine in (name for name in engines if name != "faiss.knn"):
        given: tuple[Any, Any] = (emb1, emb2)
        if engine == "torch":
            import torch

            given = torch.from_numpy(emb1), torch.from_numpy(emb2)
        for csls in (0, CSLS):
            label = f"{engine}, CSLS" if csls else engine
            call = lambda given=given, csls=csls, engine=engine: sf.topk(*given, K, csls, engine=engine)  # noqa: E731
            found[label] = (2 if csls else 1, call)
    if "native" in engines:
        with_sums = lambda: sf.topk(emb1, emb2, K, CSLS, engine="native", beta=BETA)  # noqa: E731
        found["native, CSLS, sums"] = (2, with_sums)
        found["native, float32, CSLS, sums"] = (2, lambda: in_float32(emb1, emb2, CSLS, BETA))
    if "faiss" in engines or "faiss.knn" in engines:
        found["faiss.knn, two calls"] = (1, lambda: faiss_calls(emb1, emb2, 0))
        found["faiss.knn, four calls (CSLS)"] = (2, lambda: faiss_calls(emb1, emb2, CSLS))
    return found


def compare(count: int, width: int, engines: list[str], rounds: int) -> dict[str, Any]:
    """Seconds of every contender, median over the rounds."""
    for _, call in contenders(WARM_UP, width, engines).values():
        call()
    calls = contenders(count, width, engines)
    seconds: dict[str, list[float]] = {label: [] for label in calls}
    names = list(calls)
    for number in range(rounds):
        shift = number % len(names)
        for label in names[shift:] + names[:shift]:
            print(f"  {count:,} x {width}, round {number + 1} of {rounds}: {label}", file=sys.stderr)
            begin = perf_counter()
            calls[label][1]()
            seconds[label].append(perf_counter() - begin)
    medians = {label: float(np.median(values)) for label, values in seconds.items()}
    passes = {label: number for label, (number, _) in calls.items()}
    return {"count": count, "width": width, "rounds": rounds, "seconds": medians, "passes": passes}


def report(result: dict[str, Any]) -> str:
    """A table of one size, and the ratios that the bars name."""
    gigaflop = 2e-9 * result["count"] ** 2 * result["width"]
    seconds = result["seconds"]
    alone = seconds["products alone"]
    rows = [
        [label, duration(value), f"{result['passes'][label] * gigaflop / value:.0f}",
         f"{result['passes'][label] * alone / value:.0%}"]
        for label, value in seconds.items()
    ]  # fmt: skip
    title = f"{result['count']:,} x {result['count']:,} x {result['width']}, K = {K}"
    text = markdown([title, "seconds", "GFLOP/s", "of the products alone"], rows)
    for ours, theirs in (("native", "faiss.knn, two calls"), ("native, CSLS", "faiss.knn, four calls (CSLS)")):
        if ours in seconds and theirs in seconds:
            text += f"\n\n{theirs} / {ours}: {times(seconds[theirs] / seconds[ours])}"
    return text


def added_memory(count: int, width: int = 768) -> dict[str, Any]:
    """Megabytes that a fresh process adds beyond its inputs and outputs."""
    command = module_command("bench.kernels.bench_topk", "--memory-here", count)
    out = subprocess.run(command, env=environment(), check=True, capture_output=True, text=True).stdout
    return {"count": count, "width": width, **json.loads(out)}


def _memory_here(count: int, width: int = 768) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    emb1, emb2 = (rng.standard_normal((count, width), dtype=np.float32) for _ in range(2))
    sf.topk(emb1[:WARM_UP], emb2[:WARM_UP], K, CSLS)
    before = resident()
    found = sf.topk(emb1, emb2, K, CSLS, beta=BETA)
    outputs = sum(a.nbytes for side in (found.forward, found.backward) for a in side)
    outputs += sum(sums.nbytes for sums in found.log_partition)
    return {"added_mb": (peak() - before - outputs) / MEGABYTE, "outputs_mb": outputs / MEGABYTE}


@pytest.mark.parametrize("beta", [None, BETA], ids=["", "sums"])
@pytest.mark.parametrize("csls", [0, CSLS], ids=["plain", "csls"])
@pytest.mark.parametrize("width", [100, 300, 768])
def bench_search(benchmark: Any, width: int, csls: int, beta: float | None) -> None:
    """The native engine, 5K x 5K."""
    emb1, emb2 = vectors(5000, width)
    benchmark.pedantic(lambda: sf.topk(emb1, emb2, K, csls, engine="native", beta=beta), rounds=3, warmup_rounds=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="20000", help="entities per side (default: %(default)s)")
    parser.add_argument("--widths", default="768", help="dimensions (default: %(default)s)")
    parser.add_argument(
        "--engines", default=",".join(ENGINES), help="faiss.knn: its calls alone (default: %(default)s)"
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--memory", type=int, metavar="N", help="measure memory with N entities per side instead")
    parser.add_argument("--memory-here", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    given = parser.parse_args()
    if given.memory_here:
        print(json.dumps(_memory_here(given.memory_here)))
        return
    facts = machine_facts()
    print(", ".join(f"{name} {value}" for name, value in facts.items()) + "\n")
    if given.memory:
        results = [added_memory(given.memory)]
        print(json.dumps(results[0], indent=2))
    else:
        missing = [name for name in ("torch", "faiss") if importlib.util.find_spec(name) is None]
        engines = [name for name in given.engines.split(",") if name.partition(".")[0] not in missing]
        results = []
        for count in map(int, given.sizes.split(",")):
            for width in map(int, given.widths.split(",")):
                results.append(compare(count, width, engines, given.rounds))
                print(report(results[-1]) + "\n", flush=True)
    if given.json:
        given.json.write_text(json.dumps({"machine": facts, "results": results}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
