"""The command line: `python -m stea_fast info`, `demo` and `audit`."""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import platform
import sys
import time
from collections.abc import Sequence

from stea_fast import __version__, audit_command


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m stea_fast", description="Entity alignment, refined.")
    commands = parser.add_subparsers(dest="command", required=True)
    info = commands.add_parser("info", help="backends, instruction-set tier and versions")
    info.add_argument("--json", action="store_true", help="machine-readable output")
    demo = commands.add_parser("demo", help="align a built-in pair of graphs end to end")
    demo.add_argument("--entities", type=int, default=2000, help="entities per graph (default: %(default)s)")
    demo.add_argument("--seed", type=int, default=0, help="which pair (default: %(default)s)")
    audit_command.add_to(commands)
    given = parser.parse_args(arguments)
    if given.command == "info":
        return show_info(as_json=given.json)
    if given.command == "audit":
        return audit_command.run(given)
    return run_demo(given.entities, given.seed)


def show_info(*, as_json: bool) -> int:
    """Print what is usable here, and why the rest is not."""
    from stea_fast import _backends

    found = _backends.backends()
    try:
        automatic = _backends.resolve("auto").__name__.rsplit(".", 1)[-1]
    except (_backends.BackendUnavailable, ValueError) as error:
        automatic = f"none ({error})"
    facts = {
        "stea_fast": __version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "threads": _backends.thread_count(None),
        **{name: _version(name) for name in ("numpy", "scipy", "numba", "torch", "faiss-cpu", "faiss-gpu-cu12")},
    }
    if as_json:
        listed = {name: {"usable": status.usable, "detail": status.detail} for name, status in found.items()}
        print(json.dumps({**facts, "backends": listed, "automatic": automatic}, indent=2))
        return 0
    for name, value in facts.items():
        print(f"{name:15}{value}")
    print("\nbackends")
    for name, status in found.items():
        print(f"  {name:11}{'usable ' if status.usable else 'no     '} {status.detail}")
    print(f"  automatic choice: {automatic}")
    return 0


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def run_demo(num_entities: int, seed: int) -> int:
    """Align a synthetic pair and show what refinement does to it."""
    import stea_fast as sf
    from stea_fast import demo

    try:
        pair = sf.synthetic_pair(num_entities, seed)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"Two graphs of one world\n  {pair.kg1}\n  {pair.kg2}")
    print(f"  {len(pair.train):,} links are known; {len(pair.test):,} are hidden and only used to score the result\n")
    started = time.perf_counter()
    candidates = demo.candidates(pair)
    encoded = time.perf_counter()
    sf.refine(candidates, pair.kg1, pair.kg2, seeds=pair.train)  # the first call loads the backend
    warm = time.perf_counter()
    refined = sf.refine(candidates, pair.kg1, pair.kg2, seeds=pair.train)
    finished = time.perf_counter()
    print(f"encoder (stand-in)   {sf.evaluate(candidates, pair.test)}   {encoded - started:.2f} s")
    print(f"refined              {sf.evaluate(refined, pair.test)}   {1000 * (finished - warm):.0f} ms")
    print(f"\n{len(refined.pairs):,} new links; five of them, with the evidence behind the first:\n")
    for (e, e2), prob in list(zip(refined.pairs.tolist(), refined.pair_probs.tolist(), strict=True))[:5]:
        print(f"  {pair.kg1.entity_label(e)} ≡ {pair.kg2.entity_label(e2)}   probability {prob:.3f}")
    if len(refined.pairs):
        explanation = refined.explain(*refined.pairs[0].tolist())
        print(f"\n{explanation.title}: evidence {explanation.evidence:.2f}")
        for fact in explanation[:4]:
            print(f"  {fact.share:6.1%}  {fact.text}")
    return 0
