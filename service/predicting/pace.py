"""How long a batch takes, fitted to the batches before it."""

import time
from typing import TYPE_CHECKING

import numpy as np

from tfbbb.export.inputs import any_row, to_tensors

if TYPE_CHECKING:
    from tfbbb.export.exported_model import ExportedModel

# What is left of the weight of a batch after each later one.
_KEPT = 0.98
# The rows by whose predictions a model is measured. The first prediction, which may
# compile, does not count.
_ROWS = (1, 1, 16)
# A block is at most this much work. It takes this long, or twice the fixed seconds of
# a batch if these are more: others wait no longer for their turn.
_BLOCK_WORK = 500_000.0
_BLOCK_SECONDS = 0.1
_LEAST_PER_WORK = 1e-9


class Pace:
    """The seconds of a batch, fixed + per_work × work, by least squares."""

    def __init__(self, fixed: float = 1e-3, per_work: float = 1e-6) -> None:
        self.fixed, self.per_work = fixed, per_work
        # Weighted sums of 1, w, w², t and w t over the batches.
        self._sums: tuple[float, ...] = (0.0, 0.0, 0.0, 0.0, 0.0)

    @classmethod
    def measure(cls, model: "ExportedModel") -> "Pace":
        """Measures a model by a few predictions, which also warm it up."""
        manifest, pace = model.manifest, cls()
        row = to_tensors(any_row(manifest), manifest)
        for place, size in enumerate(_ROWS):
            rows = {name: np.repeat(value, size, axis=0) for name, value in row.items()}
            begin = time.perf_counter()
            model.predict(type(row)(rows))
            if place:
                work = size * manifest.default_num_samples
                pace.observe(work, time.perf_counter() - begin)
        return pace

    def seconds(self, work: float) -> float:
        """Returns how long a batch should take."""
        return self.fixed + self.per_work * work

    @property
    def block_work(self) -> float:
        """The work of a batch that others can wait for."""
        seconds = max(_BLOCK_SECONDS, 2.0 * self.fixed)
        return max(1.0, min(_BLOCK_WORK, (seconds - self.fixed) / self.per_work))

    def observe(self, work: float, seconds: float) -> None:
        """Learns from a batch that was computed."""
        newest = 1.0, work, work * work, seconds, work * seconds
        kept = (_KEPT * old + new for old, new in zip(self._sums, newest, strict=True))
        n, w, ww, t, wt = self._sums = tuple(kept)
        variance = n * ww - w * w
        if variance > 1e-6 * n * ww:
            self.per_work = max(_LEAST_PER_WORK, (n * wt - w * t) / variance)
        else:  # All batches have one size, which tells nothing of other sizes.
            self.per_work = min(self.per_work, t / w)
        self.fixed = max(0.0, (t - self.per_work * w) / n)
