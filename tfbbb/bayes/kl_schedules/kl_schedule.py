"""The base class of schedules of the KL weight."""

from tfbbb.base.strategy import Registry, Strategy


class KLSchedule(Strategy):
    """The temperature T of the posterior in each step of a `fit` on N rows.

    The loss of a step is

        (1/B) sum_i -log p(y_i | x_i, w) + (T/N) KL(q(w) || p(w))

    so T = 1 gives the evidence lower bound. T < 1 gives a "cold" posterior, which
    weights the data more than their number justifies (Wenzel et al. 2020).

    Attributes:
        varies_within_epoch: Whether steps of one epoch have different temperatures.
    """

    varies_within_epoch: bool = False

    @property
    def warmup_epochs(self) -> float:
        """Number of epochs before the divergence has its full weight."""
        return 0.0

    @property
    def counts_rows_once(self) -> bool:
        """Whether training ends at temperature 1, so that Bayes' rule holds."""
        return True

    def temperature(
        self, epoch: int, batch: int, num_batches: int | None, num_rows: float
    ) -> float:
        """Returns the temperature T of a step, by default that of the final objective.

        Args:
            epoch: Index of the epoch, from 0.
            batch: Index of the batch in its epoch, from 0.
            num_batches: Number M of batches per epoch. May be None for a schedule that
                does not vary within an epoch.
            num_rows: Number N of training rows, or the sum of their weights.
        """
        return self.target_temperature(num_rows)

    def target_temperature(self, num_rows: float) -> float:
        """Returns the temperature of the final objective.

        Validation uses this temperature: losses at different temperatures cannot be
        compared between epochs.

        Args:
            num_rows: Number N of training rows, or the sum of their weights.
        """
        return 1.0

    def has_settled(self, epoch: int) -> bool:
        """Whether an epoch and all after it have the target temperature, on average.

        Args:
            epoch: Index of the epoch, from 0.
        """
        return True


registry = Registry(KLSchedule, package="tfbbb.kl_schedules")
register = registry.register


def check_num_batches(batch: int, num_batches: int | None) -> int:
    """Returns `num_batches`."""
    if num_batches is None or not 0 <= batch < num_batches:
        raise ValueError(
            "A schedule that varies within an epoch needs the number of batches per "
            "epoch, and a batch index below that number. "
            f"Received: batch={batch}, num_batches={num_batches}"
        )
    return num_batches
