"""What a memory budget saves: the same run with and without one, each in a process of its own.

    python -m bench.scale.budget [--preset large] [--entities 50000] [--memory 900MB] [--threads 1]

The pair is `sf.synthetic_pair(profile="dbp1m")` with 20 % seeds; `large` makes one round after the first, and searches
by cells. Shown is the largest memory of the process without mapped files, which the system writes out and takes away as
it needs; and a checksum of the probabilities, which must be the same.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import threading
import time
import zlib
from pathlib import Path
from typing import Any

from bench.lib.processes import environment, limit_threads, module_command

SECONDS_BETWEEN_LOOKS = 0.01


class Watch(threading.Thread):
    """Looks at the anonymous memory of this process again and again; the system keeps no mark of its largest."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.largest, self.is_over = 0.0, threading.Event()

    def run(self) -> None:
        while not self.is_over.wait(SECONDS_BETWEEN_LOOKS):
            status = Path("/proc/self/status").read_text(encoding="utf-8")
            self.largest = max(self.largest, 1024.0 * int(status.partition("RssAnon:")[2].split()[0]))


def measure(preset: str, entities: int, memory: str | None) -> dict[str, Any]:
    """In the fresh process: one run."""
    import stea_fast as sf

    pair = sf.synthetic_pair(entities, seed=0, profile="dbp1m", seed_fraction=0.2)
    options: dict[str, Any] = {} if preset == "structural" else {"search": sf.SearchConfig(budget=0), "rounds": 1}
    run = sf.SelfTraining(pair, preset=preset, **options, memory=memory, progress=False)
    plan, watch, begin = run.plan(), Watch(), time.process_time()
    watch.start()
    probs = run.run().refinement.forward.probs
    watch.is_over.set()
    return {
        "planned_gb": plan.gigabytes,
        "in_files_gb": [plan.embeddings_in_files, plan.pairs_in_files],
        "largest_gb": watch.largest / 1e9,
        "cpu_seconds": time.process_time() - begin,
        "checksum": f"{zlib.crc32(probs):08x}",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", default="large", choices=("structural", "fast", "large"))
    parser.add_argument("--entities", type=int, default=50_000)
    parser.add_argument("--memory", default="900MB", help="the budget")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    given = parser.parse_args()
    limit_threads(given.threads)
    if given.one:
        print(json.dumps(measure(given.preset, given.entities, None if given.one == "none" else given.one)))
        return
    for budget in ("none", given.memory):
        options = ["--preset", given.preset, "--entities", str(given.entities), "--threads", str(given.threads)]
        command = module_command("bench.scale.budget", *options, "--one", budget)
        done = subprocess.run(command, env=environment(), check=True, stdout=subprocess.PIPE, text=True)
        line = json.loads(done.stdout.splitlines()[-1])
        print(
            f"budget {budget}: {line['largest_gb']:.2f} GB at most ({line['planned_gb']:.2f} planned), embeddings and "
            f"pairs of {' and '.join(f'{size:.2f}' for size in line['in_files_gb'])} GB in files, "
            f"{line['cpu_seconds']:.0f} s of CPU time, checksum {line['checksum']}",
            flush=True,
        )


if __name__ == "__main__":
    main()
