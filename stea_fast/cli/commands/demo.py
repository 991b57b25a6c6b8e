"""`stea-fast demo`: align a built-in pair of graphs end to end."""

from __future__ import annotations

import argparse
import time
from itertools import islice
from pathlib import Path

from stea_fast._util.atomic import check_writable
from stea_fast.alignment.api import Alignment, align
from stea_fast.cli.console import Console, UsageError
from stea_fast.cli.exit_codes import OK
from stea_fast.data.synthetic import synthetic_pair

HELP = "align a built-in pair of graphs: links, a table of quality, a report to look at"
EXAMPLES = """examples:
  stea-fast demo
  stea-fast demo --entities 5000 --report demo.html"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--entities", type=int, default=1500, help="entities per graph (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="which pair (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=2, help="rounds of self-training (default: %(default)s)")
    parser.add_argument("--report", type=Path, default=Path("stea-fast-demo.html"), help="default: %(default)s")


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Show."""
    try:
        pair = synthetic_pair(arguments.entities, arguments.seed)
    except ValueError as error:
        raise UsageError(error) from None
    check_writable(arguments.report)
    console.note(f"Two graphs of one world\n  {pair.kg1}\n  {pair.kg2}")
    console.note(f"  {len(pair.train):,} links are known; the others are hidden and only judge the result\n")
    begin = time.perf_counter()
    alignment = align(
        pair, rounds=arguments.rounds, calibration="holdout", seed=arguments.seed, progress=console.progress
    )
    seconds = time.perf_counter() - begin
    alignment.write_report(arguments.report)
    judged = alignment.quality()
    assert judged is not None  # a synthetic pair has test links
    facts = {"quality": judged.to_dict(), "seconds": seconds, "report": str(arguments.report.resolve())}
    text = [
        f"{judged}\n\nprobabilities: {alignment.calibrator.note}\n\n{_links_text(alignment)}",
        f"\nreport: {arguments.report.resolve()}   ({seconds:.0f} s)",
    ]
    console.result(facts, "\n".join(text))
    return OK


def _links_text(alignment: Alignment) -> str:
    """Five links, and the evidence behind the first."""
    new_links = [row for row in alignment.links.rows() if row.status == "link"]
    lines = [
        f"{len(new_links):,} new links and {alignment.links.count('no_counterpart'):,} entities without counterpart; "
        "five links, with the evidence behind the first:"
    ]
    lines += [f"  {row.source} ≡ {row.target}   probability {row.probability:.3f}" for row in islice(new_links, 5)]
    refinement = alignment.result.refinement
    if new_links and refinement is not None:
        explanation = refinement.explain(*(int(name) for name in (new_links[0].source, new_links[0].target or "0")))
        lines.append(f"{explanation.title}: evidence {explanation.evidence:.2f}")
        lines += [f"  {fact.share:6.1%}  {fact.text}" for fact in explanation[:4]]
    return "\n".join(lines)
