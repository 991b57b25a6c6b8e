"""Run cells of the table of sizes, each in a process of its own, and note what came out.

    python -m bench.scale.run [--only "dbp1m-1[0-9]*K/*/structural"] [--threads 2] [--again] [--list]

Every finished cell is a line of bench/results/scale/cells.jsonl: seconds of making or reading the pair and of the run,
the largest memory of the process, Hit@1 among test targets, precision, recall and F1 of the links given out (entities
without counterpart are part of the pairs, and a link of one counts as wrong), and how each round searched. Cells that
are there are not run again without --again.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from fnmatch import fnmatch
from time import perf_counter
from typing import Any

from bench.lib import folders
from bench.lib.processes import environment, limit_threads, module_command

RESULTS = folders.RESULTS / "scale" / "cells.jsonl"


def measure(key: str) -> dict[str, Any]:
    """In the fresh process: one cell."""
    import stea_fast as sf
    from bench.lib.measure import machine_facts
    from bench.paper.compute import commit
    from bench.scale.cells import all_cells
    from stea_fast._util import memory
    from stea_fast._util.threads import thread_count

    cell = next(cell for cell in all_cells() if cell.key == key)
    begin = perf_counter()
    pair = cell.load()
    made, made_mb = perf_counter() - begin, memory.peak() / 1e6
    run = sf.SelfTraining(pair, preset=cell.preset, progress=False)
    planned = run.plan()
    begin = perf_counter()
    result = run.run()
    seconds = perf_counter() - begin
    links = sf.evaluate(result, pair.test)
    return {
        "cell": key,
        "entities": [pair.kg1.num_entities, pair.kg2.num_entities],
        "edges": len(pair.kg1.edges) + len(pair.kg2.edges),
        "seeds": len(pair.train),
        "make_seconds": made,
        "make_mb": made_mb,
        "seconds": seconds,
        "peak_mb": memory.peak() / 1e6,
        "planned_seconds": planned.seconds,
        "planned_mb": planned.gigabytes * 1e3,
        "hit1": links.hit1,
        "hit10": links.hit10,
        "precision": links.precision,
        "recall": links.recall,
        "f1": links.f1,
        "links": len(result.pairs),
        "stages": [each.seconds for each in result.history],
        "searches": [each.search for each in result.history],
        "threads": thread_count(None),
        "machine": machine_facts(),
        "commit": commit(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="*", help="cells whose name matches this pattern")
    parser.add_argument("--threads", type=int, help="threads of every run (default: all)")
    parser.add_argument("--again", action="store_true", help="also cells that have been run")
    parser.add_argument("--list", action="store_true", help="name the cells that would be run, and run none")
    parser.add_argument("--cell", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.threads is not None:
        limit_threads(arguments.threads)
    if arguments.cell:
        print(json.dumps(measure(arguments.cell)))
        return
    from bench.paper import store
    from bench.scale.cells import all_cells

    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    finished = set() if arguments.again else {line["cell"] for line in store.read(RESULTS)}
    for cell in all_cells():
        if cell.key in finished or not fnmatch(cell.key, arguments.only):
            continue
        if arguments.list:
            print(cell.key)
            continue
        command = module_command("bench.scale.run", "--cell", cell.key)
        done = subprocess.run(command, env=environment(), check=True, stdout=subprocess.PIPE, text=True)
        line = json.loads(done.stdout.splitlines()[-1])
        store.append(RESULTS, line)
        print(
            f"{cell.key}: {line['seconds']:.0f} s, {line['peak_mb']:.0f} MB, Hit@1 {line['hit1']:.3f}, "
            f"P {line['precision']:.3f} R {line['recall']:.3f} F1 {line['f1']:.3f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
