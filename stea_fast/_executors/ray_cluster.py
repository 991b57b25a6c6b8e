"""The executor of a Ray cluster: workers are actors, and what all of them read is in the store of a machine once."""

from __future__ import annotations

import logging
import os
import socket
import weakref
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from stea_fast._executors.base import ExecutorError
from stea_fast._executors.crew import CrewExecutor, Loss
from stea_fast._executors.ray_nodes import check_nodes, worker_class
from stea_fast._util import validate

PORT = 6379
SECONDS_TO_ANSWER = 5.0
SECONDS_TO_START = 60.0
logger = logging.getLogger("stea_fast")


class RayCrew:
    """The actors of an executor, started when they are needed."""

    def __init__(self, ray: Any, count: int, threads: int, own: bool) -> None:
        self.ray, self.count, self.threads = ray, count, threads
        self.crew: list[Any] = []
        self.stored: dict[int, tuple[Any, Any]] = {}
        self._ended = weakref.finalize(self, _end, self.ray, self.crew, self.stored, own)

    def close(self) -> None:
        """End the workers; Ray itself only if this executor started it."""
        self._ended()

    def workers(self) -> list[Any]:
        """As many as there should be or, where the cluster has become smaller, as many as there can be."""
        if not self._ended.alive:
            raise ExecutorError("this executor is closed: make another one")
        missing = self.count - len(self.crew)
        started = [worker_class(self.ray, self.threads).remote(self.threads) for _ in range(missing)]
        ready = {worker.ready.remote(): worker for worker in started}
        # Where there are workers already, the parts need not wait for a machine that may never come back.
        seconds = SECONDS_TO_START if not self.crew else SECONDS_TO_ANSWER
        there, pending = self.ray.wait(list(ready), num_returns=missing, timeout=seconds) if ready else ([], [])
        self.crew += [ready[reference] for reference in ready if reference in set(there)]
        for reference in pending:
            self.ray.kill(ready[reference])
        if not self.crew:
            raise ExecutorError(
                f"no worker has started within {SECONDS_TO_START:.0f} seconds: the cluster has no free CPUs; see "
                "`ray status`. The last checkpoint is whole: the same call continues from it"
            )
        if pending:
            logger.warning("%d of %d workers could not be started: the others do their part", len(pending), self.count)
        return list(self.crew)

    def packed(self, common: Sequence[Any]) -> list[Any]:
        """References to objects of the store; what has been stored before, and is still there, is not stored again."""
        with _explained(self.ray):
            return [self._stored(value) for value in common]

    def _stored(self, value: Any) -> Any:
        kept = self.stored.get(id(value))
        if kept is not None and kept[0]() is value:
            return kept[1]
        reference = self.ray.put(value)
        key = id(value)
        with suppress(TypeError):  # numbers, tuples and None cannot be watched
            self.stored[key] = weakref.ref(value, lambda _: self.stored.pop(key, None)), reference
        return reference

    def ask(self, worker: Any, request: str, *arguments: Any) -> Any:
        """Call the actor; what all workers are given goes as references."""
        return getattr(worker, request).remote(*arguments)

    def answers(self, pending: Sequence[Any]) -> Iterator[tuple[int, Any]]:
        """As they come."""
        numbers: dict[Any, int] = {}
        waiting: list[Any] = []
        while len(numbers) < len(pending) or waiting:
            for reference in pending[len(numbers) :]:
                numbers[reference] = len(numbers)
                waiting.append(reference)
            ready, waiting = self.ray.wait(waiting, num_returns=1)
            yield numbers[ready[0]], self._answer(ready[0])

    def _answer(self, reference: Any) -> Any:
        errors = self.ray.exceptions
        with _explained(self.ray):
            try:
                return self.ray.get(reference)
            except (errors.RayActorError, errors.NodeDiedError, errors.WorkerCrashedError, errors.ObjectLostError) as e:
                return Loss(" ".join(str(e).split())[:200])
            except errors.RayTaskError as error:
                raise error.cause if isinstance(error.cause, Exception) else error from error

    def has(self, worker: Any) -> bool:
        """Whether it was neither lost nor ended."""
        return worker in self.crew

    def discard(self, worker: Any) -> None:
        """Do without a worker; another is started when workers are needed."""
        if worker in self.crew:
            self.crew.remove(worker)
            self.ray.kill(worker)

    def abandon(self) -> None:
        """End all workers: they may be in the middle of what nobody waits for."""
        for worker in list(self.crew):
            self.discard(worker)


class RayExecutor(CrewExecutor):
    """Run heavy work on a Ray cluster, one machine or many.

    Results are those of one process, to the bit, however many workers there are. A worker or machine that is lost in
    the middle of a sweep is replaced, and the sweep begins anew.

    Args:
        address: "auto" for the cluster that this machine belongs to, "host:port" of the head of another one, or "local"
            to start Ray on this machine alone. If this process is connected to Ray already, that cluster is used.
        workers: The number of workers; the default, None, takes as many as the cluster has CPUs for.
        threads: The number of threads, and CPUs, of every worker.

    Raises:
        ModuleNotFoundError: Ray is not installed; the message says how to install it.
        ExecutorError: Nobody answers at the address, or a machine of the cluster has no stea-fast or another version.
        ValueError: A number is not positive.
        TypeError: An argument is of the wrong type.

    Example:
        >>> import stea_fast as sf
        >>> try:
        ...     sf.RayExecutor("127.0.0.1:1")
        ... except Exception as error:
        ...     print(type(error).__name__)
        ExecutorError
    """

    def __init__(self, address: str = "auto", *, workers: int | None = None, threads: int = 1) -> None:
        threads = validate.count(threads, "threads", minimum=1, maximum=1024)
        if not isinstance(address, str):
            raise TypeError(f"address must be 'auto', 'local' or 'host:port', got {type(address).__name__}")
        if workers is not None:
            validate.count(workers, "workers", minimum=1, maximum=10_000)
        ray = _imported()
        own = _connect(ray, address)
        check_nodes(ray)
        cpus = int(ray.cluster_resources().get("CPU", 1)) // threads
        count = max(1, cpus) if workers is None else workers
        if workers is not None and workers > max(cpus, 1):
            raise ExecutorError(
                f"the cluster has {cpus * threads} CPUs, too few for {workers} workers of {threads} threads: "
                "add machines by `ray start --address=...`, or ask for fewer"
            )
        super().__init__(RayCrew(ray, count, threads, own))


class _explained:  # noqa: N801 - a context manager
    """Turns what Ray says of full stores and disks into what to do about it."""

    def __init__(self, ray: Any) -> None:
        self.ray = ray

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        errors = self.ray.exceptions
        found = getattr(error, "cause", None) if isinstance(error, errors.RayTaskError) else error
        advice = None
        if isinstance(found, errors.OutOfDiskError):
            advice = "the disk to which Ray spills objects is full: make room in its temporary folder (`ray start " \
                "--temp-dir=...`), or give the store more memory"  # fmt: skip
        elif isinstance(found, errors.ObjectStoreFullError):
            advice = "Ray's object store is too small: start the machines with `ray start --object-store-memory=BYTES`"
        elif isinstance(found, (errors.OutOfMemoryError, MemoryError)):
            advice = "a worker ran out of memory: use fewer workers on a machine, or machines with more memory"
        if advice is not None:
            message = f"{advice}. The last checkpoint is whole: the same call continues from it ({found})"
            raise ExecutorError(message) from error


def _imported() -> Any:
    try:
        import ray
        import ray.exceptions
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"a cluster needs Ray: pip install 'stea-fast[ray]' ({error})") from None
    return ray


def _connect(ray: Any, address: str) -> bool:
    """Connect this process to the cluster; returns whether that was done here."""
    if ray.is_initialized():
        return False
    if address not in ("auto", "local"):
        _check_answers(address)
    try:
        ray.init(address=address, log_to_driver=False, logging_level="error", include_dashboard=False)
    except (ConnectionError, RuntimeError, ValueError) as error:
        where = "this machine belongs to no cluster" if address == "auto" else f"{address} is no head of a cluster"
        raise ExecutorError(
            f"{where}: start one by `ray start --head` and `ray start --address=HEAD:{PORT}` on the other machines, or "
            f"use 'local' ({error})"
        ) from error
    return True


def _check_answers(address: str) -> None:
    """Ray itself would try for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=SECONDS_TO_ANSWER) as connection:
            speaks = os.environ.get("RAY_USE_TLS") == "1" or _speaks_http2(connection)
    except (OSError, ValueError) as error:
        raise ExecutorError(
            f"nobody answers at {address} ({error}): the address is that of the head, host:{PORT} as a rule; "
            "`ray start --head` prints it"
        ) from error
    if not speaks:
        raise ExecutorError(
            f"what answers at {address} is no head of a Ray cluster: its address has the port {PORT} as a rule, and "
            "`ray start --head` prints it"
        )


def _speaks_http2(connection: socket.socket) -> bool:
    """Whether the other side begins as a server of HTTP/2 must, which a head of Ray is: with its settings."""
    connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]))
    answer = b""
    try:
        while len(answer) < 4 and (more := connection.recv(9)):
            answer += more
    except TimeoutError:
        return False
    return len(answer) >= 4 and answer[3] == 4


def _end(ray: Any, crew: list[Any], stored: dict[int, Any], own: bool) -> None:
    if not ray.is_initialized():
        return
    for worker in crew:
        ray.kill(worker)
    crew.clear()
    stored.clear()
    if own:
        ray.shutdown()
