"""What suits an effort and a number of rows, read without TensorFlow."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import log2

from tfbbb.training.spec import JobSpec
from tfbbb.training.spec.training import Effort

# From so many on, a tenth of the rows measures well enough, and costs less.
FEWEST_ROWS_TO_HOLD_OUT = 5_000


@dataclass(frozen=True)
class Defaults:
    """What suits an effort and a number of rows; the most promising networks first."""

    hidden_units: tuple[int, ...]
    temperatures: tuple[float, ...]
    group_size: int
    steps: int
    learning_rate: float
    most_networks: int = 1
    # Of the steps and the learning rate.
    trial: float = 1.0
    after_trial: float = 0.5
    rate_after_trial: float = 0.25

    @property
    def trainings(self) -> float:
        """How often the steps are taken by members of one temperature and network."""
        tried = len(self.temperatures) * self.most_networks
        return 1.0 if tried == 1 else tried * self.trial + self.after_trial


_FEW_ROWS = Defaults((64, 64), (0.3, 0.1, 0.01), 8, 1000, 0.02)
_MANY_ROWS = Defaults(
    (128, 128),
    (0.1, 0.01),
    4,
    3500,
    0.01,
    most_networks=2,
    trial=0.4,
    after_trial=0.6,
    rate_after_trial=0.5,
)
# By effort, for few rows and for many.
_DEFAULTS: Mapping[Effort, tuple[Defaults, Defaults]] = {
    "quick": (
        Defaults((64, 64), (0.1,), 8, 400, 0.02),
        Defaults((128, 128), (0.1,), 4, 1000, 0.01),
    ),
    "default": (_FEW_ROWS, _MANY_ROWS),
    "best": (
        replace(_FEW_ROWS, group_size=16, steps=1500),
        replace(_MANY_ROWS, group_size=8),
    ),
}


def suits_few_rows(num_rows: int) -> bool:
    """Returns whether a table gets the recipe of few rows."""
    return num_rows < FEWEST_ROWS_TO_HOLD_OUT


def defaults_for(spec: JobSpec, num_rows: int) -> Defaults:
    """Returns what suits the effort of a spec and a number of rows."""
    few, many = _DEFAULTS[spec.training.effort]
    return few if suits_few_rows(num_rows) else many


def usual_batch_size(num_rows: int) -> int:
    """Returns 64 to 256 rows, and more for more than 100 000 rows, up to 1024.

    A step of many small members costs a third more for 64 rows than for 32, and goes
    twice as far.
    """
    small = 2 ** int(log2(num_rows / 40)) if num_rows >= 40 else 1
    large = 2 ** int(log2(max(num_rows, 400) / 400))
    return max(min(max(small, 64), 256), min(large, 1024))
