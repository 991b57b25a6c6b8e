"""`stea-fast evaluate`: compare a file of links with the true ones."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from stea_fast.cli.console import Console
from stea_fast.cli.exit_codes import OK
from stea_fast.evaluation.metrics import PairsOnly, evaluate, reliability
from stea_fast.formats.links import Link, read_link_rows
from stea_fast.formats.triple_table import Vocabulary
from stea_fast.formats.triples import Problems

HELP = "precision, recall, F1 and calibration of a file of links, given the true ones"
EXAMPLES = """examples:
  stea-fast evaluate links.tsv gold.tsv --seeds seeds.tsv
  stea-fast evaluate links.sssom.tsv gold.nt --json"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("links", type=Path, help="links as any command writes them")
    parser.add_argument("gold", type=Path, help="true links")
    parser.add_argument("--seeds", type=Path, help="links that were known before; they count neither way")
    parser.add_argument("--strict", action="store_true", help="stop at the first malformed line")


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Evaluate."""
    links, gold = (_read(path, arguments.strict, console) for path in (arguments.links, arguments.gold))
    if arguments.seeds is not None:
        seeds = {link.source for link in _read(arguments.seeds, arguments.strict, console)}
        links, gold = ([link for link in part if link.source not in seeds] for part in (links, gold))
    if not gold:
        raise ValueError(f"{arguments.gold} holds no links beyond the seeds")
    sources, targets = Vocabulary(), Vocabulary()
    pairs, true = (_ids(part, sources, targets) for part in (links, gold))
    metrics = evaluate(PairsOnly(pairs), true)
    facts = {
        "links": len(links), "gold": len(gold), "precision": metrics.precision, "recall": metrics.recall,
        "f1": metrics.f1,
    }  # fmt: skip
    text = f"{len(links):,} links, {len(gold):,} true ones: {metrics}"
    claims = [(link.probability, pair) for link, pair in zip(links, pairs.tolist(), strict=True)]
    if claims and all(prob is not None for prob, _ in claims):
        truth = set(map(tuple, true.tolist()))
        right = np.array([tuple(pair) in truth for _, pair in claims])
        facts["calibration_error"] = reliability(np.array([prob for prob, _ in claims]), right).error
        text += f"  calibration error {facts['calibration_error']:.3f}"
    console.result(facts, text)
    return OK


def _read(path: Path, strict: bool, console: Console) -> list[Link]:
    problems = Problems(strict)
    rows = read_link_rows(path, problems)
    console.problems(problems, f"lines of {path}")
    return rows


def _ids(links: list[Link], sources: Vocabulary, targets: Vocabulary) -> np.ndarray:
    pairs = [
        (sources.setdefault(link.source.encode(), len(sources)), targets.setdefault(link.target.encode(), len(targets)))
        for link in links
    ]
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)
