"""`stea-fast align`: from two files of triples to links."""

from __future__ import annotations

import argparse
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np

from stea_fast._executors.ray_cluster import RayExecutor
from stea_fast.alignment.api import CALIBRATIONS, Alignment, align
from stea_fast.cli import inputs
from stea_fast.cli.console import Console, UsageError
from stea_fast.cli.exit_codes import OK
from stea_fast.clues.api import find_clues
from stea_fast.clues.types import Clues
from stea_fast.data.dataset_folders import load_pair
from stea_fast.data.files import make_pair
from stea_fast.data.pair import Pair
from stea_fast.search.topk import ENGINES
from stea_fast.selftraining.config import SearchConfig, SelfTrainingConfig
from stea_fast.selftraining.history import Round
from stea_fast.selftraining.presets import PRESETS, preset, usual_preset
from stea_fast.types import ArrayLike

HELP = "align two graphs: from files of triples, and names or a few known links, to links for every entity"
EXAMPLES = """examples:
  stea-fast align a.nt b.ttl --out links.tsv
  stea-fast align a.nt b.ttl --seeds seeds.tsv --out links.tsv
  stea-fast align a.tsv.gz b.parquet --seeds seeds.csv --out links.sssom.tsv --report report.html
  stea-fast align DBP15K/zh_en --seed-fraction 0.3 --out links.nt --preset full"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "graphs", type=Path, nargs="+", metavar="GRAPH", help="two files of triples, or a dataset folder"
    )
    parser.add_argument(
        "--seeds", type=Path, metavar="FILE", help="known links: two columns of ids; without them names must do"
    )
    parser.add_argument("--gold", type=Path, metavar="FILE", help="true links, only to judge the result")
    parser.add_argument("--seed-fraction", type=float, default=0.3, help="of a folder's links (default: %(default)s)")
    parser.add_argument("--fold", type=int, metavar="N", help="of a folder: its published split, or fold N of OpenEA")
    inputs.add_output_options(parser)
    group = parser.add_argument_group("method")
    group.add_argument(
        "--preset",
        choices=tuple(PRESETS),
        help="structural (no encoder; the default without seeds), fast (no training; the default), large (the default "
        "beyond 60,000 entities) or full (Dual-AMN)",
    )
    group.add_argument("--engine", choices=ENGINES, help="of the search (default: the preset's)")
    group.add_argument("--dimensions", type=int, help="of the embeddings that are searched (default: all)")
    group.add_argument(
        "--budget", type=float, metavar="N", help="products up to which a search is exact (default: the preset's)"
    )
    group.add_argument("--memory", metavar="SIZE", help="that may be taken, such as 8GB (default: what is left)")
    group.add_argument("--rounds", type=int, help="rounds of self-training (default: the preset's)")
    group.add_argument(
        "--calibration", choices=CALIBRATIONS, default="auto", help="of the probabilities (default: auto)"
    )
    group.add_argument("--seed", type=int, default=0, help="of all random choices (default: %(default)s)")
    group.add_argument("--device", default="cpu", help="of the encoder: cpu or cuda (default: %(default)s)")
    group.add_argument(
        "--checkpoint", type=Path, metavar="FOLDER", help="continue there, and decide anew without new runs"
    )
    group.add_argument(
        "--ray",
        metavar="auto|ADDRESS",
        help="run what is heavy on this Ray cluster; --threads is the threads of a worker",
    )
    inputs.add_graph_options(parser)
    inputs.add_value_options(parser)


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Align."""
    given = (getattr(arguments, f"{kind}{side}") for kind in ("names", "values", "features") for side in (1, 2))
    inputs.check_outputs(arguments, [*arguments.graphs, arguments.seeds, arguments.gold, *given])
    pair = _pair(arguments, console)
    ray = nullcontext() if arguments.ray is None else RayExecutor(arguments.ray, threads=arguments.threads or 1)
    with ray as executor:
        alignment = _aligned(pair, arguments, console, executor)
    inputs.write_outputs(alignment, arguments)
    facts, text = inputs.summary(alignment, arguments)
    judged = alignment.quality()
    if judged is not None:
        facts["quality"] = judged.to_dict()
        text = f"{judged}\n{text}"
    console.result(facts, text)
    return OK


def _aligned(pair: Pair, arguments: argparse.Namespace, console: Console, executor: RayExecutor | None) -> Alignment:
    clues = _clues(pair, arguments, console, executor)
    if arguments.no_structure:
        pair = pair.without_structure()
    console.note(
        f"aligning with {len(pair.train):,} seeds" + ("" if arguments.calibration == "none" else ", calibrating first")
    )
    name = arguments.preset or usual_preset(pair, has_seeds=len(pair.train) > 0)
    return align(
        pair, preset=_preset(arguments, name), search=_search(arguments, name), memory=arguments.memory,
        executor=executor,
        min_prob=arguments.min_prob, precision=arguments.precision,
        one_to_one=arguments.one_to_one, seed=arguments.seed, calibration=arguments.calibration,
        rounds=arguments.rounds, checkpoint=arguments.checkpoint,
        clues=clues, progress=console.progress, callbacks=[_Rounds(name, arguments.rounds, console)],
    )  # fmt: skip


def _preset(arguments: argparse.Namespace, name: str) -> str | SelfTrainingConfig:
    """The preset, by its name where nothing of it changes."""
    return name if arguments.device == "cpu" else preset(name, device=arguments.device)


def _search(arguments: argparse.Namespace, name: str) -> SearchConfig | None:
    """The preset's search with what was asked for; None where nothing was."""
    given = {key: getattr(arguments, key) for key in ("engine", "dimensions", "budget")}
    given = {key: value for key, value in given.items() if value is not None}
    return replace(PRESETS[name].search, **given) if given else None


def _pair(arguments: argparse.Namespace, console: Console) -> Pair:
    if len(arguments.graphs) == 1 and arguments.graphs[0].is_dir():
        if arguments.values1 is not None or arguments.values2 is not None:
            raise UsageError("--values1 and --values2 are for files of triples; a folder has attr_triples_1 and _2")
        names = (arguments.names1, arguments.names2)
        if arguments.fold is not None:  # published folds have seeds of their own
            return load_pair(arguments.graphs[0], None, fold=arguments.fold, names=names)
        return load_pair(arguments.graphs[0], arguments.seed_fraction, arguments.seed, names=names)
    if len(arguments.graphs) == 1 and not arguments.graphs[0].exists():
        raise FileNotFoundError(f"{arguments.graphs[0]} does not exist")
    if len(arguments.graphs) != 2:
        raise UsageError(f"expected two files of triples or one dataset folder, got {len(arguments.graphs)} paths")
    if arguments.seeds is None and not _used(arguments, has_seeds=False):
        raise UsageError("there is nothing to start from: give --seeds, or allow names, values or features")
    graphs = inputs.read_graphs(arguments, console)
    seeds = np.zeros((0, 2), dtype=np.int64)
    if arguments.seeds is not None:
        seeds = inputs.read_known_links(arguments.seeds, graphs, arguments, console)
    judged: ArrayLike = ()
    if arguments.gold is not None:
        gold = inputs.read_known_links(arguments.gold, graphs, arguments, console)
        judged = gold[~np.isin(gold[:, 0], seeds[:, 0]) & ~np.isin(gold[:, 1], seeds[:, 1])]
    names = inputs.read_names(arguments, graphs, console)
    return make_pair(*graphs, seeds, test=judged, name=" ".join(path.name for path in arguments.graphs), names=names)


def _used(arguments: argparse.Namespace, *, has_seeds: bool) -> set[str]:
    """Which of names, values and features are evidence."""
    choices = {"names": arguments.use_names, "values": arguments.use_values}
    used = {kind for kind, use in choices.items() if use == "always" or (use == "auto" and not has_seeds)}
    return used | ({"features"} if arguments.features1 is not None else set())


def _clues(pair: Pair, arguments: argparse.Namespace, console: Console, executor: RayExecutor | None) -> Clues | None:
    """What names, values and features say, if they are to be asked; tells what was found."""
    used = _used(arguments, has_seeds=len(pair.train) > 0)
    features = inputs.read_feature_files(arguments, pair, console)
    if not used:
        if arguments.no_structure:
            raise UsageError("--no-structure leaves nothing: add --use-names always or --use-values always")
        return None
    clues = find_clues(
        pair, names="names" in used, values="values" in used, features=features, executor=executor,
        progress=console.progress,
    )  # fmt: skip
    for sentence in clues.found:
        console.note(sentence)
    clues.check_start(pair.train)
    return clues


class _Rounds:
    """A line for every round of every run, with the time that is left of all of them."""

    def __init__(self, name: str, rounds: int | None, console: Console) -> None:
        self.rounds = PRESETS[name].rounds if rounds is None else rounds
        self.console, self.made, self.seconds = console, 0, 0.0

    def __call__(self, done: Round) -> None:
        self.made += 1
        self.seconds += sum(done.seconds.values())
        still = (done.runs - done.run) * (self.rounds + 1) + self.rounds - done.number
        left = self.seconds / self.made * still
        self.console.note(
            f"run {done.run} of {done.runs}, round {done.number} of {self.rounds}: {done.num_pairs:,} pairs in "
            f"{sum(done.seconds.values()):.1f} s" + (f", about {left:.0f} s left" if left else "")
        )
