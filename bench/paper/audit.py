"""`--audit`: whether a cell's predictions depend on the test links."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bench.lib.measure import machine_facts
from bench.paper import compute, store
from bench.paper.cells import Cell
from bench.paper.runner import Runner
from bench.paper.versions import version_of
from stea_fast.evaluation.auditing import shuffled_test_links

SAME_BITS = ("cpu", "python", "stea-fast", "numpy", "scipy", "numba", "torch")  # where these differ, bits may


def audit_all(cells: Sequence[Cell], runner: Runner) -> int:
    """Audit cells one after the other; the number of those whose predictions depend on the test links."""
    failed = 0
    for cell in cells:
        found = audit(cell, runner)
        failed += not found["passed"]
        print(f"{cell.id}: {_verdict(found)}", flush=True)
        store.append(runner.path.with_name(store.AUDITS), found)
    return failed


def audit(cell: Cell, runner: Runner) -> dict[str, Any]:
    """Run a cell with shuffled test links and compare every bit of every prediction.

    A finished cell of this machine, these versions and as many threads is the other side of the comparison. If it
    differs, or there is none, the cell is run with the true links as well: what differs then has no other reason.
    """
    pair = compute.load(cell, runner.dwy100k)
    shuffled = compute.digests(compute.training(cell, shuffled_test_links(pair)).run())
    against, expected = "the finished cell", _finished_digests(cell, runner)
    if expected != shuffled:
        against, expected = "a second run", compute.digests(compute.training(cell, pair).run())
    differs = sorted(name for name in expected.keys() | shuffled.keys() if expected.get(name) != shuffled.get(name))
    return {
        "id": cell.id, "passed": not differs, "arrays": len(shuffled), "differs": differs, "against": against,
        "machine": machine_facts(), "threads": runner.threads, "commit": runner.commit,
        "method_version": version_of(cell),
    }  # fmt: skip


def _verdict(found: dict[str, Any]) -> str:
    if found["passed"]:
        return f"audit passed: {found['arrays']} arrays with the same bits as in {found['against']}"
    differs = found["differs"]
    return f"audit FAILED: {len(differs)} of {found['arrays']} arrays depend on the test links, first {differs[0]}"


def _finished_digests(cell: Cell, runner: Runner) -> dict[str, str] | None:
    record = runner.finished().get(cell.key)
    here = machine_facts()
    if record is None or record["threads"] != runner.threads:
        return None
    same = all(record["machine"].get(name) == here[name] for name in SAME_BITS)
    return record["digests"] if same else None
