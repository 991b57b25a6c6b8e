"""The executor of a Ray cluster: the contract of all executors, lost machines, and clusters that cannot be used."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from test_executors import ExecutorContract, assert_same_bits, refined
from test_shortages import WithoutMemory, WithoutSpillDisk, WithoutStore, check_shortage

import stea_fast as sf
from stea_fast._executors import ray_cluster, ray_nodes
from stea_fast._executors.base import ExecutorError

pytestmark = pytest.mark.slow
ray = pytest.importorskip("ray", reason="the executor of a cluster needs Ray")


@pytest.fixture(scope="module", autouse=True)
def home(tmp_path_factory):
    """Ray writes below the home folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
        patch.setenv("PYTHONPATH", ":".join(path or "." for path in sys.path))  # machines import what tests do
        patch.setenv("STEA_TEST_DEATH", str(tmp_path_factory.mktemp("death") / "died"))  # before workers start
        yield


@pytest.fixture(scope="module")
def pair():
    return sf.synthetic_pair(num_entities=300, seed=3, seed_fraction=0.1)


@pytest.fixture(autouse=True)
def small_shards(monkeypatch):
    monkeypatch.setattr("stea_fast.refinement.shard.EDGES_PER_SHARD", 700)


class TestRay(ExecutorContract):
    @pytest.fixture(scope="class", autouse=True)
    @staticmethod
    def cluster(home):
        ray.init(num_cpus=3, include_dashboard=False, object_store_memory=200_000_000, log_to_driver=False)
        yield
        ray.shutdown()

    @staticmethod
    def executor(workers):
        return sf.RayExecutor(workers=workers)

    @staticmethod
    def marker(monkeypatch, tmp_path):
        return Path(os.environ["STEA_TEST_DEATH"])

    def test_more_workers_than_cpus_are_refused(self):
        with pytest.raises(ExecutorError, match="3 CPUs, too few for 9 workers"):
            sf.RayExecutor(workers=9)

    @pytest.mark.parametrize(
        ("shard", "advice"),
        [
            (WithoutMemory, "a worker ran out of memory: use fewer workers"),
            (WithoutStore, "object store is too small"),
            (WithoutSpillDisk, "make room in its temporary folder"),
        ],
    )
    def test_workers_that_run_out_of_something(self, shard, advice, tmp_path, monkeypatch):
        check_shortage(lambda: sf.RayExecutor(workers=1), shard, advice, tmp_path, monkeypatch)

    def test_what_is_given_again_is_stored_once(self, pair):
        with sf.RayExecutor(workers=1) as executor:
            refined(pair, executor)
            first = {id(pair.kg1), id(pair.kg2)} & set(executor.crew.stored)
            references = [executor.crew.stored[key][1] for key in sorted(first)]
            refined(pair, executor)
            assert len(first) == 2 and [executor.crew.stored[key][1] for key in sorted(first)] == references

    def test_other_versions_are_refused(self, monkeypatch):
        monkeypatch.setattr(ray_nodes, "__version__", "99.0")
        with pytest.raises(ExecutorError, match=r"has stea-fast .*, but this process has 99\.0: run `pip install"):
            sf.RayExecutor(workers=1)
        with pytest.raises(ExecutorError, match=r"10\.0\.0\.7 of the cluster has no stea-fast"):
            ray_nodes.check_version("10.0.0.7", "")

    @pytest.mark.parametrize(
        ("error", "advice"),
        [
            ("ObjectStoreFullError", "--object-store-memory"),
            ("OutOfDiskError", "make room in its temporary folder"),
            ("OutOfMemoryError", "fewer workers on a machine"),
        ],
    )
    def test_full_stores_and_disks_are_said_with_advice(self, error, advice):
        with pytest.raises(ExecutorError, match=f"{advice}.*checkpoint is whole"), ray_cluster._explained(ray):
            raise getattr(ray.exceptions, error)("full")


def test_a_machine_that_dies_in_a_sweep_changes_no_bit(pair, monkeypatch, tmp_path):
    """Three machines; the one that has the first shard is killed in the middle of the third sweep."""
    from ray.cluster_utils import Cluster

    cluster = Cluster()
    head = cluster.add_node(num_cpus=0, object_store_memory=150_000_000, include_dashboard=False)
    others = [cluster.add_node(num_cpus=1, object_store_memory=150_000_000) for _ in range(3)]
    cluster.wait_for_nodes()
    calls = []

    try:
        with sf.RayExecutor(head.address, workers=3) as executor:
            from stea_fast._executors.crew import CrewSession

            plain = CrewSession.map

            def killing(session, method, *common, **options):
                calls.append(method)
                if method == "weigh" and calls.count("weigh") == 3:
                    cluster.remove_node(others[1], allow_graceful=False)
                return plain(session, method, *common, **options)

            monkeypatch.setattr(CrewSession, "map", killing)
            found = refined(pair, executor)
            assert "restore" in calls
    finally:
        ray.shutdown()
        cluster.shutdown()
    assert_same_bits(found, refined(pair))


def test_an_address_that_nobody_answers_at_is_said_at_once():
    with pytest.raises(ExecutorError, match=r"nobody answers at 127\.0\.0\.1:1 .*`ray start --head` prints it"):
        sf.RayExecutor("127.0.0.1:1")
    with pytest.raises(ExecutorError, match="nobody answers at nonsense"):
        sf.RayExecutor("nonsense")
    with pytest.raises(TypeError, match="address"):
        sf.RayExecutor(7)


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n"])
def test_what_answers_and_is_no_cluster_is_said_instead_of_waiting_for_it(monkeypatch, answer):
    """A server of something else, or one that says nothing: Ray itself would try for minutes."""
    monkeypatch.setattr(ray_cluster, "SECONDS_TO_ANSWER", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve():
            connection, _ = server.accept()
            with connection, suppress(ConnectionResetError):
                connection.recv(64)
                connection.sendall(answer)
                connection.recv(64)

        thread = threading.Thread(target=serve)
        thread.start()
        port = server.getsockname()[1]
        with pytest.raises(ExecutorError, match=rf"what answers at 127\.0\.0\.1:{port} is no head of a Ray cluster"):
            sf.RayExecutor(f"127.0.0.1:{port}")
        thread.join()


def test_without_a_cluster_auto_says_how_to_start_one(monkeypatch):
    def no_cluster(**options):
        raise ConnectionError("Could not find any running Ray instance")

    monkeypatch.setattr(ray, "init", no_cluster)
    with pytest.raises(ExecutorError, match=r"belongs to no cluster: start one by `ray start --head`"):
        sf.RayExecutor()


def test_without_ray_the_extra_is_named():
    code = (
        "import sys; sys.modules['ray'] = None; import stea_fast as sf\n"
        "try: sf.RayExecutor()\nexcept ModuleNotFoundError as error: print(error)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "pip install 'stea-fast[ray]'" in found
