"""The progress of a training."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Progress:
    """One report of a training.

    Attributes:
        epoch: Number of completed epochs.
        epochs: Total number of epochs.
        step: Number of completed steps.
        steps: Total number of steps.
        saved_step: Step of the latest checkpoint; 0 without a checkpoint.
        seconds: Time of the steps.
        stage: What is being done, e.g. "training 24 members at temperatures 1, 0.1 and
            0.01".
        figures: At the end of an epoch `loss`, `nll` and `kl`, means over the steps
            since the last such report, and `val_nll` if it was measured. Empty within
            an epoch.
    """

    epoch: int
    epochs: int
    step: int
    steps: int
    saved_step: int = 0
    seconds: float = 0.0
    stage: str = ""
    figures: Mapping[str, float] = field(default_factory=dict)


class Interrupted(Exception):
    """Training was asked to stop; it continues from a checkpoint, or starts again."""
