"""The executor of worker processes on this machine: arrays go to them as mapped files, once for all."""

from __future__ import annotations

import errno
import itertools
import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from stea_fast._executors import messages
from stea_fast._executors.base import ExecutorError
from stea_fast._executors.crew import CrewExecutor, Loss
from stea_fast._util import disk, locks, validate
from stea_fast._util.threads import thread_count

MEMORY = Path("/dev/shm")
FOLDER = "stea-fast-workers-"
LEAST_MEMORY = 1 << 30  # free there, to use it


class Packed:
    """Arguments in a file, which goes when nobody needs it any more."""

    def __init__(self, value: Any, path: Path) -> None:
        self.path = path
        _write(value, path)
        weakref.finalize(self, path.unlink, missing_ok=True)


class Worker:
    """A worker process, and the answers that it owes."""

    def __init__(self, n_threads: int) -> None:
        count = str(n_threads)
        where = os.pathsep.join(path or os.getcwd() for path in sys.path)  # the modules of this process are theirs
        threads = {"STEA_NUM_THREADS": count, "OMP_NUM_THREADS": count, "OPENBLAS_NUM_THREADS": count}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "stea_fast._executors.process_worker", count],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, **threads, "PYTHONPATH": where},
        )  # fmt: skip

    def send(self, line: str) -> None:
        """A request; that the worker is gone is noticed when its answer is read."""
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):
            print(line, file=self.process.stdin, flush=True)

    def end(self) -> None:
        """End it, whatever it does."""
        self.process.kill()
        self.process.communicate()


class ProcessCrew:
    """The worker processes of an executor, started when they are needed."""

    def __init__(self, count: int, threads: int, folder: str | Path | None) -> None:
        self.count, self.threads = count, threads
        self.folder, lock = _own_folder(_place(folder))
        self.names = itertools.count()
        self.crew: list[Worker] = []
        self._ended = weakref.finalize(self, _end, self.crew, self.folder, lock)

    def close(self) -> None:
        """End the processes, and remove their files."""
        self._ended()

    def workers(self) -> list[Worker]:
        """As many as there should be."""
        if not self._ended.alive:
            raise ExecutorError("this executor is closed: make another one")
        while len(self.crew) < self.count:
            self.crew.append(Worker(self.threads))
        return list(self.crew)

    def packed(self, common: Sequence[Any]) -> Packed:
        """Arguments in a file that all workers map."""
        return Packed(tuple(common), self._path())

    def _path(self) -> Path:
        return self.folder / f"{next(self.names)}.message"

    def ask(self, worker: Worker, request: str, *arguments: Any) -> tuple[Worker, Path]:
        """Write a request, and tell the worker where it is."""
        shared = [(str(i), str(given.path)) for i, given in enumerate(arguments) if isinstance(given, Packed)]
        own = [given for given in arguments if not isinstance(given, Packed)]
        path, answer = self._path(), self._path()
        _write((request, *own), path)
        worker.send("\t".join([str(path), str(answer), *itertools.chain(*shared)]))
        return worker, answer

    def answers(self, pending: Sequence[tuple[Worker, Path]]) -> Iterator[tuple[int, Any]]:
        """As they come; the files of requests and answers are removed."""
        known = 0
        with selectors.DefaultSelector() as selector:
            while known < len(pending) or selector.get_map():
                for worker, _ in pending[known:]:
                    assert worker.process.stdout is not None
                    selector.register(worker.process.stdout, selectors.EVENT_READ, known)
                    known += 1
                key, _ = selector.select()[0]
                selector.unregister(key.fileobj)
                worker, path = pending[key.data]
                yield key.data, _answer(worker, path)

    def has(self, worker: Worker) -> bool:
        """Whether it was neither lost nor ended."""
        return worker in self.crew

    def discard(self, worker: Worker) -> None:
        """Do without a worker; another is started when workers are needed."""
        if worker in self.crew:
            self.crew.remove(worker)
            worker.end()

    def abandon(self) -> None:
        """End all workers: they may be in the middle of what nobody waits for."""
        while self.crew:
            self.crew.pop().end()


class ProcessExecutor(CrewExecutor):
    """Run heavy work in worker processes on this machine.

    Results are those of one process, to the bit. On one machine threads are as fast and need less memory; processes are
    for what threads cannot share, and to try out on one machine what a cluster does.

    Args:
        workers: The number of processes; the default, None, starts one for every `threads` CPUs.
        threads: The number of threads of every process.
        folder: Where arrays lie that processes share; the default, None, takes the memory of `/dev/shm` if there is
            room, and a folder for temporary files otherwise.

    Raises:
        ValueError: A number is not positive.
        TypeError: A number is not whole.

    Example:
        >>> import stea_fast as sf
        >>> pair = sf.synthetic_pair(num_entities=200, seed=0)
        >>> here = sf.refine(sf.demo.candidates(pair), pair.kg1, pair.kg2, seeds=pair.train)
        >>> with sf.ProcessExecutor(workers=2) as executor:
        ...     there = sf.refine(sf.demo.candidates(pair), pair.kg1, pair.kg2, seeds=pair.train, executor=executor)
        >>> bool((here.forward.probs == there.forward.probs).all())
        True
    """

    def __init__(self, workers: int | None = None, *, threads: int = 1, folder: str | Path | None = None) -> None:
        validate.count(threads, "threads", minimum=1, maximum=1024)
        usual = max(1, thread_count(None) // threads)
        count = usual if workers is None else validate.count(workers, "workers", minimum=1, maximum=1024)
        super().__init__(ProcessCrew(count, threads, folder))


def _answer(worker: Worker, path: Path) -> Any:
    assert worker.process.stdout is not None
    line = worker.process.stdout.readline()
    if not line:
        return Loss(_end_of(worker.process))
    well, result = messages.read(path)
    path.unlink()
    if well:
        return result
    error, trace = result
    if isinstance(error, MemoryError):
        raise ExecutorError(
            "a worker process ran out of memory: use fewer workers, or a machine with more memory. The last checkpoint "
            "is whole: the same call continues from it"
        ) from error
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        raise _full(path.parent) from error
    raise error from RuntimeError(f"in a worker process:\n{trace}")


def _end_of(process: subprocess.Popen[str]) -> str:
    code = process.wait()
    if code == -signal.SIGKILL:
        return "it was killed, as the system does when memory runs out"
    return f"it was ended by signal {-code}" if code < 0 else f"it ended with code {code}"


def _write(value: Any, path: Path) -> None:
    try:
        messages.write(value, path)
    except OSError as error:
        path.unlink(missing_ok=True)
        raise (_full(path.parent) if error.errno == errno.ENOSPC else _unwritable(path, error)) from error
    except (AttributeError, TypeError) as error:  # what pickle says of functions within functions
        raise ExecutorError(
            f"something that was given cannot be sent to another process: {error}. A function that scores pairs must "
            "be one of a module, or an object of a class of a module"
        ) from error


def _full(folder: Path) -> ExecutorError:
    return ExecutorError(
        f"there is no room for arrays in {folder.parent}: make room, or give ProcessExecutor a folder= on a larger "
        "disk. The last checkpoint is whole: the same call continues from it"
    )


def _unwritable(path: Path, error: OSError) -> ExecutorError:
    return ExecutorError(f"cannot write {path}, which is for the worker processes: {error.strerror or error}")


def _own_folder(place: Path) -> tuple[Path, int]:
    """A new folder, and the descriptor that locks it; those of processes that were killed are removed."""
    for left in place.glob(f"{FOLDER}*"):
        with suppress(OSError):  # it is in use, or somebody else's
            descriptor = disk.open_path(left, os.O_RDONLY)
            try:
                locks.lock(descriptor)
                shutil.rmtree(left, ignore_errors=True)
            finally:
                os.close(descriptor)
    made = Path(tempfile.mkdtemp(prefix="new-stea-fast-", dir=place))
    descriptor = disk.open_path(made, os.O_RDONLY)
    with suppress(locks.LocksNotOfferedError):  # then nobody else can lock it, either
        locks.lock(descriptor)
    own = place / made.name.replace("new-stea-fast-", FOLDER)  # only now others look at it
    disk.rename(made, own)
    return own, descriptor


def _place(folder: str | Path | None) -> Path:
    if folder is not None:
        return Path(folder)
    room = MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free >= LEAST_MEMORY
    return MEMORY if room else Path(tempfile.gettempdir())


def _end(crew: list[Worker], folder: Path, lock: int) -> None:
    while crew:
        crew.pop().end()
    shutil.rmtree(folder, ignore_errors=True)
    os.close(lock)
