"""Tasks on the machines of a Ray cluster."""

from typing import Any

import cloudpickle

from tfbbb.base.extras import import_extra
from tfbbb.base.numbers import positive_integer
from tfbbb.base.ray_connection import connect, losses
from tfbbb.training.executor.executor import Executor
from tfbbb.training.executor.task import (
    LostProcess,
    Task,
    TaskError,
)
from tfbbb.training.executor.threads import thread_settings


class RayExecutor(Executor):
    """Runs tasks on a Ray cluster, as many at a time as it has processor cores.

    The machines need the same versions of `tfbbb` and Ray as this one, and the files
    that tasks name. The connection lasts until `close`, at the end of a `with`.

    Args:
        address: `"local"` to start a cluster of this machine, `"auto"` for the cluster
            that this machine belongs to, or the address of a cluster.
        threads: Number of threads, and so of cores, of each task; see `LocalExecutor`.

    Raises:
        ValueError: `threads` is not a positive integer.
        ImportError: Ray is not installed.
        ConnectionError: No cluster answers.
    """

    def __init__(self, address: str = "auto", *, threads: int = 1):
        super().__init__()
        self._threads = positive_integer("threads", threads)
        (self._ray,) = import_extra("ray", "ray")
        self._address = address
        self._connected = connect(self._ray, address)
        self._call = self._ray.remote(
            num_cpus=self._threads,
            # The executor counts deaths itself.
            max_retries=0,
            runtime_env={"env_vars": thread_settings(self._threads)},
        )(_call)
        self._running: dict[Any, str] = {}

    @property
    def places(self) -> int:
        cores = self._ray.cluster_resources().get("CPU", 1)
        return max(1, int(cores) // self._threads)

    def start(self, task: Task) -> None:
        payload = cloudpickle.dumps((task.function, dict(task.arguments)))
        self._running[self._call.remote(payload)] = task.key

    def next(self) -> tuple[str, Any]:
        (reference, *_), _ = self._ray.wait(list(self._running), num_returns=1)
        key = self._running.pop(reference)
        try:
            return key, self._ray.get(reference)
        except losses(self._ray) as error:
            return key, LostProcess(str(error).partition("\n")[0])
        except self._ray.exceptions.RayTaskError as error:
            return key, TaskError.caused_by(error.cause, key)

    def stop(self) -> None:
        for reference in self._running:
            self._ray.cancel(reference, force=True)
        self._running.clear()

    def open(self) -> None:
        # The constructor has connected, unless `close` has followed.
        self._connected |= connect(self._ray, self._address)

    def close(self) -> None:
        super().close()
        if self._connected:
            self._ray.shutdown()
            self._connected = False


def _call(payload: bytes) -> Any:
    function, arguments = cloudpickle.loads(payload)
    return function(**arguments)
