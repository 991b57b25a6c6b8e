"""Every experiment of the paper, and some beyond it, without test labels.

python -m bench.paper.run --list | --quick | --full | --demo | --only PATTERN | --audit PATTERN
                          [--splits 0,1] [--threads 1] [--dwy100k FOLDER] [--results FOLDER] [--checkpoints FOLDER]

Finished cells are lines of bench/results/paper/cells.jsonl and are never run again. A killed run continues where it
was, to the same bits, if it is started with as many threads. `--only` takes a part of a cell's id as `--list` shows it,
with `*` for anything; all sets are searched. Several processes may run at once: they share the cells among themselves.
`--audit` runs cells again with shuffled test links and fails unless every prediction is bit-identical.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from bench.lib.processes import limit_threads
from bench.paper import experiments, store


def _arguments(given: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--list", action="store_true", help="show all cells and which are finished")
    for name in experiments.SETS:
        what.add_argument(f"--{name}", dest="chosen", action="store_const", const=name, help="run these cells")
    what.add_argument("--only", metavar="PATTERN", help="run the cells with this in their id")
    what.add_argument("--audit", metavar="PATTERN", help="audit the cells with this in their id")
    parser.add_argument("--splits", default="0", help="split seeds (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=1, help="of everything (default: %(default)s)")
    parser.add_argument("--dwy100k", type=Path, help="the folder that holds dbp_wd and dbp_yg")
    parser.add_argument("--results", type=Path, default=store.RESULTS)
    parser.add_argument("--checkpoints", type=Path, default=store.CHECKPOINTS)
    return parser.parse_args(given)


def _chosen(given: argparse.Namespace) -> list[experiments.Cell]:
    splits = [int(split) for split in given.splits.split(",")]
    if given.chosen:
        blocks = list(experiments.SETS[given.chosen])
    else:
        blocks = [block for blocks in experiments.SETS.values() for block in blocks]
    if given.dwy100k and given.chosen in (None, "full"):
        blocks += experiments.ON_DWY100K
    return experiments.matching(experiments.cells(blocks, splits), given.only or given.audit or "")


def main(arguments: list[str] | None = None) -> int:
    given = _arguments(arguments)
    limit_threads(given.threads)  # before NumPy and torch are imported
    from bench.paper.runner import Runner

    cells = _chosen(given)
    runner = Runner(given.results, given.checkpoints, given.threads, given.dwy100k)
    if not cells:
        print("no cell has this in its id; see --list", file=sys.stderr)
        return 2
    if given.list:
        finished = runner.finished()
        print("\n".join(f"{'done' if cell.key in finished else '    '}  {cell.id}" for cell in cells))
        return 0
    if given.audit:
        from bench.paper.audit import audit_all

        return 1 if audit_all(cells, runner) else 0
    return 1 if runner.run(cells) else 0


if __name__ == "__main__":
    sys.exit(main())
