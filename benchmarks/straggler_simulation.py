"""A simulated cluster: workers that are slow or die, and messages that are lost.

Time is simulated, the mathematics is not: the server and the partitions are those of
`tfbbb.lab.distributed`, with linear regression, whose best factorised q is known.
"""

import heapq
import itertools
from dataclasses import dataclass

import numpy as np

from tfbbb.lab.distributed.factor_server import (
    FactorServer,
    Task,
    Update,
)
from tfbbb.lab.distributed.linear_rows import LinearRows
from tfbbb.lab.distributed.partition import Partition
from tfbbb.lab.inference.natural_normal import NaturalNormal

NOISE = 0.5


@dataclass(frozen=True)
class Faults:
    """What goes wrong; times are in units of the mean time of an update.

    Attributes:
        slow: Share of the workers that take `slowness` times as long.
        slowness: How much longer they take.
        lost: Share of the messages that are lost.
        doubled: Share of the updates that arrive twice.
        deaths: Share of the tasks during which the worker dies.
    """

    slow: float = 0.0
    slowness: float = 5.0
    lost: float = 0.0
    doubled: float = 0.0
    deaths: float = 0.0


@dataclass(frozen=True)
class Regression:
    """Rows in partitions, each with inputs of another mean, and the best q.

    Attributes:
        parts: (x, y) of each partition.
        mean: E[w] under the best factorised q.
        variances: Its variances.
    """

    parts: list[tuple[np.ndarray, np.ndarray]]
    mean: np.ndarray
    variances: np.ndarray


def regression(partitions: int, rows: int, weights: int) -> Regression:
    """Draws rows and finds the best factorised q in closed form."""
    random = np.random.default_rng(0)
    true = random.normal(size=weights)
    # Correlated inputs, for which factorised updates need several rounds.
    mixing = np.eye(weights) + 0.06
    parts = []
    for _ in range(partitions):
        centre = 0.3 * random.normal(size=weights)
        x = (centre + random.normal(size=(rows, weights))) @ mixing
        parts.append((x, x @ true + NOISE * random.normal(size=rows)))
    x, y = (np.concatenate(both) for both in zip(*parts, strict=True))
    precision = np.eye(weights) + x.T @ x / NOISE**2
    mean = np.linalg.solve(precision, x.T @ y / NOISE**2)
    return Regression(parts, mean, 1.0 / np.diag(precision))


class SimulatedCluster:
    """A server and workers, whose events happen in the order of simulated time.

    The server sends a task anew if no update comes within `patience`. A worker that
    dies is back after `restart`, without its factor.

    Args:
        problem: The rows.
        faults: What goes wrong.
        synchronous: Whether the server waits for all updates before it sends tasks.
        step: 1 - damping.
        seed: Seed of all that is random.
    """

    latency, patience, restart = 0.05, 12.0, 10.0

    def __init__(
        self,
        problem: Regression,
        faults: Faults,
        *,
        synchronous: bool,
        step: float,
        seed: int = 0,
    ) -> None:
        self._problem, self._faults = problem, faults
        self._synchronous, self._step = synchronous, step
        self._random = np.random.default_rng(seed)
        size, weights = len(problem.parts), len(problem.mean)
        prior = NaturalNormal.from_moments(np.zeros(weights), np.ones(weights))
        self._rows = [LinearRows(x, y, NOISE, prior) for x, y in problem.parts]
        self._workers = [Partition(rows) for rows in self._rows]
        self.server = FactorServer(prior, size)
        order = self._random.permutation(size)
        self._slow = set(order[: round(faults.slow * size)].tolist())
        self._events: list[tuple[float, int, str, int, object]] = []
        self._count = itertools.count()
        self._sent = [0] * size
        self._missing: set[int] = set()
        self.time, self.messages, self.deaths = 0.0, 0, 0

    def run(self, tolerance: float, most_updates: int) -> bool:
        """Runs until q is the best q; returns whether it got there.

        Args:
            tolerance: Largest difference of means, in standard deviations, and of
                variances, as a share.
            most_updates: Number of updates after which the run ends.
        """
        for partition in range(len(self._workers)):
            self._send(partition)
        while self._events and self.server.updates < most_updates:
            self.time, _, kind, partition, message = heapq.heappop(self._events)
            getattr(self, f"_{kind}")(partition, message)
            if kind == "update" and self._distance() <= tolerance:
                return True
        return False

    def _distance(self) -> float:
        mean, variances = self.server.q.moments()
        off = np.abs(mean - self._problem.mean) / np.sqrt(self._problem.variances)
        spread = np.abs(variances / self._problem.variances - 1.0)
        return float(max(off.max(), spread.max()))

    def _later(self, delay: float, kind: str, partition: int, message: object) -> None:
        entry = (self.time + delay, next(self._count), kind, partition, message)
        heapq.heappush(self._events, entry)

    def _happens(self, share: float) -> bool:
        return bool(self._random.random() < share)

    def _send(self, partition: int) -> None:
        task = self.server.task(partition, self._step)
        self._sent[partition] = task.number
        self._missing.add(partition)
        self.messages += 1
        if not self._happens(self._faults.lost):
            self._later(self.latency, "task", partition, task)
        slowness = self._faults.slowness if partition in self._slow else 1.0
        self._later(self.patience * slowness, "timeout", partition, task.number)

    def _task(self, partition: int, task: object) -> None:
        """A worker gets a task."""
        assert isinstance(task, Task)
        # The mean of the lognormal is 1.
        delay = self._random.lognormal(-0.125, 0.5)
        delay *= self._faults.slowness if partition in self._slow else 1.0
        if self._happens(self._faults.deaths):
            self.deaths += 1
            self._later(self.restart, "restarted", partition, None)
            return
        try:
            update = self._workers[partition].update(task)
        except RuntimeError:
            # A task from before the restart; the server sends another one.
            return
        self.messages += 1
        for _ in range(2 if self._happens(self._faults.doubled) else 1):
            if not self._happens(self._faults.lost):
                late = self.latency * self._random.exponential()
                self._later(delay + late, "update", partition, update)

    def _update(self, partition: int, update: object) -> None:
        """The server gets an update."""
        assert isinstance(update, Update)
        if not self.server.receive(partition, update):
            return
        self._missing.discard(partition)
        if not self._synchronous:
            self._send(partition)
        elif not self._missing:
            for each in range(len(self._workers)):
                self._send(each)

    def _timeout(self, partition: int, number: object) -> None:
        waits = partition in self._missing and self._sent[partition] == number
        if waits:
            self._send(partition)

    def _restarted(self, partition: int, _: object) -> None:
        self._workers[partition] = Partition(self._rows[partition])
        self.server.restart(partition)
        self._send(partition)
