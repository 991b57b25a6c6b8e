"""Random pairs of graphs through every native kernel: every tier and number of threads must give the same bits.

`bench/hardening/sanitize.py` runs this under a sanitizer, which sees what the bits do not show.
"""

from __future__ import annotations

import argparse
import hashlib
import os
from collections.abc import Iterator
from typing import Any

import numpy as np

import stea_fast as sf
from stea_fast import _core
from stea_fast._backends import native
from stea_fast._backends.witnesses import WITNESSES
from stea_fast.refinement.beliefs import soft
from stea_fast.search.engines import cpu

THREADS = (1, 2, 8)
Problem = tuple[sf.KG, sf.KG, np.ndarray, sf.Beliefs, sf.RelationAlignment]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=0, help="number of the first pair; it is the seed")
    parser.add_argument("--count", type=int, default=50, help="number of pairs")
    arguments = parser.parse_args()
    for number in range(arguments.first, arguments.first + arguments.count):
        check(number)
    print(f"{arguments.count} graph pairs x {THREADS} threads x tiers {', '.join(_core.tiers())}: the same bits")


def check(number: int) -> None:
    """One pair, from both sides."""
    rng = np.random.default_rng(number)
    problem = random_problem(rng)
    embeddings = random_embeddings(rng)
    digests = {}
    for tier in _core.tiers():
        os.environ["STEA_TIER"] = tier
        for n_threads in THREADS:
            results = [*refinement_results(problem, n_threads), *search_results(*embeddings, n_threads)]
            digests[tier, n_threads] = hashlib.sha256(b"".join(part.tobytes() for part in results)).hexdigest()
    assert len(set(digests.values())) == 1, f"pair {number}: {digests}"


def random_graph(rng: np.random.Generator) -> sf.KG:
    """Few rows, or several chunks of them; self loops, parallel edges, empty rows; sometimes a hub."""
    n = int(rng.integers(1, rng.choice([4, 40, 600])))
    r = int(rng.integers(1, rng.choice([3, 30])))
    count = int(rng.integers(0, 6 * n))
    triples = np.stack([rng.integers(n, size=count), rng.integers(r, size=count), rng.integers(n, size=count)], 1)
    if rng.random() < 0.3:
        triples[: count // 2, 0] = 0
    if rng.random() < 0.05:  # as many edges as make a row go first and alone
        leaves = np.arange(1, 1300)
        n = max(n, 1300)
        triples = np.concatenate([triples, np.stack([0 * leaves, leaves % r, leaves], 1)])
    return sf.KG(triples, n, r)


def random_problem(rng: np.random.Generator) -> Problem:
    """Two graphs, candidates (some missing), beliefs and a relation alignment."""
    kg1, kg2 = random_graph(rng), random_graph(rng)
    k = int(rng.integers(1, min(kg2.num_entities, 12) + 1))
    order = rng.random((kg1.num_entities, kg2.num_entities)).argsort(axis=1)[:, :k]
    candidates = np.where(rng.random(order.shape) < 0.2, -1, order).astype(np.int32)
    believed = np.where(rng.random(order.shape) < 0.3, -1, order).astype(np.int32)
    beliefs = soft(believed, rng.random(order.shape, dtype=np.float32) ** rng.choice([0, 1, 8, 40]))
    shape = 2 * kg1.num_relations, 2 * kg2.num_relations
    density = rng.random()
    dense12, dense21 = (
        rng.random(size, dtype=np.float32) * (rng.random(size) < density) for size in (shape, shape[::-1])
    )
    return kg1, kg2, candidates, beliefs, sf.RelationAlignment(dense12, dense21, float(rng.choice([0.0, 0.1])))


def refinement_results(problem: Problem, n_threads: int) -> Iterator[np.ndarray]:
    """What every kernel over graphs makes of the problem."""
    kg1, kg2, candidates, beliefs, relations = problem
    table = native.strengths(relations, kg1, kg2)
    rows = (0, kg1.num_entities)
    lengths = np.diff(beliefs.indptr)
    own = np.full((kg1.num_entities, max(int(lengths.max()), 1)), -1, dtype=np.int32)
    places = np.arange(own.shape[1]) < lengths[:, None]
    own[places] = beliefs.targets
    for witnesses in WITNESSES:
        common: dict[str, Any] = {"forward": True, "rows": rows, "n_threads": n_threads, "witnesses": witnesses}
        yield from native.evidence_and_witnesses(kg1, kg2, candidates, beliefs, table, **common)
        held = native.evidence(kg1, kg2, own, beliefs, table, **common)[places]
        yield native.blanket(kg1, kg2, candidates, beliefs, held, table, **common)
        masks = np.arange(kg1.num_entities) % 5 > 0, np.arange(kg2.num_entities) % 7 > 0
        yield from native.proposals(kg1, kg2, beliefs, table, *masks, k=4, budget=500, **common)
    counts = native.relation_counts(kg1, kg2, beliefs, rows=rows, n_threads=n_threads)
    contained = native.containment(counts, kg2.num_relations, 1.0, 0.1)
    yield from (counts.keys, counts.num, counts.den, contained.data, contained.indices, contained.indptr)


def random_embeddings(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    """Two sides with ties among them, and options of a search."""
    n1, n2 = (int(rng.integers(1, 200)) for _ in range(2))
    width = int(rng.integers(1, 20))
    kind = rng.choice([np.float32, np.float64])
    sides = [rng.standard_normal((n, width)).round(int(rng.integers(0, 4))).astype(kind) for n in (n1, n2)]
    options = {
        "k": int(rng.choice([1, 5, 80])),  # pools of more than 64 are kept in another way
        "csls": int(rng.choice([0, 3])),
        "metric": str(rng.choice(["cosine", "ip", "l2"])),
        "beta": float(rng.choice([0.0, 2.0, 100.0])),
    }
    return sides[0], sides[1], options


def search_results(
    side1: np.ndarray, side2: np.ndarray, options: dict[str, Any], n_threads: int
) -> Iterator[np.ndarray]:
    """A search in small blocks, so that rows and columns meet several of them."""
    cpu.BLOCK_ROWS, cpu.BLOCK_COLUMNS = 96, 72
    found = sf.topk(side1, side2, engine="native", n_threads=n_threads, progress=False, **options)
    yield from (*found.forward, *found.backward, *found.log_partition)


if __name__ == "__main__":
    main()
