"""`stea-fast explain`: the facts behind a link."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

import numpy as np

from stea_fast._util.printable import printable_line
from stea_fast.cli import inputs
from stea_fast.cli.console import Console
from stea_fast.cli.exit_codes import OK
from stea_fast.data.files import name_index
from stea_fast.formats.links import read_link_rows
from stea_fast.formats.triples import Problems
from stea_fast.refinement.beliefs import from_pairs
from stea_fast.refinement.explanation import explain_pair
from stea_fast.refinement.relations import align_relations

HELP = "show the facts that speak for a link"
EXAMPLES = """examples:
  stea-fast explain a.nt b.nt --links links.tsv http://a.org/Berlin
  stea-fast explain a.nt b.nt --links links.tsv http://a.org/Berlin --target http://b.org/Bonn --json"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("graphs", type=Path, nargs=2, metavar="GRAPH", help="two files of triples")
    parser.add_argument("source", help="an entity of the first graph")
    parser.add_argument("--target", help="an entity of the second graph (default: the one it is linked to)")
    parser.add_argument("--links", type=Path, required=True, metavar="FILE", help="links as `align` writes them")
    parser.add_argument("--top", type=int, default=10, help="how many facts (default: %(default)s)")
    inputs.add_graph_options(parser)


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Explain."""
    kg1, kg2 = inputs.read_graphs(arguments, console)
    index1, index2 = name_index(kg1), name_index(kg2)
    linked = {
        (index1[link.source], index2[link.target]): 1.0 if link.probability is None else link.probability
        for link in read_link_rows(arguments.links, Problems(arguments.strict))
        if link.source in index1 and link.target in index2
    }
    if not linked:
        raise ValueError(f"{arguments.links} holds no link between entities of the two graphs")
    e = _entity(arguments.source, index1, "first")
    if arguments.target is None:
        e2 = next((target for source, target in linked if source == e), None)
        if e2 is None:
            raise ValueError(f"{arguments.source} has no link in {arguments.links}; name one with --target")
    else:
        e2 = _entity(arguments.target, index2, "second")
    pairs = np.array(list(linked), dtype=np.int64)
    weights = np.clip(np.fromiter(linked.values(), dtype=np.float32, count=len(linked)), 0.0, 1.0)
    sources, targets = pairs.T
    forward = from_pairs(sources, targets, weights, kg1.num_entities)
    relations = align_relations(kg1, kg2, forward, from_pairs(targets, sources, weights, kg2.num_entities))
    explanation = explain_pair(kg1, kg2, e, e2, forward, relations)
    facts = {"title": explanation.title, "evidence": explanation.evidence, "facts": list(map(asdict, explanation))}
    shown = [f"{explanation.title}: evidence {explanation.evidence:.3f} from {len(explanation)} facts"]
    shown += [f"  {fact.share:6.1%}  {fact.text}" for fact in explanation[: arguments.top]]
    console.result(facts, "\n".join(map(printable_line, shown)))
    return OK


def _entity(name: str, index: dict[str, int], which: str) -> int:
    if name not in index:
        raise ValueError(f"{name} is no entity of the {which} graph")
    return index[name]
