"""One side of a contest between two versions: does a case's work whenever it is told to, and says how long it took.

Started by `bench.against` with the interpreter of either side, so it imports that side's stea_fast and nothing else of
the benches, and uses only names that the versions have in common or tries the newer one first.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

import stea_fast as sf
from stea_fast import encoders
from stea_fast.types import Candidates, Ranking

Work = Callable[[], dict[str, float]]  # what it found, to be compared between the sides
K = 10


@dataclass(frozen=True)
class Given:
    """What a case works on.

    Attributes:
        folder: of the datasets.
        pair: name of one of them, or "synthetic" for a small one that needs no files.
        fraction: of its links that are seeds.
        split: which of them.
    """

    folder: Path
    pair: str
    fraction: float
    split: int

    def load(self) -> sf.Pair:
        if self.pair == "synthetic":
            return sf.synthetic_pair(1_000, seed=self.split, seed_fraction=self.fraction)
        return sf.load_pair(self.folder / self.pair, self.fraction, self.split)


def vectors(count: int, width: int, seed: int) -> np.ndarray:
    """Random directions."""
    drawn = np.random.default_rng(seed).standard_normal((count, width)).astype(np.float32)
    return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


def search(width: int, **options: Any) -> Callable[[Given], Work]:
    """20,000 × 20,000 vectors, the ten nearest in both directions."""

    def prepare(given: Given) -> Work:
        sides = [vectors(20_000, width, seed) for seed in (0, 1)]

        def work() -> dict[str, float]:
            found = sf.topk(*sides, k=K, **options)
            return {"checksum": float(np.asarray(found.forward.indices).sum())}

        return work

    return prepare


@cache
def propagated(given: Given) -> tuple[sf.Pair, sf.Candidates]:
    """Candidates of the encoder that needs no training."""
    pair = given.load()
    encoder = encoders.make("propagation", pair.kg1, pair.kg2, relation_dim=64)
    encoder.fit(pair.train, 1)
    return pair, sf.topk(*encoder.embeddings(), k=K, csls=K)


def joint(sweeps: int, **options: Any) -> dict[str, Any]:
    """The options of `refine` for so many joint sweeps."""
    if hasattr(sf, "Joint"):
        return {"method": sf.Joint(sweeps=sweeps, **options)}
    return {"combine": "joint", "sweeps": sweeps, **options}


def refinement(**options: Any) -> Callable[[Given], Work]:
    """`refine` with these options: without any, as each version does it, which need not be the same method."""

    def prepare(given: Given) -> Work:
        pair, candidates = propagated(given)

        def work() -> dict[str, float]:
            found = sf.refine(candidates, pair.kg1, pair.kg2, seeds=pair.train, **options)
            return {"hit1": sf.evaluate(found, pair.test).hit1, "sweeps": found.sweeps}

        return work

    return prepare


@cache
def unguessed(given: Given) -> tuple[sf.Pair, sf.Candidates]:
    """No candidates at all: what is found spreads from the seeds."""
    pair = given.load()
    sides = (np.full((kg.num_entities, K), -1, dtype=np.int32) for kg in (pair.kg1, pair.kg2))
    forward, backward = (Ranking(indices, np.zeros(indices.shape, dtype=np.float32)) for indices in sides)
    return pair, Candidates(forward, backward)


def sweep(make: Callable[[Given], tuple[sf.Pair, sf.Candidates]], **options: Any) -> Callable[[Given], Work]:
    """A joint sweep: what six take longer than one, by the number made beyond it."""

    def prepare(given: Given) -> Work:
        pair, candidates = make(given)

        def work() -> dict[str, float]:
            spent, made = [], []
            for count in (1, 6):
                begin = perf_counter()
                found = sf.refine(candidates, pair.kg1, pair.kg2, seeds=pair.train, **joint(count, **options))
                spent.append(perf_counter() - begin)
                made.append(found.sweeps)
            hit1 = sf.evaluate(found, pair.test).hit1
            return {"seconds": (spent[1] - spent[0]) / (made[1] - made[0]), "hit1": hit1}

        return work

    return prepare


def run_of(preset: str) -> Callable[[Given], Work]:
    """Self-training from the seeds to the links."""

    def prepare(given: Given) -> Work:
        pair = given.load()

        def work() -> dict[str, float]:
            return {"hit1": sf.evaluate(sf.SelfTraining(pair, preset=preset, progress=False).run(), pair.test).hit1}

        return work

    return prepare


def embedding(given: Given) -> Work:
    """The embeddings of propagation, as the presets ask for them."""
    pair = given.load()

    def work() -> dict[str, float]:
        encoder = encoders.make("propagation", pair.kg1, pair.kg2, relation_dim=64)
        encoder.fit(pair.train, 1)
        return {"checksum": float(np.abs(np.asarray(encoder.embeddings()[0], dtype=np.float64)).sum())}

    return work


def epoch(name: str, **options: Any) -> Callable[[Given], Work]:
    """An epoch of training on the seeds."""

    def prepare(given: Given) -> Work:
        pair = given.load()
        encoder = encoders.make(name, pair.kg1, pair.kg2, **options)

        def work() -> dict[str, float]:
            encoder.fit(pair.train, 1)
            return {}

        return work

    return prepare


CASES: dict[str, Callable[[Given], Work]] = {
    "topk-768": search(768), "topk-300": search(300), "topk-100": search(100), "topk-768-csls": search(768, csls=K),
    "topk-768-beta": search(768, beta=10.0), "embedding": embedding, "refine": refinement(),
    "refine-joint": refinement(**joint(4)), "sweep": sweep(propagated),
    # Evidence stands alone there, so it weighs more.
    "sweep-structural": sweep(unguessed, evidence_weight=16.0),
    "epoch-dual_amn": epoch("dual_amn"), "epoch-dual_amn-8192": epoch("dual_amn", num_negatives=8192),
    "epoch-rrea": epoch("rrea"), "fast": run_of("fast"), "full": run_of("full"),
}  # fmt: skip


def main() -> None:
    """Prepare the case that the first line names; then work once for every line."""
    answers, sys.stdout = sys.stdout, sys.stderr  # what the package prints is no answer
    asked = json.loads(sys.stdin.readline())
    work = CASES[asked["case"]](Given(Path(asked["folder"]), asked["pair"], asked["fraction"], asked["split"]))
    print(json.dumps({"version": sf.__file__}), file=answers, flush=True)
    for _ in sys.stdin:
        begin = perf_counter()
        found = work()
        print(json.dumps({"seconds": perf_counter() - begin, **found}), file=answers, flush=True)


if __name__ == "__main__":
    main()
