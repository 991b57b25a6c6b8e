"""This version against another commit, case by case: both work in turns in one run, and the ratio is what counts.

    python -m bench.against COMMIT [--cases sweep,refine,fast] [--pair dbp15k_zh_en] [--fraction 0.01] [--split 0]
                            [--rounds 5] [--threads 2] [--builds FOLDER] [--results FILE]

The commit is built into an environment of its own, once: a folder below `--builds` with the package as it was then, and
this environment's libraries. Each side is a process that prepares the case, works once untimed, and then works whenever
it is its turn. Without `--cases` the quick ones are run; `--cases list` shows all.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import sysconfig
import tempfile
import venv
from pathlib import Path
from typing import Any

from bench.lib.builds import BuildFolder
from bench.lib.folders import DATA, ROOT
from bench.lib.processes import environment, limit_threads

WORKER = ROOT / "bench" / "lib" / "contest.py"
QUICK = "topk-768,topk-768-csls,embedding,refine-joint,sweep"
Line = dict[str, Any]


class Commits(BuildFolder):
    """Environments of other commits."""

    def python(self, commit: str) -> Path:
        """The interpreter that imports stea_fast as it was at this commit."""
        return self.target(commit, lambda part: self._build(commit, part)) / "bin" / "python"

    def _build(self, commit: str, folder: Path) -> None:
        print(f"building {commit[:12]} ...", file=sys.stderr, flush=True)
        venv.create(folder, with_pip=False)
        own = Path(sysconfig.get_path("purelib", vars={"base": str(folder), "platbase": str(folder)}))
        # As a path and not as a site folder: its own .pth files, an editable stea_fast among them, stay unread.
        (own / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
        with tempfile.TemporaryDirectory() as scratch:
            archive = subprocess.run(["git", "archive", commit], cwd=ROOT, check=True, capture_output=True).stdout
            subprocess.run(["tar", "-x", "-C", scratch], input=archive, check=True)
            _run([
                sys.executable, "-m", "pip", "--python", folder / "bin" / "python", "install", "--quiet", "--no-deps",
                "--no-build-isolation", "--target", own, scratch,
            ])  # fmt: skip


def _run(command: list[Any]) -> None:
    chosen = {**os.environ, "STEA_CUDA": "off", "STEA_REQUIRE_NATIVE": "1"}
    done = subprocess.run(command, env=chosen, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"the other commit could not be built:\n{done.stdout}{done.stderr}")


class Side:
    """A process that does the work of one version when asked to."""

    def __init__(self, python: Path, variables: dict[str, str], case: Line) -> None:
        self.process = subprocess.Popen(
            [str(python), str(WORKER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=variables
        )
        self._ask({**case, "folder": str(DATA)})
        self.work()  # compilation, first touch of memory

    def _ask(self, line: Line) -> Line:
        assert self.process.stdin is not None and self.process.stdout is not None, "both are pipes"
        print(json.dumps(line), file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f"{self.process.args}: ended with code {self.process.wait()}; see above")
        return dict(json.loads(answer))

    def work(self) -> Line:
        return self._ask({})

    def close(self) -> None:
        self.process.kill()
        self.process.wait()


def contest(case: Line, sides: dict[str, tuple[Path, dict[str, str]]], rounds: int) -> Line:
    """Both versions in turns; the first of a round changes."""
    from bench.lib.measure import Timing

    running = {name: Side(python, variables, case) for name, (python, variables) in sides.items()}
    answers: dict[str, list[Line]] = {name: [] for name in running}
    try:
        for number in range(rounds):
            for name in list(running)[:: -1 if number % 2 else 1]:
                answers[name].append(running[name].work())
    finally:
        for side in running.values():
            side.close()
    seconds = {name: [answer.pop("seconds") for answer in given] for name, given in answers.items()}
    ratio = Timing.of([other / own for own, other in zip(seconds["this"], seconds["other"], strict=True)])
    return {
        **case,
        "ratio": ratio.as_dict(),
        "seconds": {name: Timing.of(values).as_dict() for name, values in seconds.items()},
        "found": {name: given[-1] for name, given in answers.items()},
    }


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commit", help="anything that git can resolve")
    parser.add_argument("--cases", default=QUICK, help="default: %(default)s; 'list' shows all")
    parser.add_argument("--pair", default="dbp15k_zh_en", help="a dataset's folder (default: %(default)s)")
    parser.add_argument("--fraction", type=float, default=0.01, help="of the links that are seeds")
    parser.add_argument("--split", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--builds", type=Path, default=Path(tempfile.gettempdir()) / "stea-fast-commits")
    parser.add_argument("--results", type=Path, help="a file to which every case is added as a line")
    return parser.parse_args()


def _row(result: Line) -> list[str]:
    from bench.lib.measure import duration, times

    ratio, seconds = result["ratio"], result["seconds"]
    medians = [duration(seconds[side]["median"]) for side in ("this", "other")]
    spread = f"{times(ratio['lower'])} – {times(ratio['upper'])}"
    return [result["case"], times(ratio["median"]), spread, *medians, json.dumps(result["found"])]


def _commit(name: str) -> str:
    resolve = ["git", "rev-parse", "--verify", f"{name}^{{commit}}"]
    return subprocess.run(resolve, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def main() -> None:
    given = _arguments()
    limit_threads(given.threads)
    from bench.lib.contest import CASES
    from bench.lib.measure import machine_facts, markdown
    from bench.paper.compute import commit as this_commit

    names = given.cases.split(",")
    if not CASES.keys() >= set(names):
        sys.exit(f"the cases are {', '.join(CASES)}")
    other = _commit(given.commit)
    theirs = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    sides = {"this": (Path(sys.executable), environment()), "other": (Commits(given.builds).python(other), theirs)}
    asked = {key: getattr(given, key) for key in ("pair", "fraction", "split")}
    rows = []
    for name in names:
        result = contest({"case": name, **asked}, sides, given.rounds)
        rows.append(_row(result))
        print(*rows[-1], sep="   ", file=sys.stderr, flush=True)
        if given.results is not None:
            facts = {"threads": given.threads, "other": other, "commit": this_commit(), "machine": machine_facts()}
            with given.results.open("a", encoding="utf-8") as stream:
                stream.write(json.dumps({**result, **facts}) + "\n")
    print(markdown(["case", "other / this", "quartiles", "this", "other", "found"], rows))


if __name__ == "__main__":
    main()
