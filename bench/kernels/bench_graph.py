"""Building, saving and loading graphs. Both graphs of a pair count together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import stea_fast as sf
from bench.lib import inputs

ROUNDS = 5


def _run(benchmark: Any, pair: sf.Pair, call: Any) -> None:
    triples = pair.kg1.num_triples + pair.kg2.num_triples
    entities = pair.kg1.num_entities + pair.kg2.num_entities
    benchmark.extra_info.update(pair=pair.name, entities=entities, triples=triples)
    benchmark.pedantic(call, rounds=ROUNDS, warmup_rounds=1)
    if benchmark.stats is not None:
        benchmark.extra_info["ns_per_triple"] = benchmark.stats.stats.median * 1e9 / triples


@pytest.fixture
def saved(pair: sf.Pair, tmp_path: Path) -> tuple[Path, Path]:
    """Both graphs as folders."""
    folders = tmp_path / "kg1", tmp_path / "kg2"
    for kg, folder in zip((pair.kg1, pair.kg2), folders, strict=True):
        kg.save(folder)
    return folders


def bench_construction(benchmark: Any, pair: sf.Pair) -> None:
    """From triples in memory to the closed graph, without names."""
    sizes = [(kg.triples, kg.num_entities, kg.num_relations) for kg in (pair.kg1, pair.kg2)]
    _run(benchmark, pair, lambda: [sf.KG(*arguments) for arguments in sizes])


def bench_save(benchmark: Any, pair: sf.Pair, saved: tuple[Path, Path]) -> None:
    """Over a saved graph, which is replaced whole."""

    def call() -> None:
        pair.kg1.save(saved[0])
        pair.kg2.save(saved[1])

    _run(benchmark, pair, call)


@pytest.mark.parametrize("mmap", [False, True], ids=["memory", "mmap"])
def bench_load(benchmark: Any, pair: sf.Pair, saved: tuple[Path, Path], mmap: bool) -> None:
    """From the page cache; a memory map reads nothing until it is touched."""
    _run(benchmark, pair, lambda: [sf.KG.load(folder, mmap=mmap) for folder in saved])


def bench_load_pair(benchmark: Any, pair: sf.Pair) -> None:
    """From the text files of a dataset folder, links and names included."""
    if pair.name not in inputs.FOLDERS:
        pytest.skip(f"{pair.name} is generated, not loaded")
    folder = inputs.dataset_folder(pair.name)
    _run(benchmark, pair, lambda: sf.load_pair(folder, inputs.SEED_FRACTION))
