"""Workers that are Ray actors, on the machines of a Ray cluster."""

from collections.abc import Sequence
from typing import Any, Self

from tfbbb.base.extras import import_extra
from tfbbb.base.ray_connection import connect, losses
from tfbbb.lab.distributed.rows import Source
from tfbbb.lab.distributed.workers import LostWorker, MakeWorker


class RayWorkers:
    """One Ray actor for each partition; an actor that dies is not restarted by Ray.

    As many actors compute at the same time as the cluster has processor cores.

    Args:
        make: Makes the worker of a partition: a class that Ray can send.
        sources: What each worker is made from; each goes to its own actor only.
        address: `"local"`, `"auto"` or the address of a cluster.

    Raises:
        ImportError: Ray is not installed.
        ConnectionError: No cluster answers.
    """

    def __init__(self, make: MakeWorker, sources: Sequence[Source], address: str):
        (self._ray,) = import_extra("ray", "ray")
        self._started = connect(self._ray, address)
        self._losses = losses(self._ray)
        # An actor waits for its core, but must start although the job that starts it
        # may have reserved all of them.
        self._make = self._ray.remote(num_cpus=0, scheduling_strategy="SPREAD")(make)
        self._sources = sources
        self._actors: dict[int, Any] = {}
        # Answers that are awaited, by their reference.
        self._waiting: dict[Any, tuple[int, str]] = {}
        self.at_once = max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def start(self, partition: int) -> None:
        self._waiting = {r: c for r, c in self._waiting.items() if c[0] != partition}
        source = self._sources[partition]
        self._actors[partition] = self._make.remote(partition, source)

    def submit(self, partition: int, method: str, *arguments: Any) -> None:
        call = getattr(self._actors[partition], method)
        self._waiting[call.remote(*arguments)] = partition, method

    def share(self, value: object) -> object:
        return self._ray.put(value)

    def next(self) -> tuple[int, str, Any]:
        (reference, *_), _ = self._ray.wait(list(self._waiting), num_returns=1)
        partition, method = self._waiting.pop(reference)
        try:
            return partition, method, self._ray.get(reference)
        except self._losses as error:
            return partition, method, LostWorker(str(error).partition("\n")[0])
        except self._ray.exceptions.RayTaskError as error:
            # The error of the worker itself, without the traceback of Ray.
            raise error.cause from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        for actor in self._actors.values():
            self._ray.kill(actor)
        if self._started:
            self._ray.shutdown()
