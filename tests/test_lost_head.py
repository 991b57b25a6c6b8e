"""A lost head: the process that drives a run, and the cluster that it started, are killed in the middle of a round.

What is left is the checkpoint. The same call on a fresh cluster ends in the bits of a run that nobody disturbed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("safetensors")
pytestmark = pytest.mark.slow
needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are listed in /proc only")

DRIVER = """
import sys, time
import numpy as np
import stea_fast as sf
from stea_fast._executors.crew import CrewSession
import stea_fast.refinement.shard as shard

kind, folder, out, killed = sys.argv[1:]
shard.EDGES_PER_SHARD = 700
pair = sf.synthetic_pair(num_entities=300, seed=3, seed_fraction=0.1, profile="dbp1m")
executor = {"none": lambda: None, "processes": lambda: sf.ProcessExecutor(2),
            "ray": lambda: sf.RayExecutor("local", workers=2)}[kind]()
plain, rounds, weighed = CrewSession.map, [], []

def stopping(session, method, *common, **options):
    weighed.append(method == "weigh" and len(rounds) == 1)
    if sum(weighed) == 2:  # the second sweep of the second round
        print("in the middle", flush=True)
        time.sleep(600)
    return plain(session, method, *common, **options)

if killed == "yes":
    CrewSession.map = stopping
run = sf.SelfTraining(pair, preset="fast", rounds=2, executor=executor, callbacks=[rounds.append],
                      checkpoint=folder or None, progress=False)
result = run.run()
np.savez(out, pairs=result.pairs, probs=result.pair_probs, forward=result.refinement.forward.probs,
         indices=result.refinement.forward.indices, backward=result.refinement.backward.probs)
print("rounds told:", *[record.number for record in rounds], flush=True)
if executor is not None:
    executor.close()
"""


def start(kind, checkpoint, out, killed, home):
    # As many threads as a worker has; Ray writes below the home folder.
    threads = dict.fromkeys(("STEA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    where = os.pathsep.join(path or os.getcwd() for path in sys.path)
    environment = {**os.environ, **threads, "HOME": str(home), "PYTHONPATH": where}
    command = [sys.executable, "-c", DRIVER, kind, str(checkpoint), str(out), killed]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def finished(kind, checkpoint, out, home):
    """The arrays of a run that nobody disturbs, and which rounds it made."""
    process = start(kind, checkpoint, out, "no", home)
    text, _ = process.communicate(timeout=300)
    assert process.returncode == 0
    rounds = next(line for line in text.splitlines() if line.startswith("rounds told:"))
    return dict(np.load(out)), [int(number) for number in rounds.split()[2:]]


def descendants(process):
    """The ids of a process and of all that it has started: with Ray, the whole cluster."""
    children = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended
            parent = int(stat.read_text(encoding="utf-8").rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(stat.parent.name))
    found = [process.pid]
    for pid in found:
        found += children.get(pid, [])
    return found


def is_gone(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


@needs_proc
@pytest.mark.parametrize("kind", ["processes", "ray"])
def test_a_run_whose_head_is_killed_resumes_to_the_same_bits(kind, tmp_path):
    if kind == "ray":
        pytest.importorskip("ray", reason="the executor of a cluster needs Ray")
    expected, rounds = finished("none", "", tmp_path / "expected.npz", tmp_path)
    assert rounds == [0, 1, 2]
    checkpoint = tmp_path / "run"
    driver = start(kind, checkpoint, tmp_path / "never.npz", "yes", tmp_path)
    while (line := driver.stdout.readline()) != "in the middle\n":
        assert line, "the driver ended before it could be killed"
    lost = descendants(driver)
    assert len(lost) >= 3, "the driver and two workers"
    for pid in lost:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    driver.communicate()
    end = time.monotonic() + 30
    while not all(map(is_gone, lost)):
        assert time.monotonic() < end, "something of the cluster is still there"
        time.sleep(0.1)
    assert not (tmp_path / "never.npz").exists() and any(checkpoint.iterdir())
    found, rounds = finished(kind, checkpoint, tmp_path / "found.npz", tmp_path)
    assert rounds == [1, 2], "the first round is in the checkpoint"
    for name, array in expected.items():
        assert found[name].dtype == array.dtype and found[name].tobytes() == array.tobytes(), name
