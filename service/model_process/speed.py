"""How long a batch takes, learned from the batches before it."""

import time
from typing import TYPE_CHECKING

import numpy as np

from tfbbb.export.inputs import any_row, to_tensors

if TYPE_CHECKING:
    from tfbbb.export.exported_model import ExportedModel

# The share of the newest batch in the estimate.
_GAIN = 0.1
# The rows by whose predictions a model is measured. The first prediction, which may
# compile, does not count.
_ROWS = (1, 1, 16)
# No estimate changes by more than this factor at a time, such as after a pause.
_MOST_CHANGE = 4.0


class Speed:
    """The seconds of a batch: load × (fixed + per_unit × work).

    The shape is measured when a version is loaded, and `load` follows the batches:
    it grows when other processes use the cores too.
    """

    def __init__(self, fixed: float = 1e-3, per_unit: float = 1e-6) -> None:
        self.fixed = max(1e-6, fixed)
        self.per_unit = max(1e-9, per_unit)
        self._load = 1.0

    @classmethod
    def of(cls, model: "ExportedModel") -> "Speed":
        """Returns the speed of a model, by a few predictions."""
        manifest = model.manifest
        row = to_tensors(any_row(manifest), manifest)
        measured = []
        for size in _ROWS:
            rows = {name: np.repeat(value, size, axis=0) for name, value in row.items()}
            begin = time.perf_counter()
            model.predict(type(row)(rows))
            seconds = time.perf_counter() - begin
            measured.append((size * manifest.default_num_samples, seconds))
        return cls.measured(*measured[1:])

    @classmethod
    def measured(cls, small: tuple[int, float], large: tuple[int, float]) -> "Speed":
        """Returns the speed behind two batches, each with its work and seconds."""
        more_work, more_seconds = large[0] - small[0], large[1] - small[1]
        per_unit = max(0.0, more_seconds / more_work)
        return cls(small[1] - per_unit * small[0], per_unit)

    def seconds(self, work: float) -> float:
        """Returns how long a batch should take."""
        return self._load * (self.fixed + self.per_unit * work)

    def work_within(self, seconds: float) -> float:
        """Returns the work of a batch that should take a time."""
        return (seconds / self._load - self.fixed) / self.per_unit

    def observe(self, work: float, seconds: float) -> None:
        """Learns from a batch that was computed."""
        expected = self.seconds(work)
        change = min(_MOST_CHANGE, max(1 / _MOST_CHANGE, seconds / expected))
        self._load *= 1 + _GAIN * (change - 1)
