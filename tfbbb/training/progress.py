"""The progress of a training."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Progress:
    """One report of a training.

    `saved_step` is that of the latest checkpoint, 0 without one. At the end of an
    epoch, the figures are `loss`, `nll` and `kl`, means over the steps since the last
    such report, and `val_nll` if it was measured.
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
