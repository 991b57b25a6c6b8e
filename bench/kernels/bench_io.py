"""Reading two N-Triples files into graphs: rate on one core, and memory.

    python -m bench.kernels.bench_io [--triples 1000000] [--rounds 3]

The files are made once: triples in the order of their subjects, as dumps are, with IRIs of the length of DBpedia's. A
fresh process per round reads both, into triples and names or into whole graphs as `align` does; a third way is
pyoxigraph with a dictionary of names in Python. The rate counts the triples of both files over the seconds of the best
round, by wall time and by processor time, which differ where other work shares the machine.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from bench.lib.measure import machine_facts, markdown
from bench.lib.processes import environment, module_command
from stea_fast._util.memory import peak

MEGABYTE = 1_000_000
TRIPLES_PER_ENTITY = 5


def write_files(folder: Path, num_triples: int) -> list[Path]:
    """Two files, each of its own names."""
    paths = []
    for side in (1, 2):
        rng = np.random.default_rng(side)
        n = max(2, num_triples // TRIPLES_PER_ENTITY)
        heads = np.sort(rng.integers(n, size=num_triples))
        relations = (rng.random(num_triples) ** 2 * 500).astype(np.int64)
        tails = (rng.random(num_triples) ** 1.5 * n).astype(np.int64)
        path = folder / f"{side}.nt"
        base = f"http://{side}.dbpedia.org"
        with path.open("w") as file:
            for h, r, t in zip(heads.tolist(), relations.tolist(), tails.tolist(), strict=True):
                file.write(
                    f"<{base}/resource/Entity_{h}> <{base}/ontology/relation_{r}> <{base}/resource/Entity_{t}> .\n"
                )
        paths.append(path)
    return paths


def read(path: Path) -> int:
    """As `align` reads a graph: triples, names and adjacency."""
    import stea_fast as sf

    return sf.read_graph(path, permutation_seed=[0, 1]).num_triples


def parse(path: Path) -> int:
    """pyoxigraph and a dictionary in Python."""
    import pyoxigraph

    ids: dict[str, int] = {}
    rows: list[int] = []
    for quad in pyoxigraph.parse(path=str(path), format=pyoxigraph.RdfFormat.N_TRIPLES):
        rows += (ids.setdefault(term.value, len(ids)) for term in (quad.subject, quad.predicate, quad.object))
    return len(rows) // 3


def triples_only(path: Path) -> int:
    """What a parser does: triples in ids and names, without the graph."""
    from stea_fast.formats.triples import read_triples

    return len(read_triples(path).triples)


CONTENDERS = {"triples and names": triples_only, "whole graph": read, "pyoxigraph and a dictionary": parse}


def measure_here(name: str, paths: list[Path]) -> dict[str, Any]:
    """In the fresh process."""
    import pyoxigraph  # noqa: F401 - not part of reading

    wall, processor = time.perf_counter(), time.process_time()
    for path in paths:
        CONTENDERS[name](path)
    seconds = {"wall": time.perf_counter() - wall, "processor": time.process_time() - processor}
    return {**seconds, "peak_mb": peak() / MEGABYTE}


def measure(name: str, paths: list[Path]) -> dict[str, Any]:
    command = module_command("bench.kernels.bench_io", "--contender", name, "--files", *paths)
    one_core = {**environment(), "OMP_NUM_THREADS": "1", "STEA_NUM_THREADS": "1"}
    result = subprocess.run(command, env=one_core, check=True, capture_output=True, text=True)
    return json.loads(result.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description="Rate and memory of reading N-Triples.")
    parser.add_argument("--triples", type=int, default=1_000_000, help="per file")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--contender", choices=CONTENDERS)
    parser.add_argument("--files", type=Path, nargs=2)
    arguments = parser.parse_args()
    if arguments.contender:
        print(json.dumps(measure_here(arguments.contender, arguments.files)))
        return
    with tempfile.TemporaryDirectory() as folder:
        paths = write_files(Path(folder), arguments.triples)
        runs = [{name: measure(name, paths) for name in CONTENDERS} for _ in range(arguments.rounds)]
    rows = []
    for name in CONTENDERS:
        best = {kind: min(run[name][kind] for run in runs) for kind in ("wall", "processor")}
        rates = [f"{2 * arguments.triples / best[kind]:,.0f}" for kind in ("wall", "processor")]
        rows.append([name, *rates, f"{max(run[name]['peak_mb'] for run in runs):,.0f}"])
    print(markdown(["", "triples/s (wall)", "triples/s (processor)", "peak MB"], rows))
    print(json.dumps(machine_facts()))


if __name__ == "__main__":
    main()
