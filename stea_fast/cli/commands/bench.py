"""`stea-fast bench`: how fast this machine is, in a minute. The measurements of the project are in `bench/`."""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from stea_fast import _backends
from stea_fast._util.memory import peak
from stea_fast._util.name_table import NameTable
from stea_fast.cli.console import Console
from stea_fast.cli.exit_codes import OK
from stea_fast.data.pair import Pair
from stea_fast.data.synthetic import synthetic_pair
from stea_fast.encoders import demo
from stea_fast.formats.triples import MissingExtraError, TripleTable, read_triples, write_triples
from stea_fast.refinement.api import refine
from stea_fast.search.topk import topk

HELP = "time reading, search and refinement on this machine"
EXAMPLES = """examples:
  stea-fast bench
  stea-fast bench --entities 50000 --json"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--entities", type=int, default=10_000, help="entities per graph (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=3, help="the best of so many runs counts (default: %(default)s)")


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Measure."""
    pair = synthetic_pair(arguments.entities, 0)
    candidates = demo.candidates(pair)
    embeddings = demo.encode(pair)
    backend = _backends.resolve("auto").__name__.rsplit(".", 1)[-1]
    calls: dict[str, Callable[[], object]] = {
        "search, exact top-10 both ways": lambda: topk(*embeddings, 10),
        f"refinement, {backend}": lambda: refine(candidates, pair.kg1, pair.kg2, seeds=pair.train),
    }
    with tempfile.TemporaryDirectory() as folder:
        path = _written(pair, Path(folder))
        if path is None:
            console.note("reading is left out: pip install 'stea-fast[rdf]'")
        else:
            calls["reading N-Triples"] = lambda: read_triples(path)
        seconds = {what: _best(call, arguments.repeats) for what, call in calls.items()}
    console.note(f"{pair.kg1}, {pair.kg2}")
    text = [f"{what:34}{1000 * value:10.1f} ms" for what, value in seconds.items()]
    if "reading N-Triples" in seconds:
        text.append(f"{'':34}{pair.kg1.num_triples / seconds['reading N-Triples']:10,.0f} triples per second")
    console.result({"seconds": seconds, "peak_mb": peak() / 1e6}, "\n".join(text))
    return OK


def _written(pair: Pair, folder: Path) -> Path | None:
    names = NameTable.pack(f"http://example.org/entity/{i}" for i in range(pair.kg1.num_entities))
    relations = NameTable.pack(f"http://example.org/relation/{i}" for i in range(pair.kg1.num_relations))
    try:
        write_triples(TripleTable(pair.kg1.triples.astype(np.int64), names, relations), folder / "a.nt")
    except MissingExtraError:
        return None
    return folder / "a.nt"


def _best(call: Callable[[], object], repeats: int) -> float:
    call()  # compilation, first touch of memory
    seconds = []
    for _ in range(max(1, repeats)):
        begin = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - begin)
    return min(seconds)
