"""The contract of a schedule."""

from tfbbb.strategy import Strategy


class KLSchedule(Strategy):
    """The temperature T of the posterior, step by step of a `fit` on N rows.

    A step's loss is

        (1/B) sum_i -log p(y_i | x_i, w) + (T/N) KL(q(w) || p(w))

    so T = 1 is the evidence lower bound, T < 1 a posterior that is "colder": it
    trusts the data more than their number allows (Wenzel et al. 2020).

    Attributes:
        varies_within_epoch: Whether steps of one epoch have different temperatures.
    """

    varies_within_epoch: bool = False

    def temperature(
        self, epoch: int, batch: int, num_batches: int | None, num_rows: float
    ) -> float:
        """Returns the temperature T of one step.

        Args:
            epoch: Index of the epoch, from 0.
            batch: Index of the batch in its epoch, from 0.
            num_batches: Number M of batches of an epoch. It may be None for a schedule
                that does not vary within an epoch.
            num_rows: Number N of training rows, or the sum of their weights.
        """
        raise NotImplementedError

    def target_temperature(self, num_rows: float) -> float:
        """Returns the temperature of the objective that the schedule works towards.

        Epochs are compared at this one: a loss whose weights change from epoch to epoch
        says nothing of which epoch was better.

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


def known(batch: int, num_batches: int | None) -> int:
    """Returns `num_batches`, if it is known and `batch` is one of them.

    Raises:
        ValueError: Where it is not.
    """
    if num_batches is None or not 0 <= batch < num_batches:
        raise ValueError(
            "A schedule that varies within an epoch needs the number of its batches, "
            "and the index of one of them. "
            f"Received: batch={batch}, num_batches={num_batches}"
        )
    return num_batches
