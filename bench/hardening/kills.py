"""Kill processes that write, at random moments, and look at what is left.

python -m bench.hardening.kills [--kills 200] [--seed 0] [--rows 2000] [--only NAME]

Every process writes one thing over and over, each time with another content, and is ended by SIGKILL, which gives it no
chance to tidy up. Afterwards the last content that was finished must be there, or the next one, whole; and when it has
been written once more, nothing else may be left. The kills go round all writers: graphs, checkpoints, links, relations,
reports, converted graphs, compiled kernels, and the cells of the experiments.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from time import perf_counter, sleep

import numpy as np

from bench.hardening.writers import Writer, things_in, writers

PRELOADED = ["bench.hardening.writers", "pyarrow.feather", "pyarrow.parquet", "pyoxigraph", "zstandard"]


def write_forever(name: str, folder: Path, first: int, rows: int, channel: Connection) -> None:
    """Write content after content, and say of each that it is finished."""
    writer = writers()[name]
    number = first
    while True:
        writer.write(folder, number, rows)
        channel.send(number)
        number += 1


def kill_once(writer: Writer, folder: Path, rows: int, seconds: float) -> tuple[str | None, bool]:
    """Kill a process that writes so many seconds after its first content was finished.

    Returns what is wrong, or None, and whether the process left something that the next one had to remove.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    receiving, sending = context.Pipe(duplex=False)
    number = writer.read(folder)
    first = 0 if number is None else number + 1
    process = context.Process(target=write_forever, args=(writer.name, folder, first, rows, sending), daemon=True)
    process.start()
    sending.close()
    finished = receiving.recv()
    sleep(seconds)
    process.kill()
    process.join()
    with suppress(EOFError, OSError):  # what it said before it was killed; the last word may be cut off
        while True:
            finished = receiving.recv()
    try:
        return _look(writer, folder, rows, finished)
    except (AssertionError, ValueError, OSError, RuntimeError, IndexError) as error:
        return f"{type(error).__name__}: {error}", True


def _look(writer: Writer, folder: Path, rows: int, finished: int) -> tuple[str | None, bool]:
    there = writer.read(folder)
    if there not in (finished, finished + 1, finished + 2):  # its last word may not have been heard
        return f"content {finished} was finished, but {there} is there", True
    before = things_in(folder, writer)
    writer.write(folder, there + 1, rows)
    if writer.read(folder) != there + 1:
        return f"content {there + 1} could not be written after a kill", True
    clean = _clean(writer, rows)
    after = things_in(folder, writer)
    return (None if after == clean else f"left behind: {sorted(set(after) - set(clean)) or after}"), before != clean


def _clean(writer: Writer, rows: int) -> list[str]:
    """What is there when nobody was killed."""
    with tempfile.TemporaryDirectory() as name:
        for number in range(2):
            writer.write(Path(name), number, rows)
        return things_in(Path(name), writer)


def kill_all(
    names: Sequence[str], kills: int, *, seed: int, rows: int, folder: Path, show: Callable[[str], object] = print
) -> list[str]:
    """Kill each writer in turn; what went wrong."""
    random = np.random.default_rng(seed)
    table = writers()
    wrong, messy = [], dict.fromkeys(names, 0)
    seconds = {name: _seconds_of_a_write(table[name], rows) for name in names}
    for kill in range(kills):
        name = names[kill % len(names)]
        place = folder / str(names.index(name))
        place.mkdir(parents=True, exist_ok=True)
        fault, left = kill_once(table[name], place, rows, random.uniform(0, 2 * seconds[name]))
        messy[name] += left
        if fault is not None:
            wrong.append(f"{name}, kill {kill + 1}: {fault}")
            show(wrong[-1])
    for number, name in enumerate(names):
        times = len(range(number, kills, len(names)))
        show(f"{name:20} {times:3} kills, {messy[name]:3} of them with something left for the next one to remove")
    return wrong


def _seconds_of_a_write(writer: Writer, rows: int) -> float:
    with tempfile.TemporaryDirectory() as name:
        writer.write(Path(name), 0, rows)
        begin = perf_counter()
        writer.write(Path(name), 1, rows)
        return perf_counter() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    parser.add_argument("--rows", type=int, default=2000, help="of every content")
    parser.add_argument("--only", metavar="NAME", help="writers with this in their name")
    given = parser.parse_args()
    names = [name for name in writers() if not given.only or given.only in name]
    if not names:
        sys.exit(f"no writer has {given.only} in its name: {', '.join(writers())}")
    begin = perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        wrong = kill_all(names, given.kills, seed=given.seed, rows=given.rows, folder=Path(folder))
    print(f"{given.kills} kills of {len(names)} writers in {perf_counter() - begin:.0f} s: {len(wrong)} went wrong")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
