"""One cell: run it, and write down what came out. Test links are opened only after the run, to judge it."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import subprocess
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

import stea_fast as sf
from bench.lib.folders import ROOT
from bench.lib.inputs import MissingDataError, dataset_folder
from bench.lib.measure import machine_facts
from bench.paper.cells import Cell, merged
from bench.paper.experiments import DWY100K, SYNTHETIC
from stea_fast._util.arrays import to_numpy
from stea_fast.data.sealed import reveal
from stea_fast.evaluation.auditing import arrays_of
from stea_fast.evaluation.ranks import pessimistic_ranks
from stea_fast.refinement.structural import STRUCTURAL
from stea_fast.selftraining.history import Round, SelfTrainingResult

DEPTH, CSLS = 100, 10  # of the encoder's ranking: a true target below the hundredth place counts 0 in the MRR
DEEP_ENTITIES = 60_000  # of larger graphs the encoder is judged by the candidates that its last round searched
DEMO_ENTITIES = 300


def load(cell: Cell, dwy100k: Path | None = None) -> sf.Pair:
    """The data of a cell."""
    if cell.dataset in SYNTHETIC:
        return sf.synthetic_pair(DEMO_ENTITIES, cell.split, seed_fraction=cell.fraction)
    if cell.dataset in DWY100K:
        if dwy100k is None or not (dwy100k / cell.dataset).is_dir():
            raise MissingDataError(f"--dwy100k must name the folder that holds {cell.dataset}; got {dwy100k}")
        return sf.load_pair(dwy100k / cell.dataset, cell.fraction, cell.split)
    return sf.load_pair(dataset_folder(cell.dataset), cell.fraction, cell.split)


def training(cell: Cell, pair: sf.Pair, **more: Any) -> sf.SelfTraining:
    """A cell ready to run; `more` are options that do not change its result."""
    clues = sf.find_clues(pair, values=False) if cell.uses_names else None
    return sf.SelfTraining(pair, preset=configuration(cell), clues=clues, progress=False, **more)


def configuration(cell: Cell) -> sf.SelfTrainingConfig:
    """All that the result of a cell depends on, beside its data."""
    preset, changes = sf.preset(cell.preset), cell.changes
    if "structure" in changes.get("method", {}):  # a part of what dense graphs get is changed
        preset = replace(preset, method=replace(preset.method, structure=STRUCTURAL))
    return sf.SelfTrainingConfig.from_dict(merged(preset.to_dict(), changes))


def run(cell: Cell, pair: sf.Pair, folder: Path, show: Callable[[Round], object]) -> dict[str, Any]:
    """Run a cell, or continue it from the checkpoint in its folder; the line of the finished cell."""
    prepared = training(cell, pair, checkpoint=folder, callbacks=(show,))
    assert prepared.checkpoint is not None
    result = prepared.run()
    return {
        "id": cell.id,
        **asdict(cell),
        "settings": json.loads(prepared.checkpoint.identity["settings"]),  # all that the result depends on
        "machine": machine_facts(),
        "sizes": _sizes(pair),
        **judged(pair, result),
    }


def commit() -> str | None:
    """Which state of the project, "-dirty" if code has changed since; None outside a checkout."""
    try:
        name = _git("describe", "--always", "--exclude=*")
        # Every cell that is finished changes the results, which no cell reads.
        changed = _git("status", "--porcelain", "--", ".", ":!bench/results", ":!docs")
    except (OSError, subprocess.CalledProcessError):
        return None
    return f"{name}-dirty" if changed else name


def _git(*command: str) -> str:
    return subprocess.run(["git", *command], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def judged(pair: sf.Pair, result: SelfTrainingResult) -> dict[str, Any]:
    """What a run took, and how good its predictions are."""
    rankings = _by_encoder(pair, result)
    if result.refinement is not None:
        rankings["refined"] = result.refinement
    refined = rankings.get("refined")
    return {
        "seconds": sum(sum(done.seconds.values()) for done in result.history),
        "peak_mb": max(max(done.stage_mb.values()) for done in result.history),
        "metrics": {name: _pools(ranking, pair) for name, ranking in rankings.items()},
        "pairs": _links(result, pair),
        "calibration_error": None if refined is None else sf.calibration_error(refined, pair.test).error,
        "hits": {name: packed_hits(ranking, pair) for name, ranking in rankings.items()},
        "history": [asdict(done) for done in result.history],
        "digests": digests(result),
    }


def _by_encoder(pair: sf.Pair, result: SelfTrainingResult) -> dict[str, Any]:
    """The ranking by the encoder alone; none where there is no encoder."""
    if result.embeddings is None:
        return {}
    sizes = pair.kg1.num_entities, pair.kg2.num_entities
    if max(sizes) > DEEP_ENTITIES:
        return {"encoder": result.candidates}
    return {"encoder": sf.topk(*result.embeddings, min(DEPTH, *sizes), CSLS, progress=False)}


def _sizes(pair: sf.Pair) -> dict[str, Any]:
    return {
        "entities": [pair.kg1.num_entities, pair.kg2.num_entities],
        "triples": [pair.kg1.num_triples, pair.kg2.num_triples],
        "train": len(pair.train),
        "test": len(pair.test),
    }


def _pools(ranking: Any, pair: sf.Pair) -> dict[str, dict[str, float]]:
    """Closed: among the test targets, as papers do. Open: among all targets."""
    found = {name: sf.evaluate(ranking, pair.test, pool=pool) for name, pool in (("closed", "test"), ("open", "all"))}
    return {name: {"hit1": m.hit1, "hit10": m.hit10, "mrr": m.mrr} for name, m in found.items()}


def _links(result: SelfTrainingResult, pair: sf.Pair) -> dict[str, float] | None:
    """Quality of the links that are output; None where there are none."""
    judged = sf.evaluate(result, pair.test)
    if judged.num_pairs == 0 or math.isnan(judged.f1):
        return None
    return {
        "count": judged.num_pairs, "precision": judged.precision, "recall": judged.recall, "f1": judged.f1,
    }  # fmt: skip


def packed_hits(ranking: Any, pair: sf.Pair) -> str:
    """Hit@1 of every test link among the test targets, in the order of the split: bits, as base64."""
    hits = to_numpy(pessimistic_ranks(ranking.forward, reveal(pair.test), "test"), "ranks") <= 1
    return base64.b64encode(np.packbits(hits).tobytes()).decode()


def unpacked_hits(packed: str, count: int) -> np.ndarray:
    """bool [count]: what `packed_hits` packed."""
    return np.unpackbits(np.frombuffer(base64.b64decode(packed), dtype=np.uint8), count=count).astype(bool)


def digests(result: SelfTrainingResult) -> dict[str, str]:
    """A digest of every array of a result: two results with the same digests have the same bits."""
    return {
        name: hashlib.sha256(f"{array.dtype}{array.shape}".encode() + array.tobytes()).hexdigest()[:16]
        for name, array in arrays_of(result)
    }
