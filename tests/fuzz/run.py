"""Give mutated files to every reader, for as long as one likes: `make fuzz`, or

    python tests/fuzz/run.py --hours 1
    python tests/fuzz/run.py --seconds 60 --only "graph a.nt" --seed 7
    python tests/fuzz/run.py --replay tests/fuzz/regressions

With `--guided`, atheris (`pip install atheris`), whose mutations are guided by coverage, has as much time again.
An input that breaks the contract (fuzz_contract.py) is saved in a folder named after its reader. Mend the reader,
rename the folder after the defect, and move it to tests/fuzz/regressions: the tests then read it forever.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
import time
import zlib
from pathlib import Path

os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")  # others reserve gigabytes that they do not use
os.environ.setdefault("OMP_NUM_THREADS", "1")

import fuzz_guided
from fuzz_mutations import Files
from fuzz_targets import TARGETS, Target, saved_inputs
from fuzz_worker import Failure, Tally, make_input, put, replay, run

STEP = 2000  # inputs of one reader before it is another one's turn


def main() -> int:
    """Returns 1 if an input broke the contract."""
    logging.getLogger("stea_fast").setLevel(logging.ERROR)  # damaged files make many warnings, which are right
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hours", type=float, help="how long (default: until every reader has had --inputs)")
    parser.add_argument("--seconds", type=float, help="how long, in seconds")
    parser.add_argument("--inputs", type=int, default=STEP, help="inputs per reader (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of all mutations (default: %(default)s)")
    parser.add_argument("--only", action="append", choices=TARGETS, help="a reader by name; may be repeated")
    parser.add_argument("--state", type=Path, help="go on from, and note in, this file how far each reader is")
    parser.add_argument("--save", type=Path, default=Path("fuzz_failures"), help="where inputs that fail are put")
    parser.add_argument("--replay", type=Path, help="read saved inputs again: a folder of folders")
    parser.add_argument("--guided", action="store_true", help="give atheris as much time again, if it is installed")
    arguments = parser.parse_args()
    if arguments.guided and not fuzz_guided.is_installed():
        print("atheris is not installed: our own mutations only", file=sys.stderr)
        arguments.guided = False
    if arguments.replay is not None:
        return _replay_all(arguments.replay)
    seconds = arguments.hours * 3600 if arguments.hours else arguments.seconds
    tallies = _fuzz(arguments, [TARGETS[name] for name in arguments.only or TARGETS], seconds)
    return _report(tallies)


def _fuzz(arguments: argparse.Namespace, targets: list[Target], seconds: float | None) -> dict[str, Tally]:
    started = time.monotonic()
    reached = _reached(arguments.state)
    tallies = {target.name: Tally() for target in targets}
    wanted = {target.name: reached.get(target.name, 0) + arguments.inputs for target in targets}  # without a time
    while seconds is None or time.monotonic() - started < seconds:
        waiting = [one for one in targets if seconds is not None or reached.get(one.name, 0) < wanted[one.name]]
        if not waiting:
            break
        target = min(waiting, key=lambda one: reached.get(one.name, 0))  # whoever has had least
        begin = reached.get(target.name, 0)
        end = min(begin + STEP, wanted[target.name]) if seconds is None else begin + STEP
        tally = run(target, arguments.seed, begin, end)
        for failure in tally.failures:
            files = make_input(target, arguments.seed, failure.number)
            _save(arguments.save / target.folder / f"seed_{arguments.seed}_number_{failure.number}", files, failure)
        if arguments.guided:
            tally.add(_guided(target, max(tally.seconds, 1.0), arguments.save))
        tallies[target.name].add(tally)
        reached[target.name] = end
        if arguments.state is not None:
            arguments.state.write_text(json.dumps(reached, indent=1), encoding="utf-8")
    return tallies


def _reached(state: Path | None) -> dict[str, int]:
    return json.loads(state.read_text(encoding="utf-8")) if state is not None and state.exists() else {}


def _guided(target: Target, seconds: float, save: Path) -> Tally:
    """As much time for atheris. It says nothing of how many inputs that were."""
    tally = Tally(seconds=seconds)
    for files in fuzz_guided.found(target, seconds):
        what = replay(target, files)
        if what is not None:
            tally.failures.append(Failure(target.name, -1, what))
            _save(save / target.folder / f"guided_{zlib.crc32(repr(files).encode()):08x}", files, tally.failures[-1])
    return tally


def _save(place: Path, files: Files, failure: Failure) -> None:
    place.mkdir(parents=True, exist_ok=True)
    put(files, place)
    print(f"{failure.target}: {failure.what}\n  saved in {place}", file=sys.stderr, flush=True)


def _report(tallies: dict[str, Tally]) -> int:
    total = Tally()
    for name, tally in tallies.items():
        total.add(tally)
        print(f"{name:24}{tally.inputs:>10,} inputs {tally.refused:>10,} refused {tally.seconds:>8.1f} s "
              f"{len(tally.failures):>4} failures")  # fmt: skip
    print(f"{'all':24}{total.inputs:>10,} inputs {total.refused:>10,} refused {total.seconds:>8.1f} s "
          f"{len(total.failures):>4} failures")  # fmt: skip
    return 1 if total.failures else 0


def _replay_all(folder: Path) -> int:
    failed = 0
    for target, name, files in saved_inputs(folder):
        what = replay(target, files)
        failed += what is not None
        print(f"{target.name}: {name}: {what or 'good'}")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
