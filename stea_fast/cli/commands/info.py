"""`stea-fast info`: what is usable here, or what a file holds."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from stea_fast._util.printable import printable_line
from stea_fast._util.versions import versions
from stea_fast.cli.console import Console
from stea_fast.cli.exit_codes import OK
from stea_fast.formats.triples import FORMATS, LITERALS

HELP = "backends, instruction-set tier and versions; or what a graph holds"
EXAMPLES = """examples:
  stea-fast info
  stea-fast info a.nt.gz --json"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("graph", type=Path, nargs="?", help="a file of triples to look into")
    parser.add_argument("--format", choices=FORMATS, help="its format, if not by suffix")
    parser.add_argument("--literals", choices=LITERALS, default="drop", help="of RDF: leave out (default) or keep")
    parser.add_argument("--strict", action="store_true", help="stop at the first malformed line")


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Show."""
    if arguments.graph is None:
        from stea_fast.search.engines.cpu import describe_blas

        facts = {**versions(), "blas": describe_blas(), "search": _search_path()}
        console.result({**facts, **_backends()}, _machine_text(facts))
    else:
        facts = _graph_facts(arguments, console)
        console.result(facts, "\n".join(printable_line(f"{name:24}{value}") for name, value in facts.items()))
    return OK


def _search_path() -> str:
    """How `topk` multiplies on this CPU by default."""
    from stea_fast import _backends

    if not _backends.status("native").usable:
        return "float32 blocks (no native backend)"
    from stea_fast.search.engines.int8 import describe

    return describe()


def _backends() -> dict[str, Any]:
    from stea_fast import _backends

    try:
        automatic = _backends.resolve("auto").__name__.rsplit(".", 1)[-1]
    except (_backends.BackendUnavailable, ValueError) as error:
        automatic = f"none ({error})"
    listed = {name: {"usable": status.usable, "detail": status.detail} for name, status in _backends.backends().items()}
    return {"backends": listed, "automatic": automatic}


def _machine_text(facts: dict[str, Any]) -> str:
    lines = [f"{name:15}{value}" for name, value in facts.items()]
    backends = _backends()
    lines += ["", "backends"]
    for name, status in backends["backends"].items():
        lines.append(f"  {name:11}{'usable ' if status['usable'] else 'no     '} {status['detail']}")
    return "\n".join([*lines, f"  automatic choice: {backends['automatic']}"])


def _graph_facts(arguments: argparse.Namespace, console: Console) -> dict[str, Any]:
    from stea_fast.data.files import graph_of
    from stea_fast.formats.triples import read_triples

    table = read_triples(arguments.graph, format=arguments.format, literals=arguments.literals, strict=arguments.strict)
    console.problems(table.problems, f"malformed lines of {arguments.graph}")
    kg = graph_of(table)
    stats = kg.degree_stats()
    return {
        "entities": kg.num_entities,
        "relations": kg.num_relations,
        "triples": kg.num_triples,
        "repeated triples": len(table.triples) - kg.num_triples,
        "malformed lines": table.problems.count,
        "dropped literals": table.problems.dropped_literals,
        "mean degree": round(stats.mean, 2),
        "largest degree": stats.maximum,
        "first entity": kg.entity_label(0),
    }
