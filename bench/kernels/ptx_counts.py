"""What the evidence kernel costs per row of a real pair, counted in its PTX: no GPU is needed, but nvcc.

python -m bench.kernels.ptx_counts
python -m bench.kernels.ptx_counts --kernels ../other/csrc    those of another checkout

The interpreter of tests/cuda/ptx executes the kernel on rows that are drawn at random, and on the rows with the most
edges. Counted are instructions of warps, lanes that are active in them, and sectors (32 bytes) of global memory. Before
anything is printed the evidence must agree with the reference to 1e-5.
"""

from __future__ import annotations

import argparse
import importlib
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import stea_fast as sf
from bench.lib import inputs
from bench.lib.measure import markdown
from stea_fast._backends import numba
from stea_fast._util.sparse import offsets_of_counts
from stea_fast.refinement import beliefs

ROOT = Path(__file__).resolve().parents[2]
HEADER = ["rows", "beliefs", "warp instructions per row", "active lanes of 32", "sectors per row"]


@dataclass(frozen=True)
class Sample:
    """Some rows of a case, with the beliefs of all entities."""

    name: str
    side: inputs.Side
    relations: sf.RelationAlignment
    rows: np.ndarray
    beliefs: sf.Beliefs

    def packed(self) -> bytes:
        """As one problem of the harness's runner; what only other kernels read is empty."""
        source, target = self.side.source, self.side.target
        edges = np.concatenate([source.edges[slice(*source.indptr[row : row + 2])] for row in self.rows])
        candidates = self.side.indices[self.rows]
        strengths = numba.strengths(self.relations, source, target).forward
        sizes = [len(self.rows), target.num_entities, source.num_relations, target.num_relations]
        unread = [np.zeros(0, np.float32)] * 3 + [np.zeros(len(self.rows) + 1, np.int64), np.zeros(0, np.int32)]
        arrays = [
            np.ones(1, np.int64), np.array([*sizes, candidates.shape[1], 0, 0]),
            offsets_of_counts(source.degrees[self.rows]), edges, target.indptr, target.edges, candidates,
            *self.beliefs, *beliefs.transpose(self.beliefs, target.num_entities), *strengths, *unread,
        ]  # fmt: skip
        parts = [np.ascontiguousarray(array).tobytes() for array in arrays]
        return b"".join(np.int64(len(part)).tobytes() + part for part in parts)

    def expected(self) -> np.ndarray:
        """The evidence by Numba, in the order of the rows."""
        source, target = self.side.source, self.side.target
        strengths = numba.strengths(self.relations, source, target)
        everything = numba.evidence(
            source, target, self.side.indices, self.beliefs, strengths, forward=True, rows=(0, source.num_entities)
        )
        return everything[self.rows]


def samples(case: inputs.Case, count: int, hubs: int) -> list[Sample]:
    """Rows at random and rows with the most edges, with soft beliefs and with one belief per entity."""
    side = case.forward
    at_random = np.random.default_rng(0).permutation(side.source.num_entities)[:count]
    largest = np.argsort(-side.source.degrees, kind="stable")[:hubs]
    chosen = [(f"{count} at random", at_random), (f"the {hubs} largest", largest)]
    kinds = [("soft", side.beliefs), ("one", strongest(side.beliefs))]
    return [Sample(f"{name}|{kind}", side, case.relations, rows, held) for name, rows in chosen for kind, held in kinds]


def strongest(held: sf.Beliefs) -> sf.Beliefs:
    """The strongest belief of every entity, with weight 1."""
    counts = np.diff(held.indptr)
    order = np.lexsort((-held.weights, np.repeat(np.arange(len(counts)), counts)))
    first = order[held.indptr[:-1][counts > 0]]
    return sf.Beliefs(offsets_of_counts(counts > 0), held.targets[first], np.ones(len(first), np.float32))


def counted(builder: Any, sample: Sample, folder: Path, csrc: Path, block: int) -> list[str]:
    """One line of the table; raises where the evidence is not the reference's."""
    problems, results, counts = (folder / name for name in ("problems.bin", "results.bin", "counts.tsv"))
    problems.write_bytes(sample.packed())
    counts.unlink(missing_ok=True)
    environment = {"STEA_PTX": builder.ptx(csrc=csrc), "STEA_PTX_COUNTS": str(counts), "STEA_PTX_RACES": "off"}
    program = builder.mutant("ptx", "counted", csrc)
    command = [program, "--evidence", problems, results, f"{block}:1:0:1"]
    done = subprocess.run(command, env=environment, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    data = results.read_bytes()
    found = np.frombuffer(data[8 : 8 + int(np.frombuffer(data[:8], np.int64)[0])], np.float32)
    wanted = sample.expected()
    np.testing.assert_allclose(found.reshape(wanted.shape), wanted, rtol=1e-5, atol=1e-30)
    first = counts.read_text(encoding="utf-8").splitlines()[0].split("\t")  # statements as witnesses
    _, instructions, lanes, _, sectors = map(int, first[1:])
    rows = len(sample.rows)
    per_row = [f"{instructions / rows:,.0f}", f"{lanes / instructions:.1f}", f"{sectors / rows:,.0f}"]
    return [*sample.name.split("|"), *per_row]


def main() -> None:
    """Count and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--case", default="dbp15k_zh_en")
    parser.add_argument("--rows", type=int, default=96)
    parser.add_argument("--hubs", type=int, default=32)
    parser.add_argument("--block", type=int, default=128, help="threads of a block")
    parser.add_argument("--kernels", type=Path, default=ROOT / "csrc", help="a folder csrc")
    given = parser.parse_args()
    sys.path[:0] = [str(ROOT / "tests" / "cuda")]
    harness = importlib.import_module("harness_build")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        builder = harness.Builder(folder / "build")
        lines = [
            counted(builder, sample, folder, given.kernels.resolve(), given.block)
            for sample in samples(inputs.case(given.case), given.rows, given.hubs)
        ]
    print(markdown(HEADER, lines))


if __name__ == "__main__":
    main()
