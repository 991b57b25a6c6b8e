"""Fast, small and honest dependency-aware refinement for knowledge-graph entity alignment.

Names are loaded when they are first used: `import stea_fast` itself imports no other package. No public name is
also the name of a module, which would take its place once imported.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stea_fast._backends import BackendStatus, BackendUnavailable, backends
    from stea_fast.alignment.api import Alignment, align
    from stea_fast.alignment.calibration import ProbabilityCalibrator
    from stea_fast.alignment.decoding import Links, decode, sinkhorn
    from stea_fast.alignment.link_table import LinkTable
    from stea_fast.clues.api import find_clues
    from stea_fast.clues.types import Clues, NoStartError
    from stea_fast.data.attributes import Attributes
    from stea_fast.data.dataset_folders import load_pair
    from stea_fast.data.files import make_pair, read_graph, read_links, read_pair
    from stea_fast.data.graph import KG
    from stea_fast.data.id_space import split_id_space
    from stea_fast.data.labels import Labels
    from stea_fast.data.naming import labels_of, labels_of_pair
    from stea_fast.data.pair import Pair
    from stea_fast.data.synthetic import synthetic_pair
    from stea_fast.data.value_files import add_values
    from stea_fast.encoders import demo as demo
    from stea_fast.evaluation.auditing import Audit, AuditError, audit
    from stea_fast.evaluation.metrics import (
        Metrics,
        PairedTest,
        ReliabilityCurve,
        calibration_error,
        evaluate,
        paired_t_test,
    )
    from stea_fast.formats.value_pool import Value
    from stea_fast.refinement.api import Refinement, refine
    from stea_fast.refinement.config import Joint, Paper, Product
    from stea_fast.refinement.explanation import Explanation, Fact
    from stea_fast.refinement.facts import FactTable
    from stea_fast.refinement.refiner import Refiner
    from stea_fast.refinement.relations import align_relations
    from stea_fast.refinement.schedule import Schedule
    from stea_fast.refinement.selection import mutual_nearest, one_to_one, similarity_threshold
    from stea_fast.refinement.temperature import fit_beta, log_partition
    from stea_fast.search.topk import topk
    from stea_fast.selftraining.checkpoint import CheckpointError
    from stea_fast.selftraining.config import EncoderConfig, SearchConfig, SelfTrainingConfig
    from stea_fast.selftraining.history import Round, SelfTrainingResult
    from stea_fast.selftraining.loop import SelfTraining
    from stea_fast.selftraining.methods import (
        MutualNearest,
        OneToOne,
        SimilarityThreshold,
        Stea,
        Structural,
        Supervised,
    )
    from stea_fast.selftraining.planning import Plan, Stage
    from stea_fast.selftraining.presets import preset
    from stea_fast.types import Beliefs, Candidates, Ranking, RefinedRanking, RelationAlignment, TopK

__version__ = "0.1.0"

# Where each public name is defined; `__getattr__` looks it up there when it is first used.
_NAMES_BY_MODULE = {
    "_executors.base": ("ExecutorError",),
    "_executors.processes": ("ProcessExecutor",),
    "_executors.ray_cluster": ("RayExecutor",),
    "_backends": ("BackendStatus", "BackendUnavailable", "backends"),
    "alignment.api": ("Alignment", "align"),
    "alignment.calibration": ("ProbabilityCalibrator",),
    "alignment.decoding": ("Links", "decode", "sinkhorn"),
    "alignment.link_table": ("LinkTable",),
    "clues.api": ("find_clues",),
    "clues.types": ("Clues", "NoStartError"),
    "data.attributes": ("Attributes",),
    "data.dataset_folders": ("load_pair",),
    "data.files": ("make_pair", "read_graph", "read_links", "read_pair"),
    "data.graph": ("KG",),
    "data.id_space": ("split_id_space",),
    "data.labels": ("Labels",),
    "data.naming": ("labels_of", "labels_of_pair"),
    "data.pair": ("Pair",),
    "data.synthetic": ("synthetic_pair",),
    "data.value_files": ("add_values",),
    "evaluation.auditing": ("Audit", "AuditError", "audit"),
    "evaluation.metrics": (
        "Metrics",
        "PairedTest",
        "ReliabilityCurve",
        "calibration_error",
        "evaluate",
        "paired_t_test",
    ),
    "formats.value_pool": ("Value",),
    "refinement.api": ("Refinement", "refine"),
    "refinement.config": ("Joint", "Paper", "Product"),
    "refinement.explanation": ("Explanation", "Fact"),
    "refinement.facts": ("FactTable",),
    "refinement.refiner": ("Refiner",),
    "refinement.relations": ("align_relations",),
    "refinement.schedule": ("Schedule",),
    "refinement.selection": ("mutual_nearest", "one_to_one", "similarity_threshold"),
    "refinement.temperature": ("fit_beta", "log_partition"),
    "search.topk": ("topk",),
    "selftraining.checkpoint": ("CheckpointError",),
    "selftraining.config": ("EncoderConfig", "SearchConfig", "SelfTrainingConfig"),
    "selftraining.history": ("Round", "SelfTrainingResult"),
    "selftraining.loop": ("SelfTraining",),
    "selftraining.methods": (
        "MutualNearest",
        "OneToOne",
        "SimilarityThreshold",
        "Stage",
        "Stea",
        "Structural",
        "Supervised",
    ),
    "selftraining.planning": ("Plan", "Stage"),
    "selftraining.presets": ("preset",),
    "types": ("Beliefs", "Candidates", "Ranking", "RefinedRanking", "RelationAlignment", "TopK"),
}
_HOME = {name: module for module, names in _NAMES_BY_MODULE.items() for name in names}
_MODULES = {"demo": "encoders.demo"}  # public modules that live in a room

__all__ = [
    "KG", "Alignment", "Attributes", "Audit", "AuditError", "BackendStatus", "BackendUnavailable", "Beliefs",
    "Candidates", "CheckpointError", "Clues", "EncoderConfig", "ExecutorError", "Explanation", "Fact", "FactTable",
    "Joint", "Labels", "LinkTable", "Links", "Metrics", "MutualNearest", "NoStartError", "OneToOne", "Pair",
    "PairedTest", "Paper", "Plan", "ProbabilityCalibrator", "ProcessExecutor", "Product", "Ranking", "RayExecutor",
    "RefinedRanking", "Refinement", "Refiner", "RelationAlignment", "ReliabilityCurve", "Round", "Schedule",
    "SearchConfig", "SelfTraining", "SelfTrainingConfig", "SelfTrainingResult", "SimilarityThreshold", "Stage", "Stea",
    "Structural", "Supervised", "TopK", "Value", "__version__", "add_values", "align", "align_relations", "audit",
    "backends", "calibration_error", "decode", "evaluate", "find_clues", "fit_beta", "labels_of", "labels_of_pair",
    "load_pair", "log_partition", "make_pair", "mutual_nearest", "one_to_one", "paired_t_test", "preset", "read_graph",
    "read_links", "read_pair", "refine", "similarity_threshold", "sinkhorn", "split_id_space", "synthetic_pair",
    "topk",
]  # fmt: skip


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return importlib.import_module(f"stea_fast.{_MODULES[name]}")
    if name not in _HOME:
        raise AttributeError(f"module 'stea_fast' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"stea_fast.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
