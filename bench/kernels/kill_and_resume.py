"""Kill a run at random moments, resume it, and compare every bit of the result with that of a run left alone.

python -m bench.kernels.kill_and_resume [--entities 2000 | --folder PAIR] [--encoder dual_amn] [--kills 10] [--seed 0]

Every run is a process of its own; SIGKILL gives it no chance to tidy up.
"""

from __future__ import annotations

import argparse
import hashlib
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter, sleep

import numpy as np

import stea_fast as sf
from bench.lib.processes import environment, module_command
from stea_fast.evaluation.auditing import arrays_of

BEGIN = "begin"


def child(given: argparse.Namespace) -> None:
    """Run, or continue, and print a digest of the result."""
    pair = sf.load_pair(given.folder, 0.05) if given.folder else sf.synthetic_pair(given.entities)
    training = sf.SelfTraining(pair, given.encoder, preset="full", checkpoint=given.checkpoint)
    print(BEGIN, flush=True)
    result = training.run()
    digest = hashlib.sha256()
    for name, array in arrays_of(result):
        digest.update(name.encode())
        digest.update(array.tobytes())
    print(digest.hexdigest(), flush=True)


def start(checkpoint: Path) -> subprocess.Popen[str]:
    """A run in a process of its own that has just begun."""
    command = module_command("bench.kernels.kill_and_resume", *sys.argv[1:], "--checkpoint", checkpoint)
    process = subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    if process.stdout.readline().strip() != BEGIN:
        raise RuntimeError("a run did not begin; see the error above")
    return process


def finish(checkpoint: Path) -> tuple[str, float]:
    """Digest and seconds of a run that is left alone."""
    process = start(checkpoint)
    begin = perf_counter()
    shown = process.communicate()[0]
    return shown.strip(), perf_counter() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entities", type=int, default=2000, help="of the built-in pair")
    parser.add_argument("--folder", help="a pair of graphs instead, with 5 %% of the links known")
    parser.add_argument("--encoder", default="dual_amn")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    parser.add_argument("--checkpoint", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.checkpoint:
        child(given)
        return
    with tempfile.TemporaryDirectory() as folder:
        expected, seconds = finish(Path(folder, "alone"))
        print(f"left alone: {seconds:.1f} s, {expected[:16]}", flush=True)
        different = 0
        for number, share in enumerate(np.random.default_rng(given.seed).uniform(size=given.kills)):
            checkpoint = Path(folder, str(number))
            process = start(checkpoint)
            sleep(share * seconds)
            process.send_signal(signal.SIGKILL)
            process.wait()
            left = "a checkpoint" if any(checkpoint.glob("*.safetensors")) else "nothing"
            found, rest = finish(checkpoint)
            different += found != expected
            same = "the same bits" if found == expected else "OTHER BITS"
            print(f"killed after {share * seconds:.1f} s, leaving {left}: {rest:.1f} s more, {same}", flush=True)
    print(f"{given.kills - different} of {given.kills} resumed to the same bits")
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()
