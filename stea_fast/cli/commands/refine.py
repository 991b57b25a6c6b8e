"""`stea-fast refine`: check the guesses of an encoder of your own, given as candidates or as embeddings."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from stea_fast._util.npy import read_npy
from stea_fast.alignment.api import decided
from stea_fast.alignment.calibration import by_prior
from stea_fast.cli import inputs
from stea_fast.cli.console import Console, UsageError
from stea_fast.cli.exit_codes import OK
from stea_fast.data.files import make_pair, name_index
from stea_fast.data.graph import KG
from stea_fast.formats.links import Link, read_link_rows
from stea_fast.formats.tab_separated import read_lines
from stea_fast.formats.triples import Problems
from stea_fast.refinement.api import refine
from stea_fast.search.topk import topk
from stea_fast.selftraining.history import SelfTrainingResult
from stea_fast.types import Ranking, TopK

HELP = "check the candidates or embeddings of your own encoder against the graphs"
EXAMPLES = """examples:
  stea-fast refine a.nt b.nt --seeds seeds.tsv --candidates candidates.tsv --out links.tsv
  stea-fast refine a.nt b.nt --seeds seeds.tsv --embeddings a.npy b.npy --entities a.txt b.txt --out links.tsv

candidates: columns source, target, score; embeddings: a row per line of the file of entities."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("graphs", type=Path, nargs=2, metavar="GRAPH", help="two files of triples")
    parser.add_argument("--seeds", type=Path, metavar="FILE", help="known links: two columns of ids")
    parser.add_argument("--candidates", type=Path, metavar="FILE", help="guesses: columns source, target, score")
    parser.add_argument("--embeddings", type=Path, nargs=2, metavar="NPY", help="matrices, a row per entity")
    parser.add_argument("--entities", type=Path, nargs=2, metavar="TXT", help="the entity of every row, one per line")
    parser.add_argument("--k", type=int, default=10, help="candidates from embeddings (default: %(default)s)")
    inputs.add_output_options(parser)
    inputs.add_graph_options(parser, literals="drop")  # an entity that has nothing but values needs no embedding


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Refine."""
    if (arguments.candidates is None) == (arguments.embeddings is None):
        raise UsageError("give either --candidates or --embeddings with --entities")
    if arguments.embeddings is not None and arguments.entities is None:
        raise UsageError("--embeddings needs --entities: two files that name the entity of every row")
    paired = [*(arguments.embeddings or ()), *(arguments.entities or ())]
    inputs.check_outputs(arguments, [*arguments.graphs, arguments.seeds, arguments.candidates, *paired])
    graphs = inputs.read_graphs(arguments, console)
    seeds = np.zeros((0, 2), dtype=np.int64)
    if arguments.seeds is not None:
        seeds = inputs.read_known_links(arguments.seeds, graphs, arguments, console)
    if arguments.embeddings is None:
        candidates = _from_file(arguments, graphs, console)
    else:
        candidates = _from_embeddings(arguments, graphs)
    refined = refine(candidates, *graphs, seeds=seeds)
    pair = make_pair(*graphs, seeds, name=" ".join(path.name for path in arguments.graphs))
    calibrator = by_prior("the encoder is not at hand to be run without some seeds")
    result = SelfTrainingResult((), refined.pairs, refined.pair_probs, candidates, refined, (None, None))
    alignment = decided(
        pair, result, calibrator, {"one_to_one": arguments.one_to_one}, min_prob=arguments.min_prob,
        precision=arguments.precision, one_to_one=arguments.one_to_one,
    )  # fmt: skip
    inputs.write_outputs(alignment, arguments)
    console.result(*inputs.summary(alignment, arguments))
    return OK


def _from_file(arguments: argparse.Namespace, graphs: tuple[KG, KG], console: Console) -> TopK:
    problems = Problems(arguments.strict)
    rows = read_link_rows(arguments.candidates, problems)
    pairs, scores = _pairs_and_scores(rows, arguments.candidates, graphs, problems)
    console.problems(problems, f"of {len(rows):,} candidates of {arguments.candidates}")
    if not len(pairs):
        raise ValueError(f"{arguments.candidates} holds no candidate between entities of the two graphs")
    forward = _ranking(pairs, scores, graphs[0].num_entities)
    return TopK(forward, _ranking(pairs[:, ::-1], scores, graphs[1].num_entities), engine="given")


def _pairs_and_scores(
    rows: list[Link], path: Path, graphs: tuple[KG, KG], problems: Problems
) -> tuple[np.ndarray, np.ndarray]:
    """Distinct pairs of ids and their scores."""
    index1, index2 = (name_index(kg) for kg in graphs)
    best_scores: dict[tuple[int, int], float] = {}
    for line, source, target, score in rows:
        e, e2 = index1.get(source), index2.get(target)
        if e is None or e2 is None:
            problems.add(f"{path}:{line}", f"{source if e is None else target} is not an entity of its graph")
        elif score is None or not np.isfinite(score):
            problems.add(f"{path}:{line}", "expected a third column with a score")
        else:
            best_scores[e, e2] = max(score, best_scores.get((e, e2), -np.inf))
    pairs = np.array(list(best_scores), dtype=np.int64).reshape(-1, 2)
    return pairs, np.fromiter(best_scores.values(), dtype=np.float32, count=len(best_scores))


def _ranking(pairs: np.ndarray, scores: np.ndarray, num_rows: int) -> Ranking:
    """[num_rows, k] of the pairs' second entities, best first, as wide as the longest row."""
    order = np.lexsort((-scores, pairs[:, 0]))
    rows = pairs[order, 0]
    starts = np.searchsorted(rows, rows)
    column = np.arange(len(rows)) - starts
    indices = np.full((num_rows, int(column.max()) + 1), -1, dtype=np.int32)
    values = np.zeros(indices.shape, dtype=np.float32)
    indices[rows, column], values[rows, column] = pairs[order, 1], scores[order]
    return Ranking(indices, values)


def _from_embeddings(arguments: argparse.Namespace, graphs: tuple[KG, KG]) -> TopK:
    matrices = [
        _rows_by_entity(*paths, kg)
        for paths, kg in zip(zip(arguments.embeddings, arguments.entities, strict=True), graphs, strict=True)
    ]
    return topk(matrices[0], matrices[1], min(arguments.k, *(kg.num_entities for kg in graphs)))


def _rows_by_entity(path: Path, names: Path, kg: KG) -> np.ndarray:
    """float32 [num_entities, d]: the matrix in the order of the graph's entities."""
    matrix = read_npy(path)
    listed = read_lines(names)
    if matrix.ndim != 2 or len(matrix) != len(listed):
        raise ValueError(f"{path} must have a row for each of the {len(listed):,} lines of {names}, got {matrix.shape}")
    rows = {name: row for row, name in enumerate(listed)}
    absent = [kg.entity_label(e) for e in range(kg.num_entities) if kg.entity_label(e) not in rows]
    if absent:
        raise ValueError(f"{names} lacks {len(absent):,} entities of the graph, such as {absent[0]}")
    return matrix[[rows[kg.entity_label(e)] for e in range(kg.num_entities)]].astype(np.float32)
