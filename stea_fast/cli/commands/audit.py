"""`stea-fast audit`: whether a run of self-training on a folder reads its test links."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

from stea_fast.cli.console import Console, UsageError, print_error
from stea_fast.cli.exit_codes import AUDIT_FAILED, OK

HELP = "prove that a run does not depend on test links: it is made twice, with true and with shuffled ones"
EXAMPLES = """examples:
  stea-fast audit DBP15K/zh_en --seed-fraction 0.01
  stea-fast audit DBP15K/zh_en --method mutual_nearest --encoder dual_amn --rounds 2"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("folder", type=Path, help="a pair of graphs with links, as load_pair takes it")
    parser.add_argument("--seed-fraction", type=float, default=0.01, help="share of the links that is known")
    parser.add_argument("--split-seed", type=int, default=0, help="which links these are")
    parser.add_argument("--preset", default="fast", help="of SelfTraining (default: %(default)s)")
    parser.add_argument("--method", default="stea", help="of SelfTraining (default: %(default)s)")
    parser.add_argument("--encoder", help="by name, instead of the preset's")
    parser.add_argument("--rounds", type=int, help="instead of the preset's")
    parser.add_argument("--relations", default="estimated", help="'oracle' reads test links: its audit fails")


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Run twice, and compare every bit."""
    import stea_fast as sf

    options: dict[str, Any] = {name: getattr(arguments, name) for name in ("preset", "method", "encoder", "rounds")}
    if arguments.relations != "estimated":
        if arguments.method != "stea":
            raise UsageError(f"--relations is an option of --method stea; got --method {arguments.method}")
        options["method"] = replace(sf.preset(arguments.preset).method, relations=arguments.relations)
    pair = sf.load_pair(arguments.folder, arguments.seed_fraction, arguments.split_seed)
    console.note(str(pair))
    try:
        passed = sf.audit(pair, lambda shown: sf.SelfTraining(shown, progress=console.progress, **options).run())
    except sf.AuditError as error:
        print_error(f"audit FAILED: {error}")
        return AUDIT_FAILED
    console.result({"passed": True, "arrays": passed.arrays, "numbers": passed.numbers}, str(passed))
    return OK
