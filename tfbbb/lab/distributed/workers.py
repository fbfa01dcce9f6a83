"""Where partitions live: one interface for this process and for other machines."""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol, Self

from tfbbb.lab.distributed.rows import Source

# Makes the worker of a partition, where the worker lives.
MakeWorker = Callable[[int, Source], Any]


class Workers(Protocol):
    """One worker for each partition. A worker is an object that lives with its rows.

    Attributes:
        at_once: Number of workers that compute at the same time.
    """

    at_once: int

    def start(self, partition: int) -> None:
        """Starts a new worker for a partition, in the place of any other."""

    def submit(self, partition: int, method: str, *arguments: Any) -> None:
        """Calls a method of a worker, without waiting for the answer."""

    def share(self, value: object) -> object:
        """Returns an argument for many calls, which is sent to each machine once."""

    def next(self) -> tuple[int, str, Any]:
        """Waits for the next answer; returns the partition, the method and the answer.

        The answer is a `LostWorker` if the worker has died.
        """

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None:
        """Ends all workers."""


class LostWorker(Exception):
    """A worker has died: with its process, or with its machine."""


class InProcessWorkers:
    """Workers of this process: they compute one after the other, in the order asked.

    Args:
        make: Makes the worker of a partition from its index and its source.
        sources: What each worker is made from.
    """

    at_once = 1

    def __init__(self, make: MakeWorker, sources: Sequence[Source]):
        self._make = make
        self._sources = sources
        self._workers: dict[int, object] = {}
        self._calls: deque[tuple[int, str, tuple[object, ...]]] = deque()

    def start(self, partition: int) -> None:
        self._workers[partition] = self._make(partition, self._sources[partition])

    def submit(self, partition: int, method: str, *arguments: Any) -> None:
        self._calls.append((partition, method, arguments))

    def share(self, value: object) -> object:
        return value

    def next(self) -> tuple[int, str, Any]:
        partition, method, arguments = self._calls.popleft()
        answer = getattr(self._workers[partition], method)(*arguments)
        return partition, method, answer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._workers.clear()
        self._calls.clear()
