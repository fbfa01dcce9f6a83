"""What a training does at the end of which epoch."""

import math

_MOST_REPORTS = 200


class Timetable:
    """The epochs at whose ends there is something to do; the last is always one.

    Args:
        epochs: Number of epochs.
        steps_per_epoch: Number of steps of one.
        validations: Number of validations at the most, 0 for none.
    """

    def __init__(self, epochs: int, steps_per_epoch: int, validations: int):
        self.epochs = epochs
        self.steps_per_epoch = steps_per_epoch
        self._between_reports = math.ceil(epochs / _MOST_REPORTS)
        self._between_validations = validations and math.ceil(epochs / validations)

    @property
    def steps(self) -> int:
        """Number of steps of all epochs."""
        return self.epochs * self.steps_per_epoch

    def validates(self, epoch: int) -> bool:
        """Whether the held-out rows are looked at after `epoch` epochs."""
        every = self._between_validations
        return every > 0 and (epoch % every == 0 or epoch == self.epochs)

    def next_stop(self, step: int) -> int:
        """Returns the next step after which there is something to do."""
        epoch = step // self.steps_per_epoch + 1
        while not (
            epoch == self.epochs
            or epoch % self._between_reports == 0
            or self.validates(epoch)
        ):
            epoch += 1
        return epoch * self.steps_per_epoch
