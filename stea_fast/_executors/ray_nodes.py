"""The machines of a Ray cluster: whether they have this package, and the actor that works on them."""

from __future__ import annotations

import platform
from collections.abc import Callable
from typing import Any

from stea_fast import __version__
from stea_fast._executors.base import ExecutorError

SECONDS_TO_LOOK = 60.0


def check_nodes(ray: Any) -> None:
    """Every machine must have this version of the package, and answer."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    nodes = {node["NodeID"]: node["NodeManagerAddress"] for node in ray.nodes() if node["Alive"]}
    probe = ray.remote(num_cpus=0, max_retries=0)(_probe())
    asked = {
        probe.options(scheduling_strategy=NodeAffinitySchedulingStrategy(identity, soft=False)).remote(): address
        for identity, address in nodes.items()
    }
    ready, silent = ray.wait(list(asked), num_returns=len(asked), timeout=SECONDS_TO_LOOK)
    if silent:
        raise ExecutorError(f"the machine {asked[silent[0]]} of the cluster does not answer: see `ray status`")
    for reference in ready:
        check_version(asked[reference], ray.get(reference))


def _probe() -> Callable[[], str]:
    """A function without a module of its own, so that it arrives where this package is not."""

    def version() -> str:
        try:
            import stea_fast
        except ModuleNotFoundError:
            return ""
        return str(stea_fast.__version__)

    return version


def check_version(address: str, version: str) -> None:
    """Workers of another version would compute something else."""
    if version == __version__:
        return
    found = f"stea-fast {version}" if version else "no stea-fast"
    raise ExecutorError(
        f"the machine {address} of the cluster has {found}, but this process has {__version__}: run "
        f"`pip install 'stea-fast[ray]=={__version__}'` there, in the Python {platform.python_version()} of its Ray"
    )


def worker_class(ray: Any, threads: int) -> Any:
    """The actor of a worker with this many CPUs, spread over the machines."""
    from stea_fast._executors.host import Host

    class Worker(Host):
        """The objects of some parts; arguments that were references arrive as what they refer to."""

        def ready(self) -> bool:
            return True

        def make(self, session: str, make: Any, parts: Any, common: Any) -> None:
            super().make(session, make, parts, ray_get(common))

        def call(self, session: str, method: str, common: Any, each: Any) -> Any:
            return super().call(session, method, ray_get(common), each)

        def run(self, work: Any, part: Any, common: Any) -> Any:
            return super().run(work, part, ray_get(common))

    def ray_get(references: list[Any]) -> list[Any]:
        import ray

        return list(ray.get(references))

    options = {"num_cpus": threads, "max_restarts": 0, "max_task_retries": 0, "scheduling_strategy": "SPREAD"}
    count = str(threads)
    environment = {"STEA_NUM_THREADS": count, "OMP_NUM_THREADS": count, "OPENBLAS_NUM_THREADS": count}
    return ray.remote(**options, runtime_env={"env_vars": environment})(Worker)
