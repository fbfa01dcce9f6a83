"""One training: workers that may die, and the server of their factors."""

from collections import deque
from typing import Any

import numpy as np

from tfbbb.lab.distributed.factor_server import FactorServer
from tfbbb.lab.distributed.problems import Problem
from tfbbb.lab.distributed.workers import LostWorker, Workers
from tfbbb.lab.inference.natural_normal import NaturalNormal

# A partition whose worker dies this often without an update in between is given up.
_MOST_DEATHS = 3


class Run:
    """The workers of one `fit`, and the server of their factors.

    A worker that dies is started again, reads its rows, and gets its accepted factor
    with the next task.

    Args:
        workers: The workers, which are not started yet. Their methods are those of
            `PartitionWorker`.
        partitions: Number K of partitions.

    Attributes:
        server: The server, from `begin` on.
        step: Share of the way to the new factors.
        at_once: Number of partitions that compute at the same time.
        changes: The largest change of q in each round.
        bytes_sent: Bytes of all tasks and updates.
        restarts: Number of workers that were started again.
        withheld: Number of weights whose change was withheld, over all updates.
    """

    def __init__(self, workers: Workers, partitions: int):
        self._workers = workers
        self._partitions = range(partitions)
        self._deaths = [0] * partitions
        self._idle = deque(self._partitions)
        self._running = 0
        self.at_once = min(workers.at_once, partitions)
        self.changes: list[float] = []
        self.bytes_sent = self.restarts = self.withheld = 0
        for partition in self._partitions:
            workers.start(partition)

    def ask_all(self, method: str, *arguments: Any) -> list[Any]:
        """Calls a method of all workers; returns their answers in order."""
        answers: dict[int, Any] = {}
        for partition in self._partitions:
            self._workers.submit(partition, method, *arguments)
        while len(answers) < len(self._partitions):
            partition, answered, answer = self._workers.next()
            if isinstance(answer, LostWorker):
                self._restart(partition, answer)
                if method != "load":
                    self._workers.submit(partition, "load")
                self._workers.submit(partition, method, *arguments)
            elif answered == method:
                answers[partition] = answer
        return [answers[partition] for partition in self._partitions]

    def begin(
        self,
        problem: Problem,
        prior: NaturalNormal,
        step: float,
        start: NaturalNormal | None = None,
    ) -> None:
        """Sends the problem to all workers, and creates the server."""
        self._problem = self._workers.share(problem)
        self.ask_all("prepare", self._problem)
        self.step = step
        self.server = FactorServer(prior, len(self._partitions), start)

    def one_round(self) -> None:
        """Waits until an update of each partition has counted.

        Partitions that are faster than others make several updates meanwhile.
        """
        before, missing = self.server.q, set(self._partitions)
        while missing:
            while self._idle and self._running < self.at_once:
                self._submit(self._idle.popleft())
                self._running += 1
            partition, method, answer = self._workers.next()
            if isinstance(answer, LostWorker):
                self._restart(partition, answer)
                self.server.restart(partition)
                self._workers.submit(partition, "load")
                self._workers.submit(partition, "prepare", self._problem)
                self._submit(partition)
            elif method == "update":
                self._running -= 1
                self._idle.append(partition)
                self._deaths[partition] = 0
                self.bytes_sent += answer.change.nbytes
                if self.server.receive(partition, answer):
                    self.withheld += answer.withheld
                    missing.discard(partition)
        self.changes.append(_largest_change(before, self.server.q))

    def _submit(self, partition: int) -> None:
        task = self.server.task(partition, self.step)
        self.bytes_sent += task.nbytes
        self._workers.submit(partition, "update", task)

    def _restart(self, partition: int, error: LostWorker) -> None:
        self._deaths[partition] += 1
        if self._deaths[partition] >= _MOST_DEATHS:
            raise RuntimeError(
                f"The worker of a partition has died {_MOST_DEATHS} times in a row; "
                "look for too little memory on its machine. "
                f"Received: partition {partition}, {error}"
            ) from error
        self.restarts += 1
        self._workers.start(partition)


def _largest_change(old: NaturalNormal, new: NaturalNormal) -> float:
    """Returns the largest change of means and of logarithms of variances."""
    (old_mean, old_variances), (mean, variances) = map(_marginals, (old, new))
    moved = np.abs(mean - old_mean) / np.sqrt(variances)
    spread = np.abs(np.log(variances / old_variances))
    return float(max(moved.max(), spread.max()))


def _marginals(normal: NaturalNormal) -> tuple[np.ndarray, np.ndarray]:
    mean, spread = normal.moments()
    return mean, spread if spread.ndim == 1 else np.diag(spread)
