"""The product of the partitions' factors, and which changes of it count."""

from dataclasses import dataclass

import numpy as np

from tfbbb.lab.inference.natural_normal import NaturalNormal

# q and every cavity keep at least this share of the prior's precision.
LEAST_PRECISION = 0.1


@dataclass(frozen=True)
class Task:
    """What a worker needs for one update of its factor.

    Attributes:
        number: Number of the task, which no other task of the partition has.
        accepted: Number of the task whose update was the last to count; 0 for none.
        q: The present q.
        step: Share of the way to the new factor, 1 without damping.
        factor: The factor of the partition for a worker that does not know it; None if
            the worker finds it from its last change.
    """

    number: int
    accepted: int
    q: NaturalNormal
    step: float
    factor: NaturalNormal | None

    @property
    def nbytes(self) -> int:
        """Number of bytes of the natural parameters."""
        return self.q.nbytes + (0 if self.factor is None else self.factor.nbytes)


@dataclass(frozen=True)
class Update:
    """The answer to a task.

    Attributes:
        number: Number of the task.
        change: Change of the factor.
        withheld: Number of weights whose cavity was too weak: their change is 0.
    """

    number: int
    change: NaturalNormal
    withheld: int = 0


class FactorServer:
    """Holds `q(w) = p(w) prod_k t_k(w)` and the accepted factor of each partition.

    A partition has one open task at a time. An update counts if it answers the open
    task; every other update is a duplicate, comes from before a restart, or comes after
    its task was sent anew, and changes nothing.

    A change is shortened, weight by weight, so that q keeps a tenth of the prior's
    precision. For a full covariance, a change that makes q improper is refused.

    Args:
        prior: The prior p(w), proper.
        partitions: Number K of partitions.
        start: q at the start, proper: the factors start as equal parts of `start / p`,
            which their first updates replace. None for the prior.

    Attributes:
        prior: The prior.
        q: The present q.
        factors: The factor t_k of each partition.
        accepted: Number of the last accepted task of each partition; 0 for none.
        updates: Number of updates that counted.
        ignored: Number of updates that did not count.
        shortened: Number of weights whose change was shortened, over all updates.
    """

    def __init__(
        self, prior: NaturalNormal, partitions: int, start: NaturalNormal | None = None
    ):
        self.prior = prior
        self.q = prior if start is None else start
        self.factors = [(self.q - prior) * (1.0 / partitions)] * partitions
        self.accepted = [0] * partitions
        self.updates = self.ignored = self.shortened = 0
        self._last_number = [0] * partitions
        self._open: list[int | None] = [None] * partitions
        self._send_factor = [True] * partitions

    def restart(self, partition: int) -> None:
        """Prepares for a new worker: the next task carries the accepted factor."""
        self._open[partition] = None
        self._send_factor[partition] = True

    def task(self, partition: int, step: float = 1.0) -> Task:
        """Opens a task; an answer to an earlier task does not count any more."""
        self._last_number[partition] += 1
        number = self._open[partition] = self._last_number[partition]
        factor = self.factors[partition] if self._send_factor[partition] else None
        return Task(number, self.accepted[partition], self.q, step, factor)

    def receive(self, partition: int, update: Update) -> bool:
        """Multiplies the change into q and the factor; returns whether it counts."""
        if update.number != self._open[partition]:
            self.ignored += 1
            return False
        self._open[partition] = None
        change = self._shortened(update.change)
        self.factors[partition] = self.factors[partition] + change
        self.q = self.q + change
        self.accepted[partition] = update.number
        # The worker knows its factor unless its change was shortened.
        self._send_factor[partition] = change is not update.change
        self.updates += 1
        return True

    def _shortened(self, change: NaturalNormal) -> NaturalNormal:
        if change.precision.ndim == 2:
            if (self.q + change).proper:
                return change
            self.shortened += len(change.linear)
            return change * 0.0
        room = self.q.precision - LEAST_PRECISION * self.prior.precision
        too_long = -change.precision > room
        if not too_long.any():
            return change
        self.shortened += int(too_long.sum())
        steps = np.ones_like(room)
        steps[too_long] = np.maximum(room[too_long], 0.0) / -change.precision[too_long]
        return change * steps
