"""`python -m stea_fast audit`: whether a run of self-training on a folder reads its test links."""

from __future__ import annotations

import argparse
import sys
from typing import Any


def add_to(commands: Any) -> None:
    """Add the command to the others of a parser."""
    parser = commands.add_parser("audit", help="prove that a run does not depend on test links")
    parser.add_argument("folder", help="a pair of graphs with links, as load_pair takes it")
    parser.add_argument("--seed-fraction", type=float, default=0.01, help="share of the links that is known")
    parser.add_argument("--split-seed", type=int, default=0, help="which links these are")
    parser.add_argument("--preset", default="fast", help="of SelfTraining (default: %(default)s)")
    parser.add_argument("--method", default="stea", help="of SelfTraining (default: %(default)s)")
    parser.add_argument("--encoder", help="by name, instead of the preset's")
    parser.add_argument("--rounds", type=int, help="instead of the preset's")
    parser.add_argument("--relations", default="estimated", help="'oracle' reads test links: its audit fails")


def run(given: argparse.Namespace) -> int:
    """Run twice, with true and with shuffled test links: 0 if every bit is the same, 1 if not, 2 for bad input."""
    import stea_fast as sf

    options = {name: getattr(given, name) for name in ("preset", "method", "encoder", "rounds", "relations")}
    try:
        pair = sf.load_pair(given.folder, given.seed_fraction, given.split_seed)
        print(pair)
        print(sf.audit(pair, lambda shown: sf.SelfTraining(shown, **options).run()))
    except sf.AuditError as error:
        print(f"audit FAILED: {error}", file=sys.stderr)
        return 1
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0
