"""Fast, small and honest dependency-aware refinement for knowledge-graph entity alignment.

Names are loaded when they are first used: `import stea_fast` itself imports no other package. No public name is
also the name of a module, which would take its place once imported.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stea_fast._backends import BackendStatus, BackendUnavailable, backends
    from stea_fast.alignment import Alignment, LinkTable, align
    from stea_fast.auditing import Audit, AuditError, audit
    from stea_fast.calibrate import fit_beta, log_partition
    from stea_fast.checkpoint import CheckpointError
    from stea_fast.confidence import Confidence
    from stea_fast.decoding import Links, decode, sinkhorn
    from stea_fast.evaluation import Calibration, Metrics, PairedTest, calibration_error, evaluate, paired_t_test
    from stea_fast.explain import Explanation, Fact
    from stea_fast.graph import KG
    from stea_fast.io import load_pair
    from stea_fast.reading import make_pair, read_graph, read_links, read_pair
    from stea_fast.refinement import Refinement, refine
    from stea_fast.refiner import Refiner
    from stea_fast.relations import align_relations
    from stea_fast.rounds import Round, SelfTrainingResult
    from stea_fast.schedule import Schedule
    from stea_fast.search import topk
    from stea_fast.select import mutual_nearest, one_to_one, similarity_threshold
    from stea_fast.selftrain import SelfTraining
    from stea_fast.synthetic import synthetic_pair
    from stea_fast.types import Beliefs, Candidates, Pair, Ranking, RefinedRanking, RelationAlignment, TopK

__version__ = "0.1.0"

_HOME = {
    "BackendStatus": "_backends",
    "BackendUnavailable": "_backends",
    "backends": "_backends",
    "Alignment": "alignment",
    "LinkTable": "alignment",
    "align": "alignment",
    "Audit": "auditing",
    "AuditError": "auditing",
    "audit": "auditing",
    "fit_beta": "calibrate",
    "log_partition": "calibrate",
    "CheckpointError": "checkpoint",
    "Confidence": "confidence",
    "Links": "decoding",
    "decode": "decoding",
    "sinkhorn": "decoding",
    "Calibration": "evaluation",
    "PairedTest": "evaluation",
    "calibration_error": "evaluation",
    "paired_t_test": "evaluation",
    "Metrics": "evaluation",
    "evaluate": "evaluation",
    "Explanation": "explain",
    "Fact": "explain",
    "KG": "graph",
    "load_pair": "io",
    "make_pair": "reading",
    "read_graph": "reading",
    "read_links": "reading",
    "read_pair": "reading",
    "Refinement": "refinement",
    "refine": "refinement",
    "align_relations": "relations",
    "topk": "search",
    "mutual_nearest": "select",
    "one_to_one": "select",
    "similarity_threshold": "select",
    "Refiner": "refiner",
    "Round": "rounds",
    "Schedule": "schedule",
    "SelfTraining": "selftrain",
    "SelfTrainingResult": "rounds",
    "synthetic_pair": "synthetic",
    "Beliefs": "types",
    "Candidates": "types",
    "Pair": "types",
    "Ranking": "types",
    "RefinedRanking": "types",
    "RelationAlignment": "types",
    "TopK": "types",
}

__all__ = [
    "KG", "Alignment", "Audit", "AuditError", "BackendStatus", "BackendUnavailable", "Beliefs", "Calibration",
    "Candidates", "CheckpointError", "Confidence", "Explanation", "Fact", "LinkTable", "Links", "Metrics", "Pair",
    "PairedTest", "Ranking", "RefinedRanking", "Refinement", "Refiner", "RelationAlignment", "Round", "Schedule",
    "SelfTraining", "SelfTrainingResult", "TopK", "__version__", "align", "align_relations", "audit", "backends",
    "calibration_error", "decode", "evaluate", "fit_beta", "load_pair", "log_partition", "make_pair",
    "mutual_nearest", "one_to_one", "paired_t_test", "read_graph", "read_links", "read_pair", "refine",
    "similarity_threshold", "sinkhorn", "synthetic_pair", "topk",
]  # fmt: skip


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'stea_fast' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"stea_fast.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
