"""One partition: its rows, its factor, and updates of the factor."""

from typing import Protocol

import numpy as np

from tfbbb.lab.distributed.factor_server import (
    LEAST_PRECISION,
    Task,
    Update,
)
from tfbbb.lab.inference.natural_normal import NaturalNormal


class LocalRows(Protocol):
    """The rows of a partition, with a way to the best q given their cavity.

    Attributes:
        prior: The prior of the whole model.
    """

    prior: NaturalNormal

    def optimum(
        self, cavity: NaturalNormal, start: NaturalNormal, seed: int
    ) -> NaturalNormal:
        """Returns the q that maximises the bound of these rows.

        sum_i E_q[log p(y_i | x_i, w)] - KL(q || cavity)
        """


class Partition:
    """Holds rows and their factor t(w), and answers tasks.

    The cavity is `q / t`. With `q_new`, the optimum for these rows and the cavity, the
    change of the factor is, in natural parameters,

        step * (q_new - cavity - t)

    Where other factors have a negative precision, the cavity of a weight may be too
    weak: of less than a tenth of the prior's precision. The update then uses a normal
    around the mean of q with a tenth of the prior's precision, so that the other
    weights can learn, and withholds the change of this weight until other partitions
    have made its cavity stronger.

    Args:
        rows: The rows.
    """

    def __init__(self, rows: LocalRows):
        self._rows = rows
        self._factor: NaturalNormal | None = None
        self._accepted = 0
        self._change: Update | None = None

    def update(self, task: Task) -> Update:
        """Returns the change of the factor."""
        self._factor = factor = self._factor_at(task)
        self._accepted = task.accepted
        cavity, too_weak = self._strengthened(task.q - factor, task.q)
        found = self._rows.optimum(cavity, task.q, task.number)
        change = (found - cavity - factor) * task.step
        if too_weak.any():
            kept = np.where(too_weak, 0.0, 1.0)
            change = NaturalNormal(kept * change.linear, kept * change.precision)
        self._change = Update(task.number, change, int(too_weak.sum()))
        return self._change

    def _factor_at(self, task: Task) -> NaturalNormal:
        """Returns the factor after the update that was the last to count."""
        if task.factor is not None:
            return task.factor
        if self._factor is not None:
            if task.accepted == self._accepted:
                return self._factor
            if self._change is not None and task.accepted == self._change.number:
                return self._factor + self._change.change
        raise RuntimeError(
            "The worker does not know its factor; restart the worker. "
            f"Received: accepted={task.accepted}, known={self._accepted}"
        )

    def _strengthened(
        self, cavity: NaturalNormal, q: NaturalNormal
    ) -> tuple[NaturalNormal, np.ndarray]:
        """Returns the cavity with enough precision, and where it was too weak, [d]."""
        if cavity.precision.ndim == 2:
            # Only linear models have a full covariance: their factors are never
            # negative, so that the cavity is at least as precise as the prior.
            return cavity, np.zeros(len(cavity.linear), bool)
        least = LEAST_PRECISION * self._rows.prior.precision
        too_weak = cavity.precision < least
        mean = q.linear / q.precision
        return (
            NaturalNormal(
                np.where(too_weak, least * mean, cavity.linear),
                np.where(too_weak, least, cavity.precision),
            ),
            too_weak,
        )
