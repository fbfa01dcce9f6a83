"""Tasks of a real Ray cluster of two nodes on this machine."""

import importlib.util
import os

import numpy as np
import pytest

from tests.training.executor import tasks as functions
from tfbbb.training.executor import (
    RayExecutor,
    Task,
    TaskError,
)


@pytest.fixture(scope="module")
def executor():
    if importlib.util.find_spec("ray") is None:
        reason = "Ray is not installed: `pip install 'tfbbb[ray]'`."
        (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)
    import ray
    from ray.cluster_utils import Cluster

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    node = {"num_cpus": 1, "object_store_memory": 80 * 2**20}
    cluster = Cluster(
        initialize_head=True, head_node_args={**node, "include_dashboard": False}
    )
    cluster.add_node(**node)
    ray.init(cluster.address, log_to_driver=False)
    with RayExecutor("auto") as executor:
        yield executor
    ray.shutdown()
    cluster.shutdown()


def test_a_cluster_has_the_results_of_local_processes(executor, networks):
    assert executor.places == 2
    *_, last = functions.trainings()
    np.testing.assert_array_equal(executor.run([last]), networks[-1:])


def test_a_task_of_a_killed_worker_runs_again(executor, tmp_path):
    log = tmp_path / "log"
    task = Task("dies", functions.die, {"path": log, "times": 1})
    assert executor.run([task]) == ["alive"]
    assert log.read_text() == "0\n" * 2


def test_an_error_names_its_task_and_ends_the_others(executor, tmp_path):
    path = tmp_path / "pids"
    tasks = [
        Task("sleeps", functions.sleep, {"path": path}),
        Task("fails", functions.wait_for, {"path": path}),
        Task("waits", functions.sleep, {"path": path}),
    ]
    with pytest.raises(TaskError, match="'fails' failed: ValueError: enough") as caught:
        executor.run(tasks)
    assert isinstance(caught.value.__cause__, ValueError)
    # The places are free again.
    results = executor.run([Task(str(i), os.getpid) for i in range(2)])
    assert os.getpid() not in results


def test_an_address_without_a_cluster_is_refused(monkeypatch):
    import ray

    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    with pytest.raises(ConnectionError, match=r"ray_address='127\.0\.0\.1:1'"):
        RayExecutor("127.0.0.1:1")
