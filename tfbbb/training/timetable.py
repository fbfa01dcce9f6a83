"""The epochs after which a training reports and validates."""

import math

_MOST_REPORTS = 200


class Timetable:
    """The epochs after which a training reports or validates, including the last.

    Args:
        epochs: Number of epochs.
        steps_per_epoch: Number of steps per epoch.
        validations: Most validations; 0 for none.
    """

    def __init__(self, epochs: int, steps_per_epoch: int, validations: int):
        self.epochs = epochs
        self.steps_per_epoch = steps_per_epoch
        self._between_reports = math.ceil(epochs / _MOST_REPORTS)
        self._between_validations = validations and math.ceil(epochs / validations)

    @property
    def steps(self) -> int:
        """Total number of steps."""
        return self.epochs * self.steps_per_epoch

    def validates(self, epoch: int) -> bool:
        """Returns whether the held-out rows are evaluated after `epoch` epochs."""
        every = self._between_validations
        return every > 0 and (epoch % every == 0 or epoch == self.epochs)

    def next_stop(self, step: int) -> int:
        """Returns the next step after which to report or validate."""
        epoch = step // self.steps_per_epoch + 1
        while not (
            epoch == self.epochs
            or epoch % self._between_reports == 0
            or self.validates(epoch)
        ):
            epoch += 1
        return epoch * self.steps_per_epoch
