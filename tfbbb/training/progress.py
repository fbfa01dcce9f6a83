"""How far a training has come."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Progress:
    """One report of a training.

    Attributes:
        epoch: Number of epochs that are complete.
        epochs: Number of epochs planned.
        step: Number of steps taken.
        steps: Number of steps planned.
        saved_step: Number of steps behind the latest checkpoint, 0 without one.
        seconds: Time that the steps took, in this process.
        figures: At the end of an epoch `loss`, `nll` and `kl`, means over the steps
            since the last such report, and `val_nll` where it was measured. Empty
            within an epoch.
    """

    epoch: int
    epochs: int
    step: int
    steps: int
    saved_step: int = 0
    seconds: float = 0.0
    figures: Mapping[str, float] = field(default_factory=dict)


class Interrupted(Exception):
    """Training was asked to stop, and has written where it was."""
