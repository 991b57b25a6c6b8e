"""`stea-fast info`: what is usable here, or what a file holds."""

from __future__ import annotations

import argparse
import importlib.metadata
import platform
from pathlib import Path
from typing import Any

from stea_fast import __version__
from stea_fast.commands._console import OK, Console
from stea_fast.formats import FORMATS, LITERALS

HELP = "backends, instruction-set tier and versions; or what a graph holds"
EXAMPLES = """examples:
  stea-fast info
  stea-fast info a.nt.gz --json"""
PACKAGES = ("numpy", "scipy", "numba", "torch", "faiss-cpu", "faiss-gpu-cu12", "pyoxigraph", "pyarrow", "zstandard")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("graph", type=Path, nargs="?", help="a file of triples to look into")
    parser.add_argument("--format", choices=FORMATS, help="its format, if not by suffix")
    parser.add_argument("--literals", choices=LITERALS, default="drop", help="of RDF: leave out (default) or keep")
    parser.add_argument("--strict", action="store_true", help="stop at the first malformed line")


def run(given: argparse.Namespace, console: Console) -> int:
    """Show."""
    if given.graph is None:
        facts = versions()
        console.result({**facts, **_backends()}, _machine_text(facts))
    else:
        facts = _graph_facts(given, console)
        console.result(facts, "\n".join(f"{name:24}{value}" for name, value in facts.items()))
    return OK


def versions() -> dict[str, Any]:
    """This package, Python and what it may use."""
    from stea_fast._backends import thread_count

    return {
        "stea_fast": __version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "threads": thread_count(None),
        **{name: _version(name) for name in PACKAGES},
    }


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _backends() -> dict[str, Any]:
    from stea_fast import _backends

    try:
        automatic = _backends.resolve("auto").__name__.rsplit(".", 1)[-1]
    except (_backends.BackendUnavailable, ValueError) as error:
        automatic = f"none ({error})"
    found = _backends.backends()
    listed = {name: {"usable": status.usable, "detail": status.detail} for name, status in found.items()}
    return {"backends": listed, "automatic": automatic}


def _machine_text(facts: dict[str, Any]) -> str:
    lines = [f"{name:15}{value}" for name, value in facts.items()]
    found = _backends()
    lines += ["", "backends"]
    for name, status in found["backends"].items():
        lines.append(f"  {name:11}{'usable ' if status['usable'] else 'no     '} {status['detail']}")
    return "\n".join([*lines, f"  automatic choice: {found['automatic']}"])


def _graph_facts(given: argparse.Namespace, console: Console) -> dict[str, Any]:
    from stea_fast.formats import read_triples
    from stea_fast.reading import graph_of

    table = read_triples(given.graph, format=given.format, literals=given.literals, strict=given.strict)
    console.problems(table.problems, f"malformed lines of {given.graph}")
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
