"""Time of `import stea_fast` beside `import numpy`, each in fresh processes, in turns.

python -m bench.kernels.import_time [--runs 15]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from typing import Any

from bench.lib.measure import Timing
from bench.lib.processes import environment

STATEMENTS = {
    "import numpy": "import numpy",
    "import stea_fast": "import stea_fast",
    "first use of stea_fast.refine": "import stea_fast; stea_fast.refine",
}
_PROGRAM = "from time import perf_counter as now; begin = now(); {}; print(now() - begin)"


def measure(runs: int) -> dict[str, Any]:
    """Seconds of each statement in a fresh process; one run of each before does not count."""
    seconds: dict[str, list[float]] = {label: [] for label in STATEMENTS}
    for number in range(runs + 1):
        for label, statement in STATEMENTS.items():
            elapsed = _run(statement)
            if number > 0:
                seconds[label].append(elapsed)
    return {"seconds": {label: Timing.of(values).as_dict() for label, values in seconds.items()}}


def _run(statement: str) -> float:
    command = [sys.executable, "-c", _PROGRAM.format(statement)]
    result = subprocess.run(command, env=environment(), check=True, capture_output=True, text=True)
    return float(result.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description="Import time of stea_fast and numpy.")
    parser.add_argument("--runs", type=int, default=15)
    print(json.dumps(measure(parser.parse_args().runs), indent=2))


if __name__ == "__main__":
    main()
