"""A Ray cluster on this machine, whose nodes can be killed."""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from service.job_process.dispatcher import Dispatcher
from service.shared.job_state import ENDED
from service.shared.queue import Lease, Queue
from service.shared.settings import Settings
from tests.service.queued import job

ROOT = Path(__file__).parents[3]
_STAND_IN = "tests.service.job_process.stand_in_trainer"
_OBJECTS = {"object_store_memory": 80 * 2**20}


class Cluster:
    """A head without room for jobs, and nodes with room for some.

    Args:
        count: How many nodes beside the head.
        slots: How many jobs fit on a node.
    """

    def __init__(self, count: int, slots: int) -> None:
        from ray.cluster_utils import Cluster as RayCluster

        self._slots = slots
        head = {"num_cpus": 0, "include_dashboard": True, "dashboard_port": 0}
        self._cluster: Any = RayCluster(
            initialize_head=True, head_node_args=head | _OBJECTS
        )
        self.address = f"http://{self._cluster.head_node.webui_url}"
        self.nodes = [self.add() for _ in range(count)]

    def add(self) -> Any:
        attempts = 3
        while True:
            try:
                return self._cluster.add_node(num_cpus=self._slots, **_OBJECTS)
            except Exception:
                # Ray does not wait long enough for a node on a busy machine.
                attempts -= 1
                if not attempts:
                    raise

    def kill(self, node: Any) -> None:
        """Kills all processes of a node, trainers too, as if it lost its power."""
        self.nodes.remove(node)
        lost = [
            child
            for _, process in node.live_processes()
            for child in psutil.Process(process.pid).children(recursive=True)
        ]
        self._cluster.remove_node(node, allow_graceful=False)
        for process in lost:
            with suppress(psutil.NoSuchProcess):
                process.kill()

    def stop(self) -> None:
        self._cluster.shutdown()


@contextmanager
def cluster_of(count: int, slots: int) -> Iterator[Cluster]:
    """Runs a cluster until the block ends; its trainers find the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT))
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        cluster = Cluster(count, slots)
        try:
            yield cluster
        finally:
            cluster.stop()


def on_ray(settings: Settings, cluster: Cluster) -> Settings:
    """Settings of jobs on a cluster, in the Python of its nodes, that of the tests."""
    changes = {"launcher": "ray", "ray_address": cluster.address}
    return settings.model_copy(update=changes)


def dispatcher_of(queue: Queue) -> Dispatcher:
    """A dispatcher of stand-in trainers on a cluster."""
    from service.job_process.ray_launcher import RayLauncher

    return Dispatcher(queue, RayLauncher(queue.settings, _STAND_IN))


def step_until_saved(queue: Queue, dispatcher: Dispatcher, job_id: str) -> Lease:
    """Runs a dispatcher until a job has a checkpoint; returns its lease."""
    while not (found := job(queue, job_id)).progress.get("saved_step"):
        dispatcher.step()
        time.sleep(0.3)
    return Lease(job_id, found.attempt)


def step_until_ended(queue: Queue, dispatcher: Dispatcher, jobs: list[str]) -> None:
    """Runs a dispatcher until jobs have ended, and it knows."""
    while any(job(queue, job_id).state not in ENDED for job_id in jobs):
        dispatcher.step()
        time.sleep(0.3)
    while dispatcher._launcher.running():
        dispatcher.step()
        time.sleep(0.3)
