"""Memory that one whole `refine` call adds to a process that has its inputs.

    python -m bench.kernels.memory [--case debian_bookworm_trixie]

The inputs are saved to a temporary folder and loaded by a fresh process, so that making them leaves no
high-water mark. The figure is the highest resident size during the call minus the resident size before it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import stea_fast as sf
from bench.lib.processes import environment, module_command
from stea_fast._util.memory import peak, resident

MEGABYTE = 1_000_000
DEFAULT_CASE = "debian_bookworm_trixie"


def measure(name: str) -> dict[str, Any]:
    """Megabytes added by the default call on a case, measured in a fresh process."""
    with tempfile.TemporaryDirectory() as folder:
        _save_inputs(name, Path(folder))
        command = module_command("bench.kernels.memory", "--inputs", folder)
        result = subprocess.run(command, env=environment(), check=True, capture_output=True, text=True)
    return {"case": name, **json.loads(result.stdout)}


def _save_inputs(name: str, folder: Path) -> None:
    from bench.lib import inputs

    case = inputs.case(name)
    case.pair.kg1.save(folder / "kg1")
    case.pair.kg2.save(folder / "kg2")
    np.save(folder / "seeds.npy", case.pair.train)
    for direction in ("forward", "backward"):
        ranking = getattr(case.candidates, direction)
        np.save(folder / f"{direction}.indices.npy", ranking.indices)
        np.save(folder / f"{direction}.scores.npy", ranking.scores)


def _refine_saved(folder: Path) -> dict[str, Any]:
    """In the fresh process: load the inputs, refine them, report."""
    kg1, kg2 = sf.KG.load(folder / "kg1"), sf.KG.load(folder / "kg2")
    seeds = np.load(folder / "seeds.npy")
    rankings = [
        sf.Ranking(np.load(folder / f"{direction}.indices.npy"), np.load(folder / f"{direction}.scores.npy"))
        for direction in ("forward", "backward")
    ]
    call = sf.refine  # imports what it needs
    before, peak_before = resident(), peak()
    result = call(sf.Candidates(*rankings), kg1, kg2, seeds=seeds)
    highest = peak()
    return {
        "added_mb": (highest - before) / MEGABYTE,
        "before_mb": before / MEGABYTE,
        "peak_before_mb": peak_before / MEGABYTE,
        "peak_mb": highest / MEGABYTE,
        "sweeps": result.sweeps,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Memory added by one refine call.")
    parser.add_argument("--case", default=DEFAULT_CASE)
    parser.add_argument("--inputs", type=Path, help="a folder of saved inputs: measure in this process")
    arguments = parser.parse_args()
    result = _refine_saved(arguments.inputs) if arguments.inputs else measure(arguments.case)
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
