"""Every experiment of the paper, and some beyond it, without test labels.

python -m bench.paper.run --list | --cheap | --quick | --full | --demo | --only PATTERN | --audit PATTERN
                          [--again] [--splits 0,1] [--workers 1] [--threads 1] [--dwy100k FOLDER] [--results FOLDER]
                          [--checkpoints FOLDER]

Finished cells are lines of bench/results/paper/cells.jsonl and are not run again, unless with --again: then the new
line counts. A cell whose method has changed since it was run is outdated and run anew. `--list` shows which are
finished, what they gave, and how long the missing ones may take. A killed run continues where it was, to the same bits,
if it is started with as many threads. `--only` takes a part of a cell's id as `--list` shows it, with `*` for anything;
all sets are searched. `--workers` is the number of processes, each with `--threads` threads; runs that are started
beside each other share the cells among themselves, too. Without `--splits` every experiment has its own. `--audit`
runs cells again with shuffled test links and fails unless every prediction is bit-identical. Cells of the built-in
pair, those of `--demo`, go to bench/results/demo. docs/reproducing.md says where the datasets come from.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from bench.lib.processes import limit_threads
from bench.paper import experiments, store

if TYPE_CHECKING:
    from bench.paper.cells import Cell
    from bench.paper.runner import Runner


def _arguments(given: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--list", action="store_true", help="show all cells, which are finished, and what they gave")
    for name in experiments.SETS:
        what.add_argument(f"--{name}", dest="chosen", action="store_const", const=name, help="run these cells")
    what.add_argument("--only", metavar="PATTERN", help="run the cells with this in their id")
    what.add_argument("--audit", metavar="PATTERN", help="audit the cells with this in their id")
    parser.add_argument("--again", action="store_true", help="also run cells that are finished")
    parser.add_argument("--splits", help="split seeds, such as 0,1 (default: those of each experiment)")
    parser.add_argument("--workers", type=int, default=1, help="processes side by side (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=1, help="of everything in a process (default: %(default)s)")
    parser.add_argument("--dwy100k", type=Path, help="the folder that holds dbp_wd and dbp_yg")
    parser.add_argument("--results", type=Path, help="default: bench/results/paper, and bench/results/demo for --demo")
    parser.add_argument("--checkpoints", type=Path, help="default: a folder beside the results")
    arguments = parser.parse_args(given)
    for name in ("workers", "threads"):
        if getattr(arguments, name) < 1:
            parser.error(f"--{name} must be at least 1")
    return arguments


def _chosen(given: argparse.Namespace) -> list[Cell]:
    splits = None if given.splits is None else [int(split) for split in given.splits.split(",")]
    if given.chosen:
        blocks = list(experiments.SETS[given.chosen])
    else:
        blocks = [block for blocks in experiments.SETS.values() for block in blocks]
    if given.dwy100k and given.chosen in (None, "full"):
        blocks += experiments.ON_DWY100K
    return experiments.matching(experiments.cells(blocks, splits), given.only or given.audit or "")


def _runner(given: argparse.Namespace, default: Path) -> Runner:
    from bench.paper.runner import Runner

    results = given.results or default
    checkpoints = given.checkpoints or results / store.CHECKPOINTS
    return Runner(results, checkpoints, given.threads, given.dwy100k, again=given.again, workers=given.workers)


def _work(cells: list[Cell], runner: Runner, given: argparse.Namespace) -> int:
    """What was asked for, with some cells; the number of those that failed."""
    if given.list:
        from bench.paper.progress import listing

        print(listing(cells, runner.finished(), runner.outdated(), runner.path))
        return 0
    if given.audit:
        from bench.paper.audit import audit_all

        return audit_all(cells, runner)
    return runner.run(cells)


def main(arguments: list[str] | None = None) -> int:
    given = _arguments(arguments)
    limit_threads(given.threads)  # before NumPy and torch are imported
    cells = _chosen(given)
    if not cells:
        print("no cell has this in its id; see --list", file=sys.stderr)
        return 2
    failed = 0
    for default, is_demo in ((store.RESULTS, False), (store.DEMO, True)):
        group = [cell for cell in cells if experiments.is_demo(cell) == is_demo]
        if group:
            failed += _work(group, _runner(given, default), given)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
