"""Kill the runner at random moments until its cells are done, and compare them with cells that were left alone.

python -m bench.paper.killed [--set quick] [--kills 10] [--seed 0] [--threads 1] [--workers 1]
                             [--results bench/results/paper]

The cells left alone are those of the same set that stand in the results already (`python -m bench.paper.run --quick`);
the killed ones are run in a folder of their own. Every figure and every digest of the predictions must be the same to
the bit.
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

STARTUP = 3.0  # seconds until a run that is started again is at its cells
FIGURES = ("metrics", "pairs", "calibration_error", "hits", "digests")


def figures(record: dict[str, Any]) -> dict[str, Any]:
    """What a cell found, without what it took."""
    found = {name: record[name] for name in FIGURES}
    return found | {"history": [done["metrics"] for done in record["history"]]}


def run_with_kills(command: list[str], moments: list[float]) -> None:
    """Start the command again after every kill; `moments` are the seconds it has until the next one."""
    for number, seconds in enumerate(moments, 1):
        process = subprocess.Popen(command, env=environment(), stdout=subprocess.DEVNULL)
        try:
            process.wait(seconds)
            print(f"finished before kill {number}", flush=True)
            return
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            print(f"kill {number} after {seconds:.0f} s", flush=True)
    subprocess.run(command, env=environment(), check=True, stdout=subprocess.DEVNULL)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", choices=sorted(experiments.SETS), default="quick")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--workers", type=int, default=1, help="of the runs that are killed")
    parser.add_argument("--results", type=Path, default=store.RESULTS)
    given = parser.parse_args()
    wanted = {cell.id for cell in experiments.cells(experiments.SETS[given.set], [0])}
    alone = {
        record["id"]: record
        for record in current(store.read(given.results / store.CELLS))
        if record["id"] in wanted and record["threads"] == given.threads
    }
    if missing := wanted - alone.keys():
        first = f"python -m bench.paper.run --{given.set} --threads {given.threads}"
        sys.exit(f"{len(missing)} cells have not been left alone yet: {first}")
    total = sum(record["seconds"] for record in alone.values()) / given.workers + STARTUP * given.kills
    ends = np.sort(np.random.default_rng(given.seed).uniform(0, total, given.kills))
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder, "results")
        command = module_command("bench.paper.run", f"--{given.set}", "--threads", given.threads, "--results", results)
        command += ["--workers", str(given.workers), "--splits", "0", "--checkpoints", str(Path(folder, "checkpoints"))]
        run_with_kills(command, np.diff(ends, prepend=0).tolist())
        killed = {record["id"]: record for record in store.read(results / store.CELLS)}
    different = [key for key in sorted(wanted) if key not in killed or figures(killed[key]) != figures(alone[key])]
    for key in different:
        print(f"other figures: {key}")
    print(f"{len(wanted) - len(different)} of {len(wanted)} cells have the same figures to the bit")
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()
