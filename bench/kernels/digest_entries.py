"""The calls whose results `digests` records. What they look like in the public API stands in the tables here only."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import stea_fast as sf
from bench.lib.inputs import MissingDataError, dataset_folder
from stea_fast.encoders import demo
from stea_fast.evaluation.auditing import arrays_of

Call = Callable[[], object]
K, CSLS, BETA, THRESHOLD = 10, 10, 15.0, 0.2
SYNTHETIC, REAL = "synthetic", "dbp15k_zh_en"

# Candidates and options of `refine`: "scores" of the stand-in encoder, or "sums" with log-partition sums beside them.
REFINE: dict[str, tuple[str, dict[str, Any]]] = {
    "product": ("scores", {"combine": "product"}),
    "product_soft_full": ("scores", {"combine": "product", "evidence": "soft", "blanket": "full", "sweeps": 2}),
    "product_minmax_bi": ("scores", {"combine": "product", "calibrate": "minmax", "select": "bi", "threshold": 0.3}),
    "product_backward": (
        "scores", {"combine": "product", "select": "uni_backward", "threshold": 0.3, "evidence": "argmax"},
    ),
    "compatibility_soft": ("scores", {"combine": "compatibility", "evidence": "soft", "sweeps": 1}),
    "paper": ("scores", {"paper": True}),
    "joint": ("sums", {"combine": "joint", "evidence_weight": 16.0, "sweeps": 6}),
    "joint_without_sums": ("scores", {"combine": "joint", "evidence_weight": 4.0, "sweeps": 4, "beta": BETA}),
    "joint_unbalanced": (
        "sums", {"combine": "joint", "evidence_weight": 8.0, "sweeps": 3, "balance": 0, "proposals": 0},
    ),
}  # fmt: skip
# Options of `SelfTraining`.
TRAINING: dict[str, dict[str, Any]] = {
    **{
        name: {"method": name, "rounds": 2}
        for name in ("stea", "supervised", "sim_threshold", "one_to_one", "mutual_nearest")
    },
    "paper": {"rounds": 2, "refine_options": {"paper": True}},
    "oracle": {"rounds": 2, "relations": "oracle"},
    "validation": {"rounds": 1, "validation": 0.2},
}
# Options of `align`.
ALIGN: dict[str, dict[str, Any]] = {
    "holdout": {"rounds": 2, "calibration": "holdout"},
    "crossfit_one_to_one": {"rounds": 1, "calibration": "crossfit", "one_to_one": True},
}


class Inputs:
    """A pair and what the calls take, each made when it is first asked for."""

    def __init__(self, load: Callable[[], sf.Pair]) -> None:
        self._load = load

    @cached_property
    def pair(self) -> sf.Pair:
        return self._load()

    @cached_property
    def embeddings(self) -> Any:
        return demo.encode(self.pair)

    @cached_property
    def scores(self) -> sf.Candidates:
        return demo.candidates(self.pair)

    @cached_property
    def sums(self) -> sf.Candidates:
        return sf.topk(*self.embeddings, K, CSLS, beta=BETA, progress=False)

    def refine(self, given: Any, **options: Any) -> object:
        return sf.refine(given, self.pair.kg1, self.pair.kg2, seeds=self.pair.train, **options)


def digests(result: object) -> dict[str, str]:
    """The SHA-256 of every array in a result, with its type and shape."""
    found = {
        name: hashlib.sha256(f"{array.dtype}{array.shape}".encode() + array.tobytes()).hexdigest()
        for name, array in arrays_of(result)
    }
    if not found:
        raise ValueError("the result holds no array: nothing would be compared")
    return found


def entries() -> Iterator[tuple[str, Call]]:
    """Every call by its name."""
    small = Inputs(lambda: sf.synthetic_pair(1500, seed=3, seed_fraction=0.1))
    yield from _of_a_pair(SYNTHETIC, small)
    yield from _of_whole_runs(small)
    try:
        folder = dataset_folder(REAL)
    except MissingDataError as error:
        print(f"left out: {error}", file=sys.stderr)
        return
    yield from _of_a_pair(REAL, Inputs(lambda: sf.load_pair(folder, 0.05)))


def _of_a_pair(where: str, inputs: Inputs) -> Iterator[tuple[str, Call]]:
    """The pair itself, search, refinement, baselines and decoding."""
    yield f"{where}/pair", lambda: [inputs.pair.kg1.edges, inputs.pair.kg2.edges, inputs.pair.train]
    for metric in ("cosine", "ip", "l2"):
        for csls in (0, CSLS):
            beta = BETA if metric == "cosine" else None
            yield (
                f"{where}/topk/{metric}/csls={csls}",
                lambda m=metric, c=csls, b=beta: sf.topk(*inputs.embeddings, K, c, m, beta=b, progress=False),
            )
    yield from _refinements(f"{where}/refine", inputs)
    yield from _decisions(where, inputs)


def _refinements(where: str, inputs: Inputs) -> Iterator[tuple[str, Call]]:
    for name, (candidates, options) in REFINE.items():
        yield f"{where}/{name}", lambda c=candidates, o=options: inputs.refine(getattr(inputs, c), **o)
    yield f"{where}/default", lambda: inputs.refine(inputs.scores)
    yield (
        f"{where}/holdout",
        lambda: inputs.refine(inputs.scores, combine="product", holdout=inputs.pair.train[:40], k=5),
    )
    yield f"{where}/one_direction", lambda: inputs.refine(tuple(inputs.scores.forward), combine="product")


def _decisions(where: str, inputs: Inputs) -> Iterator[tuple[str, Call]]:
    """Calls that take candidates and the seeds."""
    calls: dict[str, Callable[..., object]] = {
        "baseline/mutual_nearest": sf.mutual_nearest,
        "baseline/one_to_one": lambda found, seeds: sf.one_to_one(found, THRESHOLD, seeds=seeds),
        "baseline/similarity_threshold": lambda found, seeds: sf.similarity_threshold(found, THRESHOLD, seeds=seeds),
        **{
            f"decode/{how}": lambda found, seeds, how=how: sf.decode(found, how, seeds=seeds)
            for how in ("greedy", "mutual", "one_to_one", "sinkhorn")
        },
        "sinkhorn": lambda found, seeds: sf.sinkhorn(found),
    }
    for name, call in calls.items():
        yield f"{where}/{name}", lambda call=call: call(inputs.scores, seeds=inputs.pair.train)


def _of_whole_runs(inputs: Inputs) -> Iterator[tuple[str, Call]]:
    """Self-training, the drop-in step, and `align`."""
    for name, options in TRAINING.items():
        yield f"{SYNTHETIC}/training/{name}", lambda o=options: sf.SelfTraining(inputs.pair, progress=False, **o).run()
    yield f"{SYNTHETIC}/refiner", lambda: _two_steps(inputs)
    for name, options in ALIGN.items():
        yield f"{SYNTHETIC}/align/{name}", lambda o=options: _links(sf.align(inputs.pair, progress=False, **o))


def _two_steps(inputs: Inputs) -> object:
    """The second step of a `Refiner` starts from the first."""
    step = sf.Refiner(inputs.pair.kg1, inputs.pair.kg2, inputs.pair.train)
    return [step(*inputs.embeddings), step(*inputs.embeddings)]


def _links(alignment: Any) -> object:
    links = alignment.links
    return [links.targets, links.probs, links.ranks, links.status, alignment.confidence.curve]
