"""Kill the runner at random moments until its cells are done, and compare them with cells that were left alone.

python -m bench.paper.killed [--only "overall/*/structural/"] [--splits 0] [--kills 10] [--seed 0] [--threads 1]
                             [--workers 1] [--results bench/results/paper]

The cells left alone are those that stand in the results already, by `python -m bench.paper.run` with the same `--only`;
the killed ones are run in a folder of their own. Every figure and every digest of the predictions must be the same to
the bit, and every kill must hit a running set.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from bench.lib.processes import environment, module_command
from bench.paper import experiments, store
from bench.paper.versions import current

STARTUP = 1.5  # seconds until a run that is started again is at its cells
DISTURBED = 0.5  # the share of the work that is done between kills; what is repeated after a kill comes on top
FIGURES = ("metrics", "pairs", "calibration_error", "hits", "digests")


def figures(record: dict[str, Any]) -> dict[str, Any]:
    """What a cell found, without what it took."""
    found = {name: record[name] for name in FIGURES}
    return found | {"history": [done["metrics"] for done in record["history"]]}


def run_with_kills(command: list[str], moments: list[float]) -> int:
    """Start the command again after every kill; `moments` are the seconds it has until the next one. The kills done."""
    for number, seconds in enumerate(moments, 1):
        process = subprocess.Popen(command, env=environment(), stdout=subprocess.DEVNULL)
        try:
            process.wait(seconds)
            print(f"finished before kill {number}", flush=True)
            return number - 1
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            print(f"kill {number} after {seconds:.1f} s", flush=True)
    subprocess.run(command, env=environment(), check=True, stdout=subprocess.DEVNULL)
    return len(moments)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="overall/*/structural/", help="the cells with this in their id")
    parser.add_argument("--splits", help="split seeds (default: those of each experiment)")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--workers", type=int, default=1, help="of the runs that are killed")
    parser.add_argument("--results", type=Path, default=store.RESULTS)
    return parser.parse_args()


def _wanted(given: argparse.Namespace) -> set[str]:
    splits = None if given.splits is None else [int(split) for split in given.splits.split(",")]
    blocks = [block for blocks in experiments.SETS.values() for block in blocks]
    return {cell.id for cell in experiments.matching(experiments.cells(blocks, splits), given.only)}


def _left_alone(given: argparse.Namespace, wanted: set[str]) -> dict[str, dict[str, Any]]:
    lines = current(store.read(given.results / store.CELLS))
    alone = {line["id"]: line for line in lines if line["id"] in wanted and line["threads"] == given.threads}
    if not wanted or wanted - alone.keys():
        first = f'python -m bench.paper.run --only "{given.only}" --threads {given.threads}'
        sys.exit(f"{len(wanted - alone.keys())} of {len(wanted)} cells have not been left alone yet: {first}")
    return alone


def main() -> None:
    given = _arguments()
    wanted = _wanted(given)
    alone = _left_alone(given, wanted)
    work = DISTURBED * sum(record["seconds"] for record in alone.values()) / given.workers
    moments = STARTUP + work * np.random.default_rng(given.seed).dirichlet(np.ones(given.kills))
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder, "results")
        command = module_command("bench.paper.run", "--only", given.only, "--threads", given.threads)
        command += ["--workers", str(given.workers), *([] if given.splits is None else ["--splits", given.splits])]
        command += ["--results", str(results), "--checkpoints", str(Path(folder, "checkpoints"))]
        done = run_with_kills(command, moments.tolist())
        killed = {record["id"]: record for record in store.read(results / store.CELLS)}
    different = [key for key in sorted(wanted) if key not in killed or figures(killed[key]) != figures(alone[key])]
    for key in different:
        print(f"other figures: {key}")
    print(f"{len(wanted) - len(different)} of {len(wanted)} cells have the same figures to the bit after {done} kills")
    sys.exit(1 if different or done < given.kills else 0)


if __name__ == "__main__":
    main()
