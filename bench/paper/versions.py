"""Which version of its method and of its encoder a cell was run with.

A version grows when results change by more than rounding. Cells of another version are outdated: they are not shown
beside the others, and are run anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from bench.paper.cells import BASELINES, METHODS, VARIANTS, Cell
from bench.paper.compute import configuration
from stea_fast.refinement.structural import STRUCTURAL
from stea_fast.selftraining.config import settings_of

# The lines of cells from before there were versions count as version 1 of everything.
METHOD_VERSIONS = {
    "structural": 1,  # no line is older than versions
    # 2: neighbours are witnesses, two views agree, and rounds search what is open (254885b).
    "fast": 2,
    # 2: the view from structure leaves out weak proposals, and embeddings keep 256 dimensions (006888c). 3: dense
    # graphs, such as those of DBP15K, keep weak proposals (baec482).
    "large": 3,
    # 2: as fast, and twice the pairs in a step of training (2c62ac6).
    "full": 2,
    **dict.fromkeys(("supervised", "stea", "oracle", *BASELINES), 1),
}
# Their kernels have become several times faster since version 1; what they compute has stayed (bench/README.md).
ENCODER_VERSIONS = {"none": 1, "propagation": 1, "dual_amn": 1, "rrea": 1, "gcn_align": 1, "alinet": 1}


def version_of(cell: Cell) -> str:
    """The present version of a cell's method and encoder, as its line says it."""
    return _written(METHOD_VERSIONS[cell.method], ENCODER_VERSIONS[cell.encoder])


def _written(method: int, encoder: int) -> str:
    return f"method {method}, encoder {encoder}"


def is_current(record: Mapping[str, Any]) -> bool:
    """Whether a line is of the present version, with the settings that its cell has now."""
    cell = cell_of(record)
    if cell.method not in METHODS or cell.variant not in VARIANTS:
        return False  # of a method that went under another name
    if not has_version_of(cell, record):
        return False
    settings = _as_written_now(record["settings"])
    return "search" not in settings or _agree(settings, settings_of(configuration(cell)))


def has_version_of(cell: Cell, record: Mapping[str, Any]) -> bool:
    """Whether a line, of a cell or of its audit, is of the cell's present version."""
    return bool(record.get("method_version", _written(1, 1)) == version_of(cell))


def _as_written_now(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """The settings of a line. Some said in full how dense graphs are refined by structure alone, which now is None."""
    method = settings.get("method")
    if not isinstance(method, Mapping) or method.get("structure") != {"name": "joint", **asdict(STRUCTURAL)}:
        return settings
    return {**settings, "method": {**method, "structure": None}}


def _agree(one: Any, other: Any) -> bool:
    """Whether two settings are the same, as far as both have them: an option that came later is judged by versions."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return all(_agree(one[name], other[name]) for name in one.keys() & other.keys())
    return list(one) == list(other) if isinstance(one, (list, tuple)) else bool(one == other)


def current(records: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The lines that are not outdated."""
    return [record for record in records if is_current(record)]


def outdated(records: Iterable[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The last line of every cell that has outdated ones only, by the cell's key."""
    last = {cell_of(record).key: record for record in records}
    return {key: record for key, record in last.items() if not is_current(record)}


def cell_of(record: Mapping[str, Any]) -> Cell:
    """The cell that a line is about."""
    return Cell(**{name: record[name] for name in Cell.__dataclass_fields__})
