"""Inputs in a child process that may crash, hang or eat memory without harm to anybody else.

Each child has an end of memory and an alarm that ends it, also inside a library. Before each input it notes the number
in memory that it shares with its parent, who thus knows which input ended it, and goes on behind that one.
"""

from __future__ import annotations

import faulthandler
import json
import mmap
import os
import random
import resource
import shutil
import signal
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from fuzz_contract import MEMORY, SECONDS, is_ours
from fuzz_mutations import Files, mutated
from fuzz_targets import Target

BATCH = 500  # inputs of one child
SHARED = Path("/dev/shm")  # in memory, where there is such a folder
ALARMS = (signal.SIGPROF, signal.SIGALRM)
PATIENCE = 12  # a machine may be busy with other things


@dataclass(frozen=True)
class Failure:
    """An input that broke the contract."""

    target: str
    number: int
    what: str


@dataclass
class Tally:
    """What became of the inputs of a target."""

    inputs: int = 0
    refused: int = 0
    seconds: float = 0.0
    failures: list[Failure] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        """Add another one to it."""
        self.inputs += other.inputs
        self.refused += other.refused
        self.seconds += other.seconds
        self.failures += other.failures


def make_input(target: Target, seed: int, number: int) -> Files:
    """The input of this number."""
    return mutated(target.seeds(), random.Random(f"{target.name} {seed} {number}"))


def run(target: Target, seed: int, begin: int, end: int, *, seconds: float = SECONDS, memory: int = MEMORY) -> Tally:
    """Read the inputs [begin, end) of a target."""
    target.seeds()  # once, and not in every child
    tally = Tally()
    started = time.monotonic()
    with _folder() as folder:
        while begin < end:
            stop = min(begin + BATCH, end)
            begin = _run_batch(target, lambda number: make_input(target, seed, number), begin, stop, folder, tally,
                               seconds, memory)  # fmt: skip
    tally.seconds = time.monotonic() - started
    return tally


def replay(target: Target, files: Files, *, seconds: float = SECONDS, memory: int = MEMORY) -> str | None:
    """What an input does wrong, if anything."""
    tally = Tally()
    with _folder() as folder:
        _run_batch(target, lambda number: files, 0, 1, folder, tally, seconds, memory)
    return tally.failures[0].what if tally.failures else None


class _folder:  # noqa: N801
    """A temporary folder, in memory if that is possible."""

    def __enter__(self) -> Path:
        self.path = Path(tempfile.mkdtemp(prefix="stea-fuzz-", dir=SHARED if os.access(SHARED, os.W_OK) else None))
        return self.path

    def __exit__(self, *error: object) -> None:
        shutil.rmtree(self.path, ignore_errors=True)


def _run_batch(
    target: Target, input_of: Callable[[int], Files], begin: int, end: int, folder: Path, tally: Tally, seconds: float,
    memory: int,
) -> int:  # fmt: skip
    """Read the inputs [begin, end) in a child; returns the number with which to go on."""
    current = mmap.mmap(-1, 8)
    report = folder / "report"
    child = os.fork()
    if child == 0:
        try:
            _limit_memory(memory)
            with report.open("w", encoding="utf-8") as stream:
                for number in range(begin, end):
                    current[:8] = number.to_bytes(8, "little")
                    line = _read(target, input_of(number), folder / "input", seconds)
                    if line is not None:
                        stream.write(json.dumps([number, line]) + "\n")
                        stream.flush()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    last = int.from_bytes(current[:8], "little") if status else end - 1
    for number, what in _lines(report):
        if what:
            tally.failures.append(Failure(target.name, number, what))
        else:
            tally.refused += 1
    if status:
        tally.failures.append(Failure(target.name, last, _ending(status, seconds)))
    tally.inputs += last + 1 - begin
    shutil.rmtree(folder / "input", ignore_errors=True)
    return last + 1


def put(files: Files, folder: Path) -> None:
    """Write the files of an input, in the place of those of the one before."""
    os.makedirs(folder, exist_ok=True)
    for name in set(os.listdir(folder)) - files.keys():
        os.unlink(folder / name)
    for name, content in files.items():
        with open(folder / name, "wb") as stream:
            stream.write(content)


def _read(target: Target, files: Files, folder: Path, seconds: float) -> str | None:
    """None for an input that was read, "" for one that was refused, and else what went wrong."""
    put(files, folder)
    _set_alarms(seconds)
    try:
        target.read(folder)
    except BaseException as error:
        if is_ours(error):
            return ""
        place = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__}: {error!s:.300} ({Path(place.filename).name}:{place.lineno})"
    finally:
        _set_alarms(0)
    return None


def _set_alarms(seconds: float) -> None:
    """After so much time of the processor, or many times as much for somebody who waits, the child is ended.

    There is no handler: the alarm ends it wherever it is, also inside a library.
    """
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE * seconds)


def _limit_memory(memory: int) -> None:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    limit = pages * resource.getpagesize() + memory
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    faulthandler.disable()  # the parent says what happened
    for alarm in ALARMS:
        signal.signal(alarm, signal.SIG_DFL)


def _lines(report: Path) -> Iterator[tuple[int, str]]:
    if report.exists():
        for line in report.read_text(encoding="utf-8").splitlines():
            number, what = json.loads(line)
            yield number, what
        report.unlink()


def _ending(status: int, seconds: float) -> str:
    if not os.WIFSIGNALED(status):
        return f"ended with code {os.waitstatus_to_exitcode(status)}"
    number = os.WTERMSIG(status)
    return f"hangs: more than {seconds:g} s" if number in ALARMS else f"crash: {signal.Signals(number).name}"
